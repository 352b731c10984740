"""What asks the process of a local model obeys a cancellation, whenever it comes."""

import asyncio
from pathlib import Path

import pytest

from stretto.adapters.models.local.catalog import Loadable, Traits
from stretto.adapters.models.local.process import LlamaProcess, _Waiter


@pytest.mark.parametrize("ticks", range(6))
def test_a_cancellation_in_the_moment_of_a_message_is_not_lost(ticks: int) -> None:
    async def main() -> None:
        process = LlamaProcess(Loadable("m", Path("m.gguf"), Traits()))
        waiter = _Waiter(1, asyncio.get_running_loop())
        message = asyncio.create_task(process._message(waiter))
        for _ in range(3):
            await asyncio.sleep(0)
        waiter.messages.put_nowait({"said": "word"})
        for _ in range(ticks):
            await asyncio.sleep(0)
        is_cancelled = message.cancel()
        await asyncio.wait([message])
        assert message.cancelled() == is_cancelled

    asyncio.run(main())
