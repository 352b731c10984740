"""`weft retry` and `weft fork`: run again, and reuse what need not be done again."""

from collections.abc import Mapping

import click

from weft.cli.driving import drive
from weft.cli.opening import history_of, open_weft
from weft.cli.options import given_inputs, input_options, json_option, model_option
from weft.cli.recipes import open_plan
from weft.problems.errors import InvalidUsage
from weft.run.reuse import downstream, reusable
from weft.run.runs import Start
from weft.vocabulary.ids import StepId
from weft.vocabulary.names import did_you_mean, listed
from weft.vocabulary.values import Json


@click.command("retry")
@click.argument("run")
@click.option("--failed", is_flag=True, help="Only what did not succeed (the default).")
@click.option("--from", "step", metavar="STEP", help="This step and everything downstream.")
@click.option("--recipe", metavar="FILE", help="The edited recipe; what is unchanged is reused.")
@input_options
@model_option
@json_option
def command(
    run: str,
    failed: bool,
    step: str | None,
    recipe: str | None,
    pairs: tuple[str, ...],
    input_json: str | None,
    model: str | None,
    as_json: bool,
) -> int:
    """Run again, reusing every step whose agent, prompt, tools, model and schema are unchanged."""
    if failed and step:
        raise InvalidUsage("--failed and --from exclude each other")
    return run_again(run, step, recipe, given_inputs(pairs, input_json), model, as_json)


def run_again(
    run: str,
    step: str | None,
    recipe: str | None,
    given: Mapping[str, Json],
    model: str | None,
    as_json: bool,
) -> int:
    weft = open_weft()
    history = history_of(weft, run)
    plan = open_plan(weft, recipe) if recipe else history.state.plan
    if step is not None and step not in {each.id for each in plan.steps}:
        known = [each.id for each in plan.steps]
        hint = did_you_mean(step, known) or f"its steps: {listed(known)}"
        raise InvalidUsage(f"{plan.name} has no step '{step}'", hint=hint)
    declared = {each.name for each in plan.inputs}
    before = {name: value for name, value in history.started.inputs.items() if name in declared}
    inputs = weft.inputs(plan, {**before, **given})
    anew = downstream(plan, StepId(step)) if step else frozenset()
    model = (weft.model(model) if model else None) or history.started.model
    plan = weft.permit(plan)
    start = Start(
        plan,
        inputs,
        parent=run,
        model=model,
        workspace=history.started.workspace or weft.workspace(model),
        reusable=reusable(history.state, history.events, anew),
    )
    return drive(
        weft, plan, model, as_json, lambda runs, runner, seen: runs.start(start, runner, seen)
    )
