"""An expression's text as tokens. In: text. Out: Tokens, the last of them the end, or a Fault."""

import re
from typing import NamedTuple

from stretto.templates.fault import Fault
from stretto.templates.reference import Reference, parse_reference
from stretto.templates.tree import Constant

END = "end"
OPERAND = "operand"

# A hyphen between two name characters belongs to the name (`steps.a-b.output`), except right
# after a loop variable: nobody has an `index-1`, everybody means the one before.
_NAME = r"\w++(?:-+\w++)*"
_LOOP_VARIABLE = r"(?:item|index|iteration|feedback)(?!\w)"
_TOKEN = rf"""(?xs)\s*+(?:
      (?P<number> [0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.]) )
    | (?P<word> (?:and|or|not|in|contains|true|false|null|True|False|None|none)(?![\w.]|-\w) )
    | (?P<path> (?:{_LOOP_VARIABLE}|{_NAME})(?:\.{_NAME}|\[[0-9]+\])* )
    | (?P<mark> ===|!==|==|!=|<=|>=|<>|&&|\|\||[-+*/%<>!()\[\],=&|] )
    | (?P<text> '(?:[^'\\]|\\.)*+' | "(?:[^"\\]|\\.)*+" )
    | (?P<braces> \{{\{{.*?\}}\}} )
    | (?P<end> \Z )
    )"""
_ESCAPE = r"(?s)\\(.)"

_CONSTANTS = {"true": True, "false": False, "null": None, "none": None}
_SAME = {"&&": "and", "||": "or", "!": "not"}
_SLIPS = {"=": "==", "===": "==", "!==": "!=", "<>": "!=", "&": "and", "|": "or"}
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


class Refused(Exception):
    """Ends the reading of an expression at its first fault; never leaves this room."""

    def __init__(
        self, message: str, hint: str, offset: int, width: int = 1, code: str = "RCP209"
    ) -> None:
        super().__init__(message)
        self.fault = Fault(code, message, hint, offset, width)


def tokens_of(text: str) -> list[Token]:
    """Raises Refused."""
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
            return Token(OPERAND, written, at, Constant(_number(written, at)))
        case "word" if written.lower() in _CONSTANTS:
            return Token(OPERAND, written, at, Constant(_CONSTANTS[written.lower()]))
        case "path":
            return Token(OPERAND, written, at, _path(written, at))
        case "text":
            return Token(OPERAND, written, at, Constant(_text(written, at)))
        case "braces":
            return Token(OPERAND, written, at, _path(written[2:-2], at + 2))
        case "end":
            return Token(END, "", at)
        case _:
            if written in _SLIPS:
                hint = f"use '{_SLIPS[written]}'"
                raise Refused(f"'{written}' is not an operator", hint, at, len(written))
            return Token(_SAME.get(written, written), written, at)


def _number(written: str, at: int) -> int | float:
    number = int(written) if written.isdigit() else float(written)
    if number > _LARGEST:
        raise Refused("this number is too large", "", at, len(written))
    return number


def _path(written: str, at: int) -> Reference:
    reference = parse_reference(written, at)
    if isinstance(reference, Fault):
        hint = "braces hold one path; write operators outside them, or leave the braces out"
        raise Refused(reference.message, hint, reference.offset, reference.width)
    return reference


def _text(written: str, at: int) -> str:
    inside = written[1:-1]
    if "{{" in inside:
        hint = "remove the quotes around the reference"
        raise Refused("text in quotes is never filled in", hint, at, len(written))
    for escape in re.finditer(_ESCAPE, inside):
        if escape[1] not in _ESCAPED:
            hint = r"""escapes are \\ \' \" \n \t"""
            raise Refused(f"unknown escape '{escape[0]}'", hint, at + 1 + escape.start(), 2)
    return re.sub(_ESCAPE, lambda escape: _ESCAPED[escape[1]], inside)


def _unreadable(text: str, at: int) -> Refused:
    at = len(text) - len(text[at:].lstrip())
    if text[at] in "'\"":
        return Refused("this text is not closed", f"close it with {text[at]}", at)
    if text.startswith("{{", at):
        return Refused("this '{{' is not closed", "close it with '}}'", at, 2)
    return Refused(f"{text[at]!r} has no meaning in an expression", "", at)
