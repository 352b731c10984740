"""`weft apply RUN STEP`: merge what an isolated writer changed, where that was left to you."""

from pathlib import Path

import click

from weft.cli.opening import history_of, open_weft
from weft.cli.options import json_option
from weft.cli.printing import print_json
from weft.problems.errors import WeftError
from weft.vocabulary.names import listed
from weft.workspaces.apply import Merged
from weft.workspaces.entries import Changes
from weft.workspaces.merge import Conflict, MergePlan, plan_merge
from weft.workspaces.merge_back import merge_back


class MergeConflict(WeftError):
    kind = "conflict"


@click.command("apply")
@click.argument("run")
@click.argument("step")
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@json_option
def command(run: str, step: str, dry_run: bool, as_json: bool) -> None:
    """Merge what a step changed into the workspace: all of it, or nothing.

    For steps with merge_back: manual, and for those whose merge met a conflict that is settled.
    """
    weft = open_weft()
    history = history_of(weft, run, must_be_sealed=True)
    changes = weft.change(history, step)
    workspace = Path(history.started.workspace)
    if dry_run:
        planned = plan_merge(changes, workspace)
        paths = [put.path for put in planned.puts] if isinstance(planned, MergePlan) else []
        _refuse(planned)
    else:
        merged = merge_back(changes, workspace, weft.settings.home)
        _refuse(merged)
        was_done = isinstance(merged, Merged) and merged.was_done
        paths = [] if was_done else [change.path for change in changes.changes]
    _say(run, step, changes, paths, dry_run, as_json)


def _refuse(outcome: object) -> None:
    if isinstance(outcome, Conflict):
        clashes = "; ".join(f"{clash.path}: {clash.why}" for clash in outcome.clashes)
        kept = f"all sides are kept in {outcome.kept}" if outcome.kept else ""
        raise MergeConflict(
            f"{listed(outcome.paths)} conflict with the workspace: {clashes}", hint=kept
        )


def _say(
    run: str, step: str, changes: Changes, paths: list[str], dry_run: bool, as_json: bool
) -> None:
    if as_json:
        print_json(
            {"ok": True, "run_id": run, "step": step, "dry_run": dry_run, "files": paths,
             "refused": [each.path for each in changes.refused]}
        )  # fmt: skip
        return
    word = "would change" if dry_run else "changed"
    if not paths and changes.changes:
        click.echo("it was merged before; nothing is left to do")
        return
    click.echo(f"{word} {len(paths)} file{'s' if len(paths) != 1 else ''}")
    for path in paths:
        click.echo(f"  {path}")
