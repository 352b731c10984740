"""Workspaces on this machine: copies for isolated writers, and their changes merged back.

HOME/workspaces/RUN/STEP/copy-N/    the writer's copy, until what became of it is on record
HOME/workspaces/RUN/STEP/kept-N/    a copy whose change could not be kept (a full disk, say)
HOME/workspaces/RUN/STEP/change/    the change, for `stretto diff` and `stretto apply`
HOME/workspaces/RUN/STEP/written.json    what a shared writer left in the workspace
HOME/workspaces/RUN/STEP/read.json       what a command could read there
HOME/workspaces/trash/              what is being removed; a crash may leave some of it
HOME/merges/                        what undoes a merge that a crash interrupted
"""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Event
from weakref import WeakValueDictionary

from stretto.config.home import make_private
from stretto.ports.workspace import (
    Collected,
    FilesDigest,
    FilesToRead,
    Held,
    MergeTerms,
    NotMerged,
    SharedWorkspace,
    UndeclaredChanges,
    Undone,
    WorkspaceCopy,
)
from stretto.problems.errors import NotFound, StrettoError
from stretto.processes.completion import complete, start_thread
from stretto.text.redaction import NOTHING_SECRET, Redactor
from stretto.vocabulary.names import StepId
from stretto.workspaces.change import (
    DRAFT,
    ChangeSet,
    copy_change_set,
    doubt_about,
    find_changes,
    has_all_bytes,
    open_changes,
    why_inadmissible,
)
from stretto.workspaces.content import FileEntry, Unreadable, write_durably
from stretto.workspaces.file_list import DEFAULT_LIMITS, WorkspaceLimits
from stretto.workspaces.isolated_copy import (
    IsolatedCopy,
    discard_tree,
    empty_trash,
    isolate,
    open_isolated,
)
from stretto.workspaces.merge import Conflict, plan_merge
from stretto.workspaces.patch import render_patch, summarize
from stretto.workspaces.paths import escape_path
from stretto.workspaces.protected import NOTHING_PROTECTED, Protected
from stretto.workspaces.read_files import (
    TOO_MUCH,
    ReadFileFinder,
    ReadFiles,
    is_read_alike,
    note_read,
    settle,
)
from stretto.workspaces.rollback import recover_merges, unfinished_merges
from stretto.workspaces.sandbox.repository_guard import (
    Survey,
    disarm_new,
    look_for_repositories,
    remove_left_guard,
)
from stretto.workspaces.shared_workspace import (
    StatSnapshot,
    find_undeclared_paths,
    is_still_written,
    note_written,
    read_written,
    snapshot_stats,
)
from stretto.workspaces.transaction import merge_back

_TORN = "the machine was restarted while its copy was in use, so files of it may be lost or cut off"
_NEVER_REUSED = (
    f"its answer is never reused, because it may read {TOO_MUCH}: "
    "say in its read_set which files it reads"
)
_MOST_WARNINGS = 20  # of one step
_LONGEST_NAME = 200  # of a step's folder, in characters, which are bytes there
# Of a change, in the journal and in prompts. All of it is in the artifact.
_LONGEST_DIFF = 100_000
_MOST_PATHS = 1_000


class ChangeLost(StrettoError):
    """A change could not be kept, or is gone."""

    kind = "change_lost"


