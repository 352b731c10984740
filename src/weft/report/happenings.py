"""What only the journal knows. In: its events. Out: resumptions."""

from collections.abc import Sequence
from dataclasses import dataclass

from weft.events.model import Event, RunResumed
from weft.plan.model import Plan
from weft.schedule.advance import advance
from weft.schedule.state import begin


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
            had_work = state.open_attempts + state.retrying > 0
            resumptions.append(Resumption(state.now, event.at, had_work))
        advance(state, event)
    return Happenings(tuple(resumptions))
