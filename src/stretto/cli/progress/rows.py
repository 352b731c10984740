"""One step of the live view. In: StepState. Out: a Row, which nothing changes any more.

The view is drawn by a thread of its own while the driver goes on changing the state, so a row
holds everything that its line says, and `Tallies` keeps the sums that would cost a walk over
every attempt of a map.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from stretto.events.attempts import Part
from stretto.plan.model import PlannedLoop, PlannedMap, PlannedParallel
from stretto.schedule.state import AttemptState, MapItems, PartState, RunState, StepState
from stretto.schedule.status import retry_due_at, step_word, why_waiting
from stretto.text import visible
from stretto.text.short import counted
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import StepWord

# Longer than any line: what a model says may be a megabyte, and only its beginning is shown.
_MOST_CHARACTERS = 400
# More names than this never fit on a line, and a step may wait for thousands.
_MOST_NAMED = 6
_UNDER_WAY = ("planned", "running")


@dataclass(frozen=True, slots=True)
class Tally:
    """What some parts of a step came to."""

    tokens: int = 0
    usd: float = 0.0
    retries: int = 0
    failed: int = 0
    retrying: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.tokens + other.tokens,
            self.usd + other.usd,
            self.retries + other.retries,
            self.failed + other.failed,
            self.retrying + other.retrying,
        )

    def __sub__(self, other: "Tally") -> "Tally":
        return self + Tally(
            -other.tokens, -other.usd, -other.retries, -other.failed, -other.retrying
        )


NOTHING = Tally()


@dataclass(frozen=True, slots=True)
class Row:
    id: StepId
    index: int
    stage: StepWord
    says: str = ""
    words: str = ""  # the last words of an answer that is under way
    tally: Tally = NOTHING
    started_at: float | None = None
    ended_at: float | None = None
    retries_at: float | None = None


class Tallies:
    """The sums of every step, of which an event changes one part."""

    def __init__(self) -> None:
        self._steps: dict[StepId, Tally] = {}
        self._parts: dict[tuple[StepId, Part], Tally] = {}

    def count(self, step: StepState, part: Part | None) -> Tally:
        """With the given part counted anew; all of them when the step was never counted."""
        total = self._steps.get(step.id)
        parts: Iterable[PartState] = step.parts.values()
        if total is not None:
            parts = [step.parts[part]] if part in step.parts else []
        total = total or NOTHING
        for each in parts:
            now = _tally(each)
            total += now - self._parts.get((step.id, each.id), NOTHING)
            self._parts[step.id, each.id] = now
        if step.parts:
            self._steps[step.id] = total
        return total


def row_of(state: RunState, step: StepState, tally: Tally = NOTHING) -> Row:
    stage = step_word(step)
    return Row(
        step.id,
        step.index,
        stage,
        _says(state, step, stage, tally),
        _words(step) if stage == "running" else "",
        tally,
        _since(state, step),
        step.ended_at,
        retry_due_at(state, step) if stage == "retrying" else None,
    )


def _since(state: RunState, step: StepState) -> float | None:
    if step.started_at is None or not state.resumptions:
        return step.started_at
    end = state.now if step.ended_at is None else step.ended_at
    return step.started_at + state.paused_seconds(step.started_at, end)


def one_line(text: str) -> str:
    """The beginning of any text, as text: no control characters, no line breaks."""
    return visible.one_line(text[:_MOST_CHARACTERS])


def join_pieces(*pieces: str) -> str:
    """The pieces that are not empty, with commas."""
    return ", ".join(piece for piece in pieces if piece)


def retries_of(count: int) -> str:
    return counted(count, "retry") if count else ""


def reused_of(step: StepState) -> str:
    """How many of its answers come from an earlier run, so that no model was asked for them."""
    parts = step.parts.values()
    count = sum(bool(part.attempts and part.attempts[-1].reused_from) for part in parts)
    if count == len(parts):
        return "reused" if count else ""
    return f"{count:,} of {len(parts):,} reused" if count else ""


def _tally(part: PartState) -> Tally:
    return Tally(
        tokens=sum(attempt.usage.tokens for attempt in part.attempts),
        usd=sum(attempt.usage.usd for attempt in part.attempts),
        retries=_retries(part.attempts),
        failed=part.status == "failed",
        retrying=part.status == "retrying",
    )


def _retries(attempts: Sequence[AttemptState]) -> int:
    # An attempt by a fallback is no retry, nor is the one after a crash.
    return sum(
        was.failure is not None and was.outcome != "in_doubt" and was.agent == now.agent
        for was, now in pairwise(attempts)
    )


def _says(state: RunState, step: StepState, stage: StepWord, tally: Tally) -> str:
    match stage:
        case "waiting":
            return one_line(_why(state, step))
        case "awaiting approval" | "overdue":
            return one_line(step.question)
        case "merging":
            return "its changes are being collected or merged"
        case "running" | "retrying" | "interrupted":
            error = _held_up(step) or _last_error(step)
            activity = error or one_line(step.activity)
            # What a step does says more than who does it.
            progress = _progress(step, tally) or ("" if activity or _words(step) else _agent(step))
            return join_pieces(progress, retries_of(tally.retries), activity)
        case "succeeded":
            retries = retries_of(tally.retries)
            return join_pieces(_summary(step, tally), reused_of(step), retries, _warning_of(step))
        case "failed":
            return join_pieces(retries_of(tally.retries), one_line(step.error or ""))
        case "skipped" | "held" | "cancelled":
            return one_line(step.reason)


def _words(step: StepState) -> str:
    speaker = step.speaker
    return visible.one_line(step.last_words) if speaker and speaker.stage in _UNDER_WAY else ""


def _warning_of(step: StepState) -> str:
    """The first of the warnings in full: a green row must not hide that nothing was done."""
    warnings = step.all_warnings
    if not warnings:
        return ""
    count = f"{len(warnings)} warning{'s' if len(warnings) > 1 else ''}"
    return f"{count}: {one_line(warnings[0])}"


def _why(state: RunState, step: StepState) -> str:
    if step.unmet > _MOST_NAMED:
        return f"waits for {counted(step.unmet, 'step')}"
    return why_waiting(state, step.id)


def _progress(step: StepState, tally: Tally) -> str:
    work = step.planned.work
    last = next(reversed(step.parts.values()), None)
    if isinstance(work, PlannedMap):
        return _elements(step.items, tally, is_reducing=bool(last and last.brief is work.reducer))
    if isinstance(work, PlannedParallel):
        ended = sum(part.status in ("succeeded", "failed") for part in step.parts.values())
        enough = "" if work.wait == "all" else f", {work.needed} needed"
        return f"{ended} of {len(work.branches)} branches{enough}"
    if step.inner is not None:
        total = len(step.inner.steps)
        return f"{total - step.inner.left} of {counted(total, 'step')}"
    if isinstance(work, PlannedLoop):
        judging = ", judging" if last and last.brief is work.validator else ""
        return f"iteration {step.iteration} of {work.max_iterations}{judging}"
    return ""


def _agent(step: StepState) -> str:
    last = next(reversed(step.parts.values()), None)
    return one_line(last.agent) if last else ""


def _elements(items: MapItems | None, tally: Tally, is_reducing: bool) -> str:
    if items is None:
        return ""
    failed = f"{tally.failed} failed" if tally.failed else ""
    retrying = f"{tally.retrying} retrying" if tally.retrying else ""
    count = f"{items.ended:,} of {len(items.values):,} elements"
    return join_pieces(count, failed, retrying, "reducing" if is_reducing else "")


def _summary(step: StepState, tally: Tally) -> str:
    work = step.planned.work
    if isinstance(work, PlannedMap) and step.items is not None:
        count = len(step.items.values)
        failed = f"{tally.failed} failed" if tally.failed else ""
        return join_pieces(counted(count, "element"), failed)
    if isinstance(work, PlannedParallel):
        succeeded = sum(part.status == "succeeded" for part in step.parts.values())
        return f"{succeeded} of {len(work.branches)} branches"
    if isinstance(work, PlannedLoop):
        return f"{step.iteration} iteration{'' if step.iteration == 1 else 's'}"
    return f"chose {step.choice}" if step.choice else ""


def _held_up(step: StepState) -> str:
    """Why the step is held up, if a provider failed for a moment."""
    held = step.held_up
    return one_line(held.says) if held is not None and held.attempt.stage == "running" else ""


def _last_error(step: StepState) -> str:
    """Only of a step with one part at a time: others would have to name the part as well."""
    last = next(reversed(step.parts.values()), None)
    if (
        last is None
        or last.failure is None
        or isinstance(step.planned.work, PlannedMap | PlannedParallel)
    ):
        return ""
    return one_line(last.failure.error)
