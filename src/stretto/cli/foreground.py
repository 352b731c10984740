"""Drive a run in the foreground: show it, stop it on Ctrl-C, print its report, give its code."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import click

from stretto.adapters.clock import SystemClock
from stretto.assembly.chosen import Chosen
from stretto.assembly.project import Project
from stretto.cli import streams
from stretto.cli.gate import can_ask, decide_here
from stretto.cli.progress.lines import JsonLines, Lines
from stretto.cli.terminal import print_report_json, say
from stretto.execution.driver import Listener
from stretto.execution.runs import Runs
from stretto.plan.model import Plan
from stretto.ports.runner import Runner
from stretto.problems.errors import NotReady
from stretto.report.markdown import as_markdown
from stretto.report.report import report_of
from stretto.schedule.state import RunState
from stretto.vocabulary.ids import RunId, StepId
from stretto.vocabulary.statuses import RunStatus

INTERRUPTED = 130
WAITING = 3
_EXIT_CODES = {RunStatus.COMPLETE: 0, RunStatus.WAITING: WAITING}

Drive: TypeAlias = Callable[[Runs, Runner, Listener], Awaitable[RunState]]


def drive(
    project: Project,
    plan: Plan,
    model: str | None,
    as_json: bool,
    start: Drive,
    permission: str = "auto",
) -> int:
    chosen = choose(project, plan, model, as_json)
    postponed: set[StepId] = set()
    while True:
        with showing(plan, as_json) as listener:
            state, was_stopped = asyncio.run(_drive(project, chosen, start, listener))
        streams.end_on_signals()  # the loop had them while it ran
        if was_stopped or not state.awaiting_approval or not can_ask(as_json):
            break
        # Not inside an event loop: that would keep Ctrl-C for itself.
        try:
            can_go_on = decide_here(project, state, postponed)
        except (click.Abort, KeyboardInterrupt):
            was_stopped, can_go_on = True, False
        if not can_go_on:
            break
        start = _resuming(RunId(state.run_id), permission)
    print_report(state, as_json)
    sys.stdout.flush()
    if not as_json:
        _print_next(state, was_stopped)
    return INTERRUPTED if was_stopped else exit_code(state)


def exit_code(state: RunState) -> int:
    return _EXIT_CODES.get(state.status, 1)


def _resuming(run_id: RunId, permission: str) -> Drive:
    return lambda runs, runner, listener: runs.resume(run_id, runner, listener, permission)


def choose(project: Project, plan: Plan, model: str | None, as_json: bool) -> Chosen:
    try:
        chosen = asyncio.run(project.choose(plan, model))
    except NotReady as error:
        from stretto.cli.models_pull import pull_missing  # only who lacks weights needs it

        if as_json or not pull_missing(project, error):
            raise
        chosen = asyncio.run(project.choose(plan, model))
    for line in () if as_json else chosen.said:
        say(line, err=True)
    return chosen


@contextmanager
def showing(plan: Plan, as_json: bool, is_watching: bool = False) -> Iterator[Listener]:
    if as_json:
        yield JsonLines()
    elif sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        from stretto.cli.progress.view import LiveView

        with LiveView(plan, is_watching=is_watching) as view:
            yield view
    else:
        yield Lines(plan)


async def _drive(
    project: Project, chosen: Chosen, start: Drive, listener: Listener
) -> tuple[RunState, bool]:
    async with project.runs() as runs, project.runner(chosen) as runner:
        stopped = asyncio.Event()

        def stop() -> None:
            # The second Ctrl-C is the system's own: it kills.
            loop.remove_signal_handler(signal.SIGINT)
            stopped.set()
            runs.stop()

        loop = asyncio.get_running_loop()
        for number in stop_signals():
            loop.add_signal_handler(number, stop)
        state = await start(runs, runner, listener)
        return state, stopped.is_set() and not state.has_ended


def stop_signals() -> tuple[signal.Signals, ...]:
    """A closed terminal (SIGHUP) ends a run like SIGTERM, unless nohup has it ignored."""
    is_kept_up = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM, *(() if is_kept_up else (signal.SIGHUP,)))


def print_report(state: RunState, as_json: bool) -> None:
    # Whoever prints this drives the run no longer.
    report = report_of(state, is_interrupted=not state.has_ended, now=SystemClock().now())
    if as_json:
        print_report_json(report)
    else:
        say(f"\n{as_markdown(report)}")


def _print_next(state: RunState, was_stopped: bool) -> None:
    if state.awaiting_approval:
        say("\nIt awaits approval:", err=True)
        for step in state.awaiting_approval:
            place = f"{state.run_id} {step}"
            say(f"  stretto approve {place} --show", err=True)
            say(f"  stretto approve {place}     (or stretto reject {place})", err=True)
    if was_stopped:
        say(f"\nstopped; it goes on with: stretto resume {state.run_id}", err=True)
