"""The SQLite store where it meets the world: old files, torn rows, full disks, other processes."""

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from stretto.adapters.stores import sqlite_file, sqlite_writer
from stretto.adapters.stores.sqlite import LargeValues, SqliteJournal
from stretto.adapters.stores.sqlite_file import MIGRATIONS
from stretto.adapters.stores.sqlite_ledger import Ledger
from stretto.events.attempts import AttemptId, StepTimer
from stretto.events.codec import UnknownEvent, encode
from stretto.events.model import AttemptSucceeded, TimerFired
from stretto.ports.journal import Fenced, JournalFull, Leased
from stretto.problems.errors import StrettoError
from stretto.vocabulary.names import RunId, StepId

RUN = RunId("run-1")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "journal.db"


def told(path: Path, story: Callable[[SqliteJournal], Awaitable[None]]) -> None:
    async def whole() -> None:
        journal = await SqliteJournal.open(path)
        try:
            await story(journal)
        finally:
            await journal.close()

    asyncio.run(whole())


def fired(name: object) -> TimerFired:
    return TimerFired(1.0, StepTimer(str(name)))


def large(size: int) -> AttemptSucceeded:
    return AttemptSucceeded(1.0, AttemptId(StepId("a"), 1), "x" * size)


async def three_events(journal: SqliteJournal) -> None:
    fence = await journal.lease(RUN, "me", 60)
    await journal.append(RUN, [fired(1), fired(2), fired(3)], fence=fence)


def python(code: str, *arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


def test_what_was_written_is_there_when_the_file_is_opened_again(path: Path) -> None:
    told(path, three_events)

    async def again(journal: SqliteJournal) -> None:
        assert [one.event for one in await journal.read(RUN)] == [fired(1), fired(2), fired(3)]
        assert await journal.lease(RUN, "me", 60) == 2

    told(path, again)


def test_only_its_owner_may_read_the_file_and_its_directory(path: Path) -> None:
    async def look(journal: SqliteJournal) -> None:
        await three_events(journal)
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        names = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        (note,) = [name for name in names if name.startswith(f"{path.name}.acknowledged-")]
        files = (path.name, f"{path.name}-wal", f"{path.name}-shm", note)
        assert names == dict.fromkeys(files, 0o600)

    earlier = os.umask(0)
    try:
        told(path, look)
    finally:
        os.umask(earlier)


def test_the_file_is_as_durable_and_strict_as_it_must_be(path: Path) -> None:
    told(path, three_events)
    db = sqlite_file.open_for_writing(path)
    with closing(db):
        asked = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "user_version")
        answers = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in asked]
        assert answers == ["wal", 2, 1, 10_000, len(MIGRATIONS)]
        tables = db.execute("SELECT strict FROM pragma_table_list WHERE name IN ('runs', 'events')")
        assert tables.fetchall() == [(1,), (1,)]
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            db.execute("INSERT INTO events VALUES (99, 1, '')")


def test_an_older_file_is_brought_up_to_date(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told(path, three_events)
    newer = (*MIGRATIONS, "CREATE TABLE more (a TEXT) STRICT; INSERT INTO more VALUES ('here')")
    monkeypatch.setattr(sqlite_file, "MIGRATIONS", newer)

    async def look(journal: SqliteJournal) -> None:
        assert len(await journal.read(RUN)) == 3

    told(path, look)
    told(path, look)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT * FROM more").fetchall() == [("here",)]
        assert db.execute("PRAGMA user_version").fetchone() == (len(newer),)


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(path, three_events)
    monkeypatch.setattr(
        sqlite_file, "MIGRATIONS", (*MIGRATIONS, "CREATE TABLE more (a TEXT); NONSENSE")
    )
    with pytest.raises(JournalFull, match="NONSENSE"):
        told(path, three_events)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert db.execute("SELECT name FROM sqlite_schema WHERE name = 'more'").fetchall() == []


def test_a_file_of_a_newer_stretto_is_refused(path: Path) -> None:
    told(path, three_events)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StrettoError, match="newer Stretto"):
        told(path, three_events)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are my notes. " * 100)
    with pytest.raises(StrettoError, match="not a database"):
        told(path, three_events)
    assert path.read_text().startswith("These are my notes.")


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StrettoError, match="cannot be written"):
        told(tmp_path / "file" / "journal.db", three_events)


