"""`stretto cancel`: stop a run and keep what ended."""

import asyncio

import click

from stretto.cli.foreground import OpenStretto
from stretto.cli.handles import find_unended
from stretto.cli.options import json_option
from stretto.cli.terminal import print_json, say


@click.command("cancel")
@click.argument("run", required=False)
@click.option("--reason", default="", help="Why; kept in the journal.")
@json_option
def command(run: str | None, reason: str, as_json: bool) -> None:
    """Stop a run. What had ended is kept.

    Without a RUN: the only one that has not ended.
    """
    run_id = asyncio.run(_cancel(run, reason, as_json))
    if as_json:
        print_json({"ok": True, "run_id": run_id})
    else:
        say(f"asked run {run_id} to stop")
        say(f"  stretto report {run_id}  shows what it has done")


async def _cancel(run: str | None, reason: str, as_json: bool) -> str:
    async with OpenStretto() as stretto:
        run_id = await find_unended(stretto, run, as_json)
        await stretto.open(run_id).cancel(reason)
        return run_id
