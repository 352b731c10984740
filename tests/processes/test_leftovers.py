"""Whoever is killed leaves nobody behind: not a worker, not a server, not what a server started."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PAGE = """
import asyncio, pathlib
from stretto.adapters.tools import html_text
from stretto.processes.worker import run_worker

async def feed():  # decoding this takes hours
    yield b'{"charset": "punycode", "is_html": false}\\n-' + b"a" * 4_000_000

asyncio.run(run_worker(pathlib.Path(html_text.__file__), feed(), 600, 1000))
"""
SERVER = """
import asyncio, pathlib, sys
from stretto.adapters.tools.mcp_transport import ServerState, stdio_transport
from stretto.processes.programs import ProgramStart

SCRIPT = 'trap "" TERM HUP PIPE; setsid sleep 612 & sleep 611 & echo x; wait'

async def main():
    argv = ["/bin/bash", "-c", SCRIPT]
    start = ProgramStart(argv, pathlib.Path("/"), {"PATH": "/usr/bin:/bin"}, None)
    async with stdio_transport(start, ServerState(asyncio.Event())):
        await asyncio.sleep(600)

asyncio.run(main())
"""
AGENT = """
import asyncio, pathlib
from stretto.processes.guarded import run_guarded
from stretto.processes.programs import ProgramStart

SCRIPT = 'trap "" TERM HUP PIPE; setsid sleep 612 & sleep 611 & wait'

async def main():
    async with run_guarded(ProgramStart(("/bin/bash", "-c", SCRIPT), pathlib.Path("/"), {"PATH": "/usr/bin:/bin"}, "")):
        await asyncio.sleep(600)

asyncio.run(main())
"""
COMMAND = """
import asyncio, pathlib, sys
from stretto.workspaces.sandbox.confinement import Confinement
from stretto.workspaces.sandbox.sandbox import find_sandbox

asyncio.run(find_sandbox().run("setsid sleep 612 & sleep 611 & wait", Confinement(pathlib.Path(sys.argv[1]))))
"""


def descendants(root: int) -> set[tuple[int, str]]:
    """With the time of their start, for numbers are used again."""
    parents: dict[int, tuple[int, str]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX":
            parents[int(name)] = (int(fields[1]), fields[19])
    found, grown = {root}, True
    while grown:
        grown = {pid for pid, (parent, _) in parents.items() if parent in found} - found
        found |= grown
    return {(pid, parents[pid][1]) for pid in found - {root} if pid in parents}


def is_there(process: tuple[int, str]) -> bool:
    try:
        fields = Path(f"/proc/{process[0]}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[19] == process[1] and fields[0] not in "ZX"


def until(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    give_up_at = time.monotonic() + seconds
    while time.monotonic() < give_up_at:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(
    ("code", "children"),
    [(PAGE, 1), (SERVER, 4), (AGENT, 4), (COMMAND, 4)],
    ids=["page", "server", "agent", "command"],
)
def test_nobody_outlives_a_process_that_was_killed(
    code: str, children: int, tmp_path: Path
) -> None:
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) as process:
        try:
            assert until(lambda: len(descendants(process.pid)) >= children)
            time.sleep(0.2)  # let those that have just been forked become what they are
            started = descendants(process.pid)
        finally:
            process.send_signal(signal.SIGKILL)
    assert until(lambda: not any(map(is_there, started)), 30), started


DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    os.closerange(0, 256)
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    time.sleep(600)
sys.stdin.read()  # a server ends with its input; what it has left behind does not
"""
SERVED = """
import asyncio, pathlib, sys
from stretto.adapters.tools.mcp_transport import ServerState, stdio_transport
from stretto.processes.programs import ProgramStart

async def main(server, pid_file):
    argv = [sys.executable, server, pid_file]
    start = ProgramStart(argv, pathlib.Path("/"), {"PATH": "/usr/bin:/bin"}, None)
    async with stdio_transport(start, ServerState(asyncio.Event())):
        while not pathlib.Path(pid_file).exists():
            await asyncio.sleep(0.02)
        print("started", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("is_killed", [False, True], ids=["at the end", "killed"])
def test_a_daemon_of_a_server_does_not_outlive_its_run(is_killed: bool, tmp_path: Path) -> None:
    server, pid_file = tmp_path / "server.py", tmp_path / "pid"
    server.write_text(DAEMON)
    command = [sys.executable, "-c", SERVED, str(server), str(pid_file)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "started\n"
        pid = int(pid_file.read_text())
        (daemon,) = (each for each in descendants(process.pid) if each[0] == pid)
        if is_killed:
            process.kill()
        process.stdin.close()
        assert process.wait(60) == (-signal.SIGKILL if is_killed else 0)
    assert until(lambda: not is_there(daemon), 30)
