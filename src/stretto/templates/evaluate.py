"""Decide conditions and compute values. What cannot be decided is Undecided, with the reason."""

from collections.abc import Callable
from operator import ge, gt, le, lt
from typing import Any, TypeVar, assert_never

from stretto.templates.expression import (
    Binary,
    Calculation,
    Comparison,
    Constant,
    Expression,
    ExpressionNode,
    ListLiteral,
    Logic,
    Ordering,
    Unary,
    written,
)
from stretto.templates.json_text import kind_of
from stretto.templates.likeness import (
    Undecided,
    as_one_kind,
    holds_text,
    is_number,
    same,
    same_text,
    spelled_number,
    trimmed,
    truth,
)
from stretto.templates.scope import MISSING, Scope, resolve
from stretto.templates.template import Reference
from stretto.vocabulary.json_value import Json

LONGEST_TEXT = 1_000_000
LARGEST_NUMBER = 10**300

_ORDERS: dict[Ordering, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


def apply(operator: Comparison | Calculation, left: Json, right: Json) -> Json | Undecided:
    match operator:
        case "==":
            return same(left, right)
        case "!=":
            likeness = same(left, right)
            return likeness if isinstance(likeness, Undecided) else not likeness
        case "<" | "<=" | ">" | ">=":
            return _compare(operator, left, right)
        case "in":
            return _is_in(left, right)
        case "contains":
            return _is_in(right, left)
        case "+" | "-" | "*" | "/" | "%":
            return _calculate(operator, left, right)
        case _:
            assert_never(operator)


def size(value: Json) -> int | Undecided:
    if isinstance(value, str | list | dict):
        return len(value)
    return Undecided(f"{kind_of(value)} has no size")


def _calculate(operator: Calculation, left: Json, right: Json) -> Json | Undecided:
    if operator == "+" and isinstance(left, str) and isinstance(right, str):
        if len(left) + len(right) > LONGEST_TEXT:
            return Undecided(f"the text is longer than {LONGEST_TEXT:,} characters")
        return left + right
    left, right = as_one_kind(left, right)
    if not (is_number(left) and is_number(right)):
        return Undecided(f"{kind_of(left)} {operator} {kind_of(right)} has no value")
    try:
        result = _reckon(operator, left, right)
    except ZeroDivisionError:
        return Undecided("division by zero")
    except OverflowError:
        return Undecided("the number is too large")
    # Written so that NaN, which is not less than anything, is refused too.
    return result if abs(result) <= LARGEST_NUMBER else Undecided("the number is too large")


def _reckon(operator: Calculation, left: int | float, right: int | float) -> int | float:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            # 6 / 2 is 3, not 3.0: it may be shown, or chosen by in a switch.
            exact = isinstance(left, int) and isinstance(right, int) and left % right == 0
            return left // right if exact else left / right
        case "%":
            return left % right
        case _:
            assert_never(operator)


def _compare(operator: Ordering, left: Json, right: Json) -> bool | Undecided:
    left, right = as_one_kind(left, right)
    if isinstance(left, str) and isinstance(right, str):
        # "9" is less than "85", as numbers are, and not after it, as words are.
        numbers = spelled_number(left), spelled_number(right)
        left, right = numbers if None not in numbers else (trimmed(left), trimmed(right))
    if kind_of(left) != kind_of(right) or not (isinstance(left, str) or is_number(left)):
        return Undecided(f"{kind_of(left)} and {kind_of(right)} have no order")
    return _ORDERS[operator](left, right)


def _is_in(member: Json, container: Json) -> bool | Undecided:
    if isinstance(container, list):
        # A list may mix kinds: an element that does not compare is not equal, not undecided.
        alike = [same(member, each) for each in container if _are_of_a_kind(member, each)]
        return _any(alike)
    if isinstance(container, str) and isinstance(member, str):
        return holds_text(container, member)
    if isinstance(container, dict) and isinstance(member, str):
        return _any([same_text(member, key) for key in container])
    return Undecided(f"{kind_of(member)} cannot be in {kind_of(container)}")


def _are_of_a_kind(one: Json, other: Json) -> bool:
    one, other = as_one_kind(one, other)
    return kind_of(one) == kind_of(other)


def _any(likenesses: list[bool | Undecided]) -> bool | Undecided:
    if True in likenesses:
        return True
    return next((each for each in likenesses if isinstance(each, Undecided)), False)


__all__ = ["Undecided", "decide", "evaluate", "truth"]

_T = TypeVar("_T")

_NULL = Constant(None)
_LONGEST_PIECE = 200


def evaluate(expression: Expression, scope: Scope) -> Json | Undecided:
    return _value(expression.tree, scope)


def decide(expression: Expression, scope: Scope) -> bool | Undecided:
    return _truth(expression.tree, scope)


def _value(node: ExpressionNode, scope: Scope) -> Json | Undecided:
    match node:
        case Constant():
            return node.value
        case Reference():
            value = resolve(node, scope)
            return Undecided(f"{node.text} is missing") if value is MISSING else value
        case ListLiteral():
            return _items(node, scope)
        case Logic():
            return _logic(node, scope)
        case Unary():
            return _unary(node, scope)
        case Binary():
            return _binary(node, scope)
        case _:
            assert_never(node)


def _present(node: ExpressionNode, scope: Scope) -> Json | Undecided:
    """The value, where an operator needs one: null is undecided."""
    value = _value(node, scope)
    return Undecided(f"{_spell(node)} is null") if value is None else value


def _truth(node: ExpressionNode, scope: Scope) -> bool | Undecided:
    value = _present(node, scope)
    if isinstance(value, Undecided):
        return value
    return _name_operands(truth(value), node)


def _items(node: ListLiteral, scope: Scope) -> Json | Undecided:
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
    return _name_operands(result, node)


def _binary(node: Binary, scope: Scope) -> Json | Undecided:
    if node.operator in ("==", "!=") and _NULL in (node.left, node.right):
        other = node.left if node.right == _NULL else node.right
        return _is_null(other, scope, node.operator == "==")
    left, right = _present(node.left, scope), _present(node.right, scope)
    if isinstance(left, Undecided):
        return left
    if isinstance(right, Undecided):
        return right
    return _name_operands(apply(node.operator, left, right), node)


def _is_null(node: ExpressionNode, scope: Scope, wanted: bool) -> bool | Undecided:
    """Asking for null is how an author asks whether something is there, so it is decided."""
    if isinstance(node, Reference):
        return (resolve(node, scope) in (None, MISSING)) is wanted
    value = _value(node, scope)
    return value if isinstance(value, Undecided) else (value is None) is wanted


def _name_operands(result: _T | Undecided, node: ExpressionNode) -> _T | Undecided:
    """Put the piece that the author wrote before the reason."""
    if isinstance(result, Undecided):
        return Undecided(f"{_spell(node)}: {result.reason}")
    return result


def _spell(node: ExpressionNode) -> str:
    text = written(node)
    return text if len(text) <= _LONGEST_PIECE else f"{text[:_LONGEST_PIECE]}…"
