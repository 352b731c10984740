"""What callers, packages and machines do wrong: each gets an error that says what to do."""

import asyncio
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

import stretto
from support.api import BRIEF, Open, Scripted

ONE = "name: one\nsteps: [{id: a, subagent: stubborn, prompt: go}]\n"
PACKAGE = """
def raises(name, environ):
    raise RuntimeError(f"no licence for {name}")

def gives_nothing(name, environ):
    return None

async def opens_nothing(home):
    return None

async def opens_a_text(home):
    return "a store"
"""
POINTS = """[stretto.models]
raises = faulty:raises
nothing = faulty:gives_nothing
absent = nowhere:make
[stretto.stores]
nothing = faulty:opens_nothing
text = faulty:opens_a_text
"""


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    site = tmp_path / "site"
    (site / "faulty-1.0.dist-info").mkdir(parents=True)
    (site / "faulty.py").write_text(PACKAGE)
    (site / "faulty-1.0.dist-info" / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(site))
    yield
    sys.modules.pop("faulty", None)


class Stubborn:
    """An agent that goes on however often it is cancelled, for longer than anybody waits for it."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()
        self.ends_at = time.monotonic() + 12

    async def __call__(self, prompt: str) -> str:
        self.has_begun.set()
        while time.monotonic() < self.ends_at:
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
        return "done"


@pytest.mark.parametrize("way", ["cancel", "close", "stop"])
def test_an_agent_that_cannot_be_cancelled_holds_up_nobody(
    open_stretto: Open, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        agent = Stubborn()
        w = open_stretto(agents={"stubborn": agent})
        run = await w.start(ONE)
        await agent.has_begun.wait()
        began = time.monotonic()
        if way == "cancel":
            await run.cancel()
            report = await run.report()
            assert report.status == "cancelled"
            assert "did not stop" in " ".join(report.warnings)
        elif way == "stop":
            await run.stop()
        await w.close()
        assert time.monotonic() - began < 10
        assert "step 'a'" in caplog.text
        assert "did not stop" in caplog.text
        agent.ends_at = 0
        await asyncio.sleep(0.1)  # and its late answer does no harm

    asyncio.run(main())


def test_a_timeout_ends_an_attempt_that_cannot_be_cancelled(open_stretto: Open) -> None:
    async def main() -> None:
        agent = Stubborn()
        async with open_stretto(agents={"stubborn": agent}) as w:
            run = await w.start(ONE.replace("prompt: go", "prompt: go, timeout: 200ms"))
            began = time.monotonic()
            report = await run.report()
            assert time.monotonic() - began < 10
            assert report.status == "failed"
            agent.ends_at = 0

    asyncio.run(main())


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("raises:x", "RuntimeError: no licence for raises:x"),
        ("nothing:x", "it gave None, which is no model"),
        ("absent:x", "nowhere:make"),
    ],
)
def test_a_model_of_a_package_that_fails_is_found_before_the_run(
    open_stretto: Open, faulty: None, model: str, says: str
) -> None:
    async def main() -> None:
        async with open_stretto(model=model) as w:
            with pytest.raises(stretto.NotReady) as caught:
                await w.start(BRIEF, {"topic": "looms"})
            assert says in " ".join(problem.message for problem in caught.value.problems)
            assert await w.runs() == []

    asyncio.run(main())


@pytest.mark.parametrize("store", ["nothing", "text"])
def test_a_store_of_a_package_that_is_none_is_refused(
    open_stretto: Open, faulty: None, store: str
) -> None:
    async def main() -> None:
        async with open_stretto(store=store) as w:
            with pytest.raises(stretto.InvalidConfig, match=f"store '{store}' cannot be opened"):
                await w.runs()

    asyncio.run(main())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_home_that_may_not_be_written_is_not_a_full_disk(tmp_path: Path, project: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    _refuses_home(project, tmp_path / "locked" / "home")


def test_a_home_that_cannot_be_a_folder_is_not_a_full_disk(tmp_path: Path, project: Path) -> None:
    (tmp_path / "file").write_text("")
    for home in (tmp_path / "file", tmp_path / "file" / "home", Path("/proc/nowhere/home")):
        _refuses_home(project, home)


def _refuses_home(project: Path, home: Path) -> None:
    async def main() -> None:
        async with stretto.Stretto(project, home=home) as w:
            with pytest.raises(stretto.StrettoError) as caught:
                await w.runs()
            assert not isinstance(caught.value, stretto.JournalFull)
            assert str(home.parent) in caught.value.message
            assert "STRETTO_HOME" in caught.value.hint

    asyncio.run(main())


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE songs (title TEXT)",),
        ("CREATE TABLE runs (id INTEGER)",),
        ("CREATE TABLE runs (id INTEGER)", "PRAGMA user_version = 4"),
        ("PRAGMA user_version = 4",),
        ("PRAGMA user_version = 99",),
    ],
)
def test_a_journal_of_another_version_or_program_is_told_and_left_alone(
    open_stretto: Open, tmp_path: Path, statements: tuple[str, ...]
) -> None:
    (tmp_path / "home").mkdir()
    file = tmp_path / "home" / "runs.db"
    db = sqlite3.connect(file)
    for statement in statements:
        db.execute(statement)
    before = list(db.iterdump())
    db.close()

    async def main() -> None:
        async with open_stretto() as w:
            with pytest.raises(stretto.StrettoError) as caught:
                await w.start(BRIEF, {"topic": "looms"})
            assert not isinstance(caught.value, stretto.JournalFull)
            assert str(file) in caught.value.message
            assert "version" in caught.value.message
            assert "move it away" in caught.value.hint

    asyncio.run(main())
    db = sqlite3.connect(file)
    assert list(db.iterdump()) == before
    db.close()


@pytest.mark.parametrize(
    "options",
    [
        {"environ": {"STRETTO_HOME": 3}},
        {"environ": {3: "x"}},
        {"environ": ["STRETTO_HOME"]},
        {"folder": 3},
        {"folder": b"x"},
        {"home": 3},
        {"home": ""},
        {"home": "\0"},
        {"home": "x" * 5000},
        {"home": "~no such user/x"},
        {"store": 3},
        {"environ": 0},
        {"agents": []},
        {"tools": [3]},
        {"tools": "ab"},
        {"model": 0},
        {"trust": "no"},
    ],
)
def test_an_option_of_another_type_is_named(options: dict[str, object]) -> None:
    (name,) = options
    with pytest.raises(stretto.InvalidUsage, match=name.removesuffix("s")):
        stretto.Stretto(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("folder", ["\0", "x" * 5000, "no/such/folder", __file__])
def test_a_folder_that_is_none_is_told_shortly(folder: str) -> None:
    with pytest.raises(stretto.NotFound, match="there is no folder") as caught:
        stretto.Stretto(folder)
    assert len(caught.value.message) < 300


WRONG: dict[str, Callable[[stretto.Stretto, str], object]] = {
    "model": lambda w, id: w.start(BRIEF, model=0),  # type: ignore[arg-type]
    "budget": lambda w, id: w.start(BRIEF, budget=0),  # type: ignore[arg-type]
    "budget['tokens'] must be a whole": lambda w, id: w.start(BRIEF, budget={"tokens": 1.5}),
    "status": lambda w, id: w.runs(status="done"),
    "workflow": lambda w, id: w.runs(workflow=3),  # type: ignore[arg-type]
    "budget['usd'] must": lambda w, id: w.start(BRIEF, budget={"usd": 10**400}),
    "budget['tokens'] must be a number": lambda w, id: w.start(BRIEF, budget={"tokens": 10**30}),
    "since must be": lambda w, id: w.runs(since=10**400),
    "timeout": lambda w, id: w.goals.set("g", "command:true", workflow="x", timeout=10**400),
    "settle_seconds": lambda w, id: w.triggers.add_folder(
        "f",
        "shout",
        ".",
        input="topic",
        settle_seconds="2",  # type: ignore[arg-type]
    ),
    "mapping": lambda w, id: w.triggers.add_webhook("h", "shout", mapping=["a"]),  # type: ignore[arg-type]
    "mapping must": lambda w, id: w.triggers.add_webhook("h", "shout", mapping={"a": 1}),  # type: ignore[dict-item]
    "since": lambda w, id: w.runs(since=float("nan")),
    "since must": lambda w, id: w.runs(since=datetime.min),
    "run_id": lambda w, id: w.open("\ud800").status(),
    "after": lambda w, id: anext(w.open(id).events(after=2**70)),
    "after must": lambda w, id: anext(w.open(id).events(after="x")),  # type: ignore[arg-type]
    "accepted": lambda w, id: w.open(id).resume(accepted=[1]),  # type: ignore[arg-type]
    "accepted must": lambda w, id: w.open(id).retry(accepted=3),  # type: ignore[arg-type]
    "from_step": lambda w, id: w.open(id).fork(None),  # type: ignore[arg-type]
    "resolved": lambda w, id: w.open(id).apply("a", resolved=3),  # type: ignore[arg-type]
    "resolved must": lambda w, id: w.open(id).apply("a", resolved="a.py"),
    "dry_run": lambda w, id: w.open(id).apply("a", dry_run="no"),  # type: ignore[arg-type]
    "key": lambda w, id: w.open(id).approve("a", key=3),  # type: ignore[arg-type]
    "reason": lambda w, id: w.open(id).cancel("\udfff"),
    "name": lambda w, id: w.playbooks.pin(3),  # type: ignore[arg-type]
    "path": lambda w, id: w.playbooks.add(3),  # type: ignore[arg-type]
    "limit": lambda w, id: w.playbooks.audit("x"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("says", WRONG)
def test_an_argument_of_another_type_is_named(open_stretto: Open, says: str) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            run = await w.start("name: one\nsteps: [{id: a, subagent: writer, prompt: go}]\n")
            await run.wait()
            with pytest.raises(stretto.InvalidUsage, match=re.escape(says)):
                await WRONG[says](w, run.id)  # type: ignore[misc]

    asyncio.run(main())


def test_a_limit_of_no_runs_gives_none(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            run = await w.start("name: one\nsteps: [{id: a, subagent: writer, prompt: go}]\n")
            await run.wait()
            assert await w.runs(limit=0) == await w.runs(workflow="one", limit=0) == []
            assert len(await w.runs(workflow="one", limit=1)) == 1
            assert len(await w.runs(since=float("-inf"))) == 1

    asyncio.run(main())


LOCKED = """
import asyncio, stretto
async def main(**options):
    try:
        async with stretto.Stretto(**options) as w:
            await w.start({recipe!r}, {{"topic": "looms"}})
    except stretto.StrettoError as error:
        print(type(error).__name__, error.message, error.hint)
