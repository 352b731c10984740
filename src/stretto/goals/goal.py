"""A goal as a value. In: what was asked, and the events so far. Out: how it stands, and the next move.

    GoalSpec + events ─fold→ GoalStanding ─next_move→ Verify | Iterate | Conclude
                                           └goal_report→ GoalReport, for people and programs

No clock, no chance, no file: time enters by the events. An event that begins something is on
record before it begins, so whoever goes on after a crash knows what may have happened.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, TypeAlias, assert_never

import msgspec
from msgspec import Struct, field

from stretto.vocabulary.amounts import Usage, usage_as_json
from stretto.vocabulary.json_value import Json

GOAL_PREFIX = "g-"  # of the id of every goal
DEFAULT_ITERATIONS = 10
DEFAULT_STALL = 3
DEFAULT_CHECK_SECONDS = 600.0
LimitWord: TypeAlias = Literal["iterations", "tokens", "usd", "time"]


class GoalState(StrEnum):
    ACTIVE = "active"
    ACHIEVED = "achieved"
    EXHAUSTED = "exhausted"
    STALLED = "stalled"
    UNACHIEVABLE = "unachievable"
    CLEARED = "cleared"


class GoalLimits(Struct, frozen=True):
    """None: without a limit."""

    iterations: int = DEFAULT_ITERATIONS
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None  # while a process works on it
    stall_after: int = DEFAULT_STALL  # iterations without progress; 0: never
    check_seconds: float = DEFAULT_CHECK_SECONDS  # of one check


class GoalSpec(Struct, frozen=True):
    """What was asked. A recipe is kept as its text: editing the file changes no goal in flight."""

    text: str
    verify: str  # KIND:SPEC
    folder: str  # of the project
    workflow: str = ""  # its name; empty: a turn of an agent
    recipe: str = ""
    inputs: Mapping[str, Json] = field(default_factory=dict)
    evidence_input: str = ""  # which input the evidence goes to; empty: none
    is_appended: bool = False  # the evidence stands below what that input says
    goal_input: str = ""  # which input the goal's text goes to
    model: str | None = None
    permission: str | None = None
    limits: GoalLimits = GoalLimits()
    asked_by: str = "person"  # or: model
    by: str = ""  # the user's name


class _GoalEvent(Struct, frozen=True, tag_field="type"):
    at: float  # the date, for show
    worked: float  # seconds that processes have worked on the goal until now


class CheckStarted(_GoalEvent, frozen=True, tag="check_started"):
    number: int  # after so many iterations
    run_id: str = ""  # of the judge's run; empty: no model is asked


class CheckEnded(_GoalEvent, frozen=True, tag="check_ended"):
    number: int
    is_met: bool
    evidence: str
    fingerprint: str  # equal where nothing has changed
    usage: Usage = Usage()
    cannot_run: bool = False  # the verifier itself is at fault


class IterationStarted(_GoalEvent, frozen=True, tag="iteration_started"):
    number: int
    run_id: str


class IterationWaits(_GoalEvent, frozen=True, tag="iteration_waits"):
    number: int
    status: str  # waiting or overdue, as the run's report says it
    why: str = ""


class IterationEnded(_GoalEvent, frozen=True, tag="iteration_ended"):
    number: int
    status: str  # the run's
    usage: Usage = Usage()
    declared: str = ""  # why the agent takes the goal for unachievable
    spent: str = ""  # the budget that kept the run from going on: tokens, usd
    error: str = ""
    warnings: tuple[str, ...] = ()


class GoalEnded(_GoalEvent, frozen=True, tag="goal_ended"):
    state: GoalState
    why: str = ""
    limit: LimitWord | None = None
    usage: Usage = Usage()  # of the run that was in flight and ended with the goal


class GoalReopened(_GoalEvent, frozen=True, tag="goal_reopened"):
    limits: GoalLimits
    by: str = ""


GoalEvent: TypeAlias = (
    CheckStarted
    | CheckEnded
    | IterationStarted
    | IterationWaits
    | IterationEnded
    | GoalEnded
    | GoalReopened
)
_encoder = msgspec.json.Encoder()
_event_decoder: msgspec.json.Decoder[GoalEvent] = msgspec.json.Decoder(GoalEvent)
_spec_decoder: msgspec.json.Decoder[GoalSpec] = msgspec.json.Decoder(GoalSpec)


def encode_goal(value: GoalSpec | GoalEvent) -> str:
    return _encoder.encode(value).decode()


def decode_event(text: str) -> GoalEvent:
    """Raises ValueError."""
    return _event_decoder.decode(text)


def decode_spec(text: str) -> GoalSpec:
    """Raises ValueError."""
    return _spec_decoder.decode(text)


@dataclass(frozen=True, slots=True)
class GoalIteration:
    """One run, and what the check after it found."""

    number: int
    run_id: str
    started_at: float
    status: str = ""  # the run's; empty: it has not ended
    usage: Usage = Usage()
    error: str = ""
    warnings: tuple[str, ...] = ()  # of the run
    is_met: bool = False
    evidence: str | None = None  # None: not checked yet


@dataclass(frozen=True, slots=True)
class GoalStanding:
    """How a goal stands: the fold of its events."""

    id: str
    spec: GoalSpec
    made_at: float
    limits: GoalLimits
    state: GoalState = GoalState.ACTIVE
    why: str = ""
    limit: LimitWord | None = None
    usage: Usage = Usage()
    worked_seconds: float = 0.0
    before: CheckEnded | None = None  # the check before the first iteration
    iterations: tuple[GoalIteration, ...] = ()
    last: CheckEnded | None = None
    in_flight: CheckStarted | IterationStarted | None = None
    is_checked: bool = False  # since the last iteration
    waits: str = ""  # waiting or overdue: the run in flight waits for a person
    declared: str = ""
    spent: str = ""
    seen: frozenset[str] = frozenset()  # fingerprints
    unmoved: int = 0  # iterations in a row after which the check said nothing new
    ended_at: float | None = None

    @property
    def evidence(self) -> str:
        """Of the last check that failed."""
        return self.last.evidence if self.last and not self.last.is_met else ""

    @property
    def tokens_left(self) -> int | None:
        return (
            None if self.limits.tokens is None else max(0, self.limits.tokens - self.usage.tokens)
        )

    @property
    def usd_left(self) -> float | None:
        return None if self.limits.usd is None else max(0.0, self.limits.usd - self.usage.usd)

    @property
    def seconds_left(self) -> float | None:
        if self.limits.seconds is None:
            return None
        return max(0.0, self.limits.seconds - self.worked_seconds)


@dataclass(frozen=True, slots=True)
class Verify:
    number: int
    begun: CheckStarted | None  # None: it is not on record yet


@dataclass(frozen=True, slots=True)
class Iterate:
    number: int
    begun: IterationStarted | None


@dataclass(frozen=True, slots=True)
class Conclude:
    state: GoalState
    why: str = ""
    limit: LimitWord | None = None


Move: TypeAlias = Verify | Iterate | Conclude


def fold(id: str, spec: GoalSpec, made_at: float, events: Iterable[GoalEvent]) -> GoalStanding:
    goal = GoalStanding(id, spec, made_at, spec.limits)
    for event in events:
        goal = advance(goal, event)
    return goal


def advance(goal: GoalStanding, event: GoalEvent) -> GoalStanding:
    goal = replace(goal, worked_seconds=max(goal.worked_seconds, event.worked))
    match event:
        case CheckStarted() | IterationStarted():
            return _begin(goal, event)
        case CheckEnded():
            return _note_check(goal, event)
        case IterationWaits():
            return replace(goal, waits=event.status, why=event.why)
        case IterationEnded():
            return _note_work(goal, event)
        case GoalEnded():
            return _end(goal, event)
        case GoalReopened():
            return _reopen(goal, event)
        case _:
            assert_never(event)


def _begin(goal: GoalStanding, event: CheckStarted | IterationStarted) -> GoalStanding:
    if isinstance(event, CheckStarted):
        return replace(goal, in_flight=event, waits="")
    new = GoalIteration(event.number, event.run_id, event.at)
    return replace(goal, in_flight=event, waits="", iterations=(*goal.iterations, new))


def _note_check(goal: GoalStanding, event: CheckEnded) -> GoalStanding:
    iterations, before = goal.iterations, goal.before
    if event.number and iterations:
        ended = replace(iterations[-1], is_met=event.is_met, evidence=event.evidence)
        iterations = (*iterations[:-1], ended)
    elif not event.number:
        before = event
    is_new = event.fingerprint not in goal.seen
    # The first check after an iteration counts; a further one, or one before any, does not.
    unmoved = goal.unmoved if goal.is_checked or not event.number else goal.unmoved + 1
    return replace(
        goal,
        before=before,
        iterations=iterations,
        last=event,
        in_flight=None,
        is_checked=True,
        usage=goal.usage + event.usage,
        seen=goal.seen | {event.fingerprint},
        unmoved=0 if is_new else unmoved,
        why="",
    )


def _note_work(goal: GoalStanding, event: IterationEnded) -> GoalStanding:
    ended = replace(
        goal.iterations[-1],
        status=event.status,
        usage=event.usage,
        error=event.error,
        warnings=event.warnings,
    )
    return replace(
        goal,
        iterations=(*goal.iterations[:-1], ended),
        in_flight=None,
        is_checked=False,
        waits="",
        why="",
        usage=goal.usage + event.usage,
        declared=event.declared,
        spent=event.spent,
    )


def _end(goal: GoalStanding, event: GoalEnded) -> GoalStanding:
    iterations = goal.iterations
    if isinstance(goal.in_flight, IterationStarted):
        cancelled = replace(iterations[-1], status="cancelled", usage=event.usage)
        iterations = (*iterations[:-1], cancelled)
    return replace(
        goal,
        state=event.state,
        why=event.why,
        limit=event.limit,
        iterations=iterations,
        usage=goal.usage + event.usage,
        waits="",
        ended_at=event.at,
    )


def _reopen(goal: GoalStanding, event: GoalReopened) -> GoalStanding:
    """A person wants more tries: what had ended it does not count against them."""
    return replace(
        goal,
        state=GoalState.ACTIVE,
        limits=event.limits,
        why="",
        limit=None,
        ended_at=None,
        declared="",
        spent="",
        unmoved=0,
        seen=frozenset(),
        is_checked=False,  # the world may have changed since
    )


def next_move(goal: GoalStanding) -> Move | None:
    """None: the goal has ended."""
    if goal.state != GoalState.ACTIVE:
        return None
    done = len(goal.iterations)
    match goal.in_flight:
        case CheckStarted() as begun:
            return Verify(begun.number, begun)
        case IterationStarted() as begun:
            return Iterate(begun.number, begun)
        case None:
            pass
        case _:
            assert_never(goal.in_flight)
    if not goal.is_checked or goal.last is None:
        return Verify(done, None)
    return _end_of(goal, goal.last, done) or Iterate(done + 1, None)


def _end_of(goal: GoalStanding, last: CheckEnded, done: int) -> Conclude | None:
    # The verifier beats a give-up, and a budget that was spent on the way.
    if last.is_met:
        return Conclude(GoalState.ACHIEVED)
    if goal.declared:
        return Conclude(GoalState.UNACHIEVABLE, goal.declared)
    if last.cannot_run:
        return Conclude(GoalState.STALLED, f"the verifier cannot run: {last.evidence}")
    if (spent := _find_exhausted(goal, done)) is not None:
        return spent
    stall = goal.limits.stall_after
    if stall and goal.unmoved >= stall:
        times = "iteration" if stall == 1 else f"{stall} iterations in a row"
        return Conclude(GoalState.STALLED, f"{times} changed nothing in what the verifier says")
    return None


def _find_exhausted(goal: GoalStanding, done: int) -> Conclude | None:
    limits, used = goal.limits, goal.usage
    if limits.tokens is not None and (used.tokens >= limits.tokens or goal.spent == "tokens"):
        return _conclude_spent("tokens", f"{used.tokens:,} of {limits.tokens:,} tokens are used")
    if limits.usd is not None and (used.usd >= limits.usd or goal.spent == "usd"):
        return _conclude_spent("usd", f"${used.usd:.4f} of ${limits.usd:.4f} is spent")
    if limits.seconds is not None and goal.worked_seconds >= limits.seconds:
        worked = f"{goal.worked_seconds:.0f} of {limits.seconds:.0f} seconds"
        return _conclude_spent("time", f"{worked} have passed at work")
    if done >= limits.iterations:
        return _conclude_spent("iterations", f"{done} of {limits.iterations} iterations are done")
    return None


def _conclude_spent(limit: LimitWord, why: str) -> Conclude:
    return Conclude(GoalState.EXHAUSTED, why, limit)


@dataclass(frozen=True, slots=True)
class GoalReport:
    """How a goal stands: `status` is one of nine words, `state` one of six."""

    id: str
    text: str
    verify: str
    workflow: str | None
    evidence_input: str | None  # of the workflow; None: the evidence reaches it by no input
    status: str
    state: GoalState
    why: str
    limit: LimitWord | None  # which one is exhausted
    history: tuple[GoalIteration, ...]
    before: str | None  # the evidence of the check before the first iteration
    usage: Usage
    worked_seconds: float
    limits: GoalLimits
    folder: str
    made_at: float
    ended_at: float | None
    run_id: str | None  # the run in flight

    @property
    def iterations(self) -> int:
        return len(self.history)

    @property
    def is_ok(self) -> bool:
        return self.state == GoalState.ACHIEVED

    @property
    def evidence(self) -> str:
        """Of the last check."""
        checked = [each.evidence for each in self.history if each.evidence is not None]
        return checked[-1] if checked else self.before or ""

    def json(self) -> dict[str, Any]:
        """As `stretto goal show --json` prints it below `goal`."""
        return {
            "id": self.id,
            "text": self.text,
            "verify": self.verify,
            "workflow": self.workflow,
            "evidence_input": self.evidence_input,
            "status": self.status,
            "state": self.state.value,
            "why": self.why or None,
            "limit": self.limit,
            "iterations": self.iterations,
            "history": [_entry(each) for each in self.history],
            "before": self.before,
            "usage": usage_as_json(self.usage),
            "worked_seconds": round(self.worked_seconds, 3),
            "limits": {
                "iterations": self.limits.iterations,
                "tokens": self.limits.tokens,
                "usd": self.limits.usd,
                "seconds": self.limits.seconds,
                "stall_after": self.limits.stall_after,
            },
            "folder": self.folder,
            "made_at": self.made_at,
            "ended_at": self.ended_at,
            "run_id": self.run_id,
        }


def _entry(each: GoalIteration) -> dict[str, Any]:
    return {
        "iteration": each.number,
        "run_id": each.run_id,
        "run_status": each.status or None,
        "met": each.is_met,
        "evidence": each.evidence,
        "error": each.error or None,
        "warnings": list(each.warnings),
        "usage": usage_as_json(each.usage),
    }


def goal_report(goal: GoalStanding, is_driven: bool) -> GoalReport:
    spec = goal.spec
    return GoalReport(
        goal.id,
        spec.text,
        spec.verify,
        spec.workflow or None,
        spec.evidence_input or None,
        goal_word(goal, is_driven),
        goal.state,
        goal.why,
        goal.limit,
        goal.iterations,
        goal.before.evidence if goal.before else None,
        goal.usage,
        goal.worked_seconds,
        goal.limits,
        spec.folder,
        goal.made_at,
        goal.ended_at,
        (goal.in_flight.run_id or None) if goal.in_flight else None,
    )


def goal_word(goal: GoalStanding, is_driven: bool) -> str:
    if goal.state != GoalState.ACTIVE or is_driven:
        return goal.state.value
    return goal.waits or "interrupted"
