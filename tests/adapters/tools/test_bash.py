"""Bash: in a sandbox, in a clean environment, and only what a filter allows."""

import asyncio
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from adapters.tools.test_commands import filters as read_filters
from stretto.adapters.tools.bash import ShellSettings, bash
from stretto.ports.tool import Reach, ToolOutcome
from stretto.workspaces.sandbox.sandbox import NoSandbox, explain_not_installed, find_sandbox
from support.toolbench import call, copy_of, reach_of, tree

SANDBOX = find_sandbox("auto")
needs_sandbox = pytest.mark.skipif(isinstance(SANDBOX, NoSandbox), reason=str(SANDBOX))
SETTINGS = ShellSettings(partial(find_sandbox, "auto"))


def ran(reach: Reach, command: str, *filters: str, timeout_seconds: int = 20) -> ToolOutcome:
    some = read_filters(*filters) if filters else []
    return call(bash(reach, SETTINGS, some), command=command, timeout_seconds=timeout_seconds)


def test_without_a_sandbox_it_is_refused_with_the_reason_and_the_fix(tmp_path: Path) -> None:
    settings = ShellSettings(lambda: NoSandbox((explain_not_installed(),)))
    told = call(bash(reach_of(tmp_path), settings), command="touch a")
    assert told.verdict == "refused"
    assert "bwrap is not installed" in told.text
    assert "install the package 'bubblewrap'" in told.text
    assert tree(tmp_path) == {}


