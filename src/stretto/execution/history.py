"""Read a run from its journal: its events, and the state that follows from them."""

from collections.abc import Iterable
from dataclasses import dataclass

from stretto.events.codec import UnknownEvent
from stretto.events.model import Event, RunStarted
from stretto.plan.model import decode_plan
from stretto.ports.journal import Journal, StoredEvent
from stretto.problems.errors import NotFound, StrettoError
from stretto.schedule.advance import advance
from stretto.schedule.state import RunState, StepState, begin
from stretto.text.short import did_you_mean, listed
from stretto.vocabulary.names import RunId, StepId


# Without a repr: asyncio.run() makes one of whatever it returns, and this holds a whole run.
@dataclass(frozen=True, slots=True, repr=False)
class History:
    started: RunStarted
    events: tuple[Event, ...]
    last_seq: int
    state: RunState  # the fold of the events, made for the caller alone: a driver may go on with it

    def step(self, id: str) -> StepState:
        """Raises NotFound with the nearest name."""
        found = self.state.steps.get(StepId(id))
        if found is None:
            steps = self.state.steps
            hint = did_you_mean(id, steps) or f"its steps: {listed(steps)}"
            raise NotFound(f"run {self.started.run_id} has no step '{id}'", hint=hint)
        return found


async def load(store: Journal, run_id: RunId, *, with_speech: bool = False) -> History:
    """`with_speech`: also what models said piece by piece, which no state depends on."""
    stored = await store.read(run_id, with_speech=with_speech)
    lost = [loss.told for loss in store.losses() if loss.run_id == run_id]
    if not stored and lost:
        raise NotFound(f"nothing is left of it: {lost[0]}")
    if not stored:
        known = [row.run_id for row in await store.runs(200)]
        hint = did_you_mean(run_id, known) or "stretto runs lists them"
        raise NotFound(f"there is no run '{run_id}'", hint=hint)
    history = fold(stored, run_id)
    history.state.warn(*lost)
    return history


def fold(stored: Iterable[StoredEvent], run_id: RunId) -> History:
    rows = list(stored)
    events = [row.event for row in rows if not isinstance(row.event, UnknownEvent)]
    if not events or not isinstance(events[0], RunStarted):
        raise StrettoError(f"the journal of run {run_id} does not begin with its start",
                        hint="it was written by a newer Stretto, or is damaged")  # fmt: skip
    state = begin(decode_plan(events[0].plan))
    for event in events:
        advance(state, event)
    unread = len(rows) - len(events)
    if unread:
        state.warn(f"{unread} rows of the journal cannot be read and were passed over")
    return History(events[0], tuple(events), rows[-1].seq, state)
