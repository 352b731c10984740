"""What asks the process of a local model obeys a cancellation, whenever it comes."""

import asyncio
import threading
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


class FullPipe:
    """A process that reads late: a request waits to be written, until it is let go."""

    is_alive = True
    silent_seconds = 0.0

    def __init__(self) -> None:
        self.is_read = threading.Event()
        self.is_written = threading.Event()
        self.sent: list[object] = []

    def send(self, message: dict[str, object]) -> None:
        if "ask" in message:
            self.is_written.set()
            self.is_read.wait(60)
        self.sent.append(message)


def test_a_request_that_is_called_off_while_the_pipe_is_full_does_not_hold_up_the_loop() -> None:
    async def main() -> None:
        process, child = LlamaProcess(Loadable("m", Path("m.gguf"), Traits())), FullPipe()
        process._child = child  # type: ignore[assignment]

        async def ask() -> None:
            async for _ in process.ask({}):
                pass

        asking = asyncio.create_task(ask())
        await asyncio.to_thread(child.is_written.wait, 60)
        asking.cancel()
        await asyncio.wait([asking])
        assert not child.is_read.is_set(), "nobody waited for the pipe"
        child.is_read.set()
        for _ in range(500):
            if {"id": 1, "stop": True} in child.sent:
                break
            await asyncio.sleep(0.01)
        assert child.sent == [{"id": 1, "ask": {}}, {"id": 1, "stop": True}]
        if process._idle is not None:
            process._idle.cancel()

    asyncio.run(main())
