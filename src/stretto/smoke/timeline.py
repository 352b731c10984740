"""What a journal says about when, and about what was told. In: its rows. Out: spans, prompts.

The order of rows is what counts: a row is written before anything follows from it. Their times
only say how long.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from json import dumps

from stretto.events.codec import UnknownEvent
from stretto.events.model import (
    AttemptCancelled,
    AttemptFailed,
    AttemptStarted,
    AttemptSucceeded,
    ChangesCollected,
    Event,
    MergeFailed,
    RunStarted,
)
from stretto.plan.codec import decode_plan
from stretto.ports.journal import StoredEvent
from stretto.schedule.advance import advance
from stretto.schedule.commands import StartAttempt
from stretto.schedule.state import begin
from stretto.vocabulary.large import loaded
from stretto.vocabulary.values import Json

_Ends = (AttemptSucceeded, AttemptFailed, AttemptCancelled, ChangesCollected, MergeFailed)


@dataclass(frozen=True, slots=True)
class Span:
    """From a step's first row to its last; an isolated writer is done once its change is merged."""

    first_seq: int
    last_seq: int
    started_at: float
    ended_at: float
    answered_seq: int = 0  # the work itself, without the merge
    answered_at: float = 0.0
    output: Json = None
    error: str = ""
    has_ended: bool = False
    changes: ChangesCollected | None = None

    @property
    def text(self) -> str:
        return self.output if isinstance(self.output, str) else dumps(self.output)


@dataclass(frozen=True, slots=True)
class Told:
    """What a step was told. `is_on_record`: its key in the journal is the key of these words."""

    prompt: str
    is_on_record: bool


def known(rows: Sequence[StoredEvent]) -> list[tuple[int, Event]]:
    return [(row.seq, row.event) for row in rows if not isinstance(row.event, UnknownEvent)]


def spans(rows: Sequence[StoredEvent]) -> dict[str, Span]:
    """By step. One that ends before it starts has not ended."""
    found: dict[str, Span] = {}
    for seq, event in known(rows):
        if isinstance(event, AttemptStarted):
            found.setdefault(event.step, Span(seq, seq, event.at, event.at))
        elif isinstance(event, _Ends) and event.step in found:
            span = found[event.step]
            ended = replace(span, last_seq=seq, ended_at=event.at, has_ended=True)
            if not isinstance(event, ChangesCollected | MergeFailed):
                ended = replace(ended, answered_seq=seq, answered_at=event.at)
            found[event.step] = _with_outcome(ended, event)
    return found


def _with_outcome(span: Span, event: Event) -> Span:
    match event:
        case AttemptSucceeded():
            return replace(span, output=loaded(event.output))
        case AttemptFailed() | MergeFailed():
            return replace(span, error=event.error)
        case AttemptCancelled():
            return replace(span, error="it was called off")
        case ChangesCollected():
            return replace(span, changes=event)
        case _:
            return span


def told(rows: Sequence[StoredEvent]) -> dict[str, Told]:
    """By step. The prompt is no part of the journal, but the same rows decide the same prompt."""
    events = [event for _, event in known(rows)]
    if not events or not isinstance(events[0], RunStarted):
        return {}
    keys = {event.step: event.key for event in events if isinstance(event, AttemptStarted)}
    state = begin(decode_plan(events[0].plan))
    decided = [command for event in events for command in advance(state, event)[1]]
    return {
        command.step: Told(command.request.prompt, keys.get(command.step) == command.key)
        for command in decided
        if isinstance(command, StartAttempt)
    }
