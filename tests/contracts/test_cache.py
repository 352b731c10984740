"""What every cache of outputs must do, whatever it is made of."""

import asyncio
from pathlib import Path

import pytest

from stretto.execution.leases import Store as Everything
from stretto.ports.journal import Cache, CachedOutput
from support.stores import Store

PORTS = (Cache,)


def test_an_output_is_kept_by_its_key_and_the_last_one_stays(store: Store) -> None:
    async def story(cache: Cache) -> None:
        assert await cache.get("k") is None
        await cache.put("k", CachedOutput("first", "run-1"))
        await cache.put("other", CachedOutput(None, "run-1"))
        await cache.put("k", CachedOutput({"text": "„ü\x00\n", "n": [1, 2.5, None]}, "run-2"))
        assert await cache.get("k") == CachedOutput(
            {"text": "„ü\x00\n", "n": [1, 2.5, None]}, "run-2"
        )
        assert await cache.get("other") == CachedOutput(None, "run-1")

    store.run(story)


def test_what_is_taken_from_a_cache_cannot_change_what_is_kept(store: Store) -> None:
    async def story(cache: Cache) -> None:
        given: list[object] = ["as it was"]
        await cache.put("k", CachedOutput(given, "run-1"))  # type: ignore[arg-type]
        given.append("changed by the giver")
        taken = await cache.get("k")
        assert taken is not None
        assert isinstance(taken.output, list)
        taken.output.append("changed by the taker")
        assert await cache.get("k") == CachedOutput(["as it was"], "run-1")

    store.run(story)


def test_many_may_keep_outputs_at_once(store: Store) -> None:
    async def story(cache: Cache) -> None:
        kept = {f"k{number}": CachedOutput(number, f"run-{number}") for number in range(50)}
        await asyncio.gather(*(cache.put(key, output) for key, output in kept.items()))
        assert {key: await cache.get(key) for key in kept} == kept

    store.run(story)


def test_an_output_outlives_the_process_that_kept_it(tmp_path: Path) -> None:
    store = Store("sqlite", tmp_path)  # nothing in memory outlives its process

    async def keep(cache: Cache) -> None:
        await cache.put("k", CachedOutput({"n": [1, 2.5, None]}, "run-1"))

    async def read(cache: Cache) -> None:
        assert await cache.get("k") == CachedOutput({"n": [1, 2.5, None]}, "run-1")

    store.run(keep)
    store.run(read)


def test_a_closed_cache_keeps_and_gives_nothing(store: Store) -> None:
    async def story(everything: Everything) -> None:
        cache: Cache = everything
        await everything.close()
        for asked in (cache.put("k", CachedOutput(1, "run-1")), cache.get("k")):
            with pytest.raises(RuntimeError, match="closed"):
                await asked

    store.run(story)
