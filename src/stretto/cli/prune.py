"""`stretto prune`: remove finished runs that are no longer wanted, and what crashes have left behind."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from stretto.cli.foreground import OpenStretto
from stretto.cli.handles import find_run
from stretto.cli.options import json_option
from stretto.cli.terminal import print_json, say
from stretto.execution.runs import Runs
from stretto.ports.journal import RunRow
from stretto.ports.workspace import Undone
from stretto.problems.errors import InvalidUsage
from stretto.text.short import listed
from stretto.vocabulary.amounts import Retention, parse_duration

_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class _Pruned:
    copies: Mapping[str, tuple[Path, ...]]  # by run; "": those whose removal a crash cut short
    workspaces: tuple[Path, ...]  # with a merge that a crash cut short
    runs: tuple[str, ...]
    kept: tuple[str, ...]  # runs that would have gone, but a change of theirs is not merged
    undone: tuple[Undone, ...] = ()

    @property
    def folders(self) -> tuple[Path, ...]:
        return tuple(folder for folders in self.copies.values() for folder in folders)


@click.command("prune")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "--keep", type=click.IntRange(0), metavar="N", help="Keep the newest N finished runs."
)
@click.option(
    "--older-than", "age", metavar="AGE", help="Remove finished runs of that age, such as 30d."
)
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@json_option
def command(
    runs: tuple[str, ...], keep: int | None, age: str | None, dry_run: bool, as_json: bool
) -> None:
    """Remove finished runs that are no longer wanted, and what crashes left behind.

    Which runs: those that are named; else those beyond --keep or --older-than, or beyond `retention:`
    of your own stretto.yaml, which each run that starts applies too. With a run, its journal, its
    changes, its cached answers and its logs are removed. A run that waits for a person or can be
    resumed is never removed; one whose change is not merged only if it is named.

    Copies that crashes have left are removed, and merges that they cut off are finished or undone.
    """
    if runs and (keep is not None or age is not None):
        raise InvalidUsage("name runs, or say which to keep: not both")
    pruned = asyncio.run(_prune(runs, keep, _read_age(age), dry_run, as_json))
    if as_json:
        print_json(
            {
                "ok": True,
                "dry_run": dry_run,
                "runs": list(pruned.runs),
                "kept": list(pruned.kept),
                "removed": [str(folder) for folder in pruned.folders],
                "settled": [str(workspace) for workspace in pruned.workspaces],
                "left": [{"paths": list(it.paths), "kept": it.kept} for it in pruned.undone],
            }
        )
        return
    _say(pruned, dry_run)


def _read_age(written: str | None) -> float | None:
    seconds = None if written is None else parse_duration(written)
    if written is not None and seconds is None:
        raise InvalidUsage(
            f"--older-than {written} is no duration", hint="such as 12h, 30d or 365d"
        )
    return seconds


async def _prune(
    handles: Sequence[str], keep: int | None, age: float | None, dry_run: bool, as_json: bool
) -> _Pruned:
    async with OpenStretto() as stretto:
        runs, own = await stretto.engine.runs_of(), stretto.project.settings.retention
        retention = Retention(
            own.runs if keep is None else keep, own.age_seconds if age is None else age
        )
        named = [await find_run(stretto, handle, as_json) for handle in handles]
        going: Sequence[RunRow] = [await runs.removal.check_ended(run_id) for run_id in named]
        kept: Sequence[RunRow] = ()
        if not named:
            expired = await runs.removal.expired(retention, stretto.engine.now())
            going, kept = expired.runs, expired.needed
        ids = dict.fromkeys(row.run_id for row in going)
        removed = ids if dry_run else await runs.removal.remove(list(ids))
        found = await _clean(runs, dry_run)
        if removed and not dry_run:
            await runs.removal.compact()
        return _Pruned(*found[:2], tuple(removed), tuple(row.run_id for row in kept), found[2])


async def _clean(
    runs: Runs, dry_run: bool
) -> tuple[Mapping[str, tuple[Path, ...]], tuple[Path, ...], tuple[Undone, ...]]:
    """What crashes have left."""
    copies, workspaces = await runs.litter(), await runs.unsettled()
    if dry_run:
        return copies, workspaces, ()
    undone = await runs.settle()
    await runs.sweep()
    return copies, workspaces, undone


def _say(pruned: _Pruned, dry_run: bool) -> None:
    remove = "would remove" if dry_run else "removed"
    if pruned.runs:
        count = len(pruned.runs)
        say(f"{remove} {count:,} run{'s' * (count > 1)}: {listed(pruned.runs, _MOST_NAMED)}")
    if pruned.kept:
        say(f"kept, because a change of theirs is not merged: {listed(pruned.kept, _MOST_NAMED)}")
        say("  stretto report RUN shows it; stretto prune RUN removes it anyway")
    for folder in pruned.folders:
        say(f"{remove} {folder}")
    for workspace in pruned.workspaces:
        say(f"{'would settle' if dry_run else 'settled'} a merge into {workspace}")
    for each in pruned.undone:
        say(f"changed since, and left as they are: {listed(each.paths)}")
        say(f"  as they were before the merge: {each.kept}")
    if not (pruned.runs or pruned.kept or pruned.folders or pruned.workspaces):
        say("nothing is left over")
