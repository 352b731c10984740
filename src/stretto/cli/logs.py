"""`stretto logs`: what was said and done in a run: prompts, words, tool calls, rejected answers."""

import asyncio
import time
from dataclasses import asdict

import click

from stretto.assembly.project import Project
from stretto.cli.left_off import say_why_left
from stretto.cli.options import json_option
from stretto.cli.project import open_project
from stretto.cli.steps import known_step
from stretto.cli.streams import has_reader
from stretto.cli.terminal import print_json, say
from stretto.events.codec import UnknownEvent
from stretto.events.model import Event
from stretto.execution.runs import Runs
from stretto.report.transcript import Log, LogEntry
from stretto.vocabulary.ids import RunId

_LOOK_SECONDS = 0.2


@click.command("logs")
@click.argument("run")
@click.argument("step", required=False)
@click.option("--follow", "-f", is_flag=True, help="Go on until the run ends.")
@json_option
def command(run: str, step: str | None, follow: bool, as_json: bool) -> int | None:
    """Show what was said and done: prompts, words, tool calls with results, rejected answers.

    With a STEP: of that step alone. Long results are shortened in the journal already.

    With --follow, until the run ends, or until nobody drives it: where a step awaits approval the
    exit code is 3, and 1 where the run was interrupted.
    """
    project = open_project()
    return asyncio.run(_print(project, RunId(run), step, follow, _Printer(project, as_json)))


async def _print(
    project: Project, run_id: RunId, step: str | None, follow: bool, printer: "_Printer"
) -> int | None:
    """None: all was printed that there is, or as much as anybody reads."""
    async with project.runs() as runs:
        history = await runs.history(run_id)
        if step is not None:
            known_step(history, step)
        log, after = Log(history.state.plan), 0
        while True:
            # Asked first: whoever lets the run go has written all that there is to read.
            is_driven = follow and await runs.is_driven(run_id)
            events, after = await _new(runs, run_id, after)
            for event in events:
                for entry in log.read(event):
                    if step in (None, entry.step):
                        printer.show(entry)
            if not follow or not has_reader():
                return None
            if not is_driven:
                return say_why_left((await runs.history(run_id)).state)
            await asyncio.sleep(_LOOK_SECONDS)


async def _new(runs: Runs, run_id: RunId, after: int) -> tuple[list[Event], int]:
    stored = await runs.events(run_id, after)
    events = [each.event for each in stored if not isinstance(each.event, UnknownEvent)]
    return events, stored[-1].seq if stored else after


class _Printer:
    def __init__(self, project: Project, as_json: bool) -> None:
        self._hide = project.redactor.text
        self._as_json = as_json
        self._last: tuple[object, ...] = ()

    def show(self, entry: LogEntry) -> None:
        text = self._hide(entry.text)
        if self._as_json:
            print_json({**asdict(entry), "text": text})
            return
        if entry.place != self._last:
            part = f"/{entry.part}" if entry.part else ""
            at = time.strftime("%H:%M:%S", time.localtime(entry.at))
            say(f"\n== {entry.step}{part}, attempt {entry.attempt} by {entry.agent}, {at}")
            self._last = entry.place
        say(f"-- {entry.kind}")
        say("\n".join(f"   {line}" for line in text.splitlines()))
