"""Fill a template. In: a Template and a Scope. Out: text, with what was missing from it."""

import json
from collections.abc import Sequence
from typing import Any

from weft.templates.reference import Reference
from weft.templates.scope import MISSING, Json, Missing, Scope, resolve
from weft.templates.template import Template
from weft.vocabulary.value import value


@value
class Rendered:
    text: str
    missing: tuple[Reference, ...]


def render(template: Template, scope: Scope) -> Rendered:
    """One pass: what is inserted is never scanned again. Missing and null insert nothing."""
    parts = template.parts
    if len(parts) == 1 and isinstance(parts[0], str):
        return Rendered(parts[0], ())
    pieces: list[Any] = list(parts)  # text, once every reference is filled in
    missing: list[Reference] = []
    unfilled = _fill_outputs(pieces, template, scope)
    for place in sorted((*template.other_places, *unfilled)):
        reference: Reference = pieces[place]
        value = resolve(reference, scope)
        if value is MISSING:
            missing.append(reference)
        pieces[place] = "" if value is MISSING or value is None else as_text(value)
    return Rendered("".join(pieces), tuple(missing))


def _fill_outputs(pieces: list[Any], template: Template, scope: Scope) -> Sequence[int]:
    """Those that are there and are text. Out: the places of the others."""
    steps = scope.steps
    try:
        outputs = [steps[id].output for id in template.output_steps]
    except KeyError:
        return template.output_places
    unfilled = []
    for place, output in zip(template.output_places, outputs, strict=True):
        if type(output) is str:
            pieces[place] = output
        else:
            unfilled.append(place)
    return unfilled


def render_known(template: Template, scope: Scope) -> str:
    """For dry runs: what cannot be known yet stays as it was written."""
    return "".join(
        part if isinstance(part, str) else _known(part, scope) for part in template.parts
    )


def whole_value(template: Template, scope: Scope) -> Json | Missing:
    """The value itself where the template is one reference and nothing else, else the text."""
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


def _known(reference: Reference, scope: Scope) -> str:
    value = resolve(reference, scope)
    if value is MISSING:
        return f"{{{{{reference.text}}}}}"
    return "" if value is None else as_text(value)


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
