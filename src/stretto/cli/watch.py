"""`stretto watch`: a run that another process drives, as it goes."""

import asyncio
import sys

import click

from stretto.assembly.project import Project
from stretto.cli.foreground import print_report, showing
from stretto.cli.left_off import say_why_left
from stretto.cli.options import json_option
from stretto.cli.project import history_of, open_project
from stretto.cli.streams import has_reader
from stretto.cli.terminal import say
from stretto.events.codec import UnknownEvent
from stretto.execution.driver import Listener
from stretto.execution.history import History
from stretto.schedule.advance import advance
from stretto.schedule.state import RunState, begin
from stretto.vocabulary.ids import RunId

_LOOK_SECONDS = 0.2


@click.command("watch")
@click.argument("run")
@json_option
def command(run: str, as_json: bool) -> int:
    """Watch a run from its start until it ends, or until nobody drives it: where a step awaits
    approval the exit code is 3, and 1 where the run was interrupted.

    Ctrl-C stops watching, not the run.
    """
    project = open_project()
    history = history_of(project, run)
    try:
        with showing(history.state.plan, as_json, is_watching=True) as listener:
            state = asyncio.run(_watch(project, history, listener))
    except KeyboardInterrupt:
        say(f"\nno longer watched; it goes on: stretto watch {run}", err=True)
        raise
    print_report(state, as_json)
    sys.stdout.flush()
    return say_why_left(state) if has_reader() else 0


async def _watch(project: Project, history: History, listener: Listener) -> RunState:
    state = begin(history.state.plan)
    run_id = RunId(history.started.run_id)
    after = 0
    async with project.runs() as runs:
        while True:
            # Asked first: whoever lets the run go has written all that there is to read.
            is_driven = await runs.is_driven(run_id)
            for stored in await runs.events(run_id, after):
                after = stored.seq
                if not isinstance(stored.event, UnknownEvent):
                    advance(state, stored.event)
                    listener(stored.event, state)
            if state.has_ended or not is_driven or not has_reader():
                return state
            await asyncio.sleep(_LOOK_SECONDS)
