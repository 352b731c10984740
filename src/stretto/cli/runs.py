"""`stretto runs`: list the runs and how each of them stands."""

import asyncio
import re
import time
from collections.abc import Sequence
from pathlib import Path

import click

from stretto.assembly.run_list import (
    ALL_RUNS,
    MOST_ROWS,
    ListedRun,
    RunFilter,
    began_like,
    is_candidate,
    read_run,
    run_as_json,
)
from stretto.cli.foreground import OpenStretto
from stretto.cli.options import json_option
from stretto.cli.terminal import columns, print_json, say
from stretto.config.settings import find_project
from stretto.ports.journal import Loss
from stretto.problems.errors import InvalidUsage
from stretto.text.short import did_you_mean
from stretto.vocabulary.amounts import format_duration, parse_duration
from stretto.vocabulary.statuses import RUN_WORDS

# The id of a chat, and its end, by which it can be named as well.
_ID, _END = re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{4}([0-9a-f]{6})\b"), r"…\1"
_COLOURS = {
    "complete": "green",
    "failed": "red",
    "partial": "yellow",
    "interrupted": "yellow",
    "waiting": "magenta",
    "running": "cyan",
}


@click.command("runs")
@click.argument("text", required=False)
@click.option(
    "--limit", type=click.IntRange(1, MOST_ROWS), default=20, help="How many runs; 20 by default."
)
@click.option(
    "--status",
    "statuses",
    multiple=True,
    metavar="STATUS",
    help="Only runs with this status; may be repeated.",
)
@click.option("--workflow", metavar="NAME", help="Only runs of this recipe.")
@click.option(
    "--since", metavar="DURATION", help="Only runs that began no longer ago, such as 2h or 7d."
)
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
    wanted = RunFilter(
        tuple(map(_read_status, statuses)),
        workflow,
        _read_since(since),
        find_project(Path(project)) if project else None,
        text.lower() if text else None,
    )
    rows, more, lost = asyncio.run(_rows(limit, wanted))
    if as_json:
        listed = [run_as_json(each) for each in rows]
        told = [loss.told for loss in lost]
        print_json({"ok": True, "runs": listed, "more": more, "warnings": told})
        return
    for loss in lost:
        say(f"warning: {loss.told}", err=True)
    if not rows:
        is_filtered = wanted != ALL_RUNS
        say("no run matches" if is_filtered else "no runs yet; stretto run NAME starts one")
        return
    _print_table(rows)
    if more:
        say(f"\n{more:,} more; --limit {limit + more} shows them")


def _print_table(rows: Sequence[ListedRun]) -> None:
    head = ("RUN", "STATUS", "STARTED", "TOOK", "COST", "WORKFLOW")
    lines = columns([head, *(_cells(each) for each in rows)], has_head=True)
    say(lines[0])
    for each, line in zip(rows, lines[1:], strict=True):
        run, _, rest = line.partition(" ")
        say(rest, mark=run, colour=_COLOURS.get(each.status, ""))


def _read_status(word: str) -> str:
    if word.lower() in RUN_WORDS:
        return word.lower()
    hint = did_you_mean(word, RUN_WORDS) or f"a run is {', '.join(RUN_WORDS)}"
    raise InvalidUsage(f"--status {word}: there is no such status", hint=hint)


def _read_since(written: str | None) -> float | None:
    if written is None:
        return None
    seconds = parse_duration(written)
    if seconds is None:
        raise InvalidUsage(f"--since {written} is no duration", hint="such as 30m, 2h or 7d")
    return time.time() - seconds


async def _rows(limit: int, wanted: RunFilter) -> tuple[list[ListedRun], int, Sequence[Loss]]:
    """The runs to show, how many more match, and what journals have lost."""
    async with OpenStretto() as stretto:
        runs, now = await stretto.engine.runs_of(), stretto.engine.now()
        found: list[ListedRun] = []
        more = 0
        for row in await runs.recent(MOST_ROWS):
            if not is_candidate(row, wanted):
                continue
            if not await began_like(runs, row, wanted):
                continue
            is_plain = not wanted.statuses or not runs.is_interrupted(row)
            if len(found) == limit and is_plain:
                more += not wanted.statuses or row.status in wanted.statuses
            elif (each := await read_run(runs, row, now, wanted, stretto.engine)) is not None:
                more += len(found) == limit
                found += [each] if len(found) < limit else []
        return found, more, runs.losses()


def _cells(each: ListedRun) -> tuple[str, ...]:
    row = each.row
    took = "" if row.ended_at is None else format_duration(row.ended_at - row.started_at)
    trigger = f" ({_ID.sub(_END, each.trigger)})" if each.trigger else ""
    workflow = f"{row.workflow}{trigger}"
    cost = each.cost.replace("at least ", "≥ ")
    return (row.run_id, each.status, _when(row.started_at), took, cost, workflow)


def _when(at: float) -> str:
    """How long ago if that is less than a day, else the local date and time."""
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
