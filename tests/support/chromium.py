"""The browser of the tests. None where there is none."""

import shutil

# The shell has no windows to draw: it takes half of the time.
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
