"""Make the README's pictures from real runs in a real terminal.

    python scripts/pictures.py

Needs tmux. Each picture is a screen of a tmux window, drawn as SVG by rich; the runs are scripted, so
that the pictures can be made anew on any machine.
"""

import io
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
WIDTH, HEIGHT = 92, 16
COMMAND = "stretto run examples/code-review.yaml -i path=src/billing --model scripted:demo.yaml"
SCRIPT = """\
replies:
  map: {reply: "Three modules; invoices.py takes outside data.", delay: 1s, tokens: 412}
  security: {fail: "429 too many requests", delay: 2s}
  correctness: {reply: "Rounding differs between two callers.", delay: 2s, tokens: 980}
default: {reply: "Nothing to report.", delay: 9s}
"""


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        prepare(Path(folder))
        screen = capture(Path(folder), COMMAND, until="running", seconds=4.0)
    picture = draw(f"$ {COMMAND}\n{screen}", "stretto run")
    (PICTURES / "run.svg").write_text(picture, encoding="utf-8")


def prepare(folder: Path) -> None:
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "demo.yaml").write_text(SCRIPT)
    (folder / "src" / "billing").mkdir(parents=True)


def capture(folder: Path, command: str, until: str, seconds: float) -> str:
    """The screen, with its colours, `seconds` after the word `until` stands on it."""
    name = f"pictures-{folder.name}"
    binaries = shlex.quote(str(Path(sys.executable).parent))
    shell = f"PATH={binaries}:$PATH STRETTO_HOME={folder}/home {command}; sleep 60"
    size = ("-x", str(WIDTH), "-y", str(HEIGHT))
    tmux("new-session", "-d", "-s", name, *size, "-c", str(folder), shell)
    try:
        for _ in range(300):
            time.sleep(0.1)
            if until in tmux("capture-pane", "-p", "-t", name):
                break
        time.sleep(seconds)
        return tmux("capture-pane", "-e", "-p", "-t", name).rstrip()
    finally:
        tmux("kill-session", "-t", name)


def tmux(*arguments: str) -> str:
    done = subprocess.run(["tmux", *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def draw(screen: str, title: str) -> str:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen), soft_wrap=True)
    picture = console.export_svg(title=title, theme=MONOKAI, unique_id="run")
    # A page that shows the picture must not ask another server for a font.
    return re.sub(r"@font-face\s*{.*?}", "", picture, flags=re.DOTALL)


if __name__ == "__main__":
    main()
