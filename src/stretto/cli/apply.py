"""`stretto apply RUN STEP`: merge what an isolated writer changed, where that was left to you."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from stretto.assembly.project import Project
from stretto.cli.approve import who
from stretto.cli.options import json_option
from stretto.cli.project import project_of, sealed_history
from stretto.cli.terminal import print_json, say
from stretto.problems.errors import InvalidUsage, PermissionDenied, StrettoError
from stretto.schedule.state import StepState
from stretto.text.redaction import NOTHING_SECRET, Redactor
from stretto.vocabulary.ids import RunId, StepId
from stretto.vocabulary.names import did_you_mean, listed
from stretto.workspaces.admission import doubt_about, inadmissible
from stretto.workspaces.apply import Merged
from stretto.workspaces.entries import Changes
from stretto.workspaces.merge import Conflict, MergePlan, Settlement, plan_merge
from stretto.workspaces.merge_back import is_merged, merge_back
from stretto.workspaces.paths import escape_path, quote_path
from stretto.workspaces.protected import NOTHING_PROTECTED, Protected
from stretto.workspaces.stage import Point

_Outcome = TypeVar("_Outcome", MergePlan, Merged)


class MergeConflict(StrettoError):
    kind = "conflict"


@dataclass(frozen=True, slots=True)
class _Allowed:
    """What the person who applies a change has said they know about it."""

    unfinished: bool
    removals: bool
    secrets: bool = False
    protected: Protected = NOTHING_PROTECTED  # what no change may touch, whatever they know
    redactor: Redactor = NOTHING_SECRET  # of what no change may hold


@click.command("apply")
@click.argument("run")
@click.argument("step")
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@click.option(
    "--unfinished",
    is_flag=True,
    help="Also a change that may be half done: its step, or a part, failed.",
)
@click.option(
    "--allow-removals", is_flag=True, help="Also a change whose many removals nothing explains."
)
@click.option("--allow-secrets", is_flag=True, help="Also a change that holds a secret's value.")
@click.option(
    "--resolved",
    multiple=True,
    metavar="PATH",
    help="You have settled this path by hand: the workspace's own stays. May be repeated.",
)
@click.option("--ours", is_flag=True, help="In every conflict the workspace's own stays.")
@click.option("--theirs", is_flag=True, help="In every conflict the step's own is taken.")
@json_option
def command(
    run: str,
    step: str,
    dry_run: bool,
    unfinished: bool,
    allow_removals: bool,
    allow_secrets: bool,
    resolved: tuple[str, ...],
    ours: bool,
    theirs: bool,
    as_json: bool,
) -> None:
    """Merge what a step changed into the workspace: all of it, or nothing.

    For steps with merge_back: manual, and for those whose merge met a conflict. Settle one in the
    workspace and name its paths with --resolved, or take one side of all with --ours or --theirs.
    What the run itself must not merge, such as files outside the write-set, is refused here too.
    """
    history = sealed_history(run)
    project = project_of(history)
    changes = project.change(history, step)
    allowed = _Allowed(unfinished, allow_removals, allow_secrets, Protected(project.settings.protected),
                       project.redactor)  # fmt: skip
    _admit(history.state.steps[StepId(step)], changes, run, allowed)
    workspace = Path(history.started.workspace)
    settlement = _settlement(changes, _beneath(workspace, resolved), ours, theirs)
    if dry_run:
        outcome = _foreseen(changes, workspace, project.settings.home, settlement)
    else:
        _require_permission(project, run, step)
        with _undisturbed() as at:
            outcome = _merged(merge_back(changes, workspace, project.settings.home, at, settlement))
            asyncio.run(_note(project, RunId(run), StepId(step)))
    _say(_Applied(run, step, changes, outcome, dry_run), as_json)


def _foreseen(changes: Changes, workspace: Path, home: Path, settlement: Settlement) -> Merged:
    if is_merged(changes, workspace, home):
        return Merged(changes.id, (), (), was_done=True)
    planned = _merged(plan_merge(changes, workspace, settlement))
    return Merged(changes.id, planned.paths, planned.merged_by_lines, left=planned.left)


def _beneath(workspace: Path, paths: tuple[str, ...]) -> frozenset[str]:
    """As a change spells them: a shell completes them in full as well."""
    top = os.path.realpath(workspace)
    return frozenset(
        os.path.relpath(path, top) if os.path.isabs(path) else os.path.normpath(path)
        for path in paths
    )


def _settlement(changes: Changes, paths: frozenset[str], ours: bool, theirs: bool) -> Settlement:
    if ours and theirs:
        raise InvalidUsage("--ours and --theirs exclude each other")
    known = {path for change in changes.changes for path in change.touched}
    known |= {left.path for left in changes.refused}
    for path in sorted(paths - known):
        hint = did_you_mean(path, known) or f"it changes {listed(map(quote_path, sorted(known)))}"
        raise InvalidUsage(f"{quote_path(path)} is no path of this change", hint=hint)
    return Settlement(paths, "ours" if ours else "theirs" if theirs else None)


def _admit(step: StepState, changes: Changes, run: str, allowed: _Allowed) -> None:
    """The rules of the run hold here too."""
    what = f"the change of step '{step.id}'"
    if step.is_merge_held:
        hint = f"stretto approve {run} {step.id} merges it, stretto reject {run} {step.id} does not"
        raise InvalidUsage(f"the run waits for you to decide about {what}", hint=hint)
    redactor = NOTHING_SECRET if allowed.secrets else allowed.redactor
    if refused := inadmissible(changes, step.planned.write_set, allowed.protected, redactor):
        hint = f"stretto diff {run} {step.id} shows it; widen its write_set and run the step again"
        raise MergeConflict(f"{what} is not merged: {refused.error}", hint=hint)
    if step.planned.merge_back == "never":
        hint = f"stretto diff {run} {step.id} prints it as a patch"
        raise InvalidUsage(f"{what} is only kept: its recipe says merge_back: never", hint=hint)
    is_whole = step.changes is None or step.changes.is_whole
    if not is_whole and not allowed.unfinished:
        hint = f"stretto diff {run} {step.id} shows it; --unfinished merges it all the same"
        failed = f"the step failed ({step.error})" if step.error else ""
        why = "; ".join(filter(None, (step.question, failed)))
        raise InvalidUsage(f"{what} may be half done: {why}", hint=hint)
    is_explained = step.may_have_removed or step.is_merge_allowed or changes.is_explained
    doubt = "" if is_explained else doubt_about(changes)
    if doubt and not allowed.removals:
        raise InvalidUsage(f"step '{step.id}': {doubt}", hint="--allow-removals merges it")


def _require_permission(project: Project, run: str, step: str) -> None:
    if project.settings.permission == "read_only":
        said = f"applying the change of step '{step}' of run {run} writes files"
        hint = "permission: ask or auto lets you apply it; --dry-run only says what would happen"
        raise PermissionDenied(f"{said}, and the setting is permission: read_only", hint=hint)


@contextmanager
def _undisturbed() -> Iterator[Point]:
    """A merge that has begun is not stopped halfway: it is soon done, and then on record."""
    before: dict[signal.Signals, Any] = {}

    def at(point: str) -> None:
        if point == "locked":
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                before[number] = signal.signal(number, signal.SIG_IGN)

    try:
        yield at
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _note(project: Project, run_id: RunId, step: StepId) -> None:
    async with project.runs() as runs:
        await runs.note_applied(run_id, step, who())


def _merged(outcome: _Outcome | Conflict) -> _Outcome:
    """Raises MergeConflict."""
    if isinstance(outcome, Conflict):
        clashes = "; ".join(f"{quote_path(clash.path)} {clash.why}" for clash in outcome.clashes)
        kept = f"all sides are kept in {outcome.kept}; " if outcome.kept else ""
        ways = "settle them in the workspace and add --resolved PATH, or add --ours or --theirs"
        raise MergeConflict(f"conflict with the workspace: {clashes}", hint=f"{kept}{ways}")
    return outcome


@dataclass(frozen=True, slots=True)
class _Applied:
    run: str
    step: str
    changes: Changes
    outcome: Merged
    is_dry_run: bool


def _say(applied: _Applied, as_json: bool) -> None:
    paths, left = applied.outcome.paths, applied.outcome.left
    if as_json:
        print_json(
            {"ok": True, "run_id": applied.run, "step": applied.step,
             "dry_run": applied.is_dry_run, "was_merged": applied.outcome.was_done, "files": [escape_path(path) for path in paths],
             "left": [{"path": escape_path(each.path), "why": each.why} for each in left],
             "refused": [escape_path(each.path) for each in applied.changes.refused]}
        )  # fmt: skip
        return
    if applied.outcome.was_done:
        say("it was merged before; nothing is left to do")
        return
    word = "would change" if applied.is_dry_run else "changed"
    say(f"{word} {len(paths)} file{'s' if len(paths) != 1 else ''}")
    for path in paths:
        say(f"  {escape_path(path)}")
    for each in left:
        say(f"  {escape_path(each.path)} stays as it is: {each.why}")
