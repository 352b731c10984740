"""Expressions that can never be decided, or never be true, whatever the run brings.

Each operand is held against every value, or every kind of value, that it can have; the evaluator
itself says what becomes of them. An operand of which nothing is known gives no warning.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from msgspec import Struct

from stretto.plan.draft import Draft
from stretto.plan.edges import stored_names
from stretto.plan.rules.templates import known_names
from stretto.recipe.model import Input, Switch
from stretto.templates.check import Known, named_output, schema_at, statuses_that_count
from stretto.templates.evaluate import apply, size
from stretto.templates.expression import (
    Binary,
    Constant,
    Expression,
    ExpressionNode,
    ListLiteral,
    Logic,
    Unary,
    children,
    references_in,
    written,
)
from stretto.templates.json_text import kind_of
from stretto.templates.likeness import Undecided, is_number, same, truth
from stretto.templates.template import Fault, Reference
from stretto.text.short import did_you_mean, listed, show_json
from stretto.vocabulary.json_value import Json

# One of each sort of value that operators tell apart.
_SAMPLES: Mapping[str, tuple[Json, ...]] = {
    "string": ("word", "1", "true"),
    "number": (1, 0.5),
    "integer": (1, 2),
    "boolean": (True, False),
    "array": ([],),
    "object": ({},),
}
_TRUTHS: tuple[Json, ...] = (True, False)
_OF_INPUTS = {
    "string": "string",
    "file_path": "string",
    "number": "number",
    "boolean": "boolean",
}
_MOST_VALUES = 60


class Possible(Struct, frozen=True):
    """The values that an operand can have, or one of each sort."""

    values: tuple[Json, ...]
    is_exact: bool = False  # these and no others


def warn_undecided(draft: Draft) -> None:
    expressions = {at: each for at, each in draft.parsed.items() if isinstance(each, Expression)}
    if not expressions:
        return
    reader = _Reader(draft)
    for at, parsed in expressions.items():
        is_value = at[-1] == "value"  # of a switch: any value will do
        fault = reader.first_fault(parsed.tree, is_condition=not is_value)
        if fault is not None:
            draft.warning_inside(at, parsed.text, fault)
    for step in draft.recipe.steps:
        value = expressions.get((*step.at, "switch", "value"))
        if isinstance(step.work, Switch) and value is not None:
            possible = reader.possible(value.tree)
            for case in step.work.cases:
                told = _case_fault(value.tree, possible, case)
                if told is not None:
                    draft.warning_at("RCP911", (*step.at, "switch", "cases", case), *told)


class _Reader:
    def __init__(self, draft: Draft) -> None:
        self.inputs = {str(each.name): each for each in draft.recipe.inputs}
        self.known: Known = known_names(draft, stored_names(draft))

    def first_fault(self, node: ExpressionNode, is_condition: bool) -> Fault | None:
        """The first in the text: one slip has one warning."""
        if is_condition and (fault := self.truth_fault(node)) is not None:
            return fault
        are_conditions = isinstance(node, Logic) or (
            isinstance(node, Unary) and node.operator == "not"
        )
        for child in children(node):
            fault = self.first_fault(child, are_conditions)
            if fault is not None:
                return fault
        if isinstance(node, Binary):
            return self.binary_fault(node)
        if isinstance(node, Unary) and node.operator == "size":
            return self.size_fault(node)
        return None

    def possible(self, node: ExpressionNode) -> Possible | None:
        match node:
            case Constant(None):
                return None
            case Constant(value):
                return Possible((value,), is_exact=True)
            case Reference():
                return self.of_reference(node)
            case ListLiteral(items):
                values = [self.possible(item) for item in items]
                exact = [each.values[0] for each in values if each and len(each.values) == 1]
                is_exact = len(exact) == len(items)
                return Possible((exact,), is_exact=True) if is_exact else None
            case Logic() | Unary("not"):
                return Possible(_TRUTHS)
            case Unary():
                return Possible(_SAMPLES["number"])
            case Binary(operator):
                is_sum = operator in ("+", "-", "*", "/", "%")
                return None if is_sum else Possible(_TRUTHS)

    def of_reference(self, reference: Reference) -> Possible | None:
        path = reference.path
        if path[0] in ("index", "iteration") and path[0] not in self.inputs:
            return Possible(_SAMPLES["integer"])
        if path[0] == "steps" and len(path) == 3:
            if path[2] == "status":
                return Possible(tuple(statuses_that_count()), is_exact=True)
            if path[2] == "chosen":
                return Possible(self.known.steps[str(path[1])].targets, is_exact=True)
            if path[2] in ("error", "diff"):
                return Possible(("word",))
            if path[2] in ("files", "outputs"):
                return Possible(_SAMPLES["array" if path[2] == "files" else "object"])
        named = self.inputs.get(str(path[1] if path[0] == "inputs" else path[0]))
        if named is not None and path[0] not in self.known.stored:
            is_whole = len(path) == (2 if path[0] == "inputs" else 1)
            return _of_input(named) if is_whole else None
        return self.of_output(reference)

    def of_output(self, reference: Reference) -> Possible | None:
        named = named_output(reference, self.known)
        if named is None or named.step.is_text:
            return None
        fields = reference.path[named.at :]
        if named.step.output_keys is not None:
            return None if fields else Possible(_SAMPLES["object"])
        if named.step.is_list:
            if not fields:
                return Possible(_SAMPLES["array"])
            fields = fields[1:]
        schema = schema_at(named.step.schema, fields) if fields else named.step.schema
        return _of_schema(schema)

    def truth_fault(self, node: ExpressionNode) -> Fault | None:
        possible = self.possible(node)
        if possible is None or not all(
            isinstance(truth(value), Undecided) for value in possible.values
        ):
            return None
        kind = kind_of(possible.values[0])
        message = f"'{_spell(node)}' is {kind}, which is neither true nor false"
        return _fault(node, message, _how_to_ask(node, possible))

    def size_fault(self, node: Unary) -> Fault | None:
        possible = self.possible(node.operand)
        if possible is None or not all(
            isinstance(size(value), Undecided) for value in possible.values
        ):
            return None
        kind, name = kind_of(possible.values[0]), _spell(node.operand)
        return _fault(node, f"'{name}' is {kind}, which has no size", f"write {name} by itself")

    def binary_fault(self, node: Binary) -> Fault | None:
        left, right = self.possible(node.left), self.possible(node.right)
        if left is None or right is None:
            return None
        if node.operator == "in" and isinstance(node.right, ListLiteral) and left.is_exact:
            return self.element_fault(node, left, right)
        results = [
            apply(node.operator, one, other)
            for one, other in product(left.values[:_MOST_VALUES], right.values[:_MOST_VALUES])
        ]
        reasons = [each.reason for each in results if isinstance(each, Undecided)]
        is_constant = isinstance(node.left, Constant) and isinstance(node.right, Constant)
        if results and len(reasons) == len(results):
            message = f"'{_spell(node)}' is never decided, so it counts as false: {reasons[0]}"
            return _fault(node, message, _how_to_compare(node, left, right))
        is_known = left.is_exact and right.is_exact and not is_constant
        if is_known and node.operator in ("==", "in") and True not in results:
            return _fault(node, f"'{_spell(node)}' is never true", _which(node, left, right))
        if is_known and node.operator == "!=" and False not in results:
            return _fault(node, f"'{_spell(node)}' is always true", _which(node, left, right))
        return None

    def element_fault(self, node: Binary, left: Possible, right: Possible) -> Fault | None:
        if isinstance(node.left, Constant) or not isinstance(right.values[0], list):
            return None
        for each in right.values[0]:
            if not any(same(value, each) is True for value in left.values):
                message = f"'{_spell(node.left)}' is never {show_json(each)}"
                return _fault(node, message, _values_hint(each, left.values))
        return None


def _of_input(declared: Input) -> Possible | None:
    if declared.enum:
        return Possible(declared.enum, is_exact=True)
    kind = declared.shape or _OF_INPUTS.get(declared.type)
    return Possible(_SAMPLES[kind]) if kind else None


def _of_schema(schema: object) -> Possible | None:
    if not isinstance(schema, Mapping):
        return None
    listed_values = schema.get("enum")
    if isinstance(listed_values, list) and listed_values:
        values = tuple(each for each in listed_values if each is not None)
        return Possible(values, is_exact=True) if values else None
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(kinds, list) or not all(isinstance(each, str) for each in kinds):
        return None
    said = [each for each in kinds if each != "null"]
    if not said or not all(each in _SAMPLES for each in said):
        return None
    return Possible(tuple(value for kind in said for value in _SAMPLES[kind]))


def _case_fault(
    node: ExpressionNode, possible: Possible | None, case: str
) -> tuple[str, str] | None:
    if possible is None or any(same(value, case) is True for value in possible.values):
        return None
    if possible.is_exact:
        message = f"'{_spell(node)}' is never '{case}', so this case is never chosen"
        return message, _values_hint(case, possible.values)
    if not all(isinstance(same(value, case), Undecided) for value in possible.values):
        return None
    kind = kind_of(possible.values[0])
    message = f"'{_spell(node)}' is {kind}, which is never the text '{case}'"
    return message, "choose by a value of its kind, or by a condition:"


def _how_to_ask(node: ExpressionNode, possible: Possible) -> str:
    name, value = _spell(node), possible.values[0]
    if isinstance(node, Reference) and node.path[-1] == "error":
        return f"write {name} != null"
    if isinstance(value, list | dict):
        return f"write size({name}) > 0"
    if isinstance(value, str) and possible.is_exact and not isinstance(node, Constant):
        return f"compare it, as in {name} == '{value}'"
    return f"compare it, as in {name} > 0" if not isinstance(value, str) else "compare it"


def _how_to_compare(node: Binary, left: Possible, right: Possible) -> str:
    pairs = ((left, right, node.left, node.right), (right, left, node.right, node.left))
    for one, other, this, beside in pairs:
        if not isinstance(this, Constant) and (hint := _of_kind(node, one, other, this, beside)):
            return hint
    return _which(node, left, right) if left.is_exact and right.is_exact else ""


def _of_kind(
    node: Binary, one: Possible, other: Possible, this: ExpressionNode, beside: ExpressionNode
) -> str:
    """What was meant with a value of this kind beside such another."""
    name, value, against = _spell(this), one.values[0], other.values[0]
    is_search = node.operator in ("in", "contains")
    if is_search and is_number(against) and isinstance(beside, Constant):
        return f"put the number in quotes: '{_spell(beside)}'"
    if isinstance(value, list | dict) and not is_search:
        if isinstance(against, str):
            is_list = isinstance(value, list)
            return f"write {name} contains {_spell(beside)}" if is_list else "compare a field of it"
        return f"write size({name})"
    if isinstance(value, bool):
        return f"write {name}, or not {name}"
    if is_number(value):
        return f"compare {name} with a number, by ==, < or >"
    return ""


def _which(node: Binary, left: Possible, right: Possible) -> str:
    wanted, others = (right, left) if isinstance(node.right, Constant) else (left, right)
    return _values_hint(wanted.values[0], others.values) if wanted.values else ""


def _values_hint(wanted: Json, values: Sequence[Json]) -> str:
    texts = [value if isinstance(value, str) else show_json(value) for value in values]
    shown = wanted if isinstance(wanted, str) else show_json(wanted)
    return did_you_mean(shown, texts) or f"it is one of {listed(texts)}"


def _spell(node: ExpressionNode) -> str:
    text = written(node)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _fault(node: ExpressionNode, message: str, hint: str) -> Fault:
    """At the first reference in it: the only parts that know where they stand."""
    first: Iterable[Reference] = references_in(node)
    at = next(iter(first), None)
    return Fault("RCP911", message, hint, at.offset if at else 0, len(at.text) if at else 1)
