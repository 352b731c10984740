"""Which steps an event changed. In: an event and the state after it. Out: those steps.

An event names one step, but others may end or start because of it, and the driver tells of a
batch only when all of it is folded. The state keeps its ended, running and asking steps in the
order in which they became so: what is new is at the end, and finding it costs what changed.
"""

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


class Changes:
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
        ids = dict.fromkeys([*ended, *started, *asking, *_named(event, state)])
        changed = [state.steps[id] for id in ids if id in state.steps]
        self._asking.difference_update(s.id for s in changed if not s.awaits_approval)
        return changed


def _newest(ended: dict[str, EndedStep], count: int) -> list[StepId]:
    return [StepId(id) for id in islice(reversed(ended), count)][::-1]


def _unknown(now: dict[StepId, StepState], known: set[StepId]) -> list[StepId]:
    return list(takewhile(lambda id: id not in known, reversed(now)))[::-1]


def _named(event: Event, state: RunState) -> list[StepId]:
    if isinstance(event, _NAMES_A_STEP):
        return [event.step]
    # A timer may change any step at work, and so may the loss of the process that drove them.
    return list(state.running) if isinstance(event, TimerFired | RunResumed) else []
