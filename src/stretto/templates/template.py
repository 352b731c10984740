"""Text with `{{ path }}` in it. In: the text. Out: a Template, and every Fault found in it."""

from dataclasses import dataclass, field

from stretto.templates.fault import Fault
from stretto.templates.reference import LONGEST_REFERENCE, Reference, parse_reference

# Nobody reads further, and a megabyte of braces must not become a million faults.
MOST_FAULTS = 50


@dataclass(frozen=True, slots=True)
class Template:
    text: str  # as written
    parts: tuple[str | Reference, ...]  # literals are already unescaped
    # Which parts are whole outputs, and of which steps, so that they are filled in at one go: a
    # prompt may name every step of a layer. And which are other references. All of it follows.
    output_places: tuple[int, ...] = field(init=False, compare=False, repr=False)
    output_steps: tuple[str, ...] = field(init=False, compare=False, repr=False)
    other_places: tuple[int, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        found = [(n, part) for n, part in enumerate(self.parts) if isinstance(part, Reference)]
        outputs = [(n, str(part.step)) for n, part in found if part.is_whole_output]
        others = [n for n, part in found if not part.is_whole_output]
        object.__setattr__(self, "output_places", tuple(n for n, _ in outputs))
        object.__setattr__(self, "output_steps", tuple(step for _, step in outputs))
        object.__setattr__(self, "other_places", tuple(others))

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(part for part in self.parts if isinstance(part, Reference))

    @property
    def is_literal(self) -> bool:
        return not self.references


def parse_template(text: str) -> tuple[Template, tuple[Fault, ...]]:
    """Never raises. What is faulty stays as literal text, so the rest is still checked."""
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
