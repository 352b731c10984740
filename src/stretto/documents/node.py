"""What a document holds, each piece with its place. Out of: yaml_text, json_text."""

from dataclasses import dataclass, field
from typing import TypeAlias

from stretto.vocabulary.values import Json

PathPart: TypeAlias = str | int
Path: TypeAlias = tuple[PathPart, ...]


# Not frozen: a file has up to 50,000 nodes, and a frozen __init__ costs four times as much.
# Nothing changes a node once its document is read.
@dataclass(slots=True, eq=False)
class Node:
    start: int  # indices into the document's text
    end: int
    line: int  # from 1
    column: int  # from 1


@dataclass(slots=True, eq=False)
class ScalarNode(Node):
    value: bool | int | float | str | None
    written: str  # as it stands in the file, before 'true' became True


@dataclass(slots=True, eq=False)
class ListNode(Node):
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class MapNode(Node):
    entries: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, ScalarNode] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class RefusedNode(Node):
    """Its problem is already reported, so nothing more is said about it."""


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
            return f"the text {_shortened(node.value)}"


def _shortened(text: str) -> str:
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
