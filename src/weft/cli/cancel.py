"""`weft cancel`: stop a run and keep what ended."""

import asyncio

import click

from weft.cli.opening import open_weft
from weft.cli.options import json_option
from weft.cli.printing import print_json, say
from weft.vocabulary.ids import RunId


@click.command("cancel")
@click.argument("run")
@click.option("--reason", default="", help="Kept in the journal.")
@json_option
def command(run: str, reason: str, as_json: bool) -> None:
    """Stop a run. What had ended is kept."""
    asyncio.run(_cancel(RunId(run), reason))
    if as_json:
        print_json({"ok": True, "run_id": run})
    else:
        say(f"asked {run} to stop; weft report {run} shows what it had done")


async def _cancel(run_id: RunId, reason: str) -> None:
    async with open_weft().runs() as runs:
        await runs.cancel(run_id, reason)
