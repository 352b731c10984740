"""A text and where it came from. In: bytes or text. Out: places and source lines for problems."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from weft.documents.node import ListNode, MapNode, Node, Path, ScalarNode, spell
from weft.problems import Place, Problem


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
        return sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    def line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def place_of_index(self, index: int, width: int = 1) -> Place:
        before = self.text[:index].replace("\r\n", "\n").replace("\r", "\n")
        return Place(before.count("\n") + 1, len(before) - before.rfind("\n"), width)

    def place_of(self, node: Node) -> Place:
        written = self.text[node.start : node.end].split("\n", 1)[0].rstrip()
        return Place(node.line, node.column, max(1, len(written)))

    def place_inside(self, node: Node, piece: str, occurrence: int = 0) -> Place:
        """The place of the n-th `piece` within a scalar, whatever style it is written in."""
        at = node.start - 1
        for _ in range(occurrence + 1):
            at = self.text.find(piece, at + 1, node.end)
            if at < 0:  # hidden behind an escape: the scalar itself is the best we know
                return self.place_of(node)
        return self.place_of_index(at, len(piece))

    def problem(
        self, code: str, place: Place | None, message: str, hint: str | None = "", path: Path = ()
    ) -> Problem:
        line = self.line(place.line) if place else ""
        return Problem(code, message, self.file, place, spell(path), hint or "", line)


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
