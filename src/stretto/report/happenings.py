"""What only the journal knows. In: its events. Out: resumptions."""

from collections.abc import Sequence
from dataclasses import dataclass

from stretto.events.model import Event, RunResumed
from stretto.plan.model import Plan
from stretto.schedule.advance import advance
from stretto.schedule.state import RunState, begin


@dataclass(frozen=True, slots=True)
class Resumption:
    last_sign_at: float  # the last event before it
    resumed_at: float
    had_work: bool  # attempts were under way: not a run that only waited for a person


@dataclass(frozen=True, slots=True)
class Happenings:
    resumptions: tuple[Resumption, ...] = ()


def happenings_of(plan: Plan, events: Sequence[Event]) -> Happenings:
    resumptions: list[Resumption] = []
    state = begin(plan)
    for event in events:
        if isinstance(event, RunResumed) and not state.has_ended:
            resumptions.append(Resumption(state.now, event.at, _has_work(state)))
        advance(state, event)
    return Happenings(tuple(resumptions))


def _has_work(state: RunState) -> bool:
    # What was approved while nobody drove the run is planned, and nobody was interrupted in it.
    attempts = (attempt for step in state.order for attempt in step.attempts)
    return state.retrying > 0 or any(each.stage not in ("planned", "ended") for each in attempts)
