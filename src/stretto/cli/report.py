"""`stretto report`: what a run did."""

import asyncio
from dataclasses import replace
from pathlib import Path

import click

from stretto.assembly.changes import with_patches
from stretto.cli.files import check_target, write_target
from stretto.cli.foreground import OpenStretto
from stretto.cli.handles import find_run
from stretto.cli.options import json_option
from stretto.cli.result import print_rendered
from stretto.cli.terminal import hide_secrets, print_report_json, say
from stretto.problems.errors import InvalidUsage
from stretto.report.json_form import report_as_json_text
from stretto.report.markdown import as_markdown
from stretto.report.report import report_of


@click.command("report")
@click.argument("run", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "json", "html"]),
    help="Without it: Markdown, which a terminal shows rendered.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write it to a file.")
@click.option("--open", "is_opened", is_flag=True, help="Show it in a browser.")
@json_option
def command(
    run: str | None, form: str | None, output: Path | None, is_opened: bool, as_json: bool
) -> None:
    """Show what a run did: summary, steps, output, issues, cost, critical path."""
    if is_opened and (output is not None or as_json):
        hint = "leave one of them out"
        raise InvalidUsage("--open excludes -o and --json: it writes a page of its own", hint=hint)
    if output is not None:
        check_target(output)
    asyncio.run(_report(run, "json" if as_json else form, output, is_opened))


async def _report(
    handle: str | None, form: str | None, output: Path | None, is_opened: bool
) -> None:
    async with OpenStretto() as stretto:
        run_id = await find_run(stretto, handle, form == "json")
        if is_opened or form == "html":
            from stretto.cli.page import page_of, show_page

            if is_opened:
                await show_page(stretto, run_id)
                return
            text = await page_of(stretto, run_id)
        else:
            run = stretto.open(run_id)
            history = await run.history()
            is_interrupted = not history.state.has_ended and not await run.is_driven()
            now = stretto.engine.now()
            report = report_of(history.state, is_interrupted=is_interrupted, now=now)
            word = await stretto.engine.word_of(run_id, report.workflow, report.status)
            report = replace(report, status=word)
            report = with_patches(stretto.project, report, history)
            if form == "json" and output is None:
                print_report_json(report)
                return
            text = "".join(report_as_json_text(report)) if form == "json" else as_markdown(report)
    if output is None and form is None:
        print_rendered(text)
    elif output is None:
        say(text, is_exact=True)
    else:
        write_target(output, hide_secrets(text) + "\n")
        say(f"wrote {output}", err=True)
