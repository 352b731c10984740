"""The store as the driver of one run sees it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.events.model import Event
from weft.ports.cache import KeptOutput
from weft.run.keeper import Lease, Store
from weft.vocabulary.large import Large
from weft.vocabulary.values import Json


@dataclass(frozen=True, slots=True)
class RunJournal:
    store: Store
    lease: Lease

    async def append(self, events: Sequence[Event]) -> Mapping[int, Large]:
        return await self.store.append(self.lease.run_id, events, fence=self.lease.fence)

    async def keep(self, key: str, output: Json) -> None:
        await self.store.keep(key, KeptOutput(output, self.lease.run_id))

    async def kept(self, key: str) -> KeptOutput | None:
        return await self.store.kept(key)
