"""A step that decides: which step runs, or which agent runs in place."""

from stretto.plan.model import PlannedCondition, PlannedSwitch, Target
from stretto.schedule.outcomes import succeed
from stretto.schedule.parts import start_part
from stretto.schedule.state import StepState
from stretto.schedule.turn import Turn
from stretto.templates.evaluate import Undecided, decide, evaluate
from stretto.templates.render import as_text
from stretto.templates.scope import Scope


def begin(turn: Turn, step: StepState, work: PlannedCondition | PlannedSwitch) -> None:
    target = target_of(step, work, turn.state.scope)
    if target is not None and target.brief is not None:
        start_part(turn, step, "", target.brief)
        return
    step.choice = target.step if target else None
    succeed(turn, step, target.name if target else None)


def target_of(
    step: StepState, work: PlannedCondition | PlannedSwitch, scope: Scope
) -> Target | None:
    return (
        _routed(step, work, scope)
        if isinstance(work, PlannedCondition)
        else _chosen(step, work, scope)
    )


def _routed(step: StepState, work: PlannedCondition, scope: Scope) -> Target | None:
    claim = decide(work.condition, scope)
    if isinstance(claim, Undecided):
        step.warnings[f"the condition is undecided and counts as false: {claim.reason}"] = None
        return work.if_false
    return work.if_true if claim else work.if_false


def _chosen(step: StepState, work: PlannedSwitch, scope: Scope) -> Target | None:
    value = evaluate(work.value, scope)
    if value is None:
        value = Undecided(f"{work.value.text} is null")
    if isinstance(value, Undecided):
        step.warnings[f"the value is undecided, so the default is taken: {value.reason}"] = None
        return work.default
    said = as_text(value)
    # Exactly, if any case is written so; models are free with capitals and blanks.
    for spelled in (str, _plain):
        for case, target in work.cases:
            if spelled(case) == spelled(said):
                return target
    return work.default


def _plain(text: str) -> str:
    return text.strip().casefold()
