"""`stretto events`: a run's journal, one JSON line an event."""

import asyncio

import click

from stretto.cli.foreground import OpenStretto, explain_left
from stretto.cli.handles import LAST, find_run
from stretto.cli.options import json_option
from stretto.cli.streams import has_reader
from stretto.cli.terminal import print_json_text, say
from stretto.events.codec import UnknownEvent, encode_ascii


@click.command("events")
@click.argument("run", required=False)
@click.option("--follow", "-f", is_flag=True, help="Go on until the run ends.")
@click.option("--after", type=click.IntRange(0), default=0, help="Only events after this one.")
@json_option
def command(run: str | None, follow: bool, after: int, as_json: bool) -> int | None:
    """Print a run's journal, one JSON line an event.

    With --follow, until the run ends or no process drives it. The exit code is then that of
    the run; 3 where a step awaits approval, 1 where the run was interrupted.
    """
    try:
        return asyncio.run(_print(run, follow, after, as_json))
    except KeyboardInterrupt:
        say(
            f"no longer followed; the run continues: stretto events {run or LAST} --follow",
            err=True,
        )
        raise


async def _print(handle: str | None, follow: bool, after: int, as_json: bool) -> int | None:
    """None: all was printed that there is, or as much as anybody reads."""
    async with OpenStretto() as stretto:
        run = stretto.open(await find_run(stretto, handle, as_json))
        async for row in run.rows(after=after, is_followed=follow):
            if isinstance(row.event, UnknownEvent):
                say(f"event {row.seq} {row.event.reason}", err=True)
                continue
            print_json_text(encode_ascii(row.event))
            if not has_reader():
                return None
        # 0 becomes None, the code of a command that only prints: printing may have failed.
        return (await explain_left(stretto, await run.state()) or None) if follow else None
