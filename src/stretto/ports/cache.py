"""Outputs kept over runs, for steps that say `cache: true`. By content and place (run.reuse.cache_key)."""

from dataclasses import dataclass
from typing import Protocol

from stretto.vocabulary.values import Json


@dataclass(frozen=True, slots=True)
class KeptOutput:
    output: Json
    run_id: str  # the run that made it


class Cache(Protocol):
    async def keep(self, key: str, kept: KeptOutput) -> None: ...

    async def kept(self, key: str) -> KeptOutput | None: ...
