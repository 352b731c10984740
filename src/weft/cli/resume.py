"""`weft resume`: runs that were cut off go on."""

import asyncio
import time

import click

from weft.assembly import Weft
from weft.cli.driving import drive
from weft.cli.opening import open_weft
from weft.cli.options import json_option, model_option
from weft.problems.errors import InvalidUsage, WeftError
from weft.run.history import History
from weft.run.runs import Runs, is_interrupted
from weft.vocabulary.ids import RunId


@click.command("resume")
@click.argument("run", required=False)
@model_option
@json_option
def command(run: str | None, model: str | None, as_json: bool) -> int:
    """Go on with a run that was cut off. Without a RUN: with every one, oldest first.

    What had ended is never run again; an attempt that was under way follows its step's recovery.
    """
    weft = open_weft()
    histories = asyncio.run(_find(weft, run))
    return max(_resume(weft, history, model, as_json) for history in histories)


def _resume(weft: Weft, history: History, model: str | None, as_json: bool) -> int:
    run_id = RunId(history.started.run_id)
    if not history.state.has_ended:
        weft.permit(history.state.plan)  # a run that may only read goes on with no writer
    return drive(
        weft,
        history.state.plan,
        weft.model(model) if model else history.started.model,
        as_json,
        lambda runs, runner, listener: runs.resume(run_id, runner, listener),
    )


async def _find(weft: Weft, run: str | None) -> list[History]:
    async with weft.runs() as runs:
        if run is not None:
            return [await runs.history(RunId(run))]
        rows = [row for row in await runs.recent(500) if is_interrupted(row, time.time())]
        found = await _readable(runs, [row.run_id for row in reversed(rows)])
        # Those that wait for a person were not cut off, and go on once one has decided.
        decided = await runs.addressed()
        cut_off = [h for h in found if not h.state.people or h.started.run_id in decided]
        if not cut_off:
            raise InvalidUsage("no run was cut off", hint="weft runs lists all of them")
        return cut_off


async def _readable(runs: Runs, run_ids: list[RunId]) -> list[History]:
    found = []
    for run_id in run_ids:
        try:
            found.append(await runs.history(run_id))
        except WeftError as error:
            click.echo(f"run {run_id} is left alone: {error.message}", err=True)
    return found
