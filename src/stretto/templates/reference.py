"""One path, as it stands between braces. In: text. Out: a Reference, or the Fault in it."""

import re
from typing import NamedTuple, TypeAlias

from stretto.templates.fault import Fault

PathPart: TypeAlias = str | int

LONGEST_REFERENCE = 512
BLANKS = " \t"

# \w is what str.isalnum() accepts, and the underscore: names may be in any script.
PATH = r"[\w-]++(?:\.[\w-]++|\[[0-9]++\])*+"
_PATH = re.compile(PATH)
_PART = re.compile(r"\[([0-9]+)\]|[\w-]+")

_ONLY_A_PATH = "braces hold one path: no filters, no logic"


class Reference(NamedTuple):
    text: str  # as written, trimmed: `steps.gather.output.items[0]`
    path: tuple[PathPart, ...]  # ('steps', 'gather', 'output', 'items', 0)
    offset: int  # where `text` starts in the template or expression

    @property
    def step(self) -> str | None:
        if len(self.path) > 1 and self.path[0] == "steps" and isinstance(self.path[1], str):
            return self.path[1]
        return None

    @property
    def is_whole_output(self) -> bool:
        """`steps.ID.output` and no more, as most references are."""
        path = self.path
        return (
            len(path) == 3
            and path[2] == "output"
            and path[0] == "steps"
            and isinstance(path[1], str)
        )

    def span(self, index: int) -> tuple[int, int]:
        """Where the part at `index` stands, and how wide it is: for the caret."""
        part = list(_PART.finditer(self.text))[index]
        return self.offset + part.start(), part.end() - part.start()


def parse_reference(text: str, offset: int = 0) -> Reference | Fault:
    unindented = text.lstrip(BLANKS)
    offset += len(text) - len(unindented)
    path = unindented.rstrip(BLANKS)
    if not path:
        hint = "name what goes here, such as {{inputs.topic}}"
        return Fault("RCP201", "the braces are empty", hint, offset)
    if len(path) > LONGEST_REFERENCE:
        message = f"this reference is longer than {LONGEST_REFERENCE} characters"
        return Fault("RCP201", message, "was a '}}' forgotten?", offset, LONGEST_REFERENCE)
    read = _PATH.match(path)
    end = read.end() if read else 0
    if end < len(path):
        return _slip(path, end, offset)
    return Reference(path, parse_path(path), offset)


def parse_path(path: str) -> tuple[PathPart, ...]:
    if "[" not in path:
        return tuple(path.split("."))
    return tuple(int(part[1]) if part[1] else part[0] for part in _PART.finditer(path))


def _slip(path: str, end: int, offset: int) -> Fault:
    """Why the path stops at `end`."""
    at = end + len(path[end:]) - len(path[end:].lstrip(BLANKS))
    character = path[at]
    if character in "\r\n":
        message, hint = "a reference stays on one line", "close it with '}}'"
    elif at > end and (character.isalnum() or character in "_-"):
        message, hint = "a path has no blanks in it", _ONLY_A_PATH
    elif character == ".":
        message, hint = "a name is missing beside this '.'", "write it as in steps.gather.output"
    elif character == "[":
        message, hint = "an index is a whole number from 0", "write it as in items[0]"
    elif character == "{":
        message, hint = "'{' cannot be part of a path", "two braces are enough: {{path}}"
    else:
        message, hint = f"{character!r} cannot be part of a path", _ONLY_A_PATH
    return Fault("RCP201", message, hint, offset + at)
