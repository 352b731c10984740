"""`weft diff RUN STEP`: what an isolated writer changed. `weft diff RUN RUN`: what differed."""

import click

from weft.assembly import Weft
from weft.cli.opening import history_of, open_weft
from weft.cli.options import json_option
from weft.cli.printing import print_bytes, print_json, say
from weft.report.difference import difference, difference_as_json, difference_as_text
from weft.run.history import History


@click.command("diff")
@click.argument("run")
@click.argument("other", metavar="STEP|RUN")
@json_option
def command(run: str, other: str, as_json: bool) -> None:
    """Show what a step changed, as a patch; or what differed between two runs, step by step."""
    weft = open_weft()
    first = history_of(weft, run)
    if other in first.state.steps:
        _show_change(weft, first, other, as_json)
        return
    second = history_of(weft, other)
    found = difference(first.state, second.state)
    if as_json:
        print_json(difference_as_json(found))
    else:
        say(difference_as_text(found))


def _show_change(weft: Weft, history: History, step: str, as_json: bool) -> None:
    from weft.workspaces.patch import render_patch, summarize
    from weft.workspaces.refusals import spelt

    changes = weft.change(history, step)
    made = render_patch(changes)
    patch = weft.hide_in_patch(made)
    if patch != made:
        say("the patch holds a secret's value, shown as [redacted]", err=True)
    if not as_json:
        print_bytes(patch)  # git apply reads it byte for byte
        return
    figures = summarize(changes)
    print_json(
        {
            "ok": True,
            "run_id": history.started.run_id,
            "step": step,
            "files": [spelt(change.path) for change in changes.changes],
            "insertions": figures.added,
            "deletions": figures.removed,
            "refused": [{"path": spelt(each.path), "why": each.why} for each in changes.refused],
            "patch": patch.decode("utf-8", "replace"),
        }
    )
