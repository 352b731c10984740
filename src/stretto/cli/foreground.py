"""Drive a run in the foreground: show it, ask at gates, stop it on Ctrl-C, print what it gave."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Timer

import click

from stretto.assembly.request import PreparedRun, RunRequest
from stretto.assembly.surface import Surface
from stretto.cli import streams
from stretto.cli.progress.lines import JsonLines, Lines
from stretto.cli.project import open_project
from stretto.cli.result import ResultOptions, print_failure, print_result, print_summary
from stretto.cli.terminal import print_warnings, say
from stretto.execution.driver import Listener
from stretto.plan.model import Plan
from stretto.problems.errors import NotReady, NotTrusted
from stretto.report.conclusion import chat_of_turn
from stretto.report.report import report_of
from stretto.schedule.state import RunState
from stretto.schedule.status import is_overdue
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import RunStatus

FAILED = 1
SLOW_SECONDS = 1.0  # longer silence looks as if the command hung
WAITING = 3
INTERRUPTED = 130
_EXIT_CODES = {RunStatus.COMPLETE: 0, RunStatus.WAITING: WAITING}


class OpenStretto(Surface):
    """A Stretto that asks whether a folder is trusted, if there is somebody at the terminal."""

    def __init__(self) -> None:
        super().__init__(open_project)


async def prepare(stretto: Surface, request: RunRequest, result: ResultOptions) -> PreparedRun:
    """A run that may start. Its warnings, and which model it asks, are printed."""
    as_json = result.as_json
    request = replace(request, is_folder_asked=can_ask(result))
    doing = "preparing the run: looking at its models, tools and servers"
    try:
        with tell_if_slow(doing, result) as tell:
            prepared = await stretto.prepare(replace(request, tell=tell))
    except NotReady as error:
        from stretto.cli.models_pull import pull_missing  # only who lacks weights needs it

        if as_json or not pull_missing(stretto.project, error):
            raise
        prepared = await stretto.prepare(request)
    if request.recipe is not None and request.is_folder_asked:
        try:
            prepared.project.check_namesakes(prepared.plan)
        except NotTrusted as error:  # the person has said no: the run goes on, with this warning
            say(error.with_hint, err=True, mark="warning:", colour="yellow")
    # A run that is resumed has had its warnings before.
    is_told = not (as_json or result.is_quiet or request.is_resumed)
    print_warnings(prepared.warnings if is_told else ())
    for notice in () if result.is_quiet else prepared.notices:
        # With --json, the journal tells which models are asked: only the other notices are printed.
        if not as_json or notice not in prepared.models.notes:
            say(notice, err=True)
    return prepared


@contextmanager
def tell_if_slow(doing: str, result: ResultOptions) -> Iterator[Callable[[str], None]]:
    """Say at the terminal what is being done, once it takes long. In a thread, because an import
    may hold up the event loop. Yields a function that names what is done from then on."""
    if result.as_json or result.is_quiet or not sys.stderr.isatty():
        yield lambda doing: None
        return
    timers: list[Timer] = []

    def begin(doing: str) -> None:
        for timer in timers:
            timer.cancel()
        timers[:] = [Timer(SLOW_SECONDS, say, [f"{doing} …"], {"err": True})]
        timers[0].daemon = True
        timers[0].start()

    begin(doing)
    try:
        yield begin
    finally:
        timers[0].cancel()


async def drive(stretto: Surface, prepared: PreparedRun, result: ResultOptions) -> int:
    """Drive the run, and print what it gave. Returns the exit code."""
    state, was_stopped = await drive_with_progress(stretto, prepared, result)
    await print_end(stretto, state, result, was_stopped)
    return INTERRUPTED if was_stopped else exit_code(state)


async def drive_with_progress(
    stretto: Surface, prepared: PreparedRun, result: ResultOptions
) -> tuple[RunState, bool]:
    """Until the run has ended, was stopped, or waits for somebody who is not at this terminal.
    Returns the state in which it was left, and whether a signal stopped it."""
    postponed: set[StepId] = set()
    while True:
        with open_progress(prepared.plan, result, stretto.engine.now) as listener:
            state, was_stopped = await _drive(stretto, prepared, listener)
        if was_stopped or not state.awaiting_approval or not can_ask(result):
            break
        from stretto.cli.gate import ask_at_gates  # few runs have a gate

        try:
            has_decided = await ask_at_gates(stretto, prepared, state, postponed)
        except (click.Abort, KeyboardInterrupt):
            was_stopped = True
            break
        if not has_decided:
            break
        prepared = prepared.resumed()
    return state, was_stopped


async def _drive(
    stretto: Surface, prepared: PreparedRun, listener: Listener
) -> tuple[RunState, bool]:
    """The state in which the run was left, and whether a signal stopped it before its end."""
    runs = await stretto.engine.runs_of(prepared.project, prepared.accepted)
    with stopped_by_signals(runs.stop) as signals:
        run = await stretto.launch(prepared, listener)
        state = await run.state()
    return state, signals.has_come and not state.has_ended


@dataclass(slots=True)
class Signals:
    has_come: bool = False


_heard: set[int] = set()  # signals by which work of this process was stopped


def is_terminated() -> bool:
    """Whether SIGTERM or SIGHUP has stopped work of this process: it is to begin no other."""
    return bool(_heard & {signal.SIGTERM, signal.SIGHUP})


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[Signals]:
    """Call `stop` at Ctrl-C, SIGTERM and SIGHUP; a second Ctrl-C ends the process."""
    loop, signals, numbers = asyncio.get_running_loop(), Signals(), stop_signals()

    def hear(number: int) -> None:
        signals.has_come = True
        _heard.add(number)
        loop.remove_signal_handler(signal.SIGINT)
        stop()

    for number in numbers:
        loop.add_signal_handler(number, hear, number)
    try:
        yield signals
    finally:
        # A question at a gate blocks the loop, so its handlers would never be called.
        for number in numbers:
            loop.remove_signal_handler(number)
        streams.end_on_signals()


def hear_stop_signals() -> asyncio.Event:
    """An event that is set when SIGINT, SIGTERM or SIGHUP comes, unless the signal is ignored."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in stop_signals():
        loop.add_signal_handler(number, stopped.set)
    return stopped


