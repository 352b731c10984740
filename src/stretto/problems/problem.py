"""One thing an author should fix. Made where the fault is known, rendered anywhere.

Dataclasses, not structs: every command loads them, and shell completion imports no msgspec.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file. Lines and columns count from 1, as editors show them."""

    line: int
    column: int
    width: int = 1  # how many characters the caret underlines


@dataclass(frozen=True, slots=True)
class Problem:
    code: str
    message: str
    file: str = ""
    place: Place | None = None
    path: str = ""  # `steps[2].depends_on[0]`
    hint: str = ""
    source_line: str = ""  # the line itself, for the caret

    @property
    def sort_key(self) -> tuple[str, int, int, str]:
        place = self.place or Place(0, 0)
        return (self.file, place.line, place.column, self.code)
