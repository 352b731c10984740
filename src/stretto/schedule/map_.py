"""A map: every element through its stages, a batch at a time, and then the reducer."""

from stretto.events.model import FailureKind
from stretto.plan.model import PlannedMap
from stretto.schedule import delegation
from stretto.schedule.outcomes import fail, stand_in, succeed
from stretto.schedule.parts import start_part
from stretto.schedule.state import Failure, Items, PartState, StepState
from stretto.schedule.turn import Turn
from stretto.templates.json_text import find_json
from stretto.templates.render import whole_value
from stretto.templates.scope import Scope
from stretto.templates.value import MISSING, Missing, kind_of
from stretto.vocabulary.large import Gathered
from stretto.vocabulary.values import Json

# As many equal failures in a row mean that the cause is not in the elements.
MOST_EQUAL_FAILURES = 5


def begin(turn: Turn, step: StepState, work: PlannedMap) -> None:
    values = elements_of(work, turn.state.scope)
    if not isinstance(values, list):
        _fail(turn, step, f"{work.over.text} is {_kind(values)}, not a list")
    elif len(values) > work.max_items:
        _fail(turn, step, f"{len(values):,} elements are more than max_items ({work.max_items:,})")
    else:
        if not values:
            step.warnings[f"{work.over.text} has no elements: nobody was asked"] = None
        step.items = Items(values, [None] * len(values))
        _go_on(turn, step, work, step.items)


def elements_of(work: PlannedMap, scope: Scope) -> Json | Missing:
    """A list, or what stands in its place."""
    found = whole_value(work.over, scope)
    return find_json(found) if isinstance(found, str) else found


def end_part(turn: Turn, step: StepState, work: PlannedMap, part: PartState) -> None:
    items = step.items
    assert items is not None, "only a list that was read has parts"
    if part.brief is work.reducer:
        delegation.end_part(turn, step, part)
    elif part.failure is not None:
        _fail_item(turn, step, work, items, part, part.failure)
    else:
        index, stage = _place(part)
        items.last_failure, items.repeats = None, 0
        if stage + 1 < len(work.stages):
            _enter_stage(turn, step, work, index, stage + 1, part.output)
        else:
            items.results[index] = part.kept_output
            items.ended += 1
            _go_on(turn, step, work, items)


def _go_on(turn: Turn, step: StepState, work: PlannedMap, items: Items) -> None:
    closing = turn.state.closing_reason
    while not closing and _has_room(items, work):
        index = items.entered
        items.entered += 1
        _enter_stage(turn, step, work, index, 0, items.values[index])
    if items.ended < items.entered:
        return
    if items.ended < len(items.values):
        _fail(turn, step, f"{items.ended} of {len(items.values)} items were begun: {closing}")
    elif len(items.failures) > len(items.excused):
        _fail(turn, step, _said(items))
    elif items.values and len(items.excused) == len(items.values):
        # Each element may fail, and with all of them the step has nothing to give.
        fail(turn, step, Failure("error", _said(items)), items.excused[0])
    elif work.reducer is not None:
        start_part(turn, step, "reduce", work.reducer, handed=Gathered(items.results))
    else:
        succeed(turn, step, Gathered(items.results))


def _has_room(items: Items, work: PlannedMap) -> bool:
    is_left = items.entered < len(items.values)
    return is_left and items.entered - items.ended < work.batch_size


def _enter_stage(
    turn: Turn, step: StepState, work: PlannedMap, index: int, stage: int, item: Json
) -> None:
    local: dict[str, Json] = {"item": item, "index": index}
    name = f"item.{index}.stage.{stage}"
    start_part(turn, step, name, work.stages[stage], local, handed=item)


def _place(part: PartState) -> tuple[int, int]:
    _, index, _, stage = part.name.split(".")
    return int(index), int(stage)


def element_of(part: PartState) -> int | None:
    """Which element of a map the part works on; None: on none."""
    return _place(part)[0] if part.name.startswith("item.") else None


def _fail_item(
    turn: Turn, step: StepState, work: PlannedMap, items: Items, part: PartState, failure: Failure
) -> None:
    index, _ = _place(part)
    step.warnings[f"item {index} failed: {failure.error}"] = None
    items.ended += 1
    items.repeats = items.repeats + 1 if failure == items.last_failure else 1
    items.last_failure = failure
    policy = work.on_item_failure or part.brief.on_failure
    if items.repeats >= MOST_EQUAL_FAILURES:
        _fail(turn, step, f"stopped after {items.repeats} equal failures: {failure.error}")
        return
    if policy == "abort":
        _fail(turn, step, f"item {index} failed: {failure.error}", failure.kind)
        return
    items.failures[index] = failure.error
    instead = stand_in(policy, step, f"item {index}", failure)
    if instead is not None and policy is not None:
        items.excused[index] = policy
        items.results[index] = instead.output
        turn.state.is_partial = True
    _go_on(turn, step, work, items)


def _fail(turn: Turn, step: StepState, error: str, kind: FailureKind = "error") -> None:
    fail(turn, step, Failure(kind, error), step.planned.on_failure)


def _said(items: Items) -> str:
    # In the order of the elements: who failed first is chance.
    failed, most = sorted(items.failures), 5
    shown = "; ".join(f"item {index}: {items.failures[index]}" for index in failed[:most])
    rest = f" and {len(failed) - most} more" if len(failed) > most else ""
    return f"{len(failed)} of {len(items.values)} items failed: {shown}{rest}"


def _kind(value: Json | Missing) -> str:
    return "missing" if value is MISSING else kind_of(value)
