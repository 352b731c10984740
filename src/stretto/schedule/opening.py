"""What a step would begin with. In: a step that has not started. Out: its first commands.

Nothing is changed and nothing starts: a person who is asked about the step is shown this.
"""

from collections.abc import Iterator, Mapping
from typing import assert_never

from stretto.plan.model import (
    Brief,
    PlannedCondition,
    PlannedDelegation,
    PlannedLoop,
    PlannedMap,
    PlannedParallel,
    PlannedSwitch,
)
from stretto.schedule import condition, map_
from stretto.schedule.commands import StartAttempt
from stretto.schedule.prompt import command_for
from stretto.schedule.state import NO_LOCAL, PartState, RunState, StepState
from stretto.templates.value import MISSING, Missing
from stretto.vocabulary.values import Json


def opening_commands(state: RunState, step: StepState) -> tuple[StartAttempt, ...]:
    blank = blank_copy(step)
    return tuple(command_for(state, blank, part) for part in _opening_parts(state, blank))


def blank_copy(step: StepState) -> StepState:
    """To try out on: the warnings of a trial are nobody's."""
    copy = StepState(step.planned, step.id, step.index)
    copy.edited_prompts = step.edited_prompts
    return copy


def _opening_parts(state: RunState, step: StepState) -> Iterator[PartState]:
    work = step.planned.work
    match work:
        case PlannedDelegation():
            yield _part("", work.brief)
        case PlannedParallel():
            for branch in work.branches:
                yield _part(branch.key, branch.brief)
        case PlannedCondition() | PlannedSwitch():
            target = condition.target_of(step, work, state.scope)
            if target is not None and target.brief is not None:
                yield _part("", target.brief)
        case PlannedLoop():
            yield _part("try.1", work.producer, {"feedback": None, "iteration": 1})
        case PlannedMap():
            values = map_.elements_of(work, state.scope)
            for index, item in enumerate(values if isinstance(values, list) else ()):
                local = {"item": item, "index": index}
                yield _part(f"item.{index}.stage.0", work.stages[0], local, item)
        case _:
            assert_never(work)


def _part(
    name: str,
    brief: Brief,
    local: Mapping[str, Json] = NO_LOCAL,
    handed: Json | Missing = MISSING,
) -> PartState:
    return PartState(name, brief, brief.agent, local, handed)
