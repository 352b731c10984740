"""`stretto logs`: what was said and done in a run: prompts, words, tool calls, rejected answers."""

import asyncio
import time
from dataclasses import asdict

import click

from stretto.assembly.project import Project
from stretto.cli.foreground import OpenStretto, explain_left
from stretto.cli.handles import find_step
from stretto.cli.options import json_option
from stretto.cli.streams import has_reader
from stretto.cli.terminal import print_json, say, say_piece
from stretto.events.codec import UnknownEvent
from stretto.report.transcript import LastWords, Log, LogEntry, WholeWords


@click.command("logs")
@click.argument("run", required=False)
@click.argument("step", required=False)
@click.option("--follow", "-f", is_flag=True, help="Go on until the run ends.")
@json_option
def command(run: str | None, step: str | None, follow: bool, as_json: bool) -> int | None:
    """Show what was said and done: prompts, words, tool calls with results, rejected answers.

    With a STEP: of that step alone, or of all in it if it is a workflow. Long results are shortened in the journal already.

    With --follow, until the run ends or no process drives it. The exit code is then that of
    the run; 3 where a step awaits approval, 1 where the run was interrupted.
    """
    return asyncio.run(_print(run, step, follow, as_json))


async def _print(handle: str | None, step: str | None, follow: bool, as_json: bool) -> int | None:
    """None: all was printed that there is, or as much as anybody reads."""
    async with OpenStretto() as stretto:
        run_id, step = await find_step(stretto, handle, step, as_json)
        run, printer = stretto.open(run_id), _Printer(stretto.project, as_json, follow)
        words = WholeWords()
        history = await run.history()
        if step is not None:
            history.step(step)  # raises NotFound
        log = Log(history.state.plan)
        async for row in run.rows(is_followed=follow):
            for entry in () if isinstance(row.event, UnknownEvent) else log.read(row.event):
                if step is None or f"{entry.step}/".startswith(f"{step}/"):
                    # Who follows reads the words as they come, and programs read every piece.
                    for each in (entry,) if follow or as_json else words.read(entry):
                        printer.show(each)
            if not has_reader():
                return None
        for each in words.rest():
            printer.show(each)
        printer.end()
        printer.say_if_nothing()
        return await explain_left(stretto, await run.state()) if follow else None


class _Printer:
    def __init__(self, project: Project, as_json: bool, is_followed: bool) -> None:
        self._hide = project.redactor.text
        self._as_json = as_json
        self._is_followed = is_followed
        self._last: tuple[object, ...] = ()
        self._last_words = LastWords()
        self._is_speaking = False  # the last line is one of words, and is not ended

    def show(self, entry: LogEntry) -> None:
        text = self._hide(entry.text)
        if self._as_json:
            print_json({**asdict(entry), "text": text})
            return
        if self._is_followed and self._last_words.are_repeated_by(entry):
            text = "(the words above)"
        if entry.kind == "words" and self._is_speaking and entry.place == self._last:
            say_piece(_indent(text))
            return
        self.end()
        if entry.place != self._last:
            part = f"/{entry.part}" if entry.part else ""
            at = time.strftime("%H:%M:%S", time.localtime(entry.at))
            say(f"\n== {entry.step}{part}, attempt {entry.attempt} by {entry.agent}, {at}")
            self._last = entry.place
        say(f"-- {entry.kind}")
        if entry.kind == "words" and self._is_followed:
            say_piece(f"   {_indent(text)}")
            self._is_speaking = True
        else:
            say("\n".join(f"   {line}" for line in text.splitlines()))

    def end(self) -> None:
        if self._is_speaking:
            say()
        self._is_speaking = False

    def say_if_nothing(self) -> None:
        if not self._last and not self._as_json:
            say("nothing was said or done", err=True)


def _indent(text: str) -> str:
    return text.replace("\n", "\n   ")
