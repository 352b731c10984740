"""`stretto diff RUN STEP`: what an isolated writer changed. `stretto diff RUN RUN`: what differed."""

import asyncio

import click

from stretto.assembly.project import Project
from stretto.cli.foreground import OpenStretto
from stretto.cli.options import json_option
from stretto.cli.terminal import print_bytes, print_json, say
from stretto.execution.history import History
from stretto.report.difference import difference, difference_as_json, difference_as_text


@click.command("diff")
@click.argument("run")
@click.argument("other", metavar="STEP|RUN")
@json_option
def command(run: str, other: str, as_json: bool) -> None:
    """Show what a step changed, as a patch; or what differed between two runs, step by step."""
    asyncio.run(_diff(run, other, as_json))


async def _diff(run: str, other: str, as_json: bool) -> None:
    async with OpenStretto() as stretto:
        first = await stretto.open(run).history()
        if other in first.state.steps:
            _show_change(stretto.project, first, other, as_json)
            return
        found = difference(first.state, await stretto.open(other).state())
    if as_json:
        print_json(difference_as_json(found))
    else:
        say(difference_as_text(found))


def _show_change(project: Project, history: History, step: str, as_json: bool) -> None:
    from stretto.assembly.changes import diff_of

    change = diff_of(project, history, step)
    if change.is_redacted:
        say("the patch holds a secret's value, shown as [redacted]", err=True)
    if not as_json:
        print_bytes(change.patch)  # git apply reads it byte for byte
        return
    print_json(
        {
            "ok": True,
            "run_id": change.run_id,
            "step": step,
            "files": list(change.files),
            "insertions": change.insertions,
            "deletions": change.deletions,
            "refused": [{"path": each.path, "why": each.why} for each in change.refused],
            "patch": change.text,
        }
    )
