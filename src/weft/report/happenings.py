"""What only the journal knows. In: its events. Out: resumptions, and what people decided."""

from collections.abc import Sequence
from dataclasses import dataclass

from weft.events.model import Approved, Event, Rejected, RunResumed
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
    decisions: tuple[Approved | Rejected, ...] = ()


def happenings_of(plan: Plan, events: Sequence[Event]) -> Happenings:
    resumptions: list[Resumption] = []
    decisions: list[Approved | Rejected] = []
    # Folded again, since a decision counts only if that step was waiting for one just then.
    state = begin(plan)
    for event in events:
        if isinstance(event, Approved | Rejected) and event.step in state.awaiting_approval:
            decisions.append(event)
        elif isinstance(event, RunResumed) and not state.has_ended:
            had_work = state.open_attempts + state.retrying > 0
            resumptions.append(Resumption(state.now, event.at, had_work))
        advance(state, event)
    return Happenings(tuple(resumptions), tuple(decisions))
