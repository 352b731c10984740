"""Damage to the journal: it is told for what it is, and the other runs stay usable."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.background_runs import CHAIN, MODEL, run, stuck
from support.cli import stretto, write


@pytest.mark.parametrize("at", ["1e300", "-5", "99999999999999", '"soon"', "null"])
def test_a_row_with_a_strange_time_is_passed_over_with_a_word(tmp_path: Path, at: str) -> None:
    for _ in range(2):
        assert run(tmp_path, CHAIN).code == 0
    hurt, well = (row["run_id"] for row in stretto(tmp_path, "runs", "--json").json["runs"])
    with closing(sqlite3.connect(tmp_path / "home" / "runs.db")) as db, db:
        row = "SELECT rowid, event FROM events WHERE event LIKE '%attempt_succeeded%'"
        of = " AND run = (SELECT id FROM runs WHERE run_id = ?) LIMIT 1"
        ((number, event),) = db.execute(row + of, (hurt,)).fetchall()
        began, _, rest = event.partition('"at":')
        changed = f'{began}"at":{at},{rest.partition(",")[2]}'
        db.execute("UPDATE events SET event = ? WHERE rowid = ?", (changed, number))
        strange = float(at) if at[0] in "19-" else None
        if strange is not None:
            db.execute("UPDATE runs SET started_at = ? WHERE run_id = ?", (strange, hurt))
    for words in (
        ("runs",),
        ("runs", "--json"),
        ("report", hurt),
        ("events", hurt),
        ("report", well),
    ):
        said = stretto(tmp_path, *words)
        assert said.code == 0, (words, said)
        assert "Traceback" not in said.err
    assert "cannot be read" in stretto(tmp_path, "report", hurt).out
    assert "COMPLETE" in stretto(tmp_path, "report", well).out


def test_a_damaged_header_is_not_called_a_full_disk(tmp_path: Path) -> None:
    assert run(tmp_path, CHAIN).code == 0
    file = tmp_path / "home" / "runs.db"
    for beside in ("-wal", "-shm"):
        file.with_name(file.name + beside).unlink(missing_ok=True)
    content = file.read_bytes()
    file.write_bytes(b"not a database at all" + content[21:])
    said = stretto(tmp_path, "run", "recipe.yaml", "--model", "scripted:script.yaml", "--json")
    assert said.code != 0
    assert "journal_full" not in said.out
    assert "not a database" in said.out


def test_what_a_torn_wal_has_lost_is_said_wherever_the_run_is_looked_at(tmp_path: Path) -> None:
    assert run(tmp_path, CHAIN).code == 0
    with stuck(tmp_path) as (child, hurt):
        child.kill()
        child.wait()
    wal = tmp_path / "home" / "runs.db-wal"
    os.truncate(wal, wal.stat().st_size - 2_000)  # half a page: the last commit
    torn = wal.read_bytes()
    found = stretto(tmp_path, "doctor")
    assert f"run {hurt} has lost" in found.out
    assert f"run {hurt} has lost" in found.err, "it is announced when it is found"
    (kept,) = (tmp_path / "home").glob("runs.db.damaged-*")
    assert (kept / "runs.db-wal").read_bytes() == torn
    listed = stretto(tmp_path, "runs")
    assert f"run {hurt} has lost" in listed.err
    rows = stretto(tmp_path, "runs", "--json").json
    assert any(str(kept) in each for each in rows["warnings"])
    whole = next(row["run_id"] for row in rows["runs"] if row["run_id"] != hurt)
    assert f"run {hurt} has lost" in stretto(tmp_path, "report", hurt).out
    assert "has lost" not in stretto(tmp_path, "report", whole).out
    write(tmp_path, "script.yaml", "default: ok")
    again = stretto(tmp_path, "resume", hurt, *MODEL)
    assert again.code == 0, again
    assert "COMPLETE" in stretto(tmp_path, "report", hurt).out
