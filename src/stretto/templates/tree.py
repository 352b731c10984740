"""The shape of an expression: a closed union of nodes, matched with `assert_never`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from stretto.templates.reference import Reference

Order: TypeAlias = Literal["<", "<=", ">", ">="]
Comparison: TypeAlias = Order | Literal["==", "!=", "in", "contains"]
Calculation: TypeAlias = Literal["+", "-", "*", "/", "%"]


@dataclass(frozen=True, slots=True)
class Constant:
    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Items:
    """A list as written: `[a, b]`."""

    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Logic:
    """Any number of operands, so that a long list of alternatives is not a deep one."""

    word: Literal["and", "or"]
    operands: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Unary:
    operator: Literal["not", "-", "size"]
    operand: "Node"


@dataclass(frozen=True, slots=True)
class Binary:
    operator: Comparison | Calculation
    left: "Node"
    right: "Node"


_ESCAPES = str.maketrans({"\\": r"\\", "'": r"\'", "\n": r"\n", "\t": r"\t"})

Node: TypeAlias = Constant | Reference | Items | Logic | Unary | Binary


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Constant() | Reference():
            return ()
        case Items():
            return node.items
        case Logic():
            return node.operands
        case Unary():
            return (node.operand,)
        case Binary():
            return (node.left, node.right)
        case _:
            assert_never(node)


def references_in(node: Node) -> Iterator[Reference]:
    """From left to right; the word of a call is none."""
    if isinstance(node, Reference):
        yield node
    for child in children(node):
        yield from references_in(child)


def written(node: Node) -> str:
    """The node as an author could have written it, with every group in parentheses."""
    match node:
        case Reference():
            return node.text
        case Constant(str(text)):
            return f"'{text.translate(_ESCAPES)}'"
        case Constant():
            return "null" if node.value is None else str(node.value).lower()
        case Items():
            return f"[{', '.join(map(written, node.items))}]"
        case Logic():
            return f" {node.word} ".join(map(_grouped, node.operands))
        case Unary("size"):
            return f"size({written(node.operand)})"
        case Unary("-"):
            return f"-{_grouped(node.operand)}"
        case Unary():
            return f"not {_grouped(node.operand)}"
        case Binary():
            return f"{_grouped(node.left)} {node.operator} {_grouped(node.right)}"
        case _:
            assert_never(node)


def _grouped(node: Node) -> str:
    text = written(node)
    match node:
        case Constant() | Reference() | Items() | Unary("size"):
            return text
        case _:
            return f"({text})"


def height(tree: Node) -> int:
    """How many nodes lie between the root and its furthest leaf, both counted."""
    # Level by level, not by recursion: this is what guards the evaluator against deep trees.
    level: list[Node] = [tree]
    levels = 0
    while level:
        levels += 1
        level = [child for node in level for child in children(node)]
    return levels
