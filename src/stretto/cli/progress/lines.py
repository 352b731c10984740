"""A run as it goes, one line for each change, and the signs that stand for the states of steps."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, takewhile

from stretto.cli.progress.rows import join_pieces, one_line, reused_of
from stretto.cli.terminal import print_json_text, say
from stretto.events.codec import encode_ascii
from stretto.events.model import (
    Approved,
    AttemptCancelled,
    AttemptFailed,
    AttemptStarted,
    AttemptSucceeded,
    Event,
    MergeHeld,
    ModelRetried,
    ModelSpoke,
    PhaseLasted,
    Rejected,
    RunResumed,
    RunStarted,
    TimerFired,
    ToolEnded,
    ToolStarted,
)
from stretto.plan.model import Plan
from stretto.schedule.state import RunState, StepState
from stretto.schedule.status import step_word
from stretto.schedule.tool_calls import fault_of
from stretto.templates.scope import EndedStep
from stretto.vocabulary.amounts import format_duration
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import StepWord

_NAMES_A_STEP = (
    AttemptStarted
    | AttemptSucceeded
    | AttemptFailed
    | AttemptCancelled
    | ModelRetried
    | ModelSpoke
    | ToolEnded
    | ToolStarted
    | PhaseLasted
    | Approved
    | Rejected
    | MergeHeld
)  # fmt: skip

# A word stands beside every sign: colour and shape alone tell nothing to a screen reader or a log.
SIGNS: Mapping[StepWord, str] = {
    "awaiting approval": "?",
    "overdue": "?",
    "retrying": "↻",
    "running": "▶",
    "merging": "▶",
    "interrupted": "-",
    "failed": "✗",
    "succeeded": "✓",
    "skipped": "-",
    "held": "-",
    "cancelled": "-",
    "waiting": "·",
}
ASCII_SIGNS: Mapping[StepWord, str] = {
    **SIGNS,
    "retrying": "~",
    "running": ">",
    "merging": ">",
    "failed": "x",
    "succeeded": "+",
    "waiting": ".",
}


def signs_for(encoding: str) -> Mapping[StepWord, str]:
    return SIGNS if encoding.lower().startswith("utf") else ASCII_SIGNS


class ChangedSteps:
    """Finds the steps that an event changed.

    An event names one step, but others may end or start because of it, and the driver reports a
    batch of events only when all of them are folded. The state keeps its ended, running and asking
    steps in the order in which they became so: what is new is at the end, and finding it costs
    what changed.
    """

    def __init__(self) -> None:
        self._ended = 0
        self._running: set[StepId] = set()
        self._asking: set[StepId] = set()

    def after(self, event: Event, state: RunState) -> list[StepState]:
        """Each once: those that ended first, in that order, then those that started or ask."""
        ended = _newest(state.values, len(state.values) - self._ended)
        self._ended += len(ended)
        self._running.difference_update(ended)
        started = _unknown(state.running, self._running)
        self._running.update(started)
        asking = _unknown(state.awaiting_approval, self._asking)
        self._asking.update(asking)
        ids = dict.fromkeys([*ended, *started, *asking, *_named_steps(event, state)])
        ids |= dict.fromkeys(_holders(ids, state))
        changed = [state.steps[id] for id in ids if id in state.steps]
        self._asking.difference_update(s.id for s in changed if not s.awaits_approval)
        return changed


def _holders(ids: Iterable[StepId], state: RunState) -> Iterator[StepId]:
    """Workflow steps under way, which are at work or wait as their own steps do."""
    for id in ids:
        holder = state.steps[id].recipe.holder if id in state.steps else None
        while holder is not None:
            if holder.started_at is not None and holder.ended_at is None:
                yield holder.id
            holder = holder.recipe.holder


def _newest(ended: dict[str, EndedStep], count: int) -> list[StepId]:
    return [StepId(id) for id in islice(reversed(ended), count)][::-1]


def _unknown(now: dict[StepId, StepState], known: set[StepId]) -> list[StepId]:
    return list(takewhile(lambda id: id not in known, reversed(now)))[::-1]


def _named_steps(event: Event, state: RunState) -> list[StepId]:
    if isinstance(event, _NAMES_A_STEP):
        return [event.step]
    # A timer may change any step at work, and so may the loss of the process that drove them.
    return list(state.running) if isinstance(event, TimerFired | RunResumed) else []


_MOST_WARNINGS = 5  # of one step; the report has them all
_RETRYING: tuple[StepWord, ...] = ("running", "retrying", "merging")


class JsonLines:
    def __call__(self, event: Event, state: RunState) -> None:
        print_json_text(encode_ascii(event))


def _say_beside(line: str) -> None:
    say(line, err=True)  # stdout is for the answer


class Lines:
    def __init__(self, plan: Plan, say: Callable[[str], None] = _say_beside) -> None:
        self._write = say
        self._changes = ChangedSteps()
        self._told: dict[StepId, StepWord] = {}  # a step that is missing was waiting
        self._width = max((len(step.id) for step in plan.steps), default=0)
        self._encoding = sys.stderr.encoding or "ascii"
        self._signs = signs_for(self._encoding)

    def __call__(self, event: Event, state: RunState) -> None:
        match event:
            case RunStarted():
                self._say(f"run {one_line(event.run_id)} of {one_line(event.workflow)} started")
            case RunResumed():
                self._resume(event, state)
            case AttemptStarted() if event.attempt.number > 1:
                self._say(
                    f"  {event.step}: attempt {event.attempt.number} by {one_line(event.agent)}"
                )
            case AttemptFailed():
                error = one_line(event.error)
                self._say(f"  {event.step}: attempt {event.attempt.number} failed: {error}")
            case ToolEnded() if said := fault_of(event):
                self._say(f"  {event.step}: {one_line(said)}")
            case PhaseLasted():
                self._say(f"  {event.step}: {one_line(event.phase)}")
            case ModelRetried():
                delay = format_duration(event.delay_seconds)
                said = f"{one_line(event.error)}, retry {event.retry}/{event.most} in {delay}"
                self._say(f"  {event.step}: {one_line(event.model)}: {said}")
            case _:
                pass
        for step in self._changes.after(event, state):
            self._tell(step)

    def _resume(self, event: RunResumed, state: RunState) -> None:
        before = [s for s in state.order if s.ended_at is not None and s.ended_at < event.at]
        self._told.update((step.id, step_word(step)) for step in before)
        ended = f"{len(before)} of {len(state.order)} steps had ended"
        self._say(f"run {one_line(state.run_id)} of {one_line(state.plan.name)} continues: {ended}")

    def _tell(self, step: StepState) -> None:
        stage, told = step_word(step), self._told.get(step.id, "waiting")
        self._told[step.id] = stage
        # That an attempt failed and that another began have lines of their own.
        if stage != told and not (stage in _RETRYING and told in _RETRYING):
            self._say(self._line(step, stage))
        if stage != told and step.ended_at is not None:
            # Not its tool calls that failed: each has had a line of its own.
            for text in islice(step.warnings, _MOST_WARNINGS):
                self._say(f"  {step.id}: warning: {one_line(text)}")

    def _line(self, step: StepState, stage: StepWord) -> str:
        line = f"{self._signs[stage]} {step.id.ljust(self._width)} {stage}"
        if stage == "succeeded" and step.started_at is not None:
            took = format_duration((step.ended_at or step.started_at) - step.started_at)
            line += f" in {join_pieces(took, reused_of(step))}"
        why = one_line(step.error or step.reason)
        return f"{line}: {why}" if why else line

    def _say(self, line: str) -> None:
        self._write(line.encode(self._encoding, "replace").decode(self._encoding))
