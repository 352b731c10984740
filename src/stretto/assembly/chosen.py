"""Questions to the user that the wiring may ask."""

from collections.abc import Callable
from typing import TypeAlias

# Asks the user whether weights may be fetched.
Ask: TypeAlias = Callable[[str], bool]
