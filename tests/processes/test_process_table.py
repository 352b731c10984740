import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from stretto.processes import process_table
from stretto.processes.watchdog import TreeUsage, measure_tree, proportional_bytes

PROGRAM = """
import os, sys, threading, time
if os.fork() == 0:
    threads = [threading.Thread(target=time.sleep, args=(30,), daemon=True) for _ in range(3)]
    [thread.start() for thread in threads]
    kept = bytearray(b"x") * (50 << 20)
    print("ready", flush=True)
time.sleep(30)
"""


@pytest.fixture(params=[True, False], ids=["children", "scan"])
def parent(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(process_table, "LISTS_CHILDREN", request.param)
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", PROGRAM], stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    yield process.pid
    os.killpg(process.pid, 9)
    process.wait()
    process.stdout.close()


def test_all_tasks_and_all_memory_below_a_process_are_counted(parent: int) -> None:
    usage = measure_tree(parent, most_tasks=100)
    assert usage.tasks == 5
    assert usage.memory_bytes > 50 << 20
    assert 50 << 20 < proportional_bytes(parent) <= usage.memory_bytes


def test_counting_stops_once_there_are_too_many(parent: int) -> None:
    assert measure_tree(parent, most_tasks=0).tasks == 1


def test_a_process_that_is_gone_uses_nothing() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert measure_tree(process.pid, most_tasks=10) == TreeUsage(0, 0, 0.0)
    assert process_table.children(process.pid) == []
