"""Conditions and values, parsed once, before the run: tokens, then a tree."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias, assert_never, cast

from msgspec import Struct

from stretto.templates.template import Fault, Reference, parse_reference

Ordering: TypeAlias = Literal["<", "<=", ">", ">="]
Comparison: TypeAlias = Ordering | Literal["==", "!=", "in", "contains"]
Calculation: TypeAlias = Literal["+", "-", "*", "/", "%"]


class Constant(Struct, frozen=True):
    value: bool | int | float | str | None


class ListLiteral(Struct, frozen=True):
    """A list as written: `[a, b]`."""

    items: tuple["ExpressionNode", ...]


class Logic(Struct, frozen=True):
    """Any number of operands, so that a long list of alternatives is not a deep one."""

    word: Literal["and", "or"]
    operands: tuple["ExpressionNode", ...]


class Unary(Struct, frozen=True):
    operator: Literal["not", "-", "size"]
    operand: "ExpressionNode"


class Binary(Struct, frozen=True):
    operator: Comparison | Calculation
    left: "ExpressionNode"
    right: "ExpressionNode"


_ESCAPES = str.maketrans({"\\": r"\\", "'": r"\'", "\n": r"\n", "\t": r"\t"})

ExpressionNode: TypeAlias = Constant | Reference | ListLiteral | Logic | Unary | Binary


def children(node: ExpressionNode) -> tuple[ExpressionNode, ...]:
    match node:
        case Constant() | Reference():
            return ()
        case ListLiteral():
            return node.items
        case Logic():
            return node.operands
        case Unary():
            return (node.operand,)
        case Binary():
            return (node.left, node.right)
        case _:
            assert_never(node)


def references_in(node: ExpressionNode) -> Iterator[Reference]:
    """From left to right; the word of a call is none."""
    if isinstance(node, Reference):
        yield node
    for child in children(node):
        yield from references_in(child)


def words_beside(tree: ExpressionNode, is_meant: Callable[[object], bool]) -> Iterator[str]:
    """The texts that certain nodes are compared with: x == 'a', x in ['a', 'b']."""
    for child in children(tree):
        yield from words_beside(child, is_meant)
    if isinstance(tree, Binary) and tree.operator in ("==", "!=", "in"):
        for side, other in ((tree.left, tree.right), (tree.right, tree.left)):
            if is_meant(side):
                beside = other.items if isinstance(other, ListLiteral) else (other,)
                yield from (
                    each.value
                    for each in beside
                    if isinstance(each, Constant) and isinstance(each.value, str)
                )


def written(node: ExpressionNode) -> str:
    """The node as an author could have written it, with every group in parentheses."""
    match node:
        case Reference():
            return node.text
        case Constant(str(text)):
            return f"'{text.translate(_ESCAPES)}'"
        case Constant():
            return "null" if node.value is None else str(node.value).lower()
        case ListLiteral():
            return f"[{', '.join(map(written, node.items))}]"
        case Logic():
            return f" {node.word} ".join(map(_in_brackets, node.operands))
        case Unary("size"):
            return f"size({written(node.operand)})"
        case Unary("-"):
            return f"-{_in_brackets(node.operand)}"
        case Unary():
            return f"not {_in_brackets(node.operand)}"
        case Binary():
            return f"{_in_brackets(node.left)} {node.operator} {_in_brackets(node.right)}"
        case _:
            assert_never(node)


def _in_brackets(node: ExpressionNode) -> str:
    text = written(node)
    match node:
        case Constant() | Reference() | ListLiteral() | Unary("size"):
            return text
        case _:
            return f"({text})"


def height(tree: ExpressionNode) -> int:
    """How many nodes lie between the root and its furthest leaf, both counted."""
    # Level by level, not by recursion: this is what guards the evaluator against deep trees.
    level: list[ExpressionNode] = [tree]
    levels = 0
    while level:
        levels += 1
        level = [child for node in level for child in children(node)]
    return levels


END = "end"
OPERAND = "operand"

# A hyphen between two name characters belongs to the name (`steps.a-b.output`), except right
# after a loop variable: `index-1` is meant as a subtraction.
_NAME = r"\w++(?:-+\w++)*"
_LOOP_VARIABLE = r"(?:item|index|iteration|feedback|candidate)(?!\w)"
_TOKEN = rf"""(?xs)\s*+(?:
      (?P<number> [0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.]) )
    | (?P<word> (?:and|or|not|in|contains|true|false|null|True|False|None|none)(?![\w.]|-\w) )
    | (?P<path> (?:{_LOOP_VARIABLE}|{_NAME})(?:\.{_NAME}|\[[0-9]+\])* )
    | (?P<mark> ===|!==|=>|=<|=~|==|!=|<=|>=|<>|&&|\|\||[-+*/%<>!()\[\],=&|] )
    | (?P<text> '(?:[^'\\]|\\.)*+' | "(?:[^"\\]|\\.)*+" )
    | (?P<braces> \{{\{{.*?\}}\}} )
    | (?P<end> \Z )
    )"""
_ESCAPE = r"(?s)\\(.)"

_CONSTANTS = {"true": True, "false": False, "null": None, "none": None}
_SAME = {"&&": "and", "||": "or", "!": "not"}
_SLIPS = {
    "=>": ">=",
    "=<": "<=",
    "=~": "contains",
    "=": "==",
    "===": "==",
    "!==": "!=",
    "<>": "!=",
    "&": "and",
    "|": "or",
}
_LENGTHS = ("len", "length", "count", "strlen")
_HOLDS = ("contains", "includes", "startswith", "endswith", "match", "matches", "find", "indexof")
_MEANT_WORDS = {
    **{word: f"write '{word.lower()}' in small letters" for word in ("AND", "OR", "NOT", "IN", "CONTAINS")},
    **dict.fromkeys(("is", "equals", "eq"), "use '=='"),
    **dict.fromkeys(("exists", "defined", "present"), "write != null"),
    **dict.fromkeys(("matches", "like", "includes", "startswith", "starts", "ends"), "use contains"),
    **dict.fromkeys(("between", "within"), "write A >= B and A <= C"),
}  # fmt: skip
_CALLS = {
    "always": "remove it: a step runs once those it waits for have ended",
    "success": "write steps.ID.status == 'succeeded'",
    "failure": "write steps.ID.status == 'failed'",
    "cancelled": "write steps.ID.status == 'cancelled'",
    **dict.fromkeys(("startswith", "starts_with", "endswith", "matches", "includes", "has"),
        "write A contains B, or compute it in a step"),
    **dict.fromkeys(("defined", "exists", "empty", "is_null"), "write A != null"),
}  # fmt: skip
_ESCAPED = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "t": "\t"}

_LARGEST = 10**300


class Token(NamedTuple):
    mark: str  # an operator, a bracket or a keyword; OPERAND; END
    text: str  # as written
    offset: int
    operand: Constant | Reference | None = None

    @property
    def end(self) -> int:
        return self.offset + len(self.text)


class NotAnExpression(Exception):
    """Ends the reading of an expression at its first fault; never leaves this room."""

    def __init__(
        self, message: str, hint: str, offset: int, width: int = 1, code: str = "RCP209"
    ) -> None:
        super().__init__(message)
        self.fault = Fault(code, message, hint, offset, width)


def tokens_of(text: str) -> list[Token]:
    """Raises NotAnExpression."""
    # Compiled here, where `re` remembers it: a program without expressions should not pay.
    token = re.compile(_TOKEN)
    tokens: list[Token] = []
    at = 0
    while not tokens or tokens[-1].mark != END:
        found = token.match(text, at)
        if found is None or found.lastgroup is None:
            raise _unreadable(text, at)
        tokens.append(_token(found.lastgroup, found[found.lastgroup], found.start(found.lastgroup)))
        at = found.end()
    return tokens


def _token(group: str, written: str, at: int) -> Token:
    match group:
        case "number":
            return Token(OPERAND, written, at, Constant(_number_operand(written, at)))
        case "word" if written.lower() in _CONSTANTS:
            return Token(OPERAND, written, at, Constant(_CONSTANTS[written.lower()]))
        case "path":
            return Token(OPERAND, written, at, _path_operand(written, at))
        case "text":
            return Token(OPERAND, written, at, Constant(_text_operand(written, at)))
        case "braces":
            return Token(OPERAND, written, at, _path_operand(written[2:-2], at + 2))
        case "end":
            return Token(END, "", at)
        case _:
            if written in _SLIPS:
                hint = f"use '{_SLIPS[written]}'"
                raise NotAnExpression(f"'{written}' is not an operator", hint, at, len(written))
            return Token(_SAME.get(written, written), written, at)


def _number_operand(written: str, at: int) -> int | float:
    number = int(written) if written.isdigit() else float(written)
    if number > _LARGEST:
        raise NotAnExpression("this number is too large", "", at, len(written))
    return number


def _path_operand(written: str, at: int) -> Reference:
    reference = parse_reference(written, at)
    if isinstance(reference, Fault):
        hint = "braces hold one path; write operators outside them, or leave the braces out"
        raise NotAnExpression(reference.message, hint, reference.offset, reference.width)
    return reference


def _text_operand(written: str, at: int) -> str:
    inside = written[1:-1]
    if "{{" in inside:
        hint = "remove the quotes around the reference"
        raise NotAnExpression("text in quotes is never filled in", hint, at, len(written))
    for escape in re.finditer(_ESCAPE, inside):
        if escape[1] not in _ESCAPED:
            hint = r"""escapes are \\ \' \" \n \t"""
            raise NotAnExpression(f"unknown escape '{escape[0]}'", hint, at + 1 + escape.start(), 2)
    return re.sub(_ESCAPE, lambda escape: _ESCAPED[escape[1]], inside)


