"""What the kernel does not count for root, a control group counts."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.processes.limited import joined_group
from stretto.processes.watchdog import LimitName, ResourceLimits
from stretto.workspaces.sandbox.sandbox import Setting
from support.sandboxes import confined, find, run

LIMITS = ResourceLimits(processes=50)


def group_of(words: list[str]) -> Path:
    if len(words) == 1:
        pytest.skip("no control group can be made here, or the kernel counts by itself")
    return Path(words[3])


def test_the_program_is_in_a_group_that_goes_with_it() -> None:
    async def main() -> None:
        async with joined_group(["true"], LIMITS) as words:
            group = group_of([*words])
            said = subprocess.check_output(
                [*words[:-1], "/bin/cat", "/proc/self/cgroup"], text=True
            )
            assert group.name in said
            assert int((group / "pids.max").read_text()) < 150
        assert not group.exists()

    asyncio.run(main())


def test_a_group_that_a_killed_process_left_is_removed() -> None:
    async def parent() -> Path:
        async with joined_group(["true"], LIMITS) as words:
            return group_of([*words]).parent

    left = asyncio.run(parent()) / f"stretto-{ended_pid()}-0"
    left.mkdir()
    script = "import stretto.processes.limited as it; it._parent()"
    subprocess.run([sys.executable, "-c", script], check=True)
    assert not left.exists()


def ended_pid() -> int:
    with subprocess.Popen(["true"]) as process:
        return process.pid


@pytest.mark.parametrize("setting", ["bubblewrap", "landlock"])
def test_a_fork_bomb_is_held_from_its_first_moment(setting: Setting, tmp_path: Path) -> None:
    """Without a group there were thousands of processes before the watchdog had its turn."""

    async def check() -> None:
        async with joined_group(["true"], LIMITS) as words:
            group_of([*words])

    asyncio.run(check())
    ran = run(find(setting), "b() { b | b & }; b; sleep 9", confined(tmp_path, limits=LIMITS))
    assert ran.limit_hit == LimitName.PROCESSES
