"""`weft run`: a recipe to its report."""

import asyncio

import click

from weft.assembly import Weft
from weft.cli.asking import ask_missing
from weft.cli.options import given_inputs, input_options, json_option
from weft.cli.plan import show_dry_run
from weft.cli.printing import print_json, print_warnings
from weft.cli.progress import JsonLines, Lines
from weft.cli.recipes import open_plan
from weft.report.markdown import as_markdown
from weft.report.report import report_as_json, report_of
from weft.schedule.state import RunState
from weft.vocabulary.statuses import RunStatus

_EXIT_CODES = {RunStatus.COMPLETE: 0, RunStatus.WAITING: 3, RunStatus.RUNNING: 3}


@click.command("run")
@click.argument("recipe", metavar="NAME|FILE")
@input_options
@click.option("--model", metavar="MODEL", help="provider:name, or scripted:FILE.")
@click.option("--dry-run", is_flag=True, help="The same as weft plan.")
@json_option
def command(
    recipe: str,
    pairs: tuple[str, ...],
    input_json: str | None,
    model: str | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Run a recipe to its report.

    Every event is kept in the journal before anything follows from it.
    """
    if dry_run:
        show_dry_run(recipe, pairs, input_json, as_json, full=False)
        return 0
    weft = Weft()
    plan = open_plan(weft, recipe)
    given = given_inputs(pairs, input_json)
    inputs = weft.inputs(plan, given if as_json else ask_missing(plan.inputs, given))
    if not as_json:
        print_warnings(plan.warnings)
    listener = JsonLines() if as_json else Lines(plan)
    state = asyncio.run(weft.run(plan, inputs, model, listener))
    _print_report(state, as_json)
    return _EXIT_CODES.get(state.status, 1)


def _print_report(state: RunState, as_json: bool) -> None:
    report = report_of(state)
    if as_json:
        print_json(report_as_json(report))
    else:
        click.echo(f"\n{as_markdown(report)}")
