"""Workspaces on this machine. In: a Plot. Out: a copy for its writer, and the change merged back.

HOME/workspaces/RUN/STEP/COPY/      the writer's copy, removed once its change is kept
HOME/workspaces/RUN/STEP/change/    the change, for `weft diff` and `weft apply`
HOME/merges/                        what undoes a merge that a crash cut off
"""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from weft.plan.globs import Glob, parse_glob
from weft.ports.workspace import Collected, NotMerged, Plot, Strays
from weft.problems.errors import NotFound
from weft.vocabulary.names import listed
from weft.workspaces.diff import find_changes, open_changes, outside
from weft.workspaces.entries import Changes
from weft.workspaces.isolate import isolate, open_isolated, remove_tree
from weft.workspaces.merge import Conflict
from weft.workspaces.merge_back import merge_back
from weft.workspaces.patch import summarize
from weft.workspaces.undo import recover_merges
from weft.workspaces.watching import Snapshot, differences, look


class LocalWorkspaces:
    def __init__(self, home: Path) -> None:
        self._home = home
        self._opening: dict[Plot, asyncio.Lock] = {}
        self._looks: dict[Plot, Snapshot] = {}

    async def recover(self, workspace: Path) -> None:
        await asyncio.to_thread(recover_merges, workspace, self._home)

    async def watch(self, plot: Plot) -> None:
        if plot not in self._looks:
            self._looks[plot] = await asyncio.to_thread(look, plot.workspace)

    async def strays(self, plot: Plot, declared: Sequence[str]) -> Strays:
        before = self._looks.pop(plot, None)
        if before is None:  # another process began it
            return Strays(())
        after = await asyncio.to_thread(look, plot.workspace)
        # Our own folder may lie in the workspace, and we write all the time.
        own = os.path.relpath(self._home.resolve(), plot.workspace.resolve())
        strays = differences(before, after, declared)
        return Strays(tuple(path for path in strays if not path.startswith(f"{own}/")))

    async def open(self, plot: Plot) -> Path:
        # The parts of a fan start together and share one copy: the first makes it.
        async with self._opening.setdefault(plot, asyncio.Lock()):
            return await asyncio.to_thread(self._open, plot)

    async def collect(
        self, plot: Plot, write_set: Sequence[str], is_merged: bool
    ) -> Collected | NotMerged:
        # Shielded: whoever stops waiting does not stop a merge halfway.
        working = asyncio.to_thread(self._collect, plot, globs_of(write_set), is_merged)
        return await asyncio.shield(working)

    def artifact(self, run_id: str, step: str) -> Path:
        return self._home / "workspaces" / run_id / step / "change"

    def _open(self, plot: Plot) -> Path:
        home = self._copy(plot)
        try:
            return open_isolated(home).root
        except NotFound:
            asked = globs_of(plot.write_set)
            return isolate(plot.workspace, home, asked=asked, engine_home=self._home).root

    def _collect(
        self, plot: Plot, write_set: Sequence[Glob], is_merged: bool
    ) -> Collected | NotMerged:
        artifact = self.artifact(plot.run_id, plot.step)
        changes = self._changes(plot, artifact)
        if changes is None:
            return Collected("")  # nobody worked there: its answer was reused
        figures = summarize(changes)
        counts = (len(changes.changes), figures.added, figures.removed)
        said = self._said(changes)
        if not is_merged:
            return Collected(str(artifact), *counts, is_merged=False, warnings=said)
        strays = outside(changes, write_set)
        if strays:
            error = f"it changed files outside its write-set: {listed(strays)}"
            return NotMerged(str(artifact), error, strays, *counts)
        merged = merge_back(changes, plot.workspace, self._home)
        if isinstance(merged, Conflict):
            clashes = "; ".join(f"{clash.path}: {clash.why}" for clash in merged.clashes[:5])
            error = f"its changes conflict with the workspace ({clashes}); all sides: {merged.kept}"
            return NotMerged(str(artifact), error, merged.paths, *counts)
        return Collected(str(artifact), *counts, is_merged=True, warnings=said)

    def _changes(self, plot: Plot, artifact: Path) -> Changes | None:
        """Once a change is kept its copy may go; a crash in between finds one or the other."""
        copy = self._copy(plot)
        try:
            isolated = open_isolated(copy)
        except NotFound:
            try:
                return open_changes(artifact)
            except NotFound:
                return None
        changes = find_changes(isolated, artifact)
        remove_tree(copy)
        return changes

    def _said(self, changes: Changes) -> tuple[str, ...]:
        left = [f"{each.path} was not taken along: {each.why}" for each in changes.left[:10]]
        return (*left, *(f"{each.path} was refused: {each.why}" for each in changes.refused[:10]))

    def _copy(self, plot: Plot) -> Path:
        return self._home / "workspaces" / plot.run_id / plot.step / f"copy-{plot.copy}"


def globs_of(texts: Sequence[str]) -> list[Glob]:
    return [glob for text in texts if isinstance(glob := parse_glob(text), Glob)]
