"""`stretto report`: what a run did."""

from pathlib import Path

import click

from stretto.adapters.clock import SystemClock
from stretto.cli.options import json_option
from stretto.cli.project import history_of, is_driven, open_project
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
    project = open_project()
    history = history_of(project, run, with_speech=form == "html")
    is_interrupted = not is_driven(project, history)
    report = report_of(history.state, is_interrupted=is_interrupted, now=SystemClock().now())
    report = project.with_patches(report, history)
    if as_json or form == "json":
        print_report_json(report)
        return
    if form == "md":
        text = as_markdown(report)
    else:
        plan = history.state.plan
        text = project.redactor.text(as_html(report, plan, transcripts(plan, history.events)))
    if output is None:
        say(text)
    else:
        output.write_text(text + "\n", encoding="utf-8")
        say(f"wrote {output}", err=True)
