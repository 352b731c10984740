"""Only what is certain is called dead."""

import os
import subprocess
import sys

import pytest

from stretto.processes.identity import is_dead, name_of_this_process

SAY = "from stretto.processes.identity import name_of_this_process as n; print(n(), flush=True)"


def test_this_process_is_alive_by_all_its_names() -> None:
    names = {name_of_this_process() for _ in range(3)}
    assert len(names) == 3
    assert not any(is_dead(name) for name in names)


def test_a_process_is_dead_once_it_is_killed_even_if_nobody_noticed() -> None:
    words = [sys.executable, "-c", f"{SAY}; input()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        name = child.stdout.readline().strip()
        assert not is_dead(name)
        child.kill()
        assert child.stdout.read() == ""  # its end is closed: it has stopped
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie now, and left as one
        assert is_dead(name)
    assert is_dead(name)


def test_a_pid_that_is_used_again_is_another_process() -> None:
    ours = name_of_this_process()
    place, began = ours[ours.index("(") + 1 : ours.index(")")].split()
    assert is_dead(ours.replace(f"{place} {began}", f"{place} {int(began) - 1}"))


@pytest.mark.parametrize(
    "name", ["", "somebody", "host pid 1", "host pid 1 (elsewhere:1 5) abc", "h pid 1 (? ?) abc"]
)
def test_who_cannot_be_looked_up_from_here_may_be_alive(name: str) -> None:
    assert not is_dead(name)
