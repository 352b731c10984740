"""A text and where it came from. In: bytes or text. Out: places and source lines for problems."""

import re
from dataclasses import dataclass
from functools import cached_property

from stretto.documents.node import ListNode, MapNode, Node, Path, ScalarNode, spell
from stretto.problems import Place, Problem

_FIRST_LINE = re.compile(r"[^\r\n]*")


@dataclass(frozen=True)
class Source:
    text: str
    file: str = ""

    @cached_property
    def lines(self) -> list[str]:
        # YAML knows only these line breaks; splitlines() would count \f and \x1c as well.
        return self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    @cached_property
    def digest(self) -> str:
        from hashlib import sha256  # not for checking: only a run needs the digest

        return sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    def line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def place_of_index(self, index: int, width: int = 1) -> Place:
        before = self.text[:index].replace("\r\n", "\n").replace("\r", "\n")
        return Place(before.count("\n") + 1, len(before) - before.rfind("\n"), width)

    def place_of(self, node: Node) -> Place:
        written = self.text[node.start : node.end].split("\n", 1)[0].rstrip()
        return Place(node.line, node.column, max(1, len(written)))

    def place_inside(self, node: Node, value: str, offset: int, width: int) -> Place:
        """Where value[offset:] stands in the file, whatever style the scalar is written in.

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
        if at < 0:  # hidden behind an escape: the scalar itself is the best we know
            return self.place_of(node)
        return self.place_of_index(at, len(piece))

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