class LocalWorkspaces:
    def __init__(
        self,
        home: Path,
        protected: Protected = NOTHING_PROTECTED,
        limits: WorkspaceLimits = DEFAULT_LIMITS,
        carry: Sequence[str] = (),
        redactor: Redactor = NOTHING_SECRET,
    ) -> None:
        self._home = home
        self._protected = protected
        self._limits = limits
        self._carry = carry
        self._redactor = redactor
        # Parts of a step start together: the first does what is done once. Kept while one waits.
        self._once = WeakValueDictionary[WorkspaceCopy | SharedWorkspace, asyncio.Lock]()
        self._watched: dict[SharedWorkspace, tuple[StatSnapshot, Survey]] = {}
        self._finder = ReadFileFinder()
        self._looked: dict[FilesToRead, ReadFiles] = {}

    async def recover(self, workspace: Path) -> tuple[Undone, ...]:
        return await asyncio.to_thread(self._recover, workspace)

    async def unfinished(self) -> tuple[Path, ...]:
        return await asyncio.to_thread(unfinished_merges, self._home)

    async def watch(self, shared: SharedWorkspace) -> None:
        async with self._once.setdefault(shared, asyncio.Lock()):
            if shared not in self._watched:
                before = await asyncio.to_thread(snapshot_stats, shared.folder)
                survey = await asyncio.to_thread(look_for_repositories, shared.folder)
                self._watched[shared] = before, survey

    async def undeclared_changes(
        self, shared: SharedWorkspace, declared: Sequence[str]
    ) -> UndeclaredChanges:
        watched = self._watched.pop(shared, None)
        if watched is None:  # another process watched
            return UndeclaredChanges(())
        before, survey = watched
        made = await asyncio.to_thread(disarm_new, shared.folder, survey, self._home)
        after = await asyncio.to_thread(snapshot_stats, shared.folder)
        # Our own folder may lie in the workspace, and this process writes to it all the time.
        ours = f"{os.path.relpath(self._home.resolve(), shared.folder.resolve())}/"

        def changed_outside(globs: Sequence[str]) -> list[str]:
            found = find_undeclared_paths(before, after, globs)
            return [path for path in found if not path.startswith(ours)]

        every, elsewhere = changed_outside(()), set(changed_outside(shared.write_set))
        own = tuple(escape_path(path) for path in every if path not in elsewhere)
        is_whole = before.is_whole and after.is_whole
        if is_whole:
            note = self._note(shared.run_id, shared.step)
            await asyncio.to_thread(note_written, note, shared.folder, every)
        undeclared = tuple(map(escape_path, changed_outside(declared)))
        return UndeclaredChanges(undeclared, is_whole and not own, repositories=made, own=own)

    async def open(self, copy: WorkspaceCopy) -> Path:
        async with self._once.setdefault(copy, asyncio.Lock()):
            # Waited for also where it is cancelled: the next part would copy to the same folder
            # meanwhile, and what is written after the run has ended would stay.
            stop = Event()
            return await complete(start_thread(partial(self._open, copy, stop)), stop.set)

    async def collect(self, copy: WorkspaceCopy, terms: MergeTerms) -> Collected | NotMerged | Held:
        # No merge is left halfway, nor goes on when the run is another process's.
        return await complete(start_thread(partial(self._collect, copy, terms)))

    async def can_reuse(self, copy: WorkspaceCopy, terms: MergeTerms) -> bool:
        return await asyncio.to_thread(self._can_reuse, copy, terms)

    async def can_reuse_shared(self, shared: SharedWorkspace, run_id: str) -> bool:
        return await asyncio.to_thread(self._can_reuse_shared, shared, run_id)

    async def look(self, files: FilesToRead) -> FilesDigest:
        found = await asyncio.to_thread(self._find_read, files)
        if found is None:
            self._looked.pop(files, None)
            return FilesDigest("", _NEVER_REUSED)
        self._looked[files] = found
        return FilesDigest(found.digest)

    async def note_read(self, files: FilesToRead) -> str:
        return await asyncio.to_thread(self._note_read, files, self._looked.pop(files, None))

    async def can_reuse_read(
        self, files: FilesToRead, run_id: str, step: StepId, part: str, later: Sequence[StepId]
    ) -> bool:
        earlier = self._read_note(run_id, step, part)
        return await asyncio.to_thread(self._can_reuse_read, files, earlier, run_id, later)

    async def discard(self, copy: WorkspaceCopy) -> None:
        await asyncio.to_thread(discard_tree, self._copy(copy), self._trash)

    async def release(self, run_id: str) -> None:
        await asyncio.to_thread(self._release, run_id)

    async def remove_run(self, run_id: str) -> None:
        await asyncio.to_thread(self._remove_run, run_id)

    async def leftovers(self) -> dict[str, tuple[Path, ...]]:
        return await asyncio.to_thread(self._leftovers)

    async def empty_trash(self) -> None:
        await asyncio.to_thread(empty_trash, self._trash)

    def _recover(self, workspace: Path) -> tuple[Undone, ...]:
        remove_left_guard(workspace)
        recovered = recover_merges(workspace, self._home)
        return tuple(Undone(each.disturbed, str(each.kept)) for each in recovered if each.disturbed)

    def artifact(self, run_id: str, step: str) -> Path:
        return self._folder(run_id, step) / "change"

    def _open(self, copy: WorkspaceCopy, stop: Event) -> Path:
        home = self._copy(copy)
        try:
            isolated = open_isolated(home)
            if isolated.may_be_torn:
                # Parts that have ended worked in it: another copy would lack what they did.
                raise ChangeLost(_TORN, hint=f"it is {home}; stretto retry runs the step again")
            return isolated.root
        except NotFound:
            return isolate(
                copy.workspace,
                home,
                self._limits,
                asked=(*copy.write_set, *copy.read_set),
                writes=copy.write_set,
                carry=self._carry,
                engine_home=self._home,
                stop=stop,
            ).root

    def _collect(self, copy: WorkspaceCopy, terms: MergeTerms) -> Collected | NotMerged | Held:
        changes = self._changes(copy, terms)
        if changes is None:
            return Collected("")  # nobody worked there
        artifact = str(changes.artifact)
        figures = summarize(changes)
        counts = (len(changes.changes), figures.added, figures.removed)
        warnings = _list_warnings(changes)
        half_done = terms.half_done if changes.changes else ""
        if refused := why_inadmissible(changes, terms.write_set, self._protected, self._redactor):
            return NotMerged(
                artifact, refused.error, refused.paths, *counts, True,
                is_whole=not half_done, warnings=warnings,
            )  # fmt: skip
        shows = _show_change(changes)  # not of what was refused: it may hold a secret
        is_explained = terms.may_remove or changes.is_explained
        doubt = half_done or ("" if is_explained else doubt_about(changes))
        if not terms.is_merged:
            return Collected(artifact, *counts, False, warnings, doubt, *shows, not half_done)
        if doubt:
            return Held(artifact, doubt, *counts, not half_done, warnings)
        merged = merge_back(changes, copy.workspace, self._home)
        if isinstance(merged, Conflict):
            clashes = "; ".join(
                f"{escape_path(clash.path)}: {clash.why}" for clash in merged.clashes[:5]
            )
            error = f"its changes conflict with the workspace ({clashes}); all sides: {merged.kept}"
            return NotMerged(
                artifact, error, merged.paths, *counts, False, *shows, warnings=warnings
            )
        kept = (f"{escape_path(each.path)} stays as it is: {each.why}" for each in merged.left[:10])
        return Collected(artifact, *counts, True, (*warnings, *kept), "", *shows)

    def _can_reuse(self, copy: WorkspaceCopy, terms: MergeTerms) -> bool:
        earlier = self._earlier(copy, terms)
        if earlier is None or why_inadmissible(earlier, terms.write_set, self._protected):
            return False
        if not has_all_bytes(earlier) or (doubt_about(earlier) and not earlier.is_explained):
            return False
        return not (terms.is_merged and isinstance(plan_merge(earlier, copy.workspace), Conflict))

    def _can_reuse_shared(self, shared: SharedWorkspace, run_id: str) -> bool:
        earlier, own = self._note(run_id, shared.step), self._note(shared.run_id, shared.step)
        if not is_still_written(earlier, shared.folder):
            return False
        make_private(own.parent)
        write_durably(own, earlier.read_bytes())  # this run may be retried in its turn
        return True

    def _find_read(self, files: FilesToRead) -> ReadFiles | None:
        root = files.folder.resolve()
        ours = (*files.recipes, str(self._home.resolve()))
        apart = frozenset(os.path.relpath(os.path.join(root, each), root) for each in ours)
        try:
            return self._finder.find(files.folder, files.read_set, apart)
        except (OSError, StrettoError):
            return None  # a folder that is gone, say: then nothing is reused

    def _note_read(self, files: FilesToRead, looked: ReadFiles | None) -> str:
        note = self._read_note(files.run_id, files.step, files.part)
        try:
            note.unlink(missing_ok=True)  # of an attempt before, which may have read something else
            if looked is None:
                return ""
            settled = settle(looked, self._find_read(files), files.write_set)
            note_read(note, settled)
        except OSError:
            return ""  # a full disk: the command has succeeded all the same
        return "" if settled.unsure else settled.digest

    def _can_reuse_read(
        self, files: FilesToRead, earlier: Path, run_id: str, later: Sequence[StepId]
    ) -> bool:
        now = self._find_read(files)
        if now is None or not is_read_alike(earlier, now, self._left_by(run_id, later)):
            return False
        own = self._read_note(files.run_id, files.step, files.part)
        with suppress(OSError):
            make_private(own.parent)
            write_durably(own, earlier.read_bytes())  # this run may be retried in its turn
        return True

    def _left_by(self, run_id: str, steps: Sequence[StepId]) -> dict[str, list[FileEntry | None]]:
        """What writers of that run left in the workspace, by path."""
        left: dict[str, list[FileEntry | None]] = {}
        for step in steps:
            with suppress(NotFound, Unreadable):
                for path, entry in read_written(self._note(run_id, step)).items():
                    left.setdefault(path, []).append(entry)
            with suppress(NotFound, Unreadable):
                for change in open_changes(self.artifact(run_id, step)).changes:
                    left.setdefault(change.path, []).append(change.after)
                    if change.renamed_from is not None:
                        left.setdefault(change.renamed_from, []).append(None)
        return left

    def _read_note(self, run_id: str, step: str, part: str) -> Path:
        return self._folder(run_id, step) / (f"read-{part}.json" if part else "read.json")

    def _note(self, run_id: str, step: str) -> Path:
        return self._folder(run_id, step) / "written.json"

    def _earlier(self, copy: WorkspaceCopy, terms: MergeTerms) -> ChangeSet | None:
        """The change of the run that the answer comes from, wherever the step stood in it."""
        if terms.reused_from is None or not terms.key:
            return None
        run = self._home / "workspaces" / terms.reused_from
        own = self.artifact(terms.reused_from, copy.step)
        for artifact in dict.fromkeys((own, *sorted(run.glob("*/change")))):
            with suppress(NotFound, Unreadable):
                changes = open_changes(artifact)
                if changes.key == terms.key:
                    return changes
        return None

    def _changes(self, copy: WorkspaceCopy, terms: MergeTerms) -> ChangeSet | None:
        """From the artifact, once there is one: the copy may have been removed in part by then."""
        artifact = self.artifact(copy.run_id, copy.step)
        with suppress(NotFound):
            return open_changes(artifact)
        discard_tree(artifact, self._trash)  # one that is not whole
        if terms.reused_from is not None:
            earlier = self._earlier(copy, terms)
            if earlier is None:
                raise ChangeLost(f"the change that run {terms.reused_from} made is gone")
            return copy_change_set(earlier, artifact)
        folder, kept = self._copy(copy), self._copy(copy, "kept")
        try:
            isolated = open_isolated(kept if kept.exists() else folder)
        except NotFound:
            if terms.has_worked:
                raise ChangeLost(f"the copy that it was made in is gone: {folder}") from None
            return None
        return self._find_changes(isolated, copy.run_id, copy.step, kept, terms)

    def collect_kept(self, run_id: str, step: str) -> ChangeSet | None:
        """The change of a step whose copy was kept because its change could not be, on a full disk,
        say. None when there is no such copy. Raises ChangeLost."""
        artifact = self.artifact(run_id, step)
        with suppress(NotFound):
            return open_changes(artifact)
        for kept in sorted(artifact.parent.glob("kept-*")):
            isolated = open_isolated(kept)
            terms = MergeTerms(isolated.writes, is_merged=False)
            changes = self._find_changes(isolated, run_id, step, kept, terms)
            discard_tree(kept, self._trash)  # the artifact is durable, and holds all of it
            return changes
        return None

    def _find_changes(
        self, isolated: IsolatedCopy, run_id: str, step: str, kept: Path, terms: MergeTerms
    ) -> ChangeSet:
        """A copy whose change cannot be kept is moved to `kept`, where nothing removes it."""
        artifact, is_torn = self.artifact(run_id, step), isolated.may_be_torn
        try:
            if is_torn:
                raise ChangeLost(_TORN)
            return find_changes(
                isolated, artifact, self._limits, key=terms.key, is_explained=terms.may_remove
            )
        except (OSError, StrettoError) as error:
            if isolated.home != kept:
                isolated.home.rename(kept)
            ways = (
                "" if is_torn else f"; when that is cured, stretto apply {run_id} {step} takes it"
            )
            hint = f"all that the step wrote is in {kept}{ways}"
            raise ChangeLost(str(error), hint=hint) from error

    def _release(self, run_id: str) -> None:
        for folder in _copies(self._home / "workspaces" / run_id):
            discard_tree(folder, self._trash)

    def _remove_run(self, run_id: str) -> None:
        if Path(run_id).name != run_id or run_id in ("", "..", self._trash.name):
            return  # a damaged journal: this is the name of no run
        discard_tree(self._home / "workspaces" / run_id, self._trash)
        for kept in (f"logs/{run_id}.log", f"reports/{run_id}.html"):
            (self._home / kept).unlink(missing_ok=True)

    def _leftovers(self) -> dict[str, tuple[Path, ...]]:
        runs = self._home / "workspaces"
        if not runs.is_dir():
            return {}
        found = {run.name: _copies(run) for run in sorted(runs.iterdir()) if run != self._trash}
        found[""] = tuple(sorted(self._trash.glob("*")))
        return {run: folders for run, folders in found.items() if folders}

    def _copy(self, copy: WorkspaceCopy, kind: str = "copy") -> Path:
        return self._folder(copy.run_id, copy.step) / f"{kind}-{copy.number}"

    def _folder(self, run_id: str, step: str) -> Path:
        """One level below the run, also for a step of a workflow step: `outer/inner` is `outer+inner`,
        which no other step is called. A name that no file system takes is shortened."""
        name = step.replace("/", "+")
        if len(name) > _LONGEST_NAME:
            name = f"{name[:_LONGEST_NAME]}+{sha256(name.encode()).hexdigest()[:16]}"
        return self._home / "workspaces" / run_id / name

    @property
    def _trash(self) -> Path:
        return self._home / "workspaces" / "trash"


