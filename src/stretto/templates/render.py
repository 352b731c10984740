"""Fill a template with the values of a scope, and note which references had no value."""

import json
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from stretto.templates.json_text import find_json
from stretto.templates.scope import MISSING, Missing, Scope, resolve
from stretto.templates.template import Reference, Template
from stretto.vocabulary.json_value import Json

# Four million tokens or so: more than any model reads. A template may name a value a thousand times,
# so the length is known before the text is made.
MOST_CHARACTERS = 10_000_000


class TooLong(Exception):
    def __init__(self, template: Template) -> None:
        began = template.text if len(template.text) <= 60 else f"{template.text[:60]}…"
        super().__init__(f"'{began}' comes to more than {MOST_CHARACTERS:,} characters")


class Rendered(Struct, frozen=True):
    text: str
    missing: tuple[Reference, ...]


def render(template: Template, scope: Scope) -> Rendered:
    """One pass: what is inserted is never scanned again. Missing and null insert nothing.

    Raises TooLong.
    """
    parts = template.parts
    if len(parts) == 1 and isinstance(parts[0], str):
        return Rendered(parts[0], ())
    pieces: list[Any] = list(parts)  # text, once every reference is filled in
    slots, steps = template.slots, scope.steps
    left = list(slots.others)
    for place, id in slots.outputs:
        step = steps.get(id)
        # As it is kept: a prompt may name fifty outputs, and to ask of each if it is large is slow.
        output = None if step is None else step.kept_output
        if type(output) is str:
            pieces[place] = output
        else:
            left.append(place)
    missing = _fill_in(pieces, sorted(left), template, scope) if left else ()
    if sum(map(len, pieces)) > MOST_CHARACTERS:
        raise TooLong(template)
    return Rendered("".join(pieces), missing)


def _fill_in(
    pieces: list[Any], places: list[int], template: Template, scope: Scope
) -> tuple[Reference, ...]:
    """Put text in the place of references, and give those that have no value."""
    missing: list[Reference] = []
    length = 0
    for place in places:
        value = resolve(pieces[place], scope)
        if value is MISSING:
            missing.append(pieces[place])
        text = "" if value is MISSING or value is None else as_text(value)
        pieces[place] = text
        length += len(text)
        if length > MOST_CHARACTERS:
            raise TooLong(template)
    return tuple(missing)


def whole_json(template: Template, scope: Scope) -> Json | Missing:
    """As `whole_value`; of a text that holds JSON, such as the list that a map runs over, the JSON."""
    found = whole_value(template, scope)
    held = find_json(found) if isinstance(found, str) else found
    return found if held is MISSING else held


def render_known(template: Template, scope: Scope) -> str:
    """For what is told before a run: what cannot be known yet stays as it was written.

    Raises TooLong.
    """
    pieces: list[str] = []
    length = 0
    for piece in known_pieces(template, scope):
        pieces.append(piece)
        length += len(piece)
        if length > MOST_CHARACTERS:
            raise TooLong(template)
    return "".join(pieces)


def known_pieces(template: Template, scope: Scope) -> Iterator[str]:
    """The same piece by piece, for whoever needs only the beginning."""
    for part in template.parts:
        yield part if isinstance(part, str) else _render_known(part, scope)


def whole_value(template: Template, scope: Scope) -> Json | Missing:
    """The value itself where the template is one reference and nothing else, else the text.

    Raises TooLong.
    """
    parts = [part for part in template.parts if not (isinstance(part, str) and part.isspace())]
    if len(parts) == 1 and isinstance(parts[0], Reference):
        return resolve(parts[0], scope)
    return render(template, scope).text


def as_text(value: Json) -> str:
    """Text verbatim, everything else as compact JSON."""
    if isinstance(value, str):
        return value
    try:
        return _compact(value)
    except ValueError:
        # NaN and infinity are not JSON; like JavaScript, we write null for them.
        return _compact(json.loads(json.dumps(value), parse_constant=lambda _: None))


def _render_known(reference: Reference, scope: Scope) -> str:
    value = resolve(reference, scope)
    if value is MISSING:
        return f"{{{{{reference.text}}}}}"
    return "" if value is None else as_text(value)


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
