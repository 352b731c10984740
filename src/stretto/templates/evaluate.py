"""What an expression comes to. In: an Expression and a Scope. Out: a value, or Undecided.

Total and bounded: no calls, no live objects, three-valued logic. A missing field, null or a
wrong type leaves an operator undecided; `false and …` and `true or …` are decided all the same.
"""

from typing import TypeVar, assert_never

from stretto.templates.expression import Expression
from stretto.templates.operators import Undecided, apply, size, truth
from stretto.templates.reference import Reference
from stretto.templates.scope import MISSING, Json, Scope, resolve
from stretto.templates.tree import Binary, Constant, Items, Logic, Node, Unary, written

__all__ = ["Undecided", "decide", "evaluate"]

_T = TypeVar("_T")

_NULL = Constant(None)
_LONGEST_PIECE = 200


def evaluate(expression: Expression, scope: Scope) -> Json | Undecided:
    return _value(expression.tree, scope)


def decide(expression: Expression, scope: Scope) -> bool | Undecided:
    return _truth(expression.tree, scope)


def _value(node: Node, scope: Scope) -> Json | Undecided:
    match node:
        case Constant():
            return node.value
        case Reference():
            value = resolve(node, scope)
            return Undecided(f"{node.text} is missing") if value is MISSING else value
        case Items():
            return _items(node, scope)
        case Logic():
            return _logic(node, scope)
        case Unary():
            return _unary(node, scope)
        case Binary():
            return _binary(node, scope)
        case _:
            assert_never(node)


def _present(node: Node, scope: Scope) -> Json | Undecided:
    """The value where an operator needs one: null is none."""
    value = _value(node, scope)
    return Undecided(f"{_said(node)} is null") if value is None else value


def _truth(node: Node, scope: Scope) -> bool | Undecided:
    value = _present(node, scope)
    if isinstance(value, Undecided):
        return value
    return _named(truth(value), node)


def _items(node: Items, scope: Scope) -> Json | Undecided:
    items: list[Json] = []
    for item in node.items:
        value = _value(item, scope)
        if isinstance(value, Undecided):
            return value
        items.append(value)
    return items


def _logic(node: Logic, scope: Scope) -> bool | Undecided:
    deciding = node.word == "or"
    undecided: Undecided | None = None
    for operand in node.operands:
        claim = _truth(operand, scope)
        if isinstance(claim, Undecided):
            undecided = undecided or claim
        elif claim is deciding:
            return deciding
    return undecided or not deciding


def _unary(node: Unary, scope: Scope) -> Json | Undecided:
    if node.operator == "not":
        claim = _truth(node.operand, scope)
        return claim if isinstance(claim, Undecided) else not claim
    value = _present(node.operand, scope)
    if isinstance(value, Undecided):
        return value
    result = size(value) if node.operator == "size" else apply("-", 0, value)
    return _named(result, node)


def _binary(node: Binary, scope: Scope) -> Json | Undecided:
    if node.operator in ("==", "!=") and _NULL in (node.left, node.right):
        other = node.left if node.right == _NULL else node.right
        return _is_null(other, scope, node.operator == "==")
    left, right = _present(node.left, scope), _present(node.right, scope)
    if isinstance(left, Undecided):
        return left
    if isinstance(right, Undecided):
        return right
    return _named(apply(node.operator, left, right), node)


def _is_null(node: Node, scope: Scope, wanted: bool) -> bool | Undecided:
    """Asking for null is how an author asks whether something is there, so it is decided."""
    if isinstance(node, Reference):
        return (resolve(node, scope) in (None, MISSING)) is wanted
    value = _value(node, scope)
    return value if isinstance(value, Undecided) else (value is None) is wanted


def _named(result: _T | Undecided, node: Node) -> _T | Undecided:
    """The reason, told of the very piece that the author wrote."""
    if isinstance(result, Undecided):
        return Undecided(f"{_said(node)}: {result.reason}")
    return result


def _said(node: Node) -> str:
    text = written(node)
    return text if len(text) <= _LONGEST_PIECE else f"{text[:_LONGEST_PIECE]}…"
