"""`stretto diff RUN STEP`: what an isolated writer changed. `stretto diff RUN RUN`: what differed."""

import asyncio

import click

from stretto.assembly.json_forms import change_as_json
from stretto.assembly.project import Project
from stretto.cli.foreground import OpenStretto
from stretto.cli.handles import find_run
from stretto.cli.options import json_option, run_before
from stretto.cli.terminal import print_bytes, print_json, say
from stretto.execution.history import History
from stretto.problems.errors import NotFound
from stretto.report.difference import difference, difference_as_json, difference_as_text
from stretto.text.short import listed


@click.command("diff")
@run_before("STEP|RUN")
@click.argument("other", metavar="STEP|RUN", required=False)
@json_option
def command(run: str, other: str | None, as_json: bool) -> None:
    """Show what a step changed, as a patch; or what differed between two runs, step by step."""
    handle, named = (None, run) if other is None else (run, other)
    asyncio.run(_diff(handle, named, as_json))


async def _diff(handle: str | None, other: str, as_json: bool) -> None:
    async with OpenStretto() as stretto:
        run_id = await find_run(stretto, handle, as_json)
        first = await stretto.open(run_id).history()
        if other in first.state.steps:
            _show_change(stretto.project, first, other, as_json)
            return
        try:
            second = await find_run(stretto, other, as_json)
        except NotFound as error:
            says = f"run {run_id} has no step '{other}', and {error.message}"
            raise NotFound(says, hint=f"its steps: {listed(list(first.state.steps))}") from None
        found = difference(first.state, await stretto.open(second).state())
    if as_json:
        print_json(difference_as_json(found))
    else:
        say(difference_as_text(found))


def _show_change(project: Project, history: History, step: str, as_json: bool) -> None:
    from stretto.assembly.changes import diff_of

    change = diff_of(project, history, step)
    if change.is_redacted:
        say("the patch holds a secret's value, shown as [redacted]", err=True)
    if as_json:
        print_json(change_as_json(change))
    elif change.files:
        print_bytes(change.patch)  # git apply reads it byte for byte
    else:
        say(f"step '{step}' changed no file", err=True)
