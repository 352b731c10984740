"""The journal of one run, as its driver sees it."""

from collections.abc import Sequence
from dataclasses import dataclass

from weft.events.model import Event
from weft.ports.journal import Journal
from weft.vocabulary.ids import RunId


@dataclass(frozen=True, slots=True)
class RunJournal:
    store: Journal
    run_id: RunId
    fence: int

    async def append(self, events: Sequence[Event]) -> None:
        await self.store.append(self.run_id, events, fence=self.fence)
