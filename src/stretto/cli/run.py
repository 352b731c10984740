"""`stretto run`: a recipe to its report."""

from dataclasses import replace

import click

from stretto.cli.background import detach
from stretto.cli.foreground import choose, drive
from stretto.cli.inputs import ask_missing, given_inputs, input_options
from stretto.cli.options import json_option, model_option
from stretto.cli.plan import show_dry_run
from stretto.cli.project import open_plan, open_project
from stretto.cli.terminal import print_warnings
from stretto.vocabulary.ids import RunId


@click.command("run")
@click.argument("recipe", metavar="NAME|FILE")
@input_options
@model_option
@click.option(
    "--permission",
    type=click.Choice(["read_only", "ask", "auto"]),
    help="What it may do to files; auto unless the settings say otherwise.",
)
@click.option("--dry-run", is_flag=True, help="The same as stretto plan.")
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
    off goes on with stretto resume.
    """
    if dry_run:
        show_dry_run(recipe, pairs, input_json, as_json, full=False)
        return 0
    project = open_project()
    plan = open_plan(project, recipe)
    given = given_inputs(pairs, input_json)
    inputs = project.inputs(
        plan, given if as_json else ask_missing(plan.inputs, given, project.settings.project)
    )
    model = project.model(model)
    plan = project.prepare(plan, model, permission)
    if not as_json:
        print_warnings(plan.warnings)
    if is_detached:
        choose(project, plan, model, as_json)  # what is missing is told here, not in a log
        return detach(project, recipe, inputs, model, permission, as_json)
    start = project.start(plan, inputs, model)
    if run_id:
        start = replace(start, run_id=RunId(run_id))
    return drive(
        project, plan, model, as_json, lambda runs, runner, seen: runs.start(start, runner, seen)
    )
