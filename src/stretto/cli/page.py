"""The report of a run as a page in a browser."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from stretto.assembly.changes import with_patches
from stretto.assembly.surface import Surface
from stretto.cli.files import write_target
from stretto.cli.terminal import say
from stretto.config.home import make_private
from stretto.processes.programs import Writable, find_program
from stretto.report.html import as_html
from stretto.report.report import report_of
from stretto.report.transcript import transcripts


async def show_page(stretto: Surface, run_id: str) -> None:
    """Write the page into the user's own folder and open it; without a browser, say the path."""
    folder = stretto.project.settings.home / "reports"
    make_private(folder)
    file = folder / f"{run_id}.html"
    write_target(file, await page_of(stretto, run_id) + "\n")
    if open_in_browser(file, stretto.project.settings.steps_write):
        say(f"opened {file}", err=True)
    else:
        say(f"no browser was found here; the report is in {file}", err=True)


async def page_of(stretto: Surface, run_id: str) -> str:
    run = stretto.open(run_id)
    history = await run.history(with_speech=True)
    state = history.state
    is_interrupted = not state.has_ended and not await run.is_driven()
    report = report_of(state, is_interrupted=is_interrupted, now=stretto.engine.now())
    word = await stretto.engine.word_of(run_id, report.workflow, report.status)
    report = replace(report, status=word)
    report = with_patches(stretto.project, report, history)
    html = as_html(report, state.plan, transcripts(state.plan, history.events))
    return stretto.project.redactor.text(html)


def open_in_browser(file: Path, writable: Writable) -> bool:
    for words in _openers():
        # Not a program in a folder that steps write to: a step may have put it there.
        program = find_program(words[0], writable=writable)
        if program is None:
            continue
        try:
            subprocess.Popen(
                [program, *_arguments(words[1:], file.as_uri())],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # the browser outlives this command
            )
        except OSError:
            continue
        return True
    return False


def _openers() -> list[list[str]]:
    if named := os.environ.get("BROWSER", ""):
        return [each.split() for each in named.split(os.pathsep) if each.strip()]
    if sys.platform == "darwin":
        return [["open"]]
    has_screen = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return [["xdg-open"], ["wslview"]] if has_screen else [["wslview"]]


def _arguments(words: list[str], address: str) -> list[str]:
    """BROWSER may say with %s where the address goes."""
    filled = [word.replace("%s", address) for word in words]
    return filled if filled != words else [*words, address]
