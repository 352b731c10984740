"""`stretto apply RUN STEP`: merge what an isolated writer changed, where that was left to you."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from stretto.assembly.changes import AppliedChange, ApplyOptions, apply_change
from stretto.assembly.json_forms import applied_as_json
from stretto.assembly.run import user_name
from stretto.cli.foreground import OpenStretto
from stretto.cli.handles import find_run
from stretto.cli.options import json_option, run_before
from stretto.cli.terminal import print_json, say
from stretto.text.short import counted
from stretto.vocabulary.names import StepId


@click.command("apply")
@run_before("STEP")
@click.argument("step", metavar="STEP", required=False)
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
    step: str | None,
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
    options = ApplyOptions(
        dry_run, unfinished, allow_removals, allow_secrets, resolved, ours, theirs
    )
    applied, has_files = asyncio.run(_apply(run, step, options, as_json))
    if as_json:
        print_json(applied_as_json(applied))
    else:
        _print(applied, has_files)


async def _apply(
    handle: str | None, named: str | None, options: ApplyOptions, as_json: bool
) -> tuple[AppliedChange, bool]:
    """What was applied, and whether the step had changed any file."""
    handle, named = (handle, named) if named is not None else (None, handle)
    step = StepId(named or "")
    async with OpenStretto() as stretto:
        run_id = await find_run(stretto, handle, as_json)
        runs = await stretto.engine.runs_of()
        history = await runs.history(run_id)
        runs.check(history)
        project = stretto.engine.project_of(history)
        # Not `Run.apply`: Ctrl-C would end the loop between the merge and its record.
        with _ignored_signals() as at:
            applied = apply_change(project, history, step, options, at)
            if not options.is_dry_run:
                await runs.note_applied(run_id, step, user_name())
        made = history.state.steps[step].changes
        # The record of a change that was kept only after its step had ended names no files.
        return applied, made is None or made.applied_by is not None or bool(made.files)


@contextmanager
def _ignored_signals() -> Iterator[Callable[[str], None]]:
    """Ignore signals from when the merge holds the workspace's lock: it is soon done, and must be
    recorded. Yields what `apply_change` calls at each point that it reaches."""
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


def _print(applied: AppliedChange, has_files: bool) -> None:
    if applied.was_merged:
        why = "it was merged before" if has_files else f"step '{applied.step}' changed no file"
        say(f"{why}; nothing is left to do")
        return
    word = "would change" if applied.is_dry_run else "changed"
    say(f"{word} {counted(len(applied.files), 'file')}")
    for path in applied.files:
        say(f"  {path}")
    for each in applied.left:
        say(f"  {each.path} stays as it is: {each.why}")
