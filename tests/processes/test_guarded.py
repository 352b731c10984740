"""A program beneath its guard: what is opened for it is closed again."""

import asyncio
import os
from pathlib import Path

import pytest

from stretto.processes import guarded
from stretto.processes.guarded import run_guarded
from stretto.processes.programs import ProgramStart

TRUE = ProgramStart(("/bin/true",), Path("/"), {})


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("opened", [0, 1])
def test_a_start_without_room_for_its_streams_leaves_no_descriptor_open(
    opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        connect, left = loop.connect_read_pipe, [opened]

        async def connect_some(*given: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(24, "Too many open files")
            return await connect(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(loop, "connect_read_pipe", connect_some)
        before = descriptors()
        for _ in range(3):
            left[0] = opened
            with pytest.raises(OSError, match="Too many"):
                async with run_guarded(TRUE):
                    pass
        await asyncio.sleep(0)  # a transport closes its pipe in the next round of the loop
        assert descriptors() == before

    asyncio.run(story())


def test_a_start_without_room_for_its_second_pipe_leaves_no_descriptor_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        pipe, left = os.pipe, [2]

        def pipe_some() -> tuple[int, int]:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(24, "Too many open files")
            return pipe()

        monkeypatch.setattr(guarded.os, "pipe", pipe_some)
        before = descriptors()
        with pytest.raises(OSError, match="Too many"):
            async with run_guarded(TRUE):
                pass
        await asyncio.sleep(0)
        assert descriptors() == before

    asyncio.run(story())
