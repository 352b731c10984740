"""`stretto runs`: list the runs and how each of them stands."""

import asyncio
import time
from collections.abc import Sequence

import click

from stretto.cli.foreground import OpenStretto
from stretto.cli.options import json_option
from stretto.cli.terminal import columns, print_json, say
from stretto.execution.runs import Runs
from stretto.ports.journal import Loss, RunRow
from stretto.problems.errors import StrettoError
from stretto.report.json_form import iso
from stretto.schedule.status import run_word
from stretto.vocabulary.durations import format_duration


@click.command("runs")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, help="How many; 20.")
@json_option
def command(limit: int, as_json: bool) -> None:
    """List the runs, newest first."""
    rows, lost = asyncio.run(_rows(limit))
    if as_json:
        listed = [_as_json(row, status) for row, status in rows]
        print_json({"ok": True, "runs": listed, "warnings": [loss.told for loss in lost]})
        return
    for loss in lost:
        say(f"warning: {loss.told}", err=True)
    if not rows:
        say("no runs yet; stretto run NAME starts one")
        return
    table: list[tuple[str, ...]] = [("RUN", "WORKFLOW", "STATUS", "STARTED", "TOOK")]
    table += [_cells(row, status) for row, status in rows]
    say("\n".join(columns(table)))


async def _rows(limit: int) -> tuple[list[tuple[RunRow, str]], Sequence[Loss]]:
    async with OpenStretto() as stretto:
        runs, now = await stretto.engine.runs_of(), stretto.engine.now()
        rows = [(row, await status_of(runs, row, now)) for row in await runs.recent(limit)]
        return rows, runs.losses()


async def status_of(runs: Runs, row: RunRow, now: float) -> str:
    if not runs.is_interrupted(row):
        return row.status
    try:
        state = (await runs.history(row.run_id)).state
    except StrettoError:  # one journal that cannot be read must not hide the others
        return "unreadable"
    return run_word(state, is_driven=False, now=now)


def _cells(row: RunRow, status: str) -> tuple[str, ...]:
    started = _local(row.started_at)
    took = "" if row.ended_at is None else format_duration(row.ended_at - row.started_at)
    return (row.run_id, row.workflow, status, started, took)


def _local(at: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
    except (ValueError, OverflowError, OSError):  # a damaged row must not hide the others
        return "?"


def _as_json(row: RunRow, status: str) -> dict[str, object]:
    return {
        "run_id": row.run_id,
        "workflow": row.workflow,
        "status": status,
        "started_at": iso(row.started_at),
        "ended_at": iso(row.ended_at),
    }
