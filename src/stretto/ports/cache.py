"""Outputs kept over runs, for steps that say `cache: true`. By content and place (run.reuse.cache_key)."""

from dataclasses import dataclass
from typing import Protocol

from stretto.vocabulary.json_value import Json


@dataclass(frozen=True, slots=True)
class CachedOutput:
    output: Json
    run_id: str  # the run that made it


class Cache(Protocol):
    async def put(self, key: str, kept: CachedOutput) -> None: ...

    async def get(self, key: str) -> CachedOutput | None: ...