@needs_sandbox
def test_a_command_says_what_it_says_and_its_code(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    told = ran(reach_of(tmp_path), "cat a.txt; echo bad >&2")
    assert (told.verdict, told.text) == ("ok", "hello\nbad")
    told = ran(reach_of(tmp_path), "exit 3")
    assert (told.verdict, told.text) == ("error", "(no output)\n[exit code 3]")


@needs_sandbox
def test_only_the_write_set_can_be_written(tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    (workspace / "out").mkdir(parents=True)
    (workspace / "a.txt").write_text("old")
    reach = reach_of(workspace, write_set=("out/**",))
    ran(reach, f"echo new > a.txt; echo new > out/b.txt; echo x > ../c; echo x > {tmp_path}/d")
    assert tree(tmp_path) == {"w/a.txt": b"old", "w/out/b.txt": b"new\n"}


SANDBOXES = [name for name in ("bubblewrap", "landlock")
             if not isinstance(find_sandbox(name), NoSandbox)]  # fmt: skip


def run_in(name: str, reach: Reach, command: str) -> ToolOutcome:
    settings = ShellSettings(partial(find_sandbox, name))  # type: ignore[arg-type]
    return call(bash(reach, settings), command=command, timeout_seconds=20)


@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("write_set", [("**/*",), ("src/**",), ("src/*.js", "a.txt")])
def test_a_carried_folder_is_seen_in_a_copy_and_cannot_be_changed(
    tmp_path: Path, sandbox: str, write_set: tuple[str, ...]
) -> None:
    origin = tmp_path / "ws"
    for file, text in {
        "deps/bin/tool": f"#!{origin}/deps/bin/sh\necho ran\n",
        "src/a.js": "",
    }.items():
        (origin / file).parent.mkdir(parents=True, exist_ok=True)
        (origin / file).write_text(text)
    (origin / "deps/bin/tool").chmod(0o755)
    (origin / "deps/bin/sh").symlink_to("/bin/sh")
    before = tree(origin)
    reach = replace(copy_of(origin, tmp_path / "copy", "deps"), write_set=write_set)
    # A script that names its interpreter by where it was installed, as those of a .venv do.
    assert run_in(sandbox, reach, "deps/bin/tool").text == "ran"
    tries = (
        "echo x > deps/bin/tool; echo x > deps/new; rm -rf deps; mv deps gone; chmod 777 deps/bin; "
        f"echo x > {origin}/deps/bin/tool; echo x > {origin}/src/a.js; ln deps/bin/tool src/hard; "
        "rm -rf deps/bin; mkdir deps/more; cat deps/bin/tool"
    )
    assert "echo ran" in run_in(sandbox, reach, tries).text
    assert tree(origin) == before
    assert (origin / "deps/bin").stat().st_mode & 0o777 == 0o755


@needs_sandbox
def test_nothing_is_carried_through_a_link_that_a_command_put_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "ws/deps").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    reach = copy_of(tmp_path / "ws", tmp_path / "copy", "deps")
    (reach.workspace / "deps").rmdir()
    (reach.workspace / "deps").symlink_to(tmp_path / "elsewhere")
    assert ran(reach, "ls deps").verdict == "refused"


@needs_sandbox
def test_in_a_read_only_step_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    told = ran(
        reach_of(tmp_path, may_write=False, write_set=("**/*",)), "echo new > a.txt; cat a.txt"
    )
    assert "old" in told.text
    assert tree(tmp_path) == {"a.txt": b"old"}


@needs_sandbox
def test_the_environment_is_clean_but_for_what_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    settings = ShellSettings(partial(find_sandbox, "auto"), {"ALLOWED": "yes"})
    told = call(
        bash(reach_of(tmp_path), settings), command="env; cat /proc/1/environ | tr '\\0' '\\n'"
    )
    assert "s3cret" not in told.text
    assert "ALLOWED=yes" in told.text
    assert "TERM=dumb" in told.text
    assert f"HOME={Path.home()}\n" not in told.text


@needs_sandbox
def test_a_filter_is_kept_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    assert ran(reach_of(tmp_path), "cat a.txt", "cat:*").text == "hello"
    told = ran(reach_of(tmp_path), "cat a.txt; touch b", "cat:*")
    assert told.verdict == "refused"
    assert told.text == "Refused: you may not run 'touch b'. You may run: cat:*"
    assert tree(tmp_path) == {"a.txt": b"hello"}


@needs_sandbox
def test_it_is_stopped_when_its_time_is_up(tmp_path: Path) -> None:
    begin = time.monotonic()
    told = ran(reach_of(tmp_path), "echo begun; sleep 60", timeout_seconds=1)
    assert time.monotonic() - begin < 50
    assert told.verdict == "error"
    assert told.text.startswith("begun\n[it was stopped at its limit: wall_seconds]")


@needs_sandbox
def test_a_flood_is_cut_and_its_size_is_told(tmp_path: Path) -> None:
    told = ran(reach_of(tmp_path), "seq 1 400000; echo the end")
    assert len(told.text) < 31_000
    assert told.text.startswith("1\n2\n")
    assert told.text.endswith("the end")
    assert told.size > 2_000_000


@needs_sandbox
def test_cancelling_ends_the_command(tmp_path: Path) -> None:
    async def cancelled() -> float:
        tool = bash(reach_of(tmp_path), SETTINGS)
        task = asyncio.create_task(tool.call({"command": "sleep 60"}, "k"))
        await asyncio.sleep(0.5)
        begin = time.monotonic()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return time.monotonic() - begin

    assert asyncio.run(cancelled()) < 5


@pytest.mark.parametrize("command", ["echo \ud800", "echo a\0b"])
def test_a_command_that_no_shell_can_be_given_does_not_run(tmp_path: Path, command: str) -> None:
    settings = ShellSettings(partial(find_sandbox, "off"))
    assert call(bash(reach_of(tmp_path), settings), command=command).verdict in ("error", "refused")


@pytest.mark.parametrize("seconds", [0, 601, -1, "60"])
def test_the_time_has_bounds(tmp_path: Path, seconds: int) -> None:
    told = call(bash(reach_of(tmp_path), SETTINGS), command="true", timeout_seconds=seconds)
    assert (told.verdict, "timeout_seconds" in told.text) == ("error", True)


def test_it_declares_what_it_is(tmp_path: Path) -> None:
    (git,) = read_filters("git diff:*")
    assert git is not None
    spec = bash(reach_of(tmp_path), SETTINGS, [git]).spec
    assert (spec.changes_files, spec.recovery) == (True, "in_doubt")
    assert "You may run: git diff:*." in spec.description
