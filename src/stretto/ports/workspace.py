"""The plug point for workspaces: a writer gets a copy of the run's folder, and its change is merged back."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from stretto.vocabulary.names import StepId


@dataclass(frozen=True, slots=True)
class WorkspaceCopy:
    """The folder of one isolated writer: a copy of the run's workspace."""

    run_id: str
    step: StepId
    number: str  # which of the step's copies; a new attempt may get a new one
    workspace: Path  # the folder that is copied
    write_set: tuple[str, ...] = ()
    read_set: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SharedWorkspace:
    """The run's workspace itself, as a writer uses it that is not isolated."""

    run_id: str
    step: StepId
    folder: Path
    write_set: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FilesToRead:
    """The files of the run's workspace that one part of a step, a command, may read."""

    run_id: str
    step: StepId
    part: str  # as people know it; empty: the whole step
    folder: Path
    read_set: tuple[str, ...]
    write_set: tuple[str, ...] = ()  # what it may change there itself while it runs
    recipes: tuple[str, ...] = ()  # the files of the recipe, which count only if the set names them


@dataclass(frozen=True, slots=True)
class FilesDigest:
    digest: str  # of all these files; empty: there is too much to compare
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class MergeTerms:
    """What holds for a writer's change, whoever merges it."""

    write_set: tuple[str, ...]
    is_merged: bool  # back into the workspace, if it can be
    may_remove: bool = False  # a call of the step can have removed files, or a person allowed it
    key: str = ""  # of the attempt that made the change: equal keys, equal work
    reused_from: str | None = None  # the run whose answer stands in, and whose change must as well
    has_worked: bool = False  # an attempt succeeded, so there must be a copy or a change
    half_done: str = ""  # why the change may hold half-done files; empty: it does not


@dataclass(frozen=True, slots=True)
class Collected:
    artifact: str
    files: int = 0
    insertions: int = 0
    deletions: int = 0
    is_merged: bool = False
    warnings: tuple[str, ...] = ()
    question: str = ""  # what a person should know before they merge it
    diff: str = ""
    changed: tuple[str, ...] = ()
    is_whole: bool = True  # False: it may hold half-done files


@dataclass(frozen=True, slots=True)
class NotMerged:
    """Nothing of the change is in the workspace; all of it is in the artifact."""

    artifact: str
    error: str
    paths: tuple[str, ...] = ()
    files: int = 0
    insertions: int = 0
    deletions: int = 0
    is_refused: bool = False  # whatever the workspace holds
    diff: str = ""
    changed: tuple[str, ...] = ()
    is_whole: bool = True
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """The change is kept in the artifact, and not merged before a person has allowed it."""

    artifact: str
    question: str
    files: int = 0
    insertions: int = 0
    deletions: int = 0
    is_whole: bool = True
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UndeclaredChanges:
    """What changed in a shared workspace that no step had declared."""

    paths: tuple[str, ...]
    # The whole workspace was looked at, and nothing in the step's write set changed.
    is_unchanged: bool = False
    repositories: tuple[str, ...] = ()  # made meanwhile, and renamed
    own: tuple[str, ...] = ()  # what changed in the step's write set


@dataclass(frozen=True, slots=True)
class Undone:
    """A merge was undone, except for files that somebody else had changed since."""

    paths: tuple[str, ...]
    kept: str  # where these files are as they were before the merge


class Workspaces(Protocol):
    async def recover(self, workspace: Path) -> tuple[Undone, ...]:
        """Finish or undo what a crash left half done. Before anything reads the workspace."""
        ...

    async def unfinished(self) -> tuple[Path, ...]:
        """Workspaces with a merge that a crash left half done."""
        ...

    async def watch(self, shared: SharedWorkspace) -> None:
        """Remember how the shared workspace looks, before a writer begins."""
        ...

    async def undeclared_changes(
        self, shared: SharedWorkspace, declared: Sequence[str]
    ) -> UndeclaredChanges:
        """What changed since `watch` and is in none of these sets, and whether the step's own set changed."""
        ...

    async def open(self, copy: WorkspaceCopy) -> Path:
        """The folder of the copy, made if it is not there. Raises StrettoError."""
        ...

    async def collect(self, copy: WorkspaceCopy, terms: MergeTerms) -> Collected | NotMerged | Held:
        """Keep the change, and merge it back if asked. A second call does nothing."""
        ...

    async def can_reuse(self, copy: WorkspaceCopy, terms: MergeTerms) -> bool:
        """Whether the change that an earlier run's answer came with is there, and would be taken."""
        ...

    async def can_reuse_shared(self, shared: SharedWorkspace, run_id: str) -> bool:
        """Whether all is there that the same step wrote in the workspace itself, in that run."""
        ...

    async def look(self, files: FilesToRead) -> FilesDigest:
        """How these files are now, remembered until `note_read`."""
        ...

    async def note_read(self, files: FilesToRead) -> str:
        """Keep for later runs what `look` saw. Out: its digest; empty if something has changed since
        that the command did not write itself, or nothing could be compared."""
        ...

    async def can_reuse_read(
        self, files: FilesToRead, run_id: str, step: StepId, part: str, later: Sequence[StepId]
    ) -> bool:
        """Whether these files are as that part of that run has read them, or as its steps `later` left
        them. If so, what was noted there is noted for this run too."""
        ...

    async def discard(self, copy: WorkspaceCopy) -> None:
        """Remove the copy. Only once what became of its change is on record."""
        ...

    async def release(self, run_id: str) -> None:
        """Remove all copies of a run whose end is on record."""
        ...

    async def remove_run(self, run_id: str) -> None:
        """Remove all files that are kept of a run that has ended: changes, notes, logs, pages."""
        ...

    async def leftovers(self) -> dict[str, tuple[Path, ...]]:
        """What `release` would remove, by run; under "" what nobody needs whatever a run says."""
        ...

    async def empty_trash(self) -> None: ...
