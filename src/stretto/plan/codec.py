"""Plans as JSON, which RunStarted stores: editing the recipe's file never changes a run.

Templates and expressions are written as their text and parsed again when they are read. What a
step claims follows from its sets.
"""

from typing import Any

import msgspec

from stretto.plan.model import Plan
from stretto.problems.errors import StrettoError
from stretto.templates.expression import Expression, parse_expression
from stretto.templates.template import Fault, Template, parse_template


def encode_plan(plan: Plan) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(plan, enc_hook=_to_json))


def decode_plan(stored: msgspec.Raw) -> Plan:
    """Raises StrettoError."""
    try:
        return msgspec.json.decode(stored, type=Plan, dec_hook=_from_json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StrettoError(f"this stored plan cannot be read: {error}") from None


def _to_json(value: object) -> object:
    if isinstance(value, Expression):
        return value.text
    if isinstance(value, Template):
        # The prompt of a registered agent was never parsed, and must not be: `{{` is only text.
        is_verbatim = "{{" in value.text and value.parts == (value.text,)
        return {"verbatim": value.text} if is_verbatim else value.text
    raise TypeError(f"{type(value).__name__} is no part of a plan")


def _from_json(kind: type, value: Any) -> object:
    if kind is Template and isinstance(value, dict):
        return Template.verbatim(_text(value.get("verbatim")))
    text = _text(value)
    if kind is Template:
        template, faults = parse_template(text)
        if faults:
            raise ValueError(f"this is no template: {faults[0].message}")
        return template
    expression = parse_expression(text)
    if isinstance(expression, Fault):
        raise ValueError(f"this is no expression: {expression.message}")
    return expression


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("this must be text")
    return value
