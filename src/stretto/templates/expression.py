"""Conditions and values, parsed once, before the run. In: text. Out: an Expression or a Fault."""

from collections.abc import Sequence
from typing import cast

from stretto.templates.fault import Fault
from stretto.templates.lexer import END, OPERAND, Refused, Token, tokens_of
from stretto.templates.reference import Reference
from stretto.templates.tree import (
    Binary,
    Calculation,
    Comparison,
    Items,
    Logic,
    Node,
    Unary,
    height,
    references_in,
)

LONGEST_EXPRESSION = 4096
DEEPEST_EXPRESSION = 64

# How tightly an operator binds. `not` lies between `and` and the comparisons, as in Python.
_OR, _AND, _COMPARE, _SUM, _PRODUCT = range(1, 6)
_LEVELS = {
    "or": _OR,
    "and": _AND,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in", "not in", "contains"), _COMPARE),
    **dict.fromkeys(("+", "-"), _SUM),
    **dict.fromkeys(("*", "/", "%"), _PRODUCT),
}
_LONGEST_HINT = 120


class Expression:
    """Parsed once. A plain class: plans store its text and nothing else."""

    __slots__ = ("references", "text", "tree")

    def __init__(self, text: str, tree: Node, references: tuple[Reference, ...]) -> None:
        self.text = text
        self.tree = tree
        self.references = references

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


def parse_expression(text: str) -> Expression | Fault:
    """Never raises. The length is looked at first: what is too long costs nothing."""
    if len(text) > LONGEST_EXPRESSION:
        message = f"an expression has at most {LONGEST_EXPRESSION:,} characters"
        return Fault("RCP210", message, f"this one has {len(text):,}: let a step decide it")
    try:
        tokens = tokens_of(text)
        tree = _Parser(text, tokens).whole()
    except Refused as refused:
        return refused.fault
    return Expression(text, tree, tuple(references_in(tree)))


def _too_deep(offset: int) -> Refused:
    message = f"an expression nests at most {DEEPEST_EXPRESSION} deep"
    return Refused(message, "split it over several steps", offset, code="RCP210")


class _Parser:
    """Precedence climbing. Every recursion passes `depth` on, one larger."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.token
        self.at += 1
        return token

    def whole(self) -> Node:
        if self.token.mark == END:
            raise Refused("the expression is empty", "write a condition or a path", 0)
        tree = self.operation(_OR, depth=1)
        if self.token.mark != END:
            raise self.unexpected("an operator")
        # Chains such as 1 + 1 + 1 lean to the left without nesting in the text.
        if height(tree) > DEEPEST_EXPRESSION:
            raise _too_deep(0)
        return tree

    def operation(self, floor: int, depth: int) -> Node:
        """Operands joined by operators that bind at least as tightly as `floor`."""
        start = self.token.offset
        left = self.operand(depth)
        while _LEVELS.get(operator := self.operator(), 0) >= floor:
            left = self.joined(left, operator, start, depth)
        return left

    def operator(self) -> str:
        if self.token.mark == "not" and self.tokens[self.at + 1].mark == "in":
            return "not in"
        return self.token.mark

    def joined(self, left: Node, operator: str, start: int, depth: int) -> Node:
        level = _LEVELS[operator]
        if operator in ("and", "or"):
            operands = [left]
            while self.token.mark == operator:
                self.take()
                operands.append(self.operation(level + 1, depth + 1))
            return Logic("and" if operator == "and" else "or", tuple(operands))
        self.at += 2 if operator == "not in" else 1
        middle = self.token.offset
        right = self.operation(level + 1, depth + 1)
        if level == _COMPARE and _LEVELS.get(self.operator()) == _COMPARE:
            raise self.chained(start, middle, depth)
        if operator == "not in":
            return Unary("not", Binary("in", left, right))
        return Binary(cast(Comparison | Calculation, operator), left, right)

    def operand(self, depth: int) -> Node:
        token = self.token
        if depth > DEEPEST_EXPRESSION:
            raise _too_deep(token.offset)
        if self.is_call():
            return self.call(depth)
        if token.operand is not None:
            self.take()
            return token.operand
        match token.mark:
            case "not":
                self.take()
                return Unary("not", self.operation(_COMPARE, depth + 1))
            case "-":
                self.take()
                return Unary("-", self.operand(depth + 1))
            case "(":
                self.take()
                return self.closed(self.operation(_OR, depth + 1))
            case "[":
                return Items(self.items(depth))
            case _:
                raise self.unexpected("a value")

    def is_call(self) -> bool:
        return (
            isinstance(self.token.operand, Reference)
            and self.token.text[0] != "{"
            and self.tokens[self.at + 1].mark == "("
        )

    def call(self, depth: int) -> Node:
        name = self.take()
        if name.text != "size":
            message = f"'{name.text}' cannot be called: only size() can be called"
            raise Refused(message, "compute it in a step", name.offset, len(name.text))
        self.take()
        return Unary("size", self.closed(self.operation(_OR, depth + 1)))

    def items(self, depth: int) -> tuple[Node, ...]:
        self.take()
        items: list[Node] = []
        while self.token.mark != "]":
            if items:
                self.expect(",", "',' or ']'")
            items.append(self.operation(_OR, depth + 1))
        self.take()
        return tuple(items)

    def closed(self, inside: Node) -> Node:
        self.expect(")", "')'")
        return inside

    def expect(self, mark: str, said: str) -> None:
        if self.token.mark != mark:
            raise self.unexpected(said)
        self.take()

    def unexpected(self, expected: str) -> Refused:
        token = self.token
        found = f"'{token.text}'" if token.text else "the end"
        message = f"expected {expected}, found {found}"
        return Refused(message, self.slip(), token.offset, max(len(token.text), 1))

    def slip(self) -> str:
        """The hint for words of other languages, here or just before."""
        for token in self.tokens[max(self.at - 1, 0) : self.at + 1]:
            if token.mark == OPERAND and token.text in ("AND", "OR", "NOT", "IN", "CONTAINS"):
                return f"write '{token.text.lower()}' in small letters"
            if token.mark == OPERAND and token.text in ("is", "equals", "eq"):
                return "use '=='"
        is_over = self.token.mark == END
        return "something is missing at its end" if is_over else "an operator or bracket is missing"

    def chained(self, start: int, middle: int, depth: int) -> Refused:
        second = self.token
        shared = self.text[middle : self.tokens[self.at - 1].end]
        first = self.text[start : self.tokens[self.at - 1].end]
        self.at += 2 if self.operator() == "not in" else 1
        self.operation(_SUM, depth + 1)
        rest = self.text[second.offset : self.tokens[self.at - 1].end]
        hint = f"write {first} and {shared} {rest}"
        if len(hint) > _LONGEST_HINT:
            hint = "join two comparisons with 'and'"
        message = "comparisons do not chain"
        return Refused(message, hint, second.offset, len(second.text))
