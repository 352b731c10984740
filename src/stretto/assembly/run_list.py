"""Recorded runs as lists show them. In: a RunFilter. Out: a RunPage, newest first."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.problems.errors import InvalidUsage, StrettoError
from stretto.report.text import cost_of
from stretto.schedule.status import run_word
from stretto.text.visible import one_line
from stretto.vocabulary.amounts import iso
from stretto.vocabulary.names import RunId

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stretto.assembly.engine import Engine
    from stretto.execution.runs import Runs
    from stretto.ports.journal import RunRow
    from stretto.schedule.state import RunState
    from stretto.vocabulary.amounts import Usage
    from stretto.vocabulary.json_value import Json

_MOST_ABOUT = 160
MOST_ROWS = 10_000  # that are looked through for one page
_ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class RunFilter:
    statuses: tuple[str, ...] = ()
    workflow: str | None = None
    since: float | None = None  # seconds since the epoch
    project: Path | None = None
    text: str | None = None  # in small letters; in the id, the recipe's name or the inputs


ALL_RUNS = RunFilter()


@dataclass(frozen=True, slots=True)
class ListedRun:
    row: "RunRow"
    status: str
    cost: str
    project: str
    owner: str = ""
    trigger: str = ""
    about: str = ""  # the first words of its inputs, by which people tell runs apart


@dataclass(frozen=True, slots=True)
class RunPage:
    runs: tuple[ListedRun, ...]
    next: RunId | None  # the next page begins after this run; None: this was the last


async def page_of_runs(
    engine: "Engine", wanted: RunFilter, limit: int, after: RunId | None = None
) -> RunPage:
    """Raises InvalidUsage where the run that the page begins after is not known any more."""
    runs, now = await engine.runs_of(), engine.now()
    if after is not None and not await runs.is_known(after):
        raise InvalidUsage(
            "the run that this page begins after is not there any more",
            hint="begin at the newest run again",
        )
    found: list[ListedRun] = []
    last: RunId | None = None
    seen = 0
    async for row in _rows(runs, after):
        if len(found) == limit or seen == MOST_ROWS:
            return RunPage(tuple(found), last)
        seen, last = seen + 1, row.run_id
        if is_candidate(row, wanted) and await began_like(runs, row, wanted):
            each = await read_run(runs, row, now, wanted, engine)
            found += [each] if each else []
        if wanted.since is not None and row.started_at < wanted.since:
            break  # all that follow began earlier still
    return RunPage(tuple(found), None)


async def _rows(runs: "Runs", after: RunId | None) -> "AsyncIterator[RunRow]":
    while True:
        rows = await runs.recent(_ROWS_AT_ONCE, before=after)
        for row in rows:
            yield row
        if len(rows) < _ROWS_AT_ONCE:
            return
        after = rows[-1].run_id


def is_candidate(row: "RunRow", wanted: RunFilter) -> bool:
    """As far as it can be told without the journal of the run."""
    if wanted.workflow not in (None, row.workflow):
        return False
    return wanted.since is None or row.started_at >= wanted.since


async def began_like(runs: "Runs", row: "RunRow", wanted: RunFilter) -> bool:
    """By its first event alone: a filter looks at thousands of runs."""
    if not (wanted.text or wanted.project):
        return True
    started = await runs.started(row.run_id)
    if started is None:
        return False
    if wanted.project and Path(started.project or started.workspace) != wanted.project:
        return False
    said = f"{row.run_id} {row.workflow} {json.dumps(started.inputs, ensure_ascii=False)}"
    return not wanted.text or wanted.text in said.lower()


async def read_run(
    runs: "Runs",
    row: "RunRow",
    now: float,
    wanted: RunFilter = ALL_RUNS,
    engine: "Engine | None" = None,
) -> ListedRun | None:
    """None: it is not wanted. `engine`: knows which turns of chats wait; None: there are no chats."""
    if wanted.statuses and not runs.is_interrupted(row) and row.status not in wanted.statuses:
        return None
    try:
        history = await runs.history(row.run_id)
    except StrettoError:  # one journal that cannot be read must not hide the others
        is_wanted = not wanted.statuses
        status = "unreadable" if runs.is_interrupted(row) else row.status
        return ListedRun(row, status, "?", "") if is_wanted else None
    status = row.status
    if runs.is_interrupted(row):
        status = run_word(history.state, is_driven=False, now=now)
        if engine is not None:
            status = await engine.word_of(row.run_id, row.workflow, status)
    started = history.started
    if wanted.statuses and status not in wanted.statuses:
        return None
    cost = cost_of(history.state.usage, _uses(history.state))
    place = started.project or started.workspace
    about = _about(started.inputs)
    return ListedRun(row, status, cost, place, started.owner, started.trigger, about)


def _about(inputs: "Mapping[str, Json]") -> str:
    """One input by its value, several with their names; tasks by what is to be done."""
    words = [(name, _words_of(value)[: 2 * _MOST_ABOUT]) for name, value in inputs.items()]
    parts = (
        [words[0][1]] if len(words) == 1 else [f"{name}: {said}" for name, said in words if said]
    )
    line = one_line(", ".join(parts))
    return line if len(line) <= _MOST_ABOUT else f"{line[: _MOST_ABOUT - 1]}…"


def _words_of(value: "Json") -> str:
    if isinstance(value, list):
        tasks = [str(each.get("prompt", "")) for each in value if isinstance(each, dict)]
        return " · ".join(filter(None, tasks)) or f"{len(value)} elements"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _uses(state: "RunState") -> "Iterator[tuple[str, Usage, bool]]":
    for step in state.order:
        for each in step.attempts:
            failure = each.failure.kind if each.failure else ""
            is_told = each.stage == "planned" or each.reused_from or failure not in ("", "timeout")
            is_priced = each.outcome == "succeeded" and each.usage.usd > 0
            yield each.model, each.usage, not (is_told or is_priced)


def run_as_json(each: ListedRun) -> dict[str, object]:
    row = each.row
    return {
        "run_id": row.run_id,
        "workflow": row.workflow,
        "status": each.status,
        "started_at": iso(row.started_at),
        "ended_at": iso(row.ended_at),
        "cost": each.cost,
        "project": each.project,
        "owner": each.owner or None,
        "trigger": each.trigger or None,
        "about": each.about,
    }
