"""Turn a person's approval or rejection into an event, or say why it cannot count."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from stretto.events.model import Approved, Rejected, TimerFired
from stretto.plan.model import briefs
from stretto.problems.errors import InvalidUsage
from stretto.report.text import moment
from stretto.schedule.approvals import decision_in_force, question_of
from stretto.schedule.state import Decision, RunState, StepState
from stretto.schedule.status import is_overdue, overdue_timers
from stretto.text.names import did_you_mean, listed
from stretto.vocabulary.ids import StepId
from stretto.vocabulary.json_value import Json

DecisionEvent: TypeAlias = Approved | Rejected


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """What a person says about a step that awaits approval."""

    is_approved: bool
    by: str
    reason: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)  # by part: to be run instead
    key: str | None = None  # of what the person has seen; None: of what is asked now


def decision_of(
    state: RunState, step: StepId, verdict: DecisionRequest, now: float
) -> DecisionEvent:
    """Raises InvalidUsage where the decision cannot count, and says which decision does."""
    asking = _asking(state, step)
    if is_overdue(state, step, now):
        raise InvalidUsage(
            f"the time of step '{step}' ran out before anybody decided",
            hint=f"stretto resume {state.run_id} goes on without it",
        )
    if verdict.key is not None and verdict.key != asking.asked_key:
        raise InvalidUsage(
            f"what step '{step}' would run is not what you saw any more",
            hint=f"look again: stretto approve {state.run_id} {step} --show",
        )
    token, key = secrets.token_hex(8), asking.asked_key
    if not verdict.is_approved:
        return Rejected(now, step, verdict.by, verdict.reason, key, token)
    prompts = _prompts(state, asking, verdict.prompts)
    return Approved(now, step, verdict.by, verdict.reason, key, prompts or None, token)


def fire_overdue(state: RunState, now: float) -> list[TimerFired]:
    return [TimerFired(now, timer) for timer in overdue_timers(state, now)]


def find_decision(state: RunState, event: DecisionEvent) -> Decision | None:
    step = state.steps[event.step]
    return next((d for d in step.decisions if d.event.decision == event.decision), None)


def refusal(state: RunState, id: StepId, void: str) -> InvalidUsage:
    """Why a decision did not count, and what stands instead."""
    step = state.steps[id]
    stands = decision_in_force(step)
    if stands is None:
        said = f"step '{id}' does not await approval: it is {step.status.value}"
        return InvalidUsage(said if not step.awaits_approval else f"{said} ({void})")
    event = stands.event
    verb = "approved" if isinstance(event, Approved) else "rejected"
    why = f" ({event.reason})" if event.reason else ""
    at = moment(event.at)
    said = f"step '{id}' was {verb} by {event.by or 'a person'} at {at}{why}, and that stands"
    return InvalidUsage(said, hint=_how_on(state, step))


def _how_on(state: RunState, step: StepState) -> str:
    if step.ended_at is not None or state.has_ended:
        return f"the step is {step.status.value}: stretto report {state.run_id}"
    return f"stretto cancel {state.run_id} stops the run; stretto resume {state.run_id} goes on with it"


def _asking(state: RunState, step: StepId) -> StepState:
    found = state.awaiting_approval.get(step)
    if found is not None:
        return found
    known = state.steps.get(step)
    if known is not None and known.decisions:
        raise refusal(state, step, "")
    waiting = listed(state.awaiting_approval)
    hint = did_you_mean(step, state.awaiting_approval) or (
        f"these do: {waiting}" if waiting else f"no step of run {state.run_id} does"
    )
    stands = f": it is {known.status.value}" if known else ""
    raise InvalidUsage(f"step '{step}' does not await approval{stands}", hint=hint)


def _prompts(state: RunState, step: StepState, edited: Mapping[str, str]) -> dict[str, Json]:
    commands = question_of(state, step).commands
    parts = {command.attempt.part.text: command for command in commands}
    for part, text in edited.items():
        if part not in parts:
            names = listed([name or "(the only one)" for name in parts]) or "none"
            raise InvalidUsage(
                f"step '{step.id}' has no prompt '{part}' to edit", hint=f"its prompts: {names}"
            )
        if not text.strip():
            raise InvalidUsage("the edited prompt is empty", hint="reject the step instead")
    # What a step is given of all that ended before may grow until it starts; it runs as shown.
    grows = {
        name: command.request.prompt
        for name, command in parts.items()
        if any(brief.gets_all_prior for brief in briefs(step.planned.work))
    }
    return {**grows, **edited}
