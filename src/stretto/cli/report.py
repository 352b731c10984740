"""`stretto report`: what a run did."""

import asyncio
from pathlib import Path

import click

from stretto.assembly.changes import with_patches
from stretto.cli.foreground import OpenStretto
from stretto.cli.options import json_option
from stretto.cli.terminal import print_report_json, say
from stretto.report.html import as_html
from stretto.report.markdown import as_markdown
from stretto.report.report import report_of
from stretto.report.transcript import transcripts


@click.command("report")
@click.argument("run")
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "json", "html"]),
    default="md",
    help="md is the default.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write it to a file.")
@json_option
def command(run: str, form: str, output: Path | None, as_json: bool) -> None:
    """Show what a run did: summary, steps, output, issues, cost, critical path."""
    text = asyncio.run(_report(run, "json" if as_json else form))
    if text is None:
        return
    if output is None:
        say(text)
    else:
        output.write_text(text + "\n", encoding="utf-8")
        say(f"wrote {output}", err=True)


async def _report(run_id: str, form: str) -> str | None:
    """The text; None: it was printed as JSON, piece by piece."""
    async with OpenStretto() as stretto:
        run = stretto.open(run_id)
        history = await run.history(with_speech=form == "html")
        state, project = history.state, stretto.project
        is_interrupted = not state.has_ended and not await run.is_driven()
        report = report_of(state, is_interrupted=is_interrupted, now=stretto.engine.now())
        report = with_patches(project, report, history)
    if form == "json":
        print_report_json(report)
        return None
    if form == "md":
        return as_markdown(report)
    html = as_html(report, state.plan, transcripts(state.plan, history.events))
    return project.redactor.text(html)
