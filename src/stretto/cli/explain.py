"""`stretto explain`: a recipe in prose."""

import click

from stretto.cli.graph import terminal_width
from stretto.cli.options import json_option
from stretto.cli.project import open_plan, open_project
from stretto.cli.terminal import print_json, say
from stretto.report.diagrams import draw
from stretto.report.prose import explain


@click.command("explain")
@click.argument("recipe", metavar="NAME|FILE")
@json_option
def command(recipe: str, as_json: bool) -> None:
    """Say in prose what a recipe does: each step, who does it, and what if it fails."""
    plan = open_plan(open_project(), recipe)
    width = terminal_width()
    if as_json:
        prose = explain(plan, 80)
        print_json({"ok": True, "workflow": plan.name, "text": prose, "graph": draw(plan, "ascii")})
        return
    say(explain(plan, min(width, 100), draw(plan, "ascii", width).rstrip("\n")))
