"""`stretto cancel`: stop a run and keep what ended."""

import asyncio

import click

from stretto.cli.foreground import OpenStretto
from stretto.cli.options import json_option
from stretto.cli.terminal import print_json, say


@click.command("cancel")
@click.argument("run")
@click.option("--reason", default="", help="Kept in the journal.")
@json_option
def command(run: str, reason: str, as_json: bool) -> None:
    """Stop a run. What had ended is kept."""
    asyncio.run(_cancel(run, reason))
    if as_json:
        print_json({"ok": True, "run_id": run})
    else:
        say(f"asked run {run} to stop; stretto report {run} shows what it has done")


async def _cancel(run: str, reason: str) -> None:
    async with OpenStretto() as stretto:
        await stretto.open(run).cancel(reason)