def _unreadable(text: str, at: int) -> NotAnExpression:
    at = len(text) - len(text[at:].lstrip())
    if text[at] in "'\"":
        return NotAnExpression("this text is not closed", f"close it with {text[at]}", at)
    if text.startswith("{{", at):
        return NotAnExpression("this '{{' is not closed", "close it with '}}'", at, 2)
    hints = {
        "?": "remove what follows it: a comparison is true or false",
        "$": "remove it",
        "{": "write the expression alone, without blocks",
    }
    hint = hints.get(text[at], "")
    return NotAnExpression(f"{text[at]!r} has no meaning in an expression", hint, at)


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

    def __init__(self, text: str, tree: ExpressionNode, references: tuple[Reference, ...]) -> None:
        self.text = text
        self.tree = tree
        self.references = references

    @property
    def located(self) -> tuple[Reference, ...]:
        """The references with their offsets in the text, as a Template has them."""
        return self.references

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
    except NotAnExpression as refused:
        return refused.fault
    return Expression(text, tree, tuple(references_in(tree)))


def _too_deep(offset: int) -> NotAnExpression:
    message = f"an expression nests at most {DEEPEST_EXPRESSION} deep"
    return NotAnExpression(message, "split it over several steps", offset, code="RCP210")


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

    def whole(self) -> ExpressionNode:
        if self.token.mark == END:
            raise NotAnExpression("the expression is empty", "write a condition or a path", 0)
        tree = self.operation(_OR, depth=1)
        if self.token.mark != END:
            raise self.unexpected_fault("an operator")
        # Chains such as 1 + 1 + 1 lean to the left without nesting in the text.
        if height(tree) > DEEPEST_EXPRESSION:
            raise _too_deep(0)
        return tree

    def operation(self, floor: int, depth: int) -> ExpressionNode:
        """Operands joined by operators that bind at least as tightly as `floor`."""
        start = self.token.offset
        left = self.operand(depth)
        while _LEVELS.get(operator := self.operator(), 0) >= floor:
            left = self.join(left, operator, start, depth)
        return left

    def operator(self) -> str:
        if self.token.mark == "not" and self.tokens[self.at + 1].mark == "in":
            return "not in"
        return self.token.mark

    def join(self, left: ExpressionNode, operator: str, start: int, depth: int) -> ExpressionNode:
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
            raise self.chain_fault(start, middle, depth)
        if operator == "not in":
            return Unary("not", Binary("in", left, right))
        return Binary(cast(Comparison | Calculation, operator), left, right)

    def operand(self, depth: int) -> ExpressionNode:
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
                return self.close(self.operation(_OR, depth + 1))
            case "[":
                return ListLiteral(self.items(depth))
            case _:
                raise self.unexpected_fault("a value")

    def is_call(self) -> bool:
        return (
            isinstance(self.token.operand, Reference)
            and self.token.text[0] != "{"
            and self.tokens[self.at + 1].mark == "("
        )

    def call(self, depth: int) -> ExpressionNode:
        name = self.take()
        if name.text != "size":
            message = f"'{name.text}' cannot be called: only size() can be called"
            owner, _, method = name.text.rpartition(".")
            hint = "write size" if name.text in _LENGTHS else "compute it in a step"
            hint = _CALLS.get(name.text.lower(), hint)
            if owner and method.lower() in _HOLDS:
                hint = f"write {owner} contains …"
            elif owner and method.lower() in _LENGTHS:
                hint = f"write size({owner})"
            raise NotAnExpression(message, hint, name.offset, len(name.text))
        self.take()
        return Unary("size", self.close(self.operation(_OR, depth + 1)))

    def items(self, depth: int) -> tuple[ExpressionNode, ...]:
        self.take()
        items: list[ExpressionNode] = []
        while self.token.mark != "]":
            if items:
                self.expect(",", "',' or ']'")
            items.append(self.operation(_OR, depth + 1))
        self.take()
        return tuple(items)

    def close(self, inside: ExpressionNode) -> ExpressionNode:
        self.expect(")", "')'")
        return inside

    def expect(self, mark: str, said: str) -> None:
        if self.token.mark != mark:
            raise self.unexpected_fault(said)
        self.take()

    def unexpected_fault(self, expected: str) -> NotAnExpression:
        token = self.token
        found = f"'{token.text}'" if token.text else "the end"
        message = f"expected {expected}, found {found}"
        return NotAnExpression(message, self.slip(), token.offset, max(len(token.text), 1))

    def slip(self) -> str:
        """The hint for words of other languages, here or just before."""
        for token in self.tokens[max(self.at - 1, 0) : self.at + 1]:
            if token.mark == OPERAND and token.text in _MEANT_WORDS:
                return _MEANT_WORDS[token.text]
        after = self.tokens[self.at + 1] if self.token.mark != END else self.token
        if (self.token.mark, after.mark) == ("contains", "("):
            return "write A contains B"
        before = self.tokens[self.at - 1] if self.at else self.token
        if self.token.mark == "," and before.text.isdigit():
            return "write the number without ','"
        if before.mark == "%" and self.token.mark in (END, ")", "and", "or"):
            return "write the number without '%'"
        is_over = self.token.mark == END
        return "something is missing at its end" if is_over else "an operator or bracket is missing"

    def chain_fault(self, start: int, middle: int, depth: int) -> NotAnExpression:
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
        return NotAnExpression(message, hint, second.offset, len(second.text))
