"""Decisions of a person, and seals on them and on what a run began with: MACs with the user's secret.

A plan is checked when its run starts; whoever drives the run later takes it from the journal. The
seal says that it is still the same, and the inputs, the folder and the model with it. A
decision is sealed too. Nothing else is: what steps answered can be edited unnoticed
(docs/decisions/0013).
"""

import hmac
import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import TypeAlias, TypeVar

from msgspec import Struct, structs, to_builtins

from stretto.events.model import (
    ApprovalRequested,
    Approved,
    Rejected,
    RunStarted,
    TimerFired,
)
from stretto.plan.model import briefs
from stretto.problems.errors import AlreadyDecided, InvalidUsage, PlanNotAccepted
from stretto.report.text import moment
from stretto.schedule.approvals import decision_in_force, key_of_question, question_of
from stretto.schedule.state import Decision, RunState, StepState
from stretto.schedule.status import is_overdue, overdue_timers, step_word
from stretto.text.short import did_you_mean, listed
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import StepId

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
    key = key_of_question(state, asking)
    if verdict.key is not None and verdict.key != key:
        raise InvalidUsage(
            f"step '{step}' would now run something else than you were shown",
            hint=f"look again: stretto approve {state.run_id} {step} --show",
        )
    token = secrets.token_hex(8)
    if not verdict.is_approved:
        return Rejected(now, step, verdict.by, verdict.reason, key, token)
    prompts = _prompts(state, asking, verdict.prompts)
    return Approved(now, step, verdict.by, verdict.reason, key, prompts or None, token)


def questions_before(state: RunState, event: DecisionEvent, now: float) -> list[ApprovalRequested]:
    """What must stand in the journal before the decision: its question, where nobody has asked it yet."""
    asking = state.awaiting_approval.get(event.step)
    if asking is None or asking.asked_key:
        return []
    question = question_of(state, asking)
    return [ApprovalRequested(now, event.step, question.key, question.about)]


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
    return AlreadyDecided(said, hint=_how_on(state, step))


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
    stands = f": it is {step_word(known)}" if known else ""
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


_VERSION = "1"
# Bytes. For more, hashlib lets other threads go first, which takes longer than the hash.
_PIECE = 2_047
_FINGERPRINT_LETTERS = 16
_Decided = TypeVar("_Decided", bound=DecisionEvent)


class Seals:
    """`accepted`: fingerprints of plans without a valid seal that a person has read and accepts."""

    def __init__(self, secret: Callable[[], bytes], accepted: frozenset[str] = frozenset()) -> None:
        self._secret = secret
        self._accepted = accepted

    def seal(self, started: RunStarted) -> RunStarted:
        return structs.replace(started, seal=self._mac(_start(started)))

    def seal_decision(self, run_id: str, decided: _Decided) -> _Decided:
        return structs.replace(decided, seal=self._mac(_decision(run_id, decided)))

    def is_given(self, run_id: str, decided: DecisionEvent) -> bool:
        """Whether this user gave the decision, for this run and as it stands."""
        return self._holds(decided.seal, _decision(run_id, decided))

    def check(self, started: RunStarted, decisions: Iterable[DecisionEvent] = ()) -> None:
        """Raises PlanNotAccepted."""
        is_sealed = self._holds(started.seal, _start(started))
        forged = self._find_forged(started, decisions)
        if is_sealed and not forged:
            return
        mark = _fingerprint(started, forged)
        if mark not in self._accepted:
            raise _refusal(started, is_sealed, forged, mark)

    def fingerprint(self, started: RunStarted, decisions: Iterable[DecisionEvent] = ()) -> str:
        """Names exactly this beginning of a run, and the decisions that have no seal, for a person
        who accepts them."""
        return _fingerprint(started, self._find_forged(started, decisions))

    def _find_forged(
        self, started: RunStarted, decisions: Iterable[DecisionEvent]
    ) -> list[DecisionEvent]:
        return [each for each in decisions if not self.is_given(started.run_id, each)]

    def _holds(self, seal: str, covered: bytes) -> bool:
        # A seal comes from outside, and may hold half a surrogate.
        given = seal.encode("utf-8", "surrogatepass")
        return hmac.compare_digest(given, self._mac(covered).encode())

    def _mac(self, covered: bytes) -> str:
        mac = hmac.new(self._secret(), digestmod=sha256)
        for start in range(0, len(covered), _PIECE):
            mac.update(covered[start : start + _PIECE])
        return f"{_VERSION}:{mac.hexdigest()}"


def _fingerprint(started: RunStarted, forged: Iterable[DecisionEvent]) -> str:
    covered = [_start(started), *(_decision(started.run_id, each) for each in forged)]
    return sha256(b"\n".join(covered)).hexdigest()[:_FINGERPRINT_LETTERS]


def _start(started: RunStarted) -> bytes:
    head = {**_fields_to_seal(started, "plan"), "at": float(started.at)}
    # JSON without line breaks, so nothing can move between the two halves.
    return _canonical(head) + b"\n" + bytes(started.plan)


def _decision(run_id: str, decided: DecisionEvent) -> bytes:
    # Without its time, which the driver sets when it journals the decision.
    return _canonical({**_fields_to_seal(decided), "type": decided.type, "of": run_id})


def _canonical(value: Mapping[str, object]) -> bytes:
    return json.dumps(to_builtins(value), sort_keys=True).encode()


def describe_decision(decided: DecisionEvent) -> str:
    verdict = "an approval" if isinstance(decided, Approved) else "a rejection"
    return f"{verdict} of {decided.step}"


def _fields_to_seal(event: RunStarted | DecisionEvent, *besides: str) -> dict[str, object]:
    # A field at its default is left out: seals hold when a later Stretto adds another field.
    written = ((name, getattr(event, name), default) for name, default in _fields(type(event)))
    left_out = ("at", "seal", *besides)
    return {
        name: value for name, value, default in written if name not in left_out and value != default
    }


@cache
def _fields(kind: type[Struct]) -> tuple[tuple[str, object], ...]:
    # Once for a kind: to look at them takes longer than to seal a run.
    return tuple((field.name, field.default) for field in structs.fields(kind))


def _refusal(
    started: RunStarted, is_sealed: bool, forged: Sequence[DecisionEvent], mark: str
) -> PlanNotAccepted:
    run = started.run_id
    if is_sealed:
        what = listed(dict.fromkeys(describe_decision(each) for each in forged))
        said = f"the journal of run {run} holds {what} that you did not give"
    elif started.seal:
        said = f"what run {run} began with was changed since: its plan, its inputs or its folder"
    else:
        said = f"the stored plan of run {run} has no seal: another version of Stretto or another user wrote it"
    hint = (
        f"read it with: stretto plan --run {run}; go on with exactly that: "
        f"stretto resume {run} --accept-plan {mark}; "
        f"or start from a recipe that you know: stretto retry {run} --recipe FILE"
    )
    return PlanNotAccepted(said, hint=hint)
