"""What the kernel does not limit for a whole command is held all the same."""

import asyncio
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from stretto.processes.process_table import children
from stretto.processes.watchdog import DiskWatch, LimitName, ResourceLimits, measure_tree
from stretto.workspaces.sandbox.confinement import Ran
from stretto.workspaces.sandbox.sandbox import Sandbox, Setting
from support.sandboxes import confined, find, run

_MIB = 1 << 20


@pytest.fixture(params=["bubblewrap", "landlock"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    setting: Setting = request.param
    return find(setting)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    return tmp_path


DISK = ResourceLimits(wall_seconds=60, disk_bytes=48 * _MIB, file_bytes=16 * _MIB)
WAYS = {
    "many files": "for i in $(seq 400); do head -c 4M /dev/zero > src/$i; done",
    "in folders": "for i in $(seq 400); do mkdir -p src/$i/x; head -c 4M /dev/zero > src/$i/x/y; done",
    "small files": "seq 20000 | sed s,^,src/, | xargs touch; sleep 50",
    "growing": "for i in $(seq 400); do head -c 1M /dev/zero >> src/$((i % 50)); done",
    "without a name": "for i in $(seq 400); do exec {fd}<> src/x; rm src/x; "
    "head -c 8M /dev/zero >&$fd; done; sleep 50",
}


@pytest.mark.parametrize("way", list(WAYS))
def test_what_all_files_take_together_is_bounded(
    sandbox: Sandbox, workspace: Path, way: str
) -> None:
    ran = run(sandbox, WAYS[way], confined(workspace, "src", limits=DISK))
    assert ran.limit_hit == LimitName.DISK


def test_a_copy_counts_too(sandbox: Sandbox, workspace: Path) -> None:
    command = "for i in $(seq 100); do head -c 4M /dev/zero > $i.md; done"
    ran = run(sandbox, command, confined(workspace, "*.md", limits=DISK))
    assert ran.limit_hit == LimitName.DISK


def test_what_was_there_before_and_what_others_write_does_not_count(workspace: Path) -> None:
    (workspace / "old").write_bytes(b"x" * 8 * _MIB)
    nobody = 2**22 + 1  # no process has this id, and so none holds files without a name
    time.sleep(0.1)
    watch = DiskWatch([workspace / "src"], 4 * _MIB)
    (workspace / "others").write_bytes(b"x" * 8 * _MIB)
    time.sleep(0.6)  # past its pace, so that it looks
    assert not watch.is_exceeded(nobody)
    (workspace / "src/mine").write_bytes(b"x" * 8 * _MIB)
    # A look that took long makes the next one later, on a busy machine by seconds.
    deadline = time.monotonic() + 30
    while not (is_exceeded := watch.is_exceeded(nobody)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert is_exceeded


def test_a_look_that_waits_does_not_put_off_the_next(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = 2**22 + 1
    watch = DiskWatch([workspace / "src"], 4 * _MIB)
    scandir = os.scandir

    def wait_first(place: str) -> Any:
        time.sleep(1.5)
        return scandir(place)

    time.sleep(0.6)  # past its pace, so that it looks
    with monkeypatch.context() as slow:
        slow.setattr(os, "scandir", wait_first)
        assert not watch.is_exceeded(nobody)
    looked = time.monotonic()
    for number in range(2_000):  # of which the free space says nothing
        (workspace / f"src/{number}").touch()
    while not watch.is_exceeded(nobody):
        assert time.monotonic() < looked + 20
        time.sleep(0.1)


MEMORY = """
import mmap, os, time
for number in range(11):
    if os.fork() == 0:
        time.sleep(number * 0.2)
        break
held = mmap.mmap(-1, 200 << 20, mmap.{kind} | mmap.MAP_ANONYMOUS | 0x8000)
time.sleep(30)
"""


@pytest.mark.parametrize("kind", ["MAP_PRIVATE", "MAP_SHARED"])
def test_many_children_do_not_outrun_the_limit(
    sandbox: Sandbox, workspace: Path, kind: str
) -> None:
    """Each stays below it, and together they would take nine times as much. They come one after
    the other: a busy machine may let the watchdog wait for half a second."""
    python = Path(sys.base_prefix)
    command = f"{python}/bin/python3 -c '{MEMORY.format(kind=kind)}'"
    limits = ResourceLimits(wall_seconds=60, memory_bytes=256 * _MIB)
    peak, ended = 0, threading.Event()

    def look(root: int) -> None:
        nonlocal peak
        while not ended.wait(0.002):
            peak = max(
                peak, sum(measure_tree(each, 10_000).memory_bytes for each in children(root))
            )

    async def measured() -> Ran:
        looking = threading.Thread(target=look, args=(os.getpid(),))
        looking.start()
        try:
            ran = await sandbox.run(command, confined(workspace, limits=limits, readable=(python,)))
        finally:
            ended.set()
            looking.join()
        assert isinstance(ran, Ran)
        return ran

    ran = asyncio.run(measured())
    assert ran.limit_hit == LimitName.MEMORY
    assert peak < 1200 * _MIB  # of 2,400; an idle machine holds it at some 400


def test_a_busy_event_loop_does_not_put_the_watchdog_to_sleep(
    sandbox: Sandbox, workspace: Path
) -> None:
    command = "sleep 0.5; while :; do :; done & while :; do :; done"

    async def busy() -> Ran:
        limits = ResourceLimits(wall_seconds=300, cpu_seconds=2)
        running = asyncio.create_task(sandbox.run(command, confined(workspace, limits=limits)))
        for _ in range(40):
            await asyncio.sleep(0)
            time.sleep(0.2)  # what nobody should do on the loop
            if running.done():
                break
        ran = await running
        assert isinstance(ran, Ran)
        return ran

    assert asyncio.run(busy()).limit_hit == LimitName.CPU
