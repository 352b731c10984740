"""What copies of a workspace leave out. In: a workspace, a step's sets. Out: paths, before any run.

What a set names is copied although it is ignored. What a set only covers, as `src/**` covers an
ignored `src/generated`, is left out, and so are repositories inside that are no submodules.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from stretto.globs.glob import Glob
from stretto.globs.pattern import ANY, EVERY_NAME
from stretto.workspaces.git import find_repository, own_git_dir, tracked_paths
from stretto.workspaces.limits import WorkspaceLimits
from stretto.workspaces.listing import (
    SKIPPED_NAMES,
    Selection,
    covers_below,
    list_workspace,
    names_path,
    outer_rules,
)
from stretto.workspaces.rooted_dir import RootedDir


@dataclass(frozen=True, slots=True)
class LeftOut:
    ignored: tuple[str, ...]  # files, and whole folders
    repositories: tuple[str, ...]

    def covered_by(self, sets: Sequence[Glob]) -> tuple[str, ...]:
        """What these sets cover, and a copy for them leaves out. Caches are nobody's loss."""
        meant = [glob for glob in sets if _says_where(glob)]
        return tuple(
            path
            for path in self.ignored
            if path.rpartition("/")[2] not in SKIPPED_NAMES
            and any(glob.matches(path) or covers_below(glob, path) for glob in meant)
            and not any(names_path(glob, path) for glob in sets)
        )

    def repositories_for(self, sets: Sequence[Glob]) -> tuple[str, ...]:
        return tuple(
            path for path in self.repositories if not any(names_path(glob, path) for glob in sets)
        )


def find_left_out(workspace: Path, apart: Iterable[str], limits: WorkspaceLimits) -> LeftOut:
    """Raises StrettoError: the workspace is too large for a copy, say."""
    workspace = workspace.resolve()
    repository = find_repository(workspace)
    tracked = frozenset[str]()
    if repository is not None:
        with TemporaryDirectory(prefix="stretto-git-") as own:
            own_git_dir(repository, Path(own) / "git")
            tracked = tracked_paths(repository, Path(own) / "git", workspace)
    with RootedDir(workspace) as rooted:
        selection = Selection(tracked, apart=frozenset(apart))
        listing = list_workspace(rooted, selection, limits, outer_rules(repository, workspace))
    return LeftOut(listing.left_out, tuple(left.path for left in listing.left))


def _says_where(glob: Glob) -> bool:
    """Not so `**/*`, the set of a step that says nothing."""
    return any(segment not in (ANY, EVERY_NAME) for pattern in glob.patterns for segment in pattern)
