"""What a command may and may not do, in each sandbox that works here. Ways out: test_escape.py."""

import asyncio
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stretto.processes.watchdog import LimitName, ResourceLimits
from stretto.workspaces.sandbox import sandbox as sandbox_module, staged_copy, view
from stretto.workspaces.sandbox.confinement import CommandRefused
from stretto.workspaces.sandbox.sandbox import Sandbox, Setting
from support.sandboxes import confined, find, run


@pytest.fixture(params=["bubblewrap", "landlock"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    setting: Setting = request.param
    return find(setting)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for name in ("src", "docs", ".git"):
        (tmp_path / name).mkdir()
    for name in ("README.md", "LICENSE", "src/a.py", "docs/a.md", "docs/a.txt", ".git/config"):
        (tmp_path / name).write_text("original\n")
    return tmp_path


def test_a_command_says_what_it_says_in_order(sandbox: Sandbox, workspace: Path) -> None:
    ran = run(sandbox, "echo one; echo two >&2; echo three; exit 7", confined(workspace))
    assert (ran.output, ran.exit_code) == ("one\ntwo\nthree\n", 7)
    assert ran.is_confined
    assert (ran.dropped_bytes, ran.limit_hit) == (0, None)


def test_a_signal_is_told_as_a_shell_does(sandbox: Sandbox, workspace: Path) -> None:
    ran = run(sandbox, "kill -SEGV $$", confined(workspace))
    assert ran.exit_code == 128 + 11


def test_a_pipe_that_nobody_reads_ends_who_writes(sandbox: Sandbox, workspace: Path) -> None:
    ran = run(sandbox, "set -o pipefail; yes | head -n 1", confined(workspace))
    assert (ran.output, ran.exit_code) == ("y\n", 141)


def test_a_covered_directory_is_written_at_once(sandbox: Sandbox, workspace: Path) -> None:
    ran = run(
        sandbox,
        "echo new > src/b.py; sed -i s/original/changed/ src/a.py; echo x > LICENSE",
        confined(workspace, "src"),
    )
    assert (workspace / "src/b.py").read_text() == "new\n"
    assert (workspace / "src/a.py").read_text() == "changed\n"
    assert (workspace / "LICENSE").read_text() == "original\n"
    assert "Read-only file system" in ran.output


def test_without_a_write_set_nothing_is_written(sandbox: Sandbox, workspace: Path) -> None:
    ran = run(sandbox, "echo x > src/a.py || echo x > new", confined(workspace))
    assert ran.exit_code != 0
    assert sorted(path.name for path in workspace.iterdir()) == sorted(
        ["src", "docs", ".git", "README.md", "LICENSE"]
    )


def test_of_a_glob_only_what_matches_is_kept_and_the_rest_is_named(
    sandbox: Sandbox, workspace: Path
) -> None:
    command = """
        sed -i s/original/changed/ docs/a.md docs/a.txt
        echo new > docs/b.md; echo new > docs/b.txt
        mkdir docs/sub; echo new > docs/sub/c.md
        """
    ran = run(sandbox, command, confined(workspace, "docs/*.md"))
    assert ran.exit_code == 0
    assert {path.name: path.read_text() for path in (workspace / "docs").iterdir()} == {
        "a.md": "changed\n",
        "a.txt": "original\n",
        "b.md": "new\n",
    }
    assert ran.kept_out == ("docs/a.txt", "docs/b.txt", "docs/sub/c.md")


def test_one_file_can_be_replaced_by_renaming_over_it(sandbox: Sandbox, workspace: Path) -> None:
    ran = run(
        sandbox,
        "echo new > t; chmod 755 t; mv t README.md; cat src/a.py",
        confined(workspace, "README.md"),
    )
    assert ran.output == "original\n"
    assert (workspace / "README.md").read_text() == "new\n"
    assert (workspace / "README.md").stat().st_mode & 0o777 == 0o755
    assert ran.kept_out == ()


def test_a_covered_path_that_is_missing_can_be_made(sandbox: Sandbox, workspace: Path) -> None:
    confinement = confined(workspace, "build/**", "notes.txt")
    run(sandbox, "mkdir -p build/x; echo 1 > build/x/y; echo 2 > notes.txt", confinement)
    assert (workspace / "build/x/y").read_text() == "1\n"
    assert (workspace / "notes.txt").read_text() == "2\n"


def test_a_covered_file_can_be_deleted(sandbox: Sandbox, workspace: Path) -> None:
    ran = run(sandbox, "rm README.md LICENSE", confined(workspace, "README.md"))
    assert not (workspace / "README.md").exists()
    assert (workspace / "LICENSE").exists()
    assert ran.kept_out == ("LICENSE",)


def test_mounted_and_staged_paths_go_together(sandbox: Sandbox, workspace: Path) -> None:
    confinement = confined(workspace, "src/**", "docs/*.md", "README.md")
    ran = run(sandbox, "for f in src/a.py docs/a.md README.md; do echo x > $f; done", confinement)
    assert ran.exit_code == 0, ran.output
    for name in ("src/a.py", "docs/a.md", "README.md"):
        assert (workspace / name).read_text() == "x\n"


def test_a_repository_is_read_only_even_when_all_is_writable(
    sandbox: Sandbox, workspace: Path
) -> None:
    ran = run(sandbox, "cat .git/config; echo x >> .git/config", confined(workspace, "**"))
    assert ran.output.startswith("original\n")
    assert (workspace / ".git/config").read_text() == "original\n"


def test_the_file_that_names_a_repository_is_read_only_too(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")
    run(sandbox, "echo x > .git; rm -f .git; mv .git a", confined(tmp_path, "**"))
    assert (tmp_path / ".git").read_text() == "gitdir: elsewhere\n"


def test_a_repository_that_is_made_deeper_is_reported(sandbox: Sandbox, workspace: Path) -> None:
    ran = run(sandbox, "mkdir -p src/x/.git", confined(workspace, "src"))
    assert ran.new_repositories == ("src/x/.git",)


def test_no_trace_is_left_of_what_guarded_a_missing_repository(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    ran = run(sandbox, "mkdir .git; touch .git/config a", confined(tmp_path, "**"))
    assert ran.exit_code != 0 or not (tmp_path / ".git").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_environment_is_what_was_given(
    sandbox: Sandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_LAUNCHER", "hush")
    ran = run(sandbox, "env; ls -A ~; echo home: ~", confined(workspace, GIVEN="yes"))
    lines = ran.output.splitlines()
    assert "GIVEN=yes" in lines
    assert "hush" not in ran.output
    assert lines[-1] == "home: /tmp/home"


def test_the_command_has_a_private_place_for_temporary_files(
    sandbox: Sandbox, workspace: Path
) -> None:
    ran = run(sandbox, "echo x > $TMPDIR/stretto-a && echo y > ~/b && ls /tmp", confined(workspace))
    assert "stretto-a" in ran.output.splitlines()
    assert not Path("/tmp/stretto-a").exists()


def test_a_path_outside_can_be_shown(sandbox: Sandbox, workspace: Path) -> None:
    toolchain = workspace.parent / "toolchain"
    toolchain.mkdir(exist_ok=True)
    (toolchain / "version").write_text("1\n")
    try:
        command = f"cat {toolchain}/version; echo x > {toolchain}/version"
        assert "No such file" in run(sandbox, command, confined(workspace)).output
        ran = run(sandbox, command, confined(workspace, readable=(toolchain,)))
        assert ran.output.startswith("1\n")
        assert (toolchain / "version").read_text() == "1\n"
    finally:
        (toolchain / "version").unlink()
        toolchain.rmdir()


def test_the_network_is_there_only_when_asked_for(sandbox: Sandbox, workspace: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = f"echo hello > /dev/tcp/127.0.0.1/{server.getsockname()[1]}; ls /etc/resolv.conf"
        without = run(sandbox, command, confined(workspace))
        assert "refused" in without.output or "unreachable" in without.output
        within = run(sandbox, command, replace(confined(workspace), network=True))
        assert within.output == "/etc/resolv.conf\n"
        with server.accept()[0] as heard:
            assert heard.recv(10) == b"hello\n"


def test_sockets_of_its_own_need_to_be_asked_for(sandbox: Sandbox, workspace: Path) -> None:
    python = Path(sys.base_prefix)
    code = "import socket; socket.socket(socket.AF_UNIX); print('made')"
    command = f'{python}/bin/python3 -c "{code}"'
    assert (
        "PermissionError" in run(sandbox, command, confined(workspace, readable=(python,))).output
    )
    asked = confined(workspace, readable=(python,), local_sockets=True)
    if sandbox.adapter.has_local_sockets:
        assert run(sandbox, command, asked).output == "made\n"
    else:
        assert isinstance(asyncio.run(sandbox.run(command, asked)), CommandRefused)


def test_a_command_that_takes_too_long_is_stopped_with_its_children(
    sandbox: Sandbox, workspace: Path
) -> None:
    limits = ResourceLimits(wall_seconds=2)
    command = "trap '' TERM; (sleep 3; echo late > src/late) & echo begun; sleep 30"
    ran = run(sandbox, command, confined(workspace, "src", limits=limits))
    assert (ran.limit_hit, ran.output) == (LimitName.WALL, "begun\n")
    assert ran.duration_seconds < 25
    time.sleep(1.2)
    assert not (workspace / "src/late").exists()


def test_nothing_outlives_the_command(sandbox: Sandbox, workspace: Path) -> None:
    command = "setsid sh -c 'sleep 0.5; echo late > src/late' > /dev/null 2>&1 & echo done"
    ran = run(sandbox, command, confined(workspace, "src"))
    assert ran.output == "done\n"
    time.sleep(0.8)
    assert not (workspace / "src/late").exists()


def test_a_flood_of_output_is_bounded_and_the_command_goes_on(
    sandbox: Sandbox, workspace: Path
) -> None:
    limits = ResourceLimits(output_bytes=2000)
    command = "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last"
    ran = run(sandbox, command, confined(workspace, limits=limits))
    assert ran.exit_code == 0
    assert ran.output.startswith("first\n")
    assert ran.output.endswith("last\n")
    assert len(ran.output) < 2200
    assert ran.dropped_bytes == 5_000_012 - 2000


@pytest.mark.parametrize(
    ("command", "limits", "hit"),
    [
        (
            "for i in $(seq 300); do sleep 9 & done; wait",
            ResourceLimits(processes=50),
            LimitName.PROCESSES,
        ),
        ("while :; do :; done", ResourceLimits(cpu_seconds=1), LimitName.CPU),
        ("head -c 3M /dev/zero > src/big", ResourceLimits(file_bytes=1 << 20), LimitName.FILE),
        (
            "x() { head -c 60M /dev/zero | tail -c 60M; }; x | sleep 3 & x | sleep 3 & wait",
            ResourceLimits(memory_bytes=100 << 20),
            LimitName.MEMORY,
        ),
    ],
)
def test_a_limit_ends_the_command_and_is_named(
    sandbox: Sandbox, workspace: Path, command: str, limits: ResourceLimits, hit: LimitName
) -> None:
    if hit is LimitName.PROCESSES and os.geteuid() != 0:
        pytest.skip("only root's processes are not counted by the kernel itself")
    ran = run(sandbox, command, confined(workspace, "src", limits=limits))
    assert ran.limit_hit == hit
    assert ran.exit_code != 0


def test_cancelling_kills_the_command(sandbox: Sandbox, workspace: Path) -> None:
    async def cancel() -> None:
        command = "echo begun > src/begun; sleep 1; echo late > src/late"
        running = asyncio.create_task(sandbox.run(command, confined(workspace, "src")))
        while not (workspace / "src/begun").exists():
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancel())
    time.sleep(1.1)
    assert not (workspace / "src/late").exists()


class _Held:
    """Work of a thread that goes on only when the test says so."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self.work = work
        self.begun, self.may_go_on = threading.Event(), threading.Event()

    def __call__(self, *given: Any) -> Any:
        self.begun.set()
        assert self.may_go_on.wait(20)
        return self.work(*given)


async def _cancel_twice_during(held: _Held, running: Coroutine[Any, Any, object]) -> None:
    task = asyncio.create_task(running)
    assert await asyncio.to_thread(held.begun.wait, 20)
    for _ in range(2):
        task.cancel()
        await asyncio.wait([task], timeout=0.05)
    held.may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_what_an_ended_command_has_written_is_kept_although_it_is_cancelled_then(
    sandbox: Sandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = _Held(view.collect_changes)
    monkeypatch.setattr(view, "collect_changes", held)
    running = sandbox.run("echo new > docs/a.md", confined(workspace, "docs/*.md"))
    asyncio.run(_cancel_twice_during(held, running))
    assert (workspace / "docs/a.md").read_text() == "new\n"


def test_cancelling_while_a_command_is_prepared_leaves_nothing_open(
    sandbox: Sandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / ".git/config").unlink()
    (workspace / ".git").rmdir()  # a guard is put in its place
    held = _Held(sandbox_module.open_view)
    monkeypatch.setattr(sandbox_module, "open_view", held)
    before = len(os.listdir("/proc/self/fd"))
    asyncio.run(_cancel_twice_during(held, sandbox.run("true", confined(workspace, "."))))
    assert len(os.listdir("/proc/self/fd")) == before
    assert not (workspace / ".git").exists()


def test_commands_can_run_side_by_side(sandbox: Sandbox, workspace: Path) -> None:
    async def both() -> list[str]:
        commands = [f"sleep 0.2; echo {number} > src/{number}" for number in range(8)]
        await asyncio.gather(*(sandbox.run(it, confined(workspace, "src")) for it in commands))
        return sorted(path.name for path in (workspace / "src").iterdir())

    assert asyncio.run(both()) == ["0", "1", "2", "3", "4", "5", "6", "7", "a.py"]


def test_no_descriptor_and_no_file_is_left_behind(
    sandbox: Sandbox, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = tmp_path / "copies"  # not /tmp, where other processes keep theirs
    copies.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(copies))

    def state() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(list(copies.iterdir()))

    confinement = confined(workspace, "src", "docs/*.md", "README.md")
    run(sandbox, "true", confinement)
    before = state()
    for _ in range(3):
        run(sandbox, "echo x > README.md", confinement)
    assert state() == before


def test_a_write_set_that_cannot_be_copied_is_refused(
    sandbox: Sandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staged_copy, "MOST_FILES", 50)
    for number in range(60):
        (workspace / f"src/{number}.txt").touch()
    ran = asyncio.run(sandbox.run("true", confined(workspace, "src/*.py")))
    assert isinstance(ran, CommandRefused)
    assert "more than 50 files" in ran.says
    assert "src/**" in ran.fix


@pytest.mark.parametrize(
    ("command", "workspace", "says"),
    [
        ("a\0b", "/srv", "NUL"),
        ("x" * 200_000, "/srv", "200000 bytes"),
        ("true", "/nowhere", "not a directory"),
        ("true", "/", "which no command is shown"),
        ("true", "/etc", "which no command is shown"),
    ],
)
def test_what_cannot_be_run_is_refused(
    sandbox: Sandbox, command: str, workspace: str, says: str
) -> None:
    ran = asyncio.run(sandbox.run(command, confined(Path(workspace))))
    assert isinstance(ran, CommandRefused)
    assert says in ran.says


def test_a_home_taken_for_a_workspace_does_not_show_its_keys(
    sandbox: Sandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(workspace))
    (workspace / ".ssh").mkdir()
    (workspace / ".ssh/id").write_text("hush")
    (workspace / ".netrc").write_text("hush")
    ran = run(sandbox, "cat .ssh/id .netrc; echo x > .ssh/id", confined(workspace, "**"))
    assert "hush" not in ran.output
    assert (workspace / ".ssh/id").read_text() == "hush"