async def wait_until_stopped(serving: asyncio.Task[None], stopped: asyncio.Event) -> None:
    """Until the service ends by itself, or `stopped` is set. Raises what the service raised."""
    stopping = asyncio.create_task(stopped.wait())
    await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if serving.done():
        serving.result()


def can_ask(result: ResultOptions) -> bool:
    return not result.as_json and sys.stdin.isatty() and sys.stderr.isatty()


def stop_signals() -> tuple[signal.Signals, ...]:
    """Those by which a person stops a command. One that is ignored stays ignored: a script ignores
    SIGINT for what it starts in the background, and nohup SIGHUP."""
    known = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return tuple(each for each in known if signal.getsignal(each) is not signal.SIG_IGN)


@contextmanager
def open_progress(
    plan: Plan, result: ResultOptions, now: Callable[[], float], is_watching: bool = False
) -> Iterator[Listener]:
    """A listener that shows the run as it goes, on stderr: a live view on a terminal, else lines.
    With --json, events on stdout."""
    if result.as_json and result.is_streamed:
        yield JsonLines()
    elif result.is_quiet or result.as_json:
        yield lambda event, state: None
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        from stretto.cli.progress.view import LiveView

        with LiveView(plan, now=now, is_watching=is_watching) as view:
            yield view
    else:
        yield Lines(plan)


def exit_code(state: RunState) -> int:
    return _EXIT_CODES.get(state.status, FAILED)


async def print_end(
    stretto: Surface, state: RunState, result: ResultOptions, was_stopped: bool = False
) -> None:
    """The answer, and beside it what the user should know and could do next."""
    # Nobody drives the run when this is printed: what has not ended is interrupted.
    report = report_of(state, is_interrupted=not state.has_ended, now=stretto.engine.now())
    word = await stretto.engine.word_of(report.run_id, report.workflow, report.status)
    report = replace(report, status=word)
    print_result(report, result)
    if result.is_opened:
        from stretto.cli.page import show_page  # few ask for a browser

        await show_page(stretto, report.run_id)
    if result.is_quiet:
        print_failure(report)
    elif not result.as_json:
        print_summary(report, was_stopped)


def explain_gates(state: RunState, now: float) -> int:
    """Which steps await a person, and whose deadline has passed, on stderr; and the exit code."""
    for step in state.awaiting_approval:
        if is_overdue(state, step, now):
            go_on = f"stretto resume {state.run_id}"
            say(f"the deadline of {step} has passed: {go_on} continues without it", err=True)
        else:
            say(f"{step} awaits approval: stretto approve {state.run_id} {step} --show", err=True)
    return WAITING


async def explain_left(stretto: Surface, state: RunState, has_summary: bool = False) -> int:
    """Why nothing more will come from a run that was followed, on stderr; and the exit code.
    `has_summary`: the next commands have been printed."""
    if state.has_ended:
        return exit_code(state)
    resume = f"stretto resume {state.run_id}"
    if state.awaiting_approval:
        return WAITING if has_summary else explain_gates(state, stretto.engine.now())
    if chat := chat_of_turn(state.plan.name, state.trigger, state.steps):
        resume = f"stretto chat --resume {chat}"
        if await stretto.open(state.run_id).status() == RunStatus.WAITING:
            say(f"the chat asks a person: {resume}", err=True)
            return WAITING
    go_on = "" if has_summary else f"; continue it with: {resume}"
    say(f"no process drives this run{go_on}", err=True)
    return FAILED
