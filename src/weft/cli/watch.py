"""`weft watch`: a run that another process drives, as it goes."""

import asyncio
import sys

import click

from weft.assembly import Weft
from weft.cli.driving import print_report, showing
from weft.cli.left_off import say_why_left
from weft.cli.opening import history_of, open_weft
from weft.cli.options import json_option
from weft.cli.printing import say
from weft.cli.streams import has_reader
from weft.events.codec import UnknownEvent
from weft.events.model import Event
from weft.run.driver import Listener
from weft.run.history import History
from weft.schedule.advance import advance
from weft.schedule.state import RunState, begin
from weft.vocabulary.ids import RunId

_LOOK_SECONDS = 0.2


@click.command("watch")
@click.argument("run")
@json_option
def command(run: str, as_json: bool) -> int:
    """Watch a run from its start until it ends, or until nobody drives it: where a step awaits
    approval the exit code is 3, and 1 where the run was interrupted.

    Ctrl-C stops watching, not the run.
    """
    weft = open_weft()
    history = history_of(weft, run)
    try:
        with showing(history.state.plan, as_json, is_watching=True) as listener:
            state, events = asyncio.run(_watch(weft, history, listener))
    except KeyboardInterrupt:
        say(f"\nno longer watched; it goes on: weft watch {run}", err=True)
        raise
    print_report(state, events, as_json)
    sys.stdout.flush()
    return say_why_left(state) if has_reader() else 0


async def _watch(weft: Weft, history: History, listener: Listener) -> tuple[RunState, list[Event]]:
    state = begin(history.state.plan)
    run_id = RunId(history.started.run_id)
    seen: list[Event] = []
    after = 0
    async with weft.runs() as runs:
        while True:
            # Asked first: whoever lets the run go has written all that there is to read.
            is_driven = await runs.is_driven(run_id)
            for stored in await runs.events(run_id, after):
                after = stored.seq
                if not isinstance(stored.event, UnknownEvent):
                    seen.append(stored.event)
                    advance(state, stored.event)
                    listener(stored.event, state)
            if state.has_ended or not is_driven or not has_reader():
                return state, seen
            await asyncio.sleep(_LOOK_SECONDS)
