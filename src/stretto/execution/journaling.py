"""The store as the driver of one run sees it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stretto.events.model import Event
from stretto.execution.leases import Lease, Store
from stretto.ports.cache import KeptOutput
from stretto.vocabulary.large import Large
from stretto.vocabulary.values import Json


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
