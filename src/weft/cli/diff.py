"""`weft diff RUN RUN`: what differed, step by step."""

import asyncio

import click

from weft.cli.opening import open_weft
from weft.cli.options import json_option
from weft.cli.printing import print_json
from weft.report.difference import difference, difference_as_json, difference_as_text
from weft.run.history import History
from weft.vocabulary.ids import RunId


@click.command("diff")
@click.argument("one")
@click.argument("other")
@json_option
def command(one: str, other: str, as_json: bool) -> None:
    """Show what differed between two runs, step by step."""
    first, second = asyncio.run(_load(RunId(one), RunId(other)))
    found = difference(first.state, second.state)
    if as_json:
        print_json(difference_as_json(found))
    else:
        click.echo(difference_as_text(found))


async def _load(one: RunId, other: RunId) -> tuple[History, History]:
    async with open_weft().runs() as runs:
        return await runs.history(one), await runs.history(other)
