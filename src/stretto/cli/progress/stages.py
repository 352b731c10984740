"""How steps stand, as a person sees it, and which of them an event changed."""

from collections.abc import Mapping
from itertools import islice, takewhile

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
    Rejected,
    RunResumed,
    TimerFired,
    ToolEnded,
)
from stretto.schedule.state import RunState, StepState
from stretto.templates.scope import EndedStep
from stretto.vocabulary.ids import StepId
from stretto.vocabulary.statuses import StepWord

_NAMES_A_STEP = (
    AttemptStarted
    | AttemptSucceeded
    | AttemptFailed
    | AttemptCancelled
    | ModelRetried
    | ModelSpoke
    | ToolEnded
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
        changed = [state.steps[id] for id in ids if id in state.steps]
        self._asking.difference_update(s.id for s in changed if not s.awaits_approval)
        return changed


def _newest(ended: dict[str, EndedStep], count: int) -> list[StepId]:
    return [StepId(id) for id in islice(reversed(ended), count)][::-1]


def _unknown(now: dict[StepId, StepState], known: set[StepId]) -> list[StepId]:
    return list(takewhile(lambda id: id not in known, reversed(now)))[::-1]


def _named_steps(event: Event, state: RunState) -> list[StepId]:
    if isinstance(event, _NAMES_A_STEP):
        return [event.step]
    # A timer may change any step at work, and so may the loss of the process that drove them.
    return list(state.running) if isinstance(event, TimerFired | RunResumed) else []
