"""Why a run and each of its steps are where they are. In: RunState. Out: Standing.

The words name no seconds: `at` is the moment that they lead up to, which whoever shows them counts down.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

from stretto.events.attempts import RetryTimer
from stretto.plan.model import PlannedLoop, PlannedMap, PlannedParallel
from stretto.schedule.state import PartState, RunState, StepState
from stretto.schedule.status import deadline_of, step_word, why_waiting
from stretto.text.short import counted, listed
from stretto.text.visible import one_line
from stretto.vocabulary.names import StepId

_MOST_NAMED = 3
_MOST_LETTERS = 200
_WAITS_FOR_SLOT, _WAITS_FOR_FILES = "waits for a free slot", "waits for the files of "


@dataclass(frozen=True, slots=True)
class Why:
    says: str
    at: float | None = None  # when it goes on by itself, or is over: a retry, a deadline


@dataclass(frozen=True, slots=True)
class Standing:
    run: Why
    steps: dict[StepId, Why]  # of those that have not ended, and have something to say


def standing_of(state: RunState, *, is_interrupted: bool = False) -> Standing:
    if state.has_ended:
        return Standing(Why(""), {})
    retries = _retries(state)
    found = {
        step.id: _why(state, step, retries, is_interrupted)
        for step in state.order
        if step.ended_at is None
    }
    whys = {id: why for id, why in found.items() if why.says}
    return Standing(_of_run(state, whys, is_interrupted), whys)


def _retries(state: RunState) -> dict[StepId, float]:
    """When the next attempt of each step that failed is due."""
    due: dict[StepId, float] = {}
    for timer, at in state.timers.items():
        if isinstance(timer, RetryTimer):
            step = timer.attempt.step
            due[step] = min(at, due.get(step, at))
    return due


def _why(
    state: RunState, step: StepState, retries: dict[StepId, float], is_interrupted: bool
) -> Why:
    word = step_word(step, is_interrupted)
    if word == "awaiting approval":
        until = deadline_of(state, step.id)
        latest = ", at the latest" if until is not None else ""
        return Why(f"waits for a person to approve or reject it{latest}", until)
    if word == "interrupted":
        return Why("was under way when the process that drove the run ended")
    if word == "merging":
        return Why("its changes are being collected or merged")
    if word == "waiting" and step.unmet > _MOST_NAMED:
        return Why(f"waits for {step.unmet:,} steps")
    if word == "waiting":
        return Why(why_waiting(state, step.id))
    said = ", ".join(each for each in (_progress(step), _trouble(step)) if each)
    if step.id in retries:
        return Why(f"{said or 'failed'}; tries again", retries[step.id])
    return Why(said or _activity(step))


def _progress(step: StepState) -> str:
    work = step.planned.work
    if isinstance(work, PlannedMap) and step.items is not None:
        return f"{step.items.ended:,} of {counted(len(step.items.values), 'element')} done"
    if isinstance(work, PlannedParallel):
        ended = sum(part.status in ("succeeded", "failed") for part in step.parts.values())
        return f"{ended} of {len(work.branches)} branches done"
    if step.inner is not None:
        return f"{len(step.inner.steps) - step.inner.left} of {len(step.inner.steps)} steps done"
    if isinstance(work, PlannedLoop):
        return f"iteration {step.iteration} of {work.max_iterations}"
    return ""


def _trouble(step: StepState) -> str:
    """What the step is getting over: its provider's fault, or a failed attempt."""
    held = step.held_up
    if held is not None and held.attempt.stage == "running":
        return one_line(held.says, _MOST_LETTERS)
    failed = [part for part in step.parts.values() if _is_trying_again(part)]
    if not failed:
        return ""
    part = failed[0]
    assert part.failure is not None
    most = max(part.brief.retry.max_attempts, part.tries)
    error = one_line(part.failure.error, _MOST_LETTERS)
    which = f"{part.name}: " if part.name else ""
    return f"{which}attempt {part.tries} of {most} failed ({error})"


def _is_trying_again(part: PartState) -> bool:
    return part.failure is not None and part.status in ("running", "retrying", "queued")


def _activity(step: StepState) -> str:
    if step.activity:
        return one_line(step.activity, _MOST_LETTERS)
    speaker = step.speaker
    return "writes its answer" if speaker is not None and speaker.stage == "running" else ""


def _of_run(state: RunState, whys: dict[StepId, Why], is_interrupted: bool) -> Why:
    if is_interrupted and not state.awaiting_approval:
        return Why("No process drives this run: resume it to continue")
    if state.closing_reason:
        return Why(f"It is ending: {state.closing_reason}")
    return _sentence(list(_clauses(state, whys)))


def _clauses(state: RunState, whys: dict[StepId, Why]) -> Iterator[Why]:
    """A clause that leads up to a moment comes last, so that the moment can be said after it."""
    at_work = [id for id, step in state.running.items() if step_word(step) == "running"]
    if state.awaiting_approval:
        due = [deadline_of(state, id) for id in state.awaiting_approval]
        until = min((each for each in due if each is not None), default=None)
        latest = ", at the latest" if until is not None and not state.running else ""
        asked = f"a person must approve or reject {_name_steps(state.awaiting_approval)}{latest}"
        yield Why(asked, until if latest else None)
    if at_work:
        doing = whys[at_work[0]].says if len(at_work) == 1 and at_work[0] in whys else ""
        about = f" ({doing})" if doing else ""
        yield Why(f"{_name_steps(at_work)} {'is' if len(at_work) == 1 else 'are'} running{about}")
    held = [id for id, why in whys.items() if why.says.startswith(_WAITS_FOR_FILES)]
    for id in held[:1]:
        yield Why(f"'{one_line(id)}' {whys[id].says}")
    queued = sum(why.says.startswith(_WAITS_FOR_SLOT) for why in whys.values())
    if queued:
        width = state.ready.width
        slots = "the only slot is taken" if width == 1 else f"all {width} slots are taken"
        yield Why(f"{counted(queued, 'step')} {'is' if queued == 1 else 'are'} queued: {slots}")
    retrying = [id for id, step in state.running.items() if step_word(step) == "retrying"]
    for id in sorted(retrying, key=lambda id: _moment(whys.get(id)))[:1]:
        why = whys.get(id, Why("tries again"))
        yield Why(f"'{one_line(id)}': {why.says}", why.at)


def _moment(why: Why | None) -> float:
    return inf if why is None or why.at is None else why.at


def _name_steps(ids: Iterable[str]) -> str:
    return listed((f"'{one_line(id)}'" for id in ids), _MOST_NAMED)


def _sentence(clauses: list[Why]) -> Why:
    said = "; ".join(each.says for each in clauses)
    return Why(f"{said[:1].upper()}{said[1:]}", clauses[-1].at if clauses else None)
