"""What a document holds, each piece with its place; and the text that it was read from."""

import re
from bisect import bisect_right
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct, field

from stretto.problems import Place, Problem
from stretto.vocabulary.json_value import Json

Path: TypeAlias = tuple[str | int, ...]


# Not frozen: a file has up to 50,000 nodes, and a frozen __init__ costs four times as much.
# Nothing changes a node once its document is read.
class Node(Struct, eq=False):
    start: int  # indices into the document's text
    end: int


class ScalarNode(Node, eq=False):
    value: bool | int | float | str | None
    written: str  # as it stands in the file, before 'true' became True


class ListNode(Node, eq=False):
    items: list[Node] = field(default_factory=list)


class MapNode(Node, eq=False):
    entries: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, ScalarNode] = field(default_factory=dict)


class RefusedNode(Node, eq=False):
    """A value whose problem is already reported, so nothing more is said about it."""


def plain(node: Node) -> Json:
    """The bare JSON value. Depth was limited when the document was read."""
    if isinstance(node, MapNode):
        return {key: plain(value) for key, value in node.entries.items()}
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    return node.value if isinstance(node, ScalarNode) else None


def describe(node: Node) -> str:
    """What an author would call it, for 'expected …, found …'."""
    if isinstance(node, MapNode):
        return "a mapping"
    if isinstance(node, ListNode):
        return "a list"
    assert isinstance(node, ScalarNode)
    match node.value:
        case None:
            return "nothing"
        case bool():
            return f"the boolean {'true' if node.value else 'false'}"
        case int() | float():
            return f"the number {node.written[:40]}"
        case _:
            return f"the text {_quote(node.value)}"


def _quote(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "…")


def spell(path: Path) -> str:
    """`steps[2].depends_on[0]`"""
    spelt = ""
    for part in path:
        if isinstance(part, int):
            spelt += f"[{part}]"
        else:
            spelt += f".{part}" if spelt else part
    return spelt


# What YAML calls non-printable. A terminal would obey some of these, so none may pass.
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]"
)


def name_letter(letter: str) -> str:
    return "a NUL byte" if letter == "\0" else f"control character U+{ord(letter):04X}"


_LINE_BREAK = re.compile(r"\r\n|\n|\r")  # YAML knows only these; splitlines() knows \f and \x1c too
_FIRST_LINE = re.compile(r"[^\r\n]*")


class Source(Struct, frozen=True, dict=True):
    text: str
    file: str = ""
    mark: str = ""  # the byte order mark that stood before the text, to be kept where it is saved

    @property
    def content(self) -> bytes:
        """The file, byte for byte."""
        return (self.mark + self.text).encode()

    @cached_property
    def lines(self) -> list[str]:
        return _LINE_BREAK.split(self.text)

    @cached_property
    def digest(self) -> str:
        from hashlib import sha256  # not for checking: only a run needs the digest

        return sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    def line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(found.end() for found in _LINE_BREAK.finditer(self.text))]

    def place_of_index(self, index: int, width: int = 1) -> Place:
        line = bisect_right(self._line_starts, index)
        return Place(line, index - self._line_starts[line - 1] + 1, width)

    def index_of(self, line: int, column: int) -> int:
        """The nearest one that there is."""
        start = self._line_starts[min(line, len(self._line_starts)) - 1]
        return min(start + column - 1, len(self.text))

    def place_of(self, node: Node) -> Place:
        written = self.text[node.start : node.end].split("\n", 1)[0].rstrip()
        return self.place_of_index(node.start, max(1, len(written)))

    def place_inside(self, node: Node, value: str, offset: int, width: int) -> Place:
        """Where value[offset:] stands in the file, whatever style the scalar is written in."""
        at = self.index_inside(node, value, offset, width)
        if at is None:  # the scalar itself is the best we know
            return self.place_of(node)
        return self.place_of_index(at, width)

    def index_inside(self, node: Node, value: str, offset: int, width: int) -> int | None:
        """The same as an index into the text; None where it is hidden behind an escape.

        The file's text differs from the value by quotes, escapes and indentation, so look for
        the same braces first and then for the same words after them.
        """
        piece = value[offset : offset + width]
        at = node.start
        if self.text[at] in "|>":  # a block's first line is its header, perhaps with a comment
            at += len(_FIRST_LINE.match(self.text, at, node.end)[0])  # type: ignore[index]
        elif self.text[at] in "\"'":
            at += 1
        opened = value.rfind("{{", 0, offset)
        if opened >= 0:
            at = self._nth("{{", _count("{{", value[: opened + 2]), at, node.end)
        repeats = _count(piece, value[max(opened, 0) : offset + width])
        at = self._nth(piece, repeats, at, node.end) if at >= 0 else at
        return at if at >= 0 else None

    def place_inside_list(self, node: Node, word: str) -> Place:
        """A word of a list, or of `tools: Read, Bash` as front matter writes it."""
        at = self.text.find(word, node.start, node.end)
        return self.place_of(node) if at < 0 else self.place_of_index(at, len(word))

    def _nth(self, piece: str, count: int, start: int, end: int) -> int:
        at = start - 1
        for _ in range(count):
            at = self.text.find(piece, at + 1, end)
            if at < 0:
                return -1
        return at

    def problem(
        self, code: str, place: Place | None, message: str, hint: str | None = "", path: Path = ()
    ) -> Problem:
        line = self.line(place.line) if place else ""
        return Problem(code, message, self.file, place, spell(path), hint or "", line)


def _count(piece: str, text: str) -> int:
    """How often it occurs, overlaps included."""
    count, at = 0, text.find(piece)
    while at >= 0:
        count, at = count + 1, text.find(piece, at + 1)
    return count


def find(root: Node, path: Path) -> Node:
    """The node at a path, or the nearest one above it that is written."""
    node = root
    for part in path:
        match node, part:
            case MapNode(), str() if part in node.entries:
                node = node.entries[part]
            case ListNode(), int() if part < len(node.items):
                node = node.items[part]
            case _:
                return node
    return node


def find_key(root: Node, path: Path) -> ScalarNode | None:
    """The key that a path ends in, for problems about the key and not its value."""
    parent = find(root, path[:-1])
    if isinstance(parent, MapNode) and isinstance(path[-1], str):
        return parent.keys.get(path[-1])
    return None
