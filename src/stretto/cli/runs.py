"""`stretto runs`: list the runs and how each of them stands."""

import asyncio
import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from stretto.cli.foreground import OpenStretto
from stretto.cli.options import json_option
from stretto.cli.terminal import columns, print_json, say
from stretto.config.settings import find_project
from stretto.execution.runs import Runs
from stretto.ports.journal import Loss, RunRow
from stretto.problems.errors import InvalidUsage, StrettoError
from stretto.report.json_form import iso
from stretto.report.text import cost_of
from stretto.schedule.state import RunState
from stretto.schedule.status import run_word
from stretto.vocabulary.durations import format_duration, parse_duration
from stretto.vocabulary.usage import Usage

_MOST_ROWS = 10_000
# The id of a chat, and its end, which names it as well.
_ID, _END = re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{4}([0-9a-f]{6})\b"), r"…\1"
_COLOURS = {
    "complete": "green",
    "failed": "red",
    "partial": "yellow",
    "interrupted": "yellow",
    "waiting": "magenta",
    "running": "cyan",
}


@dataclass(frozen=True, slots=True)
class _Filter:
    statuses: tuple[str, ...]
    workflow: str | None
    since: float | None  # seconds before now
    project: Path | None
    text: str | None


_ALL = _Filter((), None, None, None, None)


@dataclass(frozen=True, slots=True)
class _Listed:
    row: RunRow
    status: str
    cost: str
    project: str
    trigger: str = ""


@click.command("runs")
@click.argument("text", required=False)
@click.option("--limit", type=click.IntRange(1, _MOST_ROWS), default=20, help="How many; 20.")
@click.option("--status", "statuses", multiple=True, metavar="STATUS", help="May be repeated.")
@click.option("--workflow", metavar="NAME", help="Only runs of this recipe.")
@click.option("--since", metavar="DURATION", help="Only runs of this last time, such as 2h or 7d.")
@click.option("--project", metavar="FOLDER", help="Only runs of a project; '.' is the one here.")
@json_option
def command(
    text: str | None,
    limit: int,
    statuses: tuple[str, ...],
    workflow: str | None,
    since: str | None,
    project: str | None,
    as_json: bool,
) -> None:
    """List the runs, newest first.

    With TEXT: only those whose id, recipe or inputs hold it.
    """
    wanted = _Filter(
        tuple(word.lower() for word in statuses),
        workflow,
        _read_since(since),
        find_project(Path(project)) if project else None,
        text.lower() if text else None,
    )
    rows, more, lost = asyncio.run(_rows(limit, wanted))
    if as_json:
        listed = [_as_json(each) for each in rows]
        told = [loss.told for loss in lost]
        print_json({"ok": True, "runs": listed, "more": more, "warnings": told})
        return
    for loss in lost:
        say(f"warning: {loss.told}", err=True)
    if not rows:
        is_filtered = wanted != _ALL
        say("no run is like that" if is_filtered else "no runs yet; stretto run NAME starts one")
        return
    _print_table(rows)
    if more:
        say(f"\n{more:,} more; --limit {limit + more} shows them")


def _print_table(rows: Sequence[_Listed]) -> None:
    head = ("RUN", "STATUS", "STARTED", "TOOK", "COST", "WORKFLOW")
    lines = columns([head, *(_cells(each) for each in rows)], has_head=True)
    say(lines[0])
    for each, line in zip(rows, lines[1:], strict=True):
        run, _, rest = line.partition(" ")
        say(rest, mark=run, colour=_COLOURS.get(each.status, ""))


def _read_since(written: str | None) -> float | None:
    if written is None:
        return None
    seconds = parse_duration(written)
    if seconds is None:
        raise InvalidUsage(f"--since {written} is no duration", hint="such as 30m, 2h or 7d")
    return seconds


async def _rows(limit: int, wanted: _Filter) -> tuple[list[_Listed], int, Sequence[Loss]]:
    """As many as are shown, and how many more there are."""
    async with OpenStretto() as stretto:
        runs, now = await stretto.engine.runs_of(), stretto.engine.now()
        found: list[_Listed] = []
        more = 0
        for row in await runs.recent(_MOST_ROWS):
            if wanted.workflow not in (None, row.workflow):
                continue
            if wanted.since is not None and row.started_at < now - wanted.since:
                continue
            if not await _began_like(runs, row, wanted):
                continue
            is_plain = not wanted.statuses or not runs.is_interrupted(row)
            if len(found) == limit and is_plain:
                more += not wanted.statuses or row.status in wanted.statuses
            elif (each := await read_run(runs, row, now, wanted)) is not None:
                more += len(found) == limit
                found += [each] if len(found) < limit else []
        return found, more, runs.losses()


async def _began_like(runs: Runs, row: RunRow, wanted: _Filter) -> bool:
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


async def read_run(runs: Runs, row: RunRow, now: float, wanted: _Filter = _ALL) -> _Listed | None:
    """None: it is not wanted."""
    if wanted.statuses and not runs.is_interrupted(row) and row.status not in wanted.statuses:
        return None
    try:
        history = await runs.history(row.run_id)
    except StrettoError:  # one journal that cannot be read must not hide the others
        is_wanted = not wanted.statuses
        status = "unreadable" if runs.is_interrupted(row) else row.status
        return _Listed(row, status, "?", "") if is_wanted else None
    status = row.status
    if runs.is_interrupted(row):
        status = run_word(history.state, is_driven=False, now=now)
    started = history.started
    if wanted.statuses and status not in wanted.statuses:
        return None
    cost = cost_of(history.state.usage, _uses(history.state))
    where, trigger = started.project or started.workspace, history.state.trigger
    return _Listed(row, status, cost, where, trigger)


def _uses(state: RunState) -> Iterator[tuple[str, Usage, bool]]:
    for step in state.order:
        for each in step.attempts:
            failure = each.failure.kind if each.failure else ""
            is_told = each.stage == "planned" or each.reused_from or failure not in ("", "timeout")
            is_priced = each.outcome == "succeeded" and each.usage.usd > 0
            yield each.model, each.usage, not (is_told or is_priced)


def _cells(each: _Listed) -> tuple[str, ...]:
    row = each.row
    took = "" if row.ended_at is None else format_duration(row.ended_at - row.started_at)
    trigger = f" ({_ID.sub(_END, each.trigger)})" if each.trigger else ""
    workflow = f"{row.workflow}{trigger}"
    cost = each.cost.replace("at least ", "≥ ")
    return (row.run_id, each.status, _when(row.started_at), took, cost, workflow)


def _when(at: float) -> str:
    """By the local clock, and how long ago where that says more."""
    try:
        local, seconds = time.localtime(at), time.time() - at
        if 0 <= seconds < 60:
            return f"{int(seconds)}s ago"
        if 0 <= seconds < 3600:
            return f"{int(seconds / 60)}m ago"
        if 0 <= seconds < 86_400:
            return f"{int(seconds / 3600)}h ago"
        return time.strftime("%Y-%m-%d %H:%M", local)
    except (ValueError, OverflowError, OSError):  # a damaged row must not hide the others
        return "?"


def _as_json(each: _Listed) -> dict[str, object]:
    row = each.row
    return {
        "run_id": row.run_id,
        "workflow": row.workflow,
        "status": each.status,
        "started_at": iso(row.started_at),
        "ended_at": iso(row.ended_at),
        "cost": each.cost,
        "project": each.project,
        "trigger": each.trigger or None,
    }
