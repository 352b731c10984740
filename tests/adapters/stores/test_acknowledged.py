"""Events that were acknowledged and are gone: said, counted, and the files kept as they were."""

import asyncio
import logging
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stretto.adapters.stores.acknowledged import check, losses
from stretto.adapters.stores.sqlite import SqliteJournal
from stretto.events.attempts import StepTimer
from stretto.events.model import TimerFired
from stretto.ports.journal import Loss
from stretto.problems.errors import StrettoError
from stretto.vocabulary.names import RunId

# Appends to its runs, prints how far each has come, and waits to be killed before SQLite takes the WAL
# into the database: then a damaged WAL would lose nothing.
WRITER = """
import asyncio, sys
from pathlib import Path
from stretto.adapters.stores.sqlite import SqliteJournal
from stretto.events.attempts import StepTimer
from stretto.events.model import TimerFired

async def main(path, runs):
    journal = await SqliteJournal.open(Path(path))
    fences = {run: await journal.lease(run, f"{run}-me", 60) for run in runs}
    for number in range(1, 101):
        async def one(run):
            await journal.append(run, [TimerFired(1.0, StepTimer("x" * 700))], fence=fences[run])
            sys.stdout.write(f"{run} {number}\\n")
            sys.stdout.flush()
        await asyncio.gather(*map(one, runs))
    await asyncio.Event().wait()

asyncio.run(main(sys.argv[1], sys.argv[2:]))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "runs.db"


def killed_writer(path: Path, *runs: str, events: int = 40) -> dict[str, int]:
    """How many events of each run were acknowledged before the process was killed."""
    command = [sys.executable, "-c", WRITER, str(path), *runs]
    seen: dict[str, int] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if not line.endswith("\n"):
                break  # the process was killed while it wrote this line
            run, number = line.split()
            seen[run] = int(number)
            if min(seen.values()) >= events and len(seen) == len(runs):
                writer.send_signal(signal.SIGKILL)
    return seen


def opened(path: Path, *runs: str) -> tuple[list[Loss], dict[str, int]]:
    """What the journal says that it lost, and how many events it has of each run."""

    async def look() -> tuple[list[Loss], dict[str, int]]:
        journal = await SqliteJournal.open(path)
        try:
            held = {run: len(await journal.read(RunId(run))) for run in runs}
            return list(journal.losses()), held
        finally:
            await journal.close()

    return asyncio.run(look())


def wal_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def cut(path: Path) -> None:
    os.truncate(wal_of(path), wal_of(path).stat().st_size // 2)


def flip(path: Path) -> None:
    with open(wal_of(path), "r+b") as wal:
        wal.seek(wal_of(path).stat().st_size // 2)
        was = wal.read(1)
        wal.seek(-1, os.SEEK_CUR)
        wal.write(bytes([was[0] ^ 0xFF]))


def empty(path: Path) -> None:
    os.truncate(wal_of(path), 0)


def remove(path: Path) -> None:
    wal_of(path).unlink()


def lose_all(path: Path) -> None:
    for file in (path, wal_of(path), path.with_name(path.name + "-shm")):
        file.unlink()


@pytest.mark.parametrize("damage", [cut, flip, empty, remove, lose_all])
def test_what_a_damaged_wal_has_lost_is_said_and_its_files_are_kept(
    path: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    killed_writer(path, "a", "b")
    damage(path)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    with caplog.at_level(logging.WARNING, "stretto.journal"):
        lost, held = opened(path, "a", "b")
    assert {loss.run_id for loss in lost} == {"a", "b"}
    for loss in lost:
        assert loss.acknowledged >= 40
        assert loss.held == held[loss.run_id] < loss.acknowledged
        assert loss.told in caplog.text
    folder = Path(lost[0].kept)
    names = [name for name in before if "-shm" not in name]  # readers write to that one
    assert {name: (folder / name).read_bytes() for name in names} == {
        name: before[name] for name in names
    }
    caplog.clear()
    again, _ = opened(path)
    assert again == lost, "it is told as long as the files are kept"
    assert not caplog.text, "and announced once"


def test_a_journal_that_has_lost_events_can_be_used(path: Path) -> None:
    killed_writer(path, "a")
    remove(path)

    async def use() -> None:
        journal = await SqliteJournal.open(path)
        fence = await journal.lease(RunId("new"), "me", 60)
        await journal.append(RunId("new"), [TimerFired(1.0, StepTimer("t"))], fence=fence)
        await journal.close()

    asyncio.run(use())
    lost, held = opened(path, "new")
    assert [loss.run_id for loss in lost] == ["a"]
    assert held == {"new": 1}


def test_only_runs_that_lack_events_are_named(path: Path) -> None:
    async def one() -> None:
        journal = await SqliteJournal.open(path)
        fence = await journal.lease(RunId("whole"), "me", 60)
        await journal.append(RunId("whole"), [TimerFired(1.0, StepTimer("t"))], fence=fence)
        await journal.close()

    asyncio.run(one())
    killed_writer(path, "torn")
    remove(path)
    lost, held = opened(path, "whole")
    assert [loss.run_id for loss in lost] == ["torn"]
    assert held == {"whole": 1}


def test_kills_at_random_moments_raise_no_alarm_and_lose_nothing(path: Path) -> None:
    luck = random.Random(7)
    for turn in range(20):
        runs = [f"r{turn}-{n}" for n in range(luck.randint(1, 12))]
        seen = killed_writer(path, *runs, events=luck.randint(1, 6))
        lost, held = opened(path, *runs)
        assert lost == []
        assert all(held[run] >= seen[run] for run in runs)


def test_many_processes_on_one_journal_raise_no_alarm(path: Path) -> None:
    opened(path)
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [
        subprocess.Popen([*command, f"p{n}"], stdout=subprocess.PIPE, text=True) for n in range(3)
    ]
    for number, writer in enumerate(writers):
        assert writer.stdout is not None
        while int(writer.stdout.readline().split()[1]) < 5 + number:
            pass
        assert opened(path)[0] == [], "while others write"
        writer.kill()
        writer.communicate()
    assert opened(path)[0] == []


def test_a_process_that_writes_many_runs_notes_only_those_that_a_wal_can_lose(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stretto.adapters.stores.acknowledged._MOST_SLOTS", 50)
    crashed = tmp_path / "crashed"

    async def use() -> None:
        journal = await SqliteJournal.open(path)
        sizes = []
        for number in range(520):
            run = RunId(f"run-{number}")
            fence = await journal.lease(run, "me", 60)
            await journal.append(run, [TimerFired(1.0, StepTimer("t"))], fence=fence)
            (note,) = path.parent.glob("*.acknowledged-*")
            sizes.append(note.stat().st_size)
        assert max(sizes) <= 64 * 60
        shutil.copytree(path.parent, crashed)
        await journal.close()

    asyncio.run(use())
    damaged = tmp_path / "damaged"
    shutil.copytree(crashed, damaged)
    assert opened(crashed / path.name)[0] == []
    remove(damaged / path.name)
    lost = {loss.run_id for loss in opened(damaged / path.name)[0]}
    assert lost  # what came after the database took the WAL in
    assert lost < {f"run-{number}" for number in range(460, 520)}


def test_nothing_is_left_beside_a_journal_that_was_closed(path: Path) -> None:
    killed_writer(path, "a")
    assert len([file for file in path.parent.iterdir() if ".ack" in file.name]) == 1
    opened(path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_note_that_is_behind_or_cut_off_raises_no_alarm(path: Path) -> None:
    killed_writer(path, "a", "b")
    (note,) = (file for file in path.parent.iterdir() if ".ack" in file.name)
    os.truncate(note, 100)  # as after a power cut: the second slot is half there
    with open(note, "r+b") as file:
        file.write((3).to_bytes(8, "little"))
    assert opened(path)[0] == []


def test_a_copy_that_cannot_be_kept_stops_whoever_would_write(path: Path) -> None:
    killed_writer(path, "a")
    cut(path)
    whole = wal_of(path).read_bytes()
    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, was[1]))
    try:
        with pytest.raises(
            StrettoError, match="has lost events of a, and no copy of it can be kept"
        ):
            check(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, was)
    assert wal_of(path).read_bytes() == whole
    assert losses(path) == ()
    assert [loss.run_id for loss in opened(path)[0]] == ["a"]


def test_a_run_that_was_removed_is_not_missed(path: Path) -> None:
    killed_writer(path, "run-1", "run-2")

    async def forget() -> None:
        journal = await SqliteJournal.open(path)
        fence = await journal.lease(RunId("run-1"), "run-1-me", 60)
        await journal.forget(RunId("run-1"), fence=fence)
        # Killed here: nothing is tidied up, and the notes of both processes stay.
        os._exit(0)

    if (child := os.fork()) == 0:
        asyncio.run(forget())
    assert os.waitpid(child, 0)[1] == 0
    assert list(path.parent.glob("*.acknowledged-*"))
    found, held = opened(path, "run-1", "run-2")
    assert found == []
    assert held["run-1"] == 0
    assert held["run-2"] > 0
