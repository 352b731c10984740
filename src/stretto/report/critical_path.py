"""Which steps the end of a run waited for. In: RunState. Out: that chain, first step first.

From the step that ended last, back to whatever let it start: the last of its dependencies, or,
if it was ready before it started, the step whose end gave it a place or its files.
"""

from collections.abc import Iterator

from stretto.report.model import PathStep
from stretto.schedule.state import RunState, StepState
from stretto.vocabulary.statuses import StepStatus

# Cancelled or held because another step ended: the run waited for that step, not for this one.
_CALLED_OFF = (StepStatus.CANCELLED, StepStatus.HELD)


def critical_path(state: RunState) -> tuple[PathStep, ...]:
    if state.started_at is None:
        return ()
    path: list[PathStep] = []
    step = _last(state)
    # Steps without length may start each other within one instant: none is visited twice.
    seen: set[str] = set()
    while step is not None:
        seen.add(step.id)
        before, waited_for = _what_let_start(state, step, seen)
        free_at = state.started_at if before is None else _end(state, before)
        start = _start(state, step)
        if _counts(step):
            waited, duration = (
                _driven(state, free_at, start),
                _driven(state, start, _end(state, step)),
            )
            path.append(PathStep(step.id, waited, waited_for, duration))
        step = before
    return tuple(reversed(path))


def _last(state: RunState) -> StepState | None:
    return max(
        filter(_counts, state.order),
        key=lambda step: (
            _end(state, step),
            step.status not in _CALLED_OFF,
            step.started_at or 0.0,
            step.index,
        ),
        default=None,
    )


def _counts(step: StepState) -> bool:
    """Whether the step can be on the path: it began, or it failed before that, because a person
    rejected it or its time ran out. A workflow step is not where a step in it can be."""
    if step.started_at is not None:
        return step.inner is None or not any(map(_counts, step.inner.steps.values()))
    return step.status is StepStatus.FAILED


def _what_let_start(
    state: RunState, step: StepState, seen: set[str]
) -> tuple[StepState | None, str]:
    start = _start(state, step)
    befores = [each for each in _befores(state, step) if each.id not in seen]
    ended = [before for before in befores if _end(state, before) <= start]
    last = max(ended, key=lambda each: (_end(state, each), each.index), default=None)
    ready_at = state.started_at if last is None else _end(state, last)
    assert ready_at is not None
    if start <= ready_at:
        return last, ""
    if _awaited_person(state, step):
        return last, "a person"
    # One event both ends a step and starts another, so the two times are equal.
    rivals = [
        each
        for each in state.order
        if each.ended_at == start and each.started_at is not None and each.id not in seen
    ]
    for rival in rivals:
        if rival.planned.claims.conflicts(step.planned.claims):
            return rival, f"the files of {rival.id}"
    if rivals:
        return rivals[0], "a free place"
    return last, "its turn"


def _befores(state: RunState, step: StepState) -> Iterator[StepState]:
    """The steps that end before this one starts; for a workflow step, the steps in it."""
    holder = step.recipe.holder
    if not step.planned.edges and holder is not None:
        yield from _befores(state, holder)
    for id in step.planned.edges:
        yield from _ends(state.steps[id])


def _ends(step: StepState) -> Iterator[StepState]:
    if _counts(step) or step.inner is None:
        yield step
    else:
        for each in step.inner.steps.values():
            yield from _ends(each)


def _awaited_person(state: RunState, step: StepState) -> bool:
    """At its own gate, or, if it is the first in a workflow step, at that one's. A run that is
    resumed with the permission `ask` has a gate before each of its writers."""
    start = _start(state, step)
    # A later decision is about a change that was held, or about work in doubt.
    if step.planned.is_gated or any(d.event.at <= start and not d.void for d in step.decisions):
        return True
    holder = step.recipe.holder
    return holder is not None and not step.planned.edges and _awaited_person(state, holder)


def _driven(state: RunState, start: float, end: float) -> float:
    """The length of a run leaves out when nobody drove it, and so must each part of it."""
    return max(0.0, end - start - state.paused_seconds(start, end))


def _start(state: RunState, step: StepState) -> float:
    return step.started_at if step.started_at is not None else _end(state, step)


def _end(state: RunState, step: StepState) -> float:
    return step.ended_at if step.ended_at is not None else state.now
