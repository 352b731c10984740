"""What isolated writers changed: find it, show it as a patch, merge it where a person may.

The rules of a run hold here too: what the run itself must not merge is refused to a person as well.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from stretto.assembly.ports import open_workspaces
from stretto.problems.errors import InvalidUsage, NotFound, PermissionDenied, StrettoError
from stretto.text.redaction import NOTHING_SECRET
from stretto.text.short import did_you_mean, listed
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import StepStatus
from stretto.workspaces.change import ChangeSet, doubt_about, open_changes, why_inadmissible
from stretto.workspaces.merge import Conflict, MergePlan, Settlement, plan_merge
from stretto.workspaces.patch import LARGEST_BINARY, render_patch, summarize
from stretto.workspaces.paths import escape_path, quote_path
from stretto.workspaces.protected import Protected
from stretto.workspaces.transaction import Merged, is_merged, merge_back

if TYPE_CHECKING:
    from stretto.assembly.project import Project
    from stretto.execution.history import History
    from stretto.report.model import Report
    from stretto.schedule.state import StepState

_Outcome = TypeVar("_Outcome", MergePlan, Merged)


class MergeConflict(StrettoError):
    kind = "conflict"


@dataclass(frozen=True, slots=True)
class PathNote:
    path: str
    why: str


@dataclass(frozen=True, slots=True)
class StepChange:
    """What a step changed in its own copy of the workspace."""

    run_id: str
    step: str
    files: tuple[str, ...]
    insertions: int
    deletions: int
    refused: tuple[PathNote, ...]  # what it changed outside of what it may write
    patch: bytes  # as `git apply` takes it; the values of secrets are shown as [redacted]
    is_redacted: bool

    @property
    def text(self) -> str:
        return self.patch.decode("utf-8", "replace")

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.text)}</pre>"


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """What `apply` merged into the workspace, or would merge."""

    run_id: str
    step: str
    files: tuple[str, ...]
    left: tuple[PathNote, ...]  # paths that stay as the workspace has them
    refused: tuple[str, ...]
    was_merged: bool  # before, so that nothing was left to do
    is_dry_run: bool


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """What the person who applies a change knows about it, and how they settle conflicts."""

    is_dry_run: bool = False
    unfinished: bool = False  # also what may be half done, because the step or a part failed
    allow_removals: bool = False  # also where nothing explains the many removals
    allow_secrets: bool = False  # also where the change holds the value of a secret
    resolved: tuple[str, ...] = ()  # paths settled by hand: the workspace's own stays
    ours: bool = False  # in every conflict the workspace's own stays
    theirs: bool = False  # in every conflict the step's own is taken


def change_of(project: "Project", history: "History", step: str) -> ChangeSet:
    """What an isolated writer changed. Raises NotFound, and ChangeLost for a change that could not
    be kept when the step ended and still cannot be."""
    run_id, known = history.started.run_id, history.step(step)
    if known.changes is not None and known.changes.artifact:
        return open_changes(Path(known.changes.artifact))
    workspaces = open_workspaces(project.settings, project.redactor)
    if known.changes is not None and (kept := workspaces.collect_kept(run_id, step)):
        return kept
    if known.changes is not None and known.error:
        hint = f"stretto retry {run_id} runs the step again"
        raise NotFound(f"the change of step '{step}' was not kept: {known.error}", hint=hint)
    if known.ended_at is None:
        raise NotFound(f"step '{step}' has not ended, so it has no change yet")
    hint = "only steps that write in a workspace of their own do (workspace_mode: isolated)"
    raise NotFound(f"step '{step}' left no change", hint=hint)


def diff_of(project: "Project", history: "History", step: str) -> StepChange:
    changes = change_of(project, history, step)
    made = render_patch(changes)
    patch = _redact(project, made)
    figures = summarize(changes)
    return StepChange(
        history.started.run_id,
        step,
        tuple(escape_path(change.path) for change in changes.changes),
        figures.added,
        figures.removed,
        tuple(PathNote(escape_path(each.path), each.why) for each in changes.refused),
        patch,
        patch != made,
    )


def with_patches(project: "Project", report: "Report", history: "History") -> "Report":
    """The same report, with what each writer changed."""
    from stretto.report.report import with_patches

    def read(step: str) -> bytes | None:
        changes = history.state.steps[StepId(step)].changes
        if changes is None or not changes.artifact:
            return None  # a report collects nothing
        try:
            return _redact(project, render_patch(change_of(project, history, step), LARGEST_BINARY))
        except StrettoError:  # the artifact was removed, or cannot be read any more
            return None

    return with_patches(report, read)


def _redact(project: "Project", patch: bytes) -> bytes:
    """The same bytes, unless a secret is among them."""
    text = patch.decode("utf-8", "surrogateescape")
    return project.redactor.text(text).encode("utf-8", "surrogateescape")


def apply_change(
    project: "Project",
    history: "History",
    step: str,
    options: ApplyOptions,
    at: Callable[[str], None] = lambda point: None,
) -> AppliedChange:
    """Merge what a step changed into its run's workspace: all of it, or nothing.

    `at` is called at named points of the merge. That the change was applied is not yet journaled.
    Raises MergeConflict, NotFound, InvalidUsage and PermissionDenied.
    """
    changes = change_of(project, history, step)
    _admit(project, history.state.steps[StepId(step)], changes, history.started.run_id, options)
    workspace, home = Path(history.started.workspace), project.settings.home
    settlement = _settlement(changes, workspace, options)
    if options.is_dry_run:
        outcome = _foresee(changes, workspace, home, settlement)
    else:
        _require_permission(project, history.started.run_id, step)
        outcome = _refuse_conflict(merge_back(changes, workspace, home, at, settlement))
    return AppliedChange(
        history.started.run_id,
        step,
        tuple(map(escape_path, outcome.paths)),
        tuple(PathNote(escape_path(each.path), each.why) for each in outcome.left),
        tuple(escape_path(each.path) for each in changes.refused),
        outcome.was_done,
        options.is_dry_run,
    )


def _foresee(changes: ChangeSet, workspace: Path, home: Path, settlement: Settlement) -> Merged:
    if is_merged(changes, workspace, home):
        return Merged(changes.id, (), (), was_done=True)
    planned = _refuse_conflict(plan_merge(changes, workspace, settlement))
    return Merged(changes.id, planned.paths, planned.merged_by_lines, left=planned.left)


def _settlement(changes: ChangeSet, workspace: Path, options: ApplyOptions) -> Settlement:
    if options.ours and options.theirs:
        raise InvalidUsage("--ours and --theirs exclude each other")
    paths = _relative_paths(workspace, options.resolved)
    known = {path for change in changes.changes for path in change.touched}
    known |= {left.path for left in changes.refused}
    for path in sorted(paths - known):
        hint = did_you_mean(path, known) or f"it changes {listed(map(quote_path, sorted(known)))}"
        raise InvalidUsage(f"{quote_path(path)} is no path of this change", hint=hint)
    return Settlement(paths, "ours" if options.ours else "theirs" if options.theirs else None)


def _relative_paths(workspace: Path, paths: Iterable[str]) -> frozenset[str]:
    """As a change spells them: a shell completes them in full as well."""
    top = os.path.realpath(workspace)
    return frozenset(
        os.path.relpath(path, top) if os.path.isabs(path) else os.path.normpath(path)
        for path in paths
    )


def _admit(
    project: "Project", step: "StepState", changes: ChangeSet, run: str, options: ApplyOptions
) -> None:
    what = f"the change of step '{step.id}'"
    if step.is_merge_held:
        hint = f"stretto approve {run} {step.id} merges it, stretto reject {run} {step.id} does not"
        raise InvalidUsage(f"the run waits for you to decide about {what}", hint=hint)
    redactor = NOTHING_SECRET if options.allow_secrets else project.redactor
    protected = Protected(project.settings.protected)
    if refused := why_inadmissible(changes, step.planned.write_set, protected, redactor):
        hint = f"stretto diff {run} {step.id} shows it; widen its write_set and run the step again"
        raise MergeConflict(f"{what} is not merged: {refused.error}", hint=hint)
    if step.planned.merge_back == "never":
        hint = f"stretto diff {run} {step.id} prints it as a patch"
        raise InvalidUsage(f"{what} is only kept: its recipe says merge_back: never", hint=hint)
    is_whole = step.changes is None or step.changes.is_whole
    if not is_whole and not options.unfinished:
        hint = f"stretto diff {run} {step.id} shows it; --unfinished merges it anyway"
        ended = f"the step failed ({step.error})" if step.error else ""
        if step.status is StepStatus.CANCELLED:
            ended = "the step was cancelled"
        why = "; ".join(filter(None, (step.question, ended)))
        raise InvalidUsage(f"{what} may be half done: {why}", hint=hint)
    is_explained = step.may_have_removed or step.is_merge_allowed or changes.is_explained
    doubt = "" if is_explained else doubt_about(changes)
    if doubt and not options.allow_removals:
        raise InvalidUsage(f"step '{step.id}': {doubt}", hint="--allow-removals merges it")


def _require_permission(project: "Project", run: str, step: str) -> None:
    if project.settings.permission == "read_only":
        said = f"applying the change of step '{step}' of run {run} writes files"
        hint = "permission: ask or auto lets you apply it; --dry-run only says what would happen"
        raise PermissionDenied(f"{said}, and the setting is permission: read_only", hint=hint)


def _refuse_conflict(outcome: _Outcome | Conflict) -> _Outcome:
    """Raises MergeConflict."""
    if isinstance(outcome, Conflict):
        clashes = "; ".join(f"{quote_path(clash.path)} {clash.why}" for clash in outcome.clashes)
        kept = f"all sides are kept in {outcome.kept}; " if outcome.kept else ""
        ways = "settle them in the workspace and add --resolved PATH, or add --ours or --theirs"
        raise MergeConflict(f"conflict with the workspace: {clashes}", hint=f"{kept}{ways}")
    return outcome