def test_a_path_that_is_a_directory_is_told_at_once(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(StrettoError, match="cannot be written"):
        told(tmp_path, three_events)
    assert time.monotonic() - begun < 9  # and not the 10 of a lock


def test_torn_foreign_and_newer_rows_are_read_as_unknown_events(path: Path) -> None:
    told(path, three_events)
    with closing(sqlite3.connect(path)) as db:
        damage = "UPDATE events SET event = CAST(? AS TEXT) WHERE seq = ?"
        db.execute(damage, (encode(fired(1))[:-9].encode(), 1))
        db.execute(damage, (b'{"type":"run_paused","at":1}', 2))
        db.execute(damage, (b'{"\xff\xfe', 3))
        db.commit()

    async def look(journal: SqliteJournal) -> None:
        events = [one.event for one in await journal.read(RUN)]
        reasons = [event.reason for event in events if isinstance(event, UnknownEvent)]
        assert [reason.split(":")[0] for reason in reasons] == [
            "is not JSON",
            "is no event that this Stretto knows",
            "is not JSON",
        ]
        fence = await journal.lease(RUN, "me", 60)
        await journal.append(RUN, [fired(4)], fence=fence)
        assert [one.seq for one in await journal.read(RUN)] == [1, 2, 3, 4]

    told(path, look)


def test_appends_that_wait_together_share_a_transaction(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = []
    commit = Ledger.commit

    def counted(ledger: Ledger) -> None:
        commits.append(1)
        commit(ledger)

    monkeypatch.setattr(Ledger, "commit", counted)

    async def many(journal: SqliteJournal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        commits.clear()
        await asyncio.gather(*(journal.append(RUN, [fired(n)], fence=fence) for n in range(500)))
        assert len(commits) < 50
        assert [one.event for one in await journal.read(RUN)] == [fired(n) for n in range(500)]

    told(path, many)


def test_when_the_file_may_not_grow_nothing_acknowledged_is_lost_and_nothing_is_halved(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = sqlite_writer.open_for_writing

    def open_small(path: Path) -> sqlite3.Connection:
        db = opened(path)
        db.execute("PRAGMA max_page_count = 60")
        return db

    monkeypatch.setattr(sqlite_writer, "open_for_writing", open_small)

    async def fill(journal: SqliteJournal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        appends = [
            journal.append(RUN, [fired(n), large(300_000 if n == 5 else 100)], fence=fence)
            for n in range(10)
        ]
        outcomes = await asyncio.gather(*appends, return_exceptions=True)
        assert [isinstance(outcome, JournalFull) for outcome in outcomes] == [
            n == 5 for n in range(10)
        ]
        stored = await journal.read(RUN)
        assert [one.seq for one in stored] == list(range(1, 19))
        fit = [n for n in range(10) if n != 5]
        assert [one.event for one in stored] == [e for n in fit for e in (fired(n), large(100))]
        with pytest.raises(JournalFull, match="full") as full:
            await journal.append(RUN, [fired("x"), large(300_000)], fence=fence)
        assert isinstance(full.value.__cause__, sqlite3.Error)
        await journal.append(RUN, [fired("y")], fence=fence)
        assert (await journal.read(RUN))[-1].event == fired("y")

    told(path, fill)


RUNS_OUT_OF_SPACE = """
import asyncio, resource, sys
from pathlib import Path
from stretto.adapters.stores.sqlite import SqliteJournal
from stretto.events.attempts import AttemptId
from stretto.events.model import AttemptSucceeded
from stretto.ports.journal import JournalFull

async def main():
    journal = await SqliteJournal.open(Path(sys.argv[1]))
    fence = await journal.lease("run-1", "me", 60)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
    acknowledged = 0
    while True:
        event = AttemptSucceeded(1.0, AttemptId("a", acknowledged + 1), "x" * 5000)
        try:
            await journal.append("run-1", [event], fence=fence)
        except JournalFull:
            break
        acknowledged += 1
    assert len(await journal.read("run-1")) == acknowledged
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await journal.append("run-1", [event], fence=fence)
    print(acknowledged + 1)
    await journal.close()

asyncio.run(main())
"""


def test_a_full_disk_refuses_and_goes_on_once_there_is_space(path: Path) -> None:
    said, _ = python(RUNS_OUT_OF_SPACE, path).communicate(timeout=60)
    acknowledged = int(said)
    assert acknowledged > 10

    async def look(journal: SqliteJournal) -> None:
        stored = await journal.read(RUN)
        attempts = [
            one.event.attempt.number for one in stored if isinstance(one.event, AttemptSucceeded)
        ]
        assert attempts == list(range(1, acknowledged + 1))

    told(path, look)


WRITES_UNTIL_KILLED = """
import asyncio, sys
from pathlib import Path
from stretto.adapters.stores.sqlite import SqliteJournal
from stretto.events.attempts import StepTimer
from stretto.events.model import TimerFired

async def main():
    journal = await SqliteJournal.open(Path(sys.argv[1]))
    async def write(number):
        run = f"run-{number}"
        fence = await journal.lease(run, "me", 60)
        count = 0
        while True:
            pair = [TimerFired(1.0, StepTimer(f"{count}.1")), TimerFired(1.0, StepTimer(f"{count}.2"))]
            await journal.append(run, pair, fence=fence)
            print(run, count, flush=True)
            count += 1
    await asyncio.gather(*(write(number) for number in range(10)))

asyncio.run(main())
"""


def test_killing_a_writer_loses_nothing_that_it_acknowledged(path: Path) -> None:
    writer = python(WRITES_UNTIL_KILLED, path)
    assert writer.stdout is not None
    lines = [writer.stdout.readline() for _ in range(500)]
    writer.send_signal(signal.SIGKILL)
    lines += writer.stdout.read().splitlines()  # by the same reader: it holds what it read ahead
    writer.communicate(timeout=60)
    acknowledged: dict[str, int] = {}
    for line in lines:
        match line.split():
            case [run, count] if count.isdigit():  # the last line may be torn
                acknowledged[run] = max(acknowledged.get(run, 0), int(count) + 1)

    async def look(journal: SqliteJournal) -> None:
        for run, count in acknowledged.items():
            stored = await journal.read(RunId(run))
            assert len(stored) >= 2 * count
            assert len(stored) % 2 == 0, "an append is written whole or not at all"
            pairs = [fired(f"{n}.{half}") for n in range(len(stored) // 2) for half in (1, 2)]
            assert [one.event for one in stored] == pairs

    assert len(acknowledged) == 10
    told(path, look)


DRIVES_UNTIL_FENCED = """
import asyncio, sys
from pathlib import Path
from stretto.adapters.stores.sqlite import SqliteJournal
from stretto.events.attempts import StepTimer
from stretto.events.model import TimerFired
from stretto.ports.journal import Fenced

async def main():
    journal = await SqliteJournal.open(Path(sys.argv[1]))
    fence = await journal.lease("run-1", "child", 0.5)
    written = 0
    try:
        while True:
            await journal.append("run-1", [TimerFired(1.0, StepTimer(f"child.{written}"))], fence=fence)
            written += 1
            if written == 5:
                print("driving", flush=True)
    except Fenced:
        print(written, flush=True)
    await journal.close()

asyncio.run(main())
"""


def test_a_process_whose_run_was_taken_over_is_fenced_in_the_middle_of_its_writing(
    path: Path,
) -> None:
    child = python(DRIVES_UNTIL_FENCED, path)
    assert child.stdout is not None
    assert child.stdout.readline() == "driving\n"

    async def take_over(journal: SqliteJournal) -> None:
        while True:
            try:
                fence = await journal.lease(RUN, "parent", 60)
                break
            except Leased:
                await asyncio.sleep(0.02)
        for n in range(50):
            await journal.append(RUN, [fired(f"parent.{n}")], fence=fence)
        said = await asyncio.to_thread(child.communicate, timeout=60)
        names = [one.event.timer.step for one in await journal.read(RUN)]  # type: ignore[union-attr]
        written = int(said[0])
        mine, theirs = [f"parent.{n}" for n in range(50)], [f"child.{n}" for n in range(written)]
        assert names == theirs + mine

    told(path, take_over)


OPENS_AND_WRITES = """
import asyncio, sys
from pathlib import Path
from stretto.adapters.stores.sqlite import SqliteJournal
from stretto.events.attempts import StepTimer
from stretto.events.model import TimerFired

async def main():
    print("ready", flush=True)
    sys.stdin.readline()
    journal = await SqliteJournal.open(Path(sys.argv[1]))
    fence = await journal.lease(sys.argv[2], "child", 60)
    for n in range(30):
        await journal.append(sys.argv[2], [TimerFired(1.0, StepTimer(str(n)))], fence=fence)
    await journal.close()

asyncio.run(main())
"""


def test_processes_may_make_one_file_together_and_write_side_by_side(path: Path) -> None:
    children = [python(OPENS_AND_WRITES, path, f"run-{n}") for n in range(4)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        child.communicate(timeout=60)
        assert child.returncode == 0

    async def look(journal: SqliteJournal) -> None:
        for n in range(4):
            stored = await journal.read(RunId(f"run-{n}"))
            assert [one.event for one in stored] == [fired(k) for k in range(30)]

    told(path, look)


def test_two_stores_in_one_process_fence_each_other(path: Path) -> None:
    async def story(mine: SqliteJournal) -> None:
        theirs = await SqliteJournal.open(path)
        try:
            old = await mine.lease(RUN, "mine", -1.0)  # it has run out already
            await mine.append(RUN, [fired(1)], fence=old)
            new = await theirs.lease(RUN, "theirs", 60)
            await theirs.append(RUN, [fired(2)], fence=new)
            with pytest.raises(Fenced):
                await mine.append(RUN, [fired(3)], fence=old)
            assert [one.event for one in await mine.read(RUN)] == [fired(1), fired(2)]
            await theirs.release(RUN, fence=new)
            again = await mine.lease(RUN, "mine", 60)
            await mine.append(RUN, [fired(4)], fence=again)
            assert [one.seq for one in await theirs.read(RUN)] == [1, 2, 3]
        finally:
            await theirs.close()

    told(path, story)


def test_while_another_process_holds_the_lock_the_loop_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "_LOCK_SECONDS", 1.0)

    async def story(journal: SqliteJournal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            begun = time.monotonic()
            appends = [
                asyncio.ensure_future(journal.append(RUN, [fired(n)], fence=fence))
                for n in range(60)
            ]
            turns = 0
            while not all(append.done() for append in appends):
                await asyncio.sleep(0.01)
                turns += 1
            # All of them waited for the lock together, not one after another.
            assert time.monotonic() - begun < 30
            assert turns > 5
            outcomes = await asyncio.gather(*appends, return_exceptions=True)
            assert all(isinstance(outcome, JournalFull) for outcome in outcomes)
            other.execute("ROLLBACK")
        await journal.append(RUN, [fired("after")], fence=fence)
        assert [one.event for one in await journal.read(RUN)] == [fired("after")]

    told(path, story)


def test_reading_does_not_wait_for_a_writer(path: Path) -> None:
    told(path, three_events)

    async def story(journal: SqliteJournal) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("DELETE FROM events")
            assert len(await journal.read(RUN)) == 3
            other.execute("ROLLBACK")

    told(path, story)


def test_a_name_that_is_no_text_fails_alone(path: Path) -> None:
    async def story(journal: SqliteJournal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        outcomes = await asyncio.gather(
            journal.append(RUN, [fired(1)], fence=fence),
            journal.append(RunId("\ud800"), [fired(2)], fence=1),
            journal.append(RUN, [fired(3)], fence=fence),
            return_exceptions=True,
        )
        assert outcomes[0] == {}
        assert outcomes[2] == {}
        assert isinstance(outcomes[1], UnicodeEncodeError)
        assert [one.event for one in await journal.read(RUN)] == [fired(1), fired(3)]

    told(path, story)


def test_closing_ends_the_thread_and_leaves_one_file(path: Path) -> None:
    told(path, three_events)
    assert [thread for thread in threading.enumerate() if thread.name == "stretto-journal"] == []
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_who_forgets_to_close_may_still_exit(path: Path) -> None:
    code = """if True:
        import asyncio, sys
        from pathlib import Path
        from stretto.adapters.stores.sqlite import SqliteJournal
        async def main():
            journal = await SqliteJournal.open(Path(sys.argv[1]))
            print(await journal.lease("run-1", "me", 60))
        asyncio.run(main())
        """
    said, _ = python(code, path).communicate(timeout=60)
    assert said == "1\n"


def test_an_answer_that_was_removed_with_its_run_is_not_reused_by_another(path: Path) -> None:
    large = AttemptSucceeded(1.0, AttemptId(StepId("a"), 1), "x" * 100_000)

    async def reuse() -> None:
        journal = await SqliteJournal.open(path)
        first, second = RunId("one"), RunId("two")
        fences = {id: await journal.lease(id, "me", 60) for id in (first, second)}
        await journal.append(first, [large], fence=fences[first])
        kept = (await journal.read(first))[-1].event
        await journal.forget(first, fence=fences[first])
        with pytest.raises(StrettoError, match="was removed with the run"):
            await journal.append(second, [kept], fence=fences[second])
        await journal.append(second, [large], fence=fences[second])
        assert len(await journal.read(second)) == 1
        await journal.close()

    asyncio.run(reuse())


def test_a_journal_that_is_gone_is_not_made_anew_by_who_reads_it(tmp_path: Path) -> None:
    with pytest.raises(StrettoError, match="is not there any more"):
        LargeValues(tmp_path / "gone.db")("digest")
    assert not (tmp_path / "gone.db").exists()
