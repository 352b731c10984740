"""Text with `{{ path }}` in it. In: the text. Out: a Template, and every Fault found in it."""

import re

from stretto.templates.fault import Fault
from stretto.templates.reference import (
    BLANKS,
    LONGEST_REFERENCE,
    PATH,
    Reference,
    parse_path,
    parse_reference,
)

# Nobody reads further, and a megabyte of braces must not become a million faults.
MOST_FAULTS = 50
_SIMPLE = re.compile(rf"\{{\{{[{BLANKS}]*({PATH})[{BLANKS}]*\}}\}}")


class Template:
    """Text and references, parsed once. A plain class: plans store its text and nothing else."""

    __slots__ = ("other_places", "output_places", "output_steps", "parts", "references", "text")

    def __init__(self, text: str, parts: tuple[str | Reference, ...]) -> None:
        self.text = text  # as written
        self.parts = parts  # literals are already unescaped
        # Which parts are whole outputs, and of which steps, so that they are filled in at one go:
        # a prompt may name every step of a layer. And which parts are other references.
        self.references = tuple([part for part in parts if isinstance(part, Reference)])
        output_places, output_steps, other_places = list[int](), list[str](), list[int]()
        if self.references:
            for place, part in enumerate(parts):
                if isinstance(part, str):
                    continue
                if part.is_whole_output:
                    output_places.append(place)
                    output_steps.append(str(part.path[1]))
                else:
                    other_places.append(place)
        self.output_places = tuple(output_places)
        self.output_steps = tuple(output_steps)
        self.other_places = tuple(other_places)

    @classmethod
    def verbatim(cls, text: str) -> "Template":
        """Text in which `{{` is no reference."""
        return cls(text, (text,) if text else ())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Template):
            return NotImplemented
        return self.text == other.text and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Template({self.text!r})"

    @property
    def is_literal(self) -> bool:
        return not self.references


def parse_template(text: str) -> tuple[Template, tuple[Fault, ...]]:
    """Never raises. What is faulty stays as literal text, so the rest is still checked."""
    parts = _plain_parts(text)
    return (Template(text, parts), ()) if parts is not None else _parse_with_faults(text)


def _plain_parts(text: str) -> tuple[str | Reference, ...] | None:
    """The parts of a text without faults and escapes, as most are, or None."""
    parts: list[str | Reference] = []
    at = 0
    for found in _SIMPLE.finditer(text):
        opening, end = found.span()
        is_escaped = opening > 0 and text[opening - 1] == "\\"
        if is_escaped or text.find("{{", at) != opening or end - opening > LONGEST_REFERENCE:
            return None
        if opening > at:
            parts.append(text[at:opening])
        path = found[1]
        parts.append(Reference(path, parse_path(path), found.start(1)))
        at = end
    if text.find("{{", at) >= 0:
        return None
    if at < len(text):
        parts.append(text[at:])
    return tuple(parts)


def _parse_with_faults(text: str) -> tuple[Template, tuple[Fault, ...]]:
    parts: list[str | Reference] = []
    faults: list[Fault] = []
    literal, at = "", 0
    while len(faults) < MOST_FAULTS and (opening := text.find("{{", at)) >= 0:
        if opening > at and text[opening - 1] == "\\":
            literal += text[at : opening - 1] + "{{"
            at = opening + 2
            continue
        found, end = _reference_at(text, opening)
        if isinstance(found, Fault):
            faults.append(found)
            literal += text[at:end]
        else:
            literal += text[at:opening]
            parts += [literal, found] if literal else [found]
            literal = ""
        at = end
    literal += text[at:]
    if literal:
        parts.append(literal)
    return Template(text, tuple(parts)), tuple(faults)


def _reference_at(text: str, opening: int) -> tuple[Reference | Fault, int]:
    """What the braces at `opening` hold, and where to read on."""
    start = opening + 2
    # The search is bounded, or a text of nothing but '{{' would cost its length squared.
    limit = start + LONGEST_REFERENCE
    closing = text.find("}}", start, limit + 2)
    inside = text[start : closing if closing >= 0 else limit]
    if "{{" in inside:
        why = "is not closed before the next '{{'"
    elif "\n" in inside:
        why = "is not closed on its line"
    elif closing < 0:
        within = f" within {LONGEST_REFERENCE} characters" if limit < len(text) else ""
        why = f"is not closed{within}"
    else:
        return parse_reference(inside, start), closing + 2
    hint = "close it with '}}', or write '\\{{' for the braces themselves"
    return Fault("RCP201", f"this '{{{{' {why}", hint, opening, 2), start
