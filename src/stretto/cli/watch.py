"""`stretto watch`: a run that another process drives, as it goes."""

import asyncio

import click

from stretto.assembly.surface import SurfaceRun
from stretto.cli.foreground import (
    INTERRUPTED,
    OpenStretto,
    explain_left,
    open_progress,
    print_end,
)
from stretto.cli.handles import find_run
from stretto.cli.options import json_option
from stretto.cli.result import ResultOptions
from stretto.cli.streams import Terminated, has_reader
from stretto.cli.terminal import say
from stretto.events.codec import UnknownEvent
from stretto.execution.history import fold
from stretto.schedule.advance import advance
from stretto.schedule.state import RunState
from stretto.vocabulary.names import RunId


@click.command("watch")
@click.argument("run", required=False)
@json_option
def command(run: str | None, as_json: bool) -> int:
    """Watch a run from its start until it ends, or until no process drives it.

    The exit code is that of the run; 3 where a step awaits approval, 1 where the run was interrupted.

    Ctrl-C stops watching, not the run.
    """
    watched: list[RunId] = []
    try:
        return asyncio.run(_watch(run, as_json, watched))
    except KeyboardInterrupt as error:
        for run_id in watched:
            say(f"\nno longer watched; the run continues: stretto watch {run_id}", err=True)
        if isinstance(error, Terminated) or not watched:
            raise
        return INTERRUPTED


async def _watch(handle: str | None, as_json: bool, watched: list[RunId]) -> int:
    """`watched`: gets the id of the run, once it is known."""
    async with OpenStretto() as stretto:
        run_id = await find_run(stretto, handle, as_json)
        watched.append(run_id)
        result = ResultOptions(as_json)
        state = await _follow(stretto, stretto.open(run_id), result)
        await print_end(stretto, state, result)
        return await explain_left(stretto, state, has_summary=True) if has_reader() else 0


async def _follow(stretto: OpenStretto, run: SurfaceRun, result: ResultOptions) -> RunState:
    """Show the run as it goes. Returns the state in which it was left."""
    rows = run.rows()
    first = await anext(rows)
    state = fold([first], RunId(run.id)).state
    with open_progress(state.plan, result, stretto.engine.now, is_watching=True) as listener:
        if not isinstance(first.event, UnknownEvent):
            listener(first.event, state)
        async for row in rows:
            if not isinstance(row.event, UnknownEvent):
                advance(state, row.event)
                listener(row.event, state)
            if not has_reader():
                break
    return state