def _show_change(changes: ChangeSet) -> tuple[str, tuple[str, ...]]:
    """The change as a prompt may show it, and its paths. A binary file is only named."""
    paths = tuple(escape_path(change.path) for change in changes.changes[:_MOST_PATHS])
    patch = render_patch(changes, largest_binary=0).decode("utf-8", "replace")
    if len(patch) <= _LONGEST_DIFF:
        return patch, paths
    cut = patch[: patch.rfind("\n", 0, _LONGEST_DIFF) + 1]
    left = f"… {len(patch) - len(cut):,} more characters of this diff are left out\n"
    return cut + left, paths


def _list_warnings(changes: ChangeSet) -> tuple[str, ...]:
    lines = [
        *(
            f"{escape_path(each.path)} is no part of its change: {each.why}"
            for each in changes.left
        ),
        *(f"{escape_path(each.path)} was refused: {each.why}" for each in changes.refused),
        *(f"{escape_path(each.path)} {each.why}" for each in changes.modes),
    ]
    more = len(lines) - _MOST_WARNINGS
    return (*lines[:_MOST_WARNINGS], *((f"and {more:,} more paths",) if more > 0 else ()))


def _copies(run: Path) -> tuple[Path, ...]:
    """Copies of writers, and drafts of changes that were never finished."""
    return tuple(sorted((*run.glob("*/copy-*"), *run.glob(f"*/change{DRAFT}*"))))
