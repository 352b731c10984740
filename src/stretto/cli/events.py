"""`stretto events`: a run's journal, one JSON line an event."""

import asyncio

import click

from stretto.cli.left_off import say_why_left
from stretto.cli.options import json_option
from stretto.cli.project import open_project
from stretto.cli.streams import has_reader
from stretto.cli.terminal import print_json_text, say
from stretto.events.codec import UnknownEvent, encode_ascii
from stretto.events.model import RunEnded
from stretto.vocabulary.ids import RunId

_LOOK_SECONDS = 0.2


@click.command("events")
@click.argument("run")
@click.option("--follow", "-f", is_flag=True, help="Go on until the run ends.")
@click.option("--after", type=click.IntRange(0), default=0, help="Only events after this one.")
@json_option
def command(run: str, follow: bool, after: int, as_json: bool) -> int | None:
    """Print a run's journal, one JSON line an event.

    With --follow, until the run ends, or until nobody drives it: where a step awaits approval the
    exit code is 3, and 1 where the run was interrupted.
    """
    try:
        return asyncio.run(_print(RunId(run), follow, after))
    except KeyboardInterrupt:
        say(f"no longer followed; it goes on: stretto events {run} --follow", err=True)
        raise


async def _print(run_id: RunId, follow: bool, after: int) -> int | None:
    """None: all was printed that there is, or as much as anybody reads."""
    async with open_project().runs() as runs:
        # A run that is not there is an error, and one that has ended is not waited for.
        has_ended = (await runs.history(run_id)).state.is_recorded
        while True:
            # Asked first: whoever lets the run go has written all that there is to read.
            is_driven = await runs.is_driven(run_id)
            for stored in await runs.events(run_id, after):
                after = stored.seq
                if isinstance(stored.event, UnknownEvent):
                    say(f"event {stored.seq} {stored.event.reason}", err=True)
                    continue
                print_json_text(encode_ascii(stored.event))
                has_ended = has_ended or isinstance(stored.event, RunEnded)
            if has_ended or not follow or not has_reader():
                return None
            if not is_driven:
                return say_why_left((await runs.history(run_id)).state)
            await asyncio.sleep(_LOOK_SECONDS)
