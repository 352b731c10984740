"""`stretto graph`: a recipe as a drawing."""

import shutil
import sys

import click

from stretto.cli.options import json_option
from stretto.cli.project import open_plan, open_project
from stretto.cli.terminal import print_json, say
from stretto.report.diagrams import draw


@click.command("graph")
@click.argument("recipe", metavar="NAME|FILE")
@click.option(
    "--format",
    "form",
    type=click.Choice(["ascii", "mermaid", "dot", "svg"]),
    default="ascii",
    help="The kind of drawing; ascii by default.",
)
@click.option("--expand", "is_expanded", is_flag=True, help="Draw the steps of workflow steps too.")
@click.option(
    "--width", type=click.IntRange(40, 1000), help="How many columns an ascii drawing may have."
)
@json_option
def command(recipe: str, form: str, is_expanded: bool, width: int | None, as_json: bool) -> None:
    """Draw a recipe: ascii for the terminal, mermaid, dot or svg for documents.

    A step that is another workflow is one box; --expand draws the steps in it."""
    plan = open_plan(open_project(), recipe)
    columns = width or terminal_width()
    drawing = draw(plan, form, columns, is_expanded=is_expanded)  # type: ignore[arg-type]
    if as_json:
        print_json({"ok": True, "workflow": plan.name, "format": form, "graph": drawing})
    else:
        say(drawing.rstrip("\n"), is_exact=True)


def terminal_width() -> int:
    """Of the terminal; 80 columns for pipes and files, so that they are alike everywhere."""
    return max(40, shutil.get_terminal_size((80, 24)).columns) if sys.stdout.isatty() else 80