for options in {options!r}:
    asyncio.run(main(**options))
"""


def test_a_home_and_a_folder_that_may_not_be_entered_are_named(tmp_path: Path) -> None:
    for name in ("locked", "folder"):
        (tmp_path / name).mkdir()
    (tmp_path / "locked").chmod(0)
    options = [
        {"folder": str(tmp_path / "folder"), "home": str(tmp_path / "locked" / "home")},
        {"folder": str(tmp_path / "folder"), "home": str(tmp_path / "locked")},
        {"folder": str(tmp_path / "locked"), "home": str(tmp_path / "home")},
        {"folder": str(tmp_path / "locked" / "in"), "home": str(tmp_path / "home")},
    ]
    program = [sys.executable, "-c", LOCKED.format(recipe=BRIEF, options=options)]
    if os.geteuid() == 0:  # root may enter every folder, as long as it has these rights
        program = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", *program]
    done = subprocess.run(program, capture_output=True, text=True)
    (tmp_path / "locked").chmod(0o700)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == len(options)
    for line in lines:
        assert str(tmp_path / "locked") in line
        assert "Permission denied" in line


@pytest.mark.parametrize("recipe", ["", "  ", Path()])
def test_no_recipe_at_all_is_told(open_stretto: Open, recipe: str | Path) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            for ask in (w.validate, w.plan, w.start):
                with pytest.raises(stretto.InvalidUsage, match="the recipe is empty"):
                    await ask(recipe)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("agent", "prompt"), [("writer", None), ("writer", 3), (None, "go"), ("writer", " ")]
)
def test_a_task_needs_an_agent_and_a_prompt(
    open_stretto: Open, agent: object, prompt: object
) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            with pytest.raises(stretto.InvalidUsage, match=r"^(agent|prompt) must"):
                await w.task(agent, prompt)  # type: ignore[arg-type]

    asyncio.run(main())


def test_a_working_folder_that_was_deleted_is_told(tmp_path: Path) -> None:
    code = f"""
import asyncio, os, stretto
os.mkdir({str(tmp_path / "gone")!r}); os.chdir({str(tmp_path / "gone")!r})
os.rmdir({str(tmp_path / "gone")!r})
try: stretto.Stretto()
except stretto.NotFound as error: print(error.message)
async def main():
    async with stretto.Stretto({str(tmp_path)!r}, home={str(tmp_path / "home")!r}) as w:
        print(await w.validate({BRIEF!r}))
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "the current folder does not exist any more\n()\n"


def test_a_relative_home_and_folder_are_those_of_where_the_stretto_was_made(
    tmp_path: Path, project: Path, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        monkeypatch.chdir(tmp_path)
        w = stretto.Stretto("project", home="home", model=scripted())
        monkeypatch.chdir(project)
        async with w:
            run = await w.start("name: a\nsteps: [{id: a, subagent: writer, prompt: Go.}]\n")
            assert await run.wait() == "complete"
        assert (tmp_path / "home" / "runs.db").is_file()

    asyncio.run(main())
