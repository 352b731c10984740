import asyncio
import os
import time
from pathlib import Path

import pytest

from stretto.processes import limited
from stretto.processes.limited import HeadAndTail, run_limited
from stretto.processes.programs import ProgramStart
from stretto.processes.watchdog import DiskWatch, ResourceLimits


def said(most_bytes: int, *chunks: bytes) -> tuple[str, int]:
    output = HeadAndTail(most_bytes)
    for chunk in chunks:
        output.add(chunk)
    return output.end()


def test_what_fits_is_kept_whole() -> None:
    assert said(10, b"01234", b"56789") == ("0123456789", 0)


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_of_a_flood_the_head_and_the_tail_are_kept(size: int) -> None:
    flood = b"".join(b"%04d " % number for number in range(1000))
    chunks = [flood[at : at + size] for at in range(0, len(flood), size)]
    text, dropped = said(20, *chunks)
    assert dropped == 4980
    assert text == "0000 0001 \n[… 4980 bytes of output were dropped here …]\n0998 0999 "


def test_what_is_not_text_is_shown_as_such() -> None:
    assert said(10, b"a\xffb") == ("a\ufffdb", 0)


def test_a_limit_of_one_byte_holds() -> None:
    text, dropped = said(1, b"ab", b"c")
    assert text.startswith("a\n[… 2 bytes")
    assert dropped == 2


def test_a_program_that_is_cancelled_twice_ends_though_a_look_at_the_disk_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_long(self: DiskWatch, pid: int) -> bool:
        time.sleep(0.6)
        return False

    monkeypatch.setattr(DiskWatch, "is_exceeded", look_long)
    note = tmp_path / "pid"
    words = ("/bin/sh", "-c", f"echo $$ > {note}; exec sleep 20")
    start = ProgramStart(words, tmp_path, {"PATH": "/usr/bin:/bin"})

    async def story() -> None:
        running = asyncio.create_task(
            run_limited(start, ResourceLimits(), [tmp_path], is_namespace=False)
        )
        async with asyncio.timeout(10):
            while not (note.exists() and note.read_text().strip()):
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # it looks at the disk now
        running.cancel()  # the step has timed out
        await asyncio.sleep(0.1)
        running.cancel()  # and the run is stopped
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(story())
    assert not Path("/proc", note.read_text().strip()).exists()


def test_a_start_without_room_for_its_second_pipe_leaves_no_descriptor_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = ProgramStart(("/bin/true",), tmp_path, {})
    pipe, left = os.pipe, [1]

    def pipe_once() -> tuple[int, int]:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(24, "Too many open files")
        return pipe()

    async def story() -> None:
        before = len(os.listdir("/proc/self/fd"))
        monkeypatch.setattr(limited.os, "pipe", pipe_once)
        with pytest.raises(OSError, match="Too many"):
            await run_limited(start, ResourceLimits(), [], is_namespace=False, keeps_errors=True)
        assert len(os.listdir("/proc/self/fd")) == before

    asyncio.run(story())
