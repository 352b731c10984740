import asyncio
from pathlib import Path

import pytest

from stretto.processes.watchdog import LimitName, ResourceLimits
from stretto.workspaces.sandbox import sandbox as sandbox_module
from stretto.workspaces.sandbox.sandbox import (
    NoSandbox,
    Sandbox,
    _find,
    explain_failure,
    explain_not_installed,
    find_sandbox,
)
from support.sandboxes import confined, find, run


@pytest.fixture(autouse=True)
def looking_again() -> None:
    _find.cache_clear()


def put_program(directory: Path, text: str) -> None:
    program = directory / "bwrap"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


def test_a_sandbox_is_tried_once_for_each_process() -> None:
    assert find("auto") is find("auto")


def test_bubblewrap_is_preferred() -> None:
    find("bubblewrap")
    assert find("auto").name == "bubblewrap"


def test_without_bubblewrap_landlock_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    find("landlock")
    monkeypatch.setenv("PATH", "/nowhere")
    assert find("auto").name == "landlock"


def test_a_missing_program_is_named_with_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = find_sandbox("bubblewrap")
    assert isinstance(found, NoSandbox)
    assert found.missing == (explain_not_installed(),)
    assert "bubblewrap: the program bwrap is not installed" in str(found)


def test_an_old_program_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_program(tmp_path, "echo '--bind SRC DEST'")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_sandbox("bubblewrap")
    assert isinstance(found, NoSandbox)
    assert "too old" in found.missing[0].says


def test_a_program_that_confines_nothing_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It looks like bubblewrap and runs the command all the same.
    put_program(
        tmp_path,
        'case "$1" in --help) echo "--ro-bind-fd";; *) shift 3; exec "$@";; esac',
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_sandbox("bubblewrap")
    assert isinstance(found, NoSandbox)
    assert found.missing[0].fix


@pytest.mark.parametrize(
    ("setting", "value", "says", "fix"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "AppArmor", "bwrap-userns-restrict"),
        ("kernel/unprivileged_userns_clone", "0", "off for users", "userns_clone=1"),
        ("user/max_user_namespaces", "0", "no user namespaces", "max_user_namespaces=15000"),
        ("kernel/nothing", "0", "container", "seccomp=unconfined"),
    ],
)
def test_the_kernels_refusal_is_explained_by_its_settings(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    value: str,
    says: str,
    fix: str,
) -> None:
    monkeypatch.setattr(sandbox_module, "_SYSCTL", tmp_path)
    (tmp_path / setting).parent.mkdir()
    (tmp_path / setting).write_text(f"{value}\n")
    said = "bwrap: No permissions to create new namespace"
    missing = explain_failure("bubblewrap", said)
    assert says in missing.says
    assert said in missing.says
    assert fix in missing.fix


def test_a_container_that_hides_proc_is_told_apart(tmp_path: Path) -> None:
    said = "bwrap: Can't mount proc on /newroot/proc: Operation not permitted"
    assert "systempaths=unconfined" in explain_failure("bubblewrap", said).fix


def test_what_we_do_not_understand_is_passed_on() -> None:
    assert "the moon" in explain_failure("landlock", "wrong phase of the moon").says


def test_off_runs_unconfined_and_says_so(tmp_path: Path) -> None:
    sandbox = find("off")
    outside = tmp_path / "outside"
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    ran = run(sandbox, f"echo x > {outside}; echo $SECRET", confined(workspace))
    assert not ran.is_confined
    assert outside.read_text() == "x\n"
    assert sandbox.adapter.gaps


def test_off_still_has_a_clean_environment_limits_and_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "hush")
    limits = ResourceLimits(wall_seconds=2, file_bytes=1 << 20)
    command = "env; head -c 3M /dev/zero > big; (sleep 3; echo late > late) & sleep 30"
    ran = run(find("off"), command, confined(tmp_path, limits=limits))
    assert "hush" not in ran.output
    assert ran.limit_hit is LimitName.WALL
    assert (tmp_path / "big").stat().st_size <= 1 << 20
    asyncio.run(asyncio.sleep(1.2))
    assert not (tmp_path / "late").exists()


def test_a_found_sandbox_tells_its_gaps() -> None:
    for sandbox in (find_sandbox("bubblewrap"), find_sandbox("landlock")):
        if isinstance(sandbox, Sandbox):
            assert all(gap.endswith(".") for gap in sandbox.adapter.gaps)
