"""Which finished runs go: beyond a number, beyond an age, and never one that may go on."""

from stretto.execution.retention import find_expired
from stretto.ports.journal import RunRow
from stretto.vocabulary.amounts import KEEP_ALL, Retention
from stretto.vocabulary.names import RunId

DAY = 86_400.0


def row(id: str, ended_at: float | None, status: str = "complete") -> RunRow:
    return RunRow(RunId(id), "news", status, 0.0, ended_at)


# Newest first, as the store lists them.
ROWS = [
    row("running", None, "running"),
    row("today", 10 * DAY),
    row("waiting", None, "waiting"),
    row("yesterday", 9 * DAY, "failed"),
    row("interrupted", None, "running"),
    row("long ago", 1 * DAY, "cancelled"),
]


def gone(retention: Retention) -> list[str]:
    return [each.run_id for each in find_expired(ROWS, retention, now=10 * DAY + 1)]


def test_without_bounds_nothing_goes() -> None:
    assert gone(KEEP_ALL) == []


def test_beyond_the_number_of_finished_runs() -> None:
    assert gone(Retention(runs=3)) == []
    assert gone(Retention(runs=2)) == ["long ago"]
    assert gone(Retention(runs=0)) == ["today", "yesterday", "long ago"]


def test_beyond_the_age_since_their_end() -> None:
    assert gone(Retention(age_seconds=2 * DAY)) == ["long ago"]
    assert gone(Retention(age_seconds=100 * DAY)) == []


def test_beyond_either() -> None:
    assert gone(Retention(runs=1, age_seconds=100 * DAY)) == ["yesterday", "long ago"]
    assert gone(Retention(runs=3, age_seconds=DAY / 2)) == ["yesterday", "long ago"]
