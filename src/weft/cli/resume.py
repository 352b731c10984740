"""`weft resume`: a run that was cut off goes on."""

import asyncio
import time

import click

from weft.assembly import Weft
from weft.cli.driving import drive
from weft.cli.options import json_option, model_option
from weft.plan.model import Plan
from weft.problems.errors import InvalidUsage
from weft.run.runs import is_interrupted
from weft.vocabulary.ids import RunId
from weft.vocabulary.names import listed


@click.command("resume")
@click.argument("run", required=False)
@model_option
@json_option
def command(run: str | None, model: str | None, as_json: bool) -> int:
    """Go on with a run that was cut off. Without a RUN, with the only one there is.

    What had ended is never run again; an attempt that was under way follows its step's recovery.
    """
    weft = Weft()
    run_id, plan = asyncio.run(_find(weft, run))
    runner = weft.runner(model)
    return drive(weft, plan, as_json, lambda runs, listener: runs.resume(run_id, runner, listener))


async def _find(weft: Weft, run: str | None) -> tuple[RunId, Plan]:
    async with weft.runs() as runs:
        if run is None:
            rows = [row for row in await runs.recent(500) if is_interrupted(row, time.time())]
            if not rows:
                raise InvalidUsage("no run was cut off", hint="weft runs lists all of them")
            if len(rows) > 1:
                names = listed([row.run_id for row in rows])
                raise InvalidUsage("several runs were cut off; name one", hint=names)
            run = rows[0].run_id
        history = await runs.history(RunId(run))
        return RunId(run), history.state.plan
