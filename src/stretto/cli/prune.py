"""`stretto prune`: remove what crashes have left behind. Nothing of yours, and nothing that a run needs."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from stretto.cli.foreground import OpenStretto
from stretto.cli.options import json_option
from stretto.cli.terminal import print_json, say
from stretto.ports.workspace import Undone
from stretto.text.short import listed


@dataclass(frozen=True, slots=True)
class _Pruned:
    copies: Mapping[str, tuple[Path, ...]]  # by run; "": what was being removed when a process died
    workspaces: tuple[Path, ...]  # with a merge that a crash had cut off
    undone: tuple[Undone, ...] = ()

    @property
    def folders(self) -> tuple[Path, ...]:
        return tuple(folder for folders in self.copies.values() for folder in folders)


@click.command("prune")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@json_option
def command(dry_run: bool, as_json: bool) -> None:
    """Remove copies that crashes left behind, and finish or undo merges that were interrupted.

    Each run does this too when it starts. Changes (for stretto diff and stretto apply), copies whose
    change could not be stored, and whatever an unfinished run needs are kept.
    """
    pruned = asyncio.run(_prune(dry_run))
    if as_json:
        print_json(
            {
                "ok": True,
                "dry_run": dry_run,
                "removed": [str(folder) for folder in pruned.folders],
                "settled": [str(workspace) for workspace in pruned.workspaces],
                "left": [{"paths": list(it.paths), "kept": it.kept} for it in pruned.undone],
            }
        )
        return
    _say(pruned, dry_run)


async def _prune(dry_run: bool) -> _Pruned:
    async with OpenStretto() as stretto:
        runs = await stretto.engine.runs_of()
        pruned = _Pruned(await runs.litter(), await runs.unsettled())
        if dry_run:
            return pruned
        undone = await runs.settle()
        await runs.sweep()
        return _Pruned(pruned.copies, pruned.workspaces, undone)


def _say(pruned: _Pruned, dry_run: bool) -> None:
    if not pruned.folders and not pruned.workspaces:
        say("nothing is left over")
        return
    for folder in pruned.folders:
        say(f"{'would remove' if dry_run else 'removed'} {folder}")
    for workspace in pruned.workspaces:
        say(f"{'would settle' if dry_run else 'settled'} a merge into {workspace}")
    for each in pruned.undone:
        say(f"changed since, and left as they are: {listed(each.paths)}")
        say(f"  as they were before the merge: {each.kept}")
