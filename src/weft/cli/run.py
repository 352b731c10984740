"""`weft run`: a recipe to its report."""

from dataclasses import replace

import click

from weft.cli.asking import ask_missing
from weft.cli.detaching import detach
from weft.cli.driving import choose, drive
from weft.cli.opening import open_weft
from weft.cli.options import given_inputs, input_options, json_option, model_option
from weft.cli.plan import show_dry_run
from weft.cli.printing import print_warnings
from weft.cli.recipes import open_plan
from weft.vocabulary.ids import RunId


@click.command("run")
@click.argument("recipe", metavar="NAME|FILE")
@input_options
@model_option
@click.option(
    "--permission",
    type=click.Choice(["read_only", "ask", "auto"]),
    help="What it may do to files; auto unless the settings say otherwise.",
)
@click.option("--dry-run", is_flag=True, help="The same as weft plan.")
@click.option("--detach", "is_detached", is_flag=True, help="Leave it to a background process.")
@click.option("--run-id", hidden=True)
@json_option
def command(
    recipe: str,
    pairs: tuple[str, ...],
    input_json: str | None,
    model: str | None,
    permission: str | None,
    dry_run: bool,
    is_detached: bool,
    run_id: str | None,
    as_json: bool,
) -> int:
    """Run a recipe to its report.

    Every event is kept in the journal before anything follows from it, so a run that is cut
    off goes on with weft resume.
    """
    if dry_run:
        show_dry_run(recipe, pairs, input_json, as_json, full=False)
        return 0
    weft = open_weft()
    plan = open_plan(weft, recipe)
    given = given_inputs(pairs, input_json)
    inputs = weft.inputs(
        plan, given if as_json else ask_missing(plan.inputs, given, weft.settings.project)
    )
    model = weft.model(model)
    plan = weft.with_copy_warnings(weft.permit(plan, permission), model)
    if not as_json:
        print_warnings(plan.warnings)
    if is_detached:
        choose(weft, plan, model, as_json)  # what is missing is told here, not in a log
        return detach(weft, recipe, inputs, model, permission, as_json)
    start = weft.start(plan, inputs, model)
    if run_id:
        start = replace(start, run_id=RunId(run_id))
    return drive(
        weft, plan, model, as_json, lambda runs, runner, seen: runs.start(start, runner, seen)
    )
