"""The store under many processes, and under processes that are killed while they write."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stretto.playbooks.store import PlaybookStore
from stretto.problems.errors import StrettoError
from support.playbooks import library, write_skill

WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from support.playbooks import library
from stretto.playbooks.curation import EmittedSkill, emit
folder, name = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
number = 0
while number < int(sys.argv[4]):
    number += 1
    words = " ".join(f"{name}{number}word{i}" for i in range(40))
    with library(folder) as opened:
        emit(opened, EmittedSkill(f"{name}-{number}", words, words))
        opened.count_use(["shared"])
    print(number, flush=True)
"""


def start_writer(folder: Path, name: str, times: int) -> subprocess.Popen[str]:
    tests = str(Path(__file__).parents[1])
    words = [sys.executable, "-c", WRITER, str(folder), name, tests, str(times)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def is_sound(folder: Path) -> None:
    db = sqlite3.connect(folder / "playbooks.db")
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    indexed = {id for (id,) in db.execute("SELECT rowid FROM words")}
    assert indexed == {id for (id,) in db.execute("SELECT id FROM playbooks WHERE fault = ''")}
    db.close()


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    write_skill(tmp_path, "shared", "What all of them use.")
    writers = [start_writer(tmp_path, name, 8) for name in ("ann", "bob", "cyd")]
    assert [writer.wait(timeout=300) for writer in writers] == [0, 0, 0]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.close()
    with library(tmp_path) as opened:
        names = {each.name for each in opened.playbooks()}
        assert {f"{name}-{n}" for name in ("ann", "bob", "cyd") for n in range(1, 9)} <= names
        assert opened.named("shared").uses == 24
    is_sound(tmp_path)


def test_a_killed_writer_leaves_all_that_it_had_written_and_no_half(tmp_path: Path) -> None:
    for round_ in range(4):
        writer = start_writer(tmp_path, f"round{round_}", 10_000)
        assert writer.stdout is not None
        told = 0
        for line in writer.stdout:
            told = int(line) if line.strip().isdigit() else 0
            if told == 3:
                break
        time.sleep(0.003 * round_)
        os.kill(writer.pid, signal.SIGKILL)
        rest = [int(line) for line in writer.stdout if line.strip().isdigit()]
        writer.wait()
        writer.stdout.close()
        acknowledged = max([told, *rest])
        with library(tmp_path) as opened:
            names = {each.name for each in opened.playbooks()}
            assert {f"round{round_}-{n}" for n in range(1, acknowledged + 1)} <= names
        is_sound(tmp_path)


def test_a_damaged_file_and_a_newer_one_are_refused_with_words(tmp_path: Path) -> None:
    file = tmp_path / "playbooks.db"
    file.write_bytes(b"no database at all, however long it may be" * 100)
    with pytest.raises(StrettoError, match="cannot be used") as caught:
        PlaybookStore.open(file)
    assert "keep a copy" in caught.value.hint
    file.unlink()
    PlaybookStore.open(file).close()
    db = sqlite3.connect(file)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StrettoError, match="newer Stretto"):
        PlaybookStore.open(file)


def test_the_file_is_for_its_user_alone(tmp_path: Path) -> None:
    PlaybookStore.open(tmp_path / "home" / "playbooks.db").close()
    assert (tmp_path / "home" / "playbooks.db").stat().st_mode & 0o077 == 0
    assert (tmp_path / "home").stat().st_mode & 0o077 == 0


def test_a_change_that_raises_changes_nothing(tmp_path: Path) -> None:
    write_skill(tmp_path, "bread", "How to bake.")
    with library(tmp_path) as opened:

        def break_off() -> None:
            with opened.store.change():
                opened.store.set(opened.named("bread").id, is_pinned=0)
                opened.store.set_away([opened.named("bread").id])
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            break_off()
        assert opened.named("bread").is_pinned
        assert [each.playbook.name for each in opened.search("bake")] == ["bread"]
