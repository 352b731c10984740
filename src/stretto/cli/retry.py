"""`stretto retry` and `stretto fork`: run again, and reuse what need not be done again."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace

import click

from stretto.assembly.project import open_runs
from stretto.cli.foreground import drive
from stretto.cli.inputs import given_inputs, input_options
from stretto.cli.options import accept_option, json_option, model_option
from stretto.cli.project import open_plan, open_project, project_of
from stretto.cli.terminal import say
from stretto.config.settings import home_of
from stretto.execution.history import History
from stretto.execution.reuse import downstream, reusable
from stretto.problems.errors import InvalidUsage, PlanNotAccepted
from stretto.vocabulary.ids import RunId, StepId
from stretto.vocabulary.names import did_you_mean, listed
from stretto.vocabulary.values import Json


@click.command("retry")
@click.argument("run")
@click.option("--failed", is_flag=True, help="Only what did not succeed (the default).")
@click.option("--from", "step", metavar="STEP", help="This step and everything downstream.")
@click.option("--recipe", metavar="FILE", help="The edited recipe; what is unchanged is reused.")
@input_options
@model_option
@accept_option
@json_option
def command(
    run: str,
    failed: bool,
    step: str | None,
    recipe: str | None,
    pairs: tuple[str, ...],
    input_json: str | None,
    model: str | None,
    accepted: str | None,
    as_json: bool,
) -> int:
    """Run again, reusing every step whose agent, prompt, tools, model and schema are unchanged."""
    if failed and step:
        raise InvalidUsage("--failed and --from exclude each other")
    return run_again(run, step, recipe, given_inputs(pairs, input_json), model, accepted, as_json)


def run_again(
    run: str,
    step: str | None,
    recipe: str | None,
    given: Mapping[str, Json],
    model: str | None,
    accepted: str | None,
    as_json: bool,
) -> int:
    history, is_believed = _earlier_run(run, accepted, must_be_sealed=recipe is None)
    project = project_of(history, accepted) if is_believed else open_project()
    if recipe is None:
        project.check_trust(history)
    plan = open_plan(project, recipe) if recipe else history.state.plan
    if step is not None and step not in {each.id for each in plan.steps}:
        known = [each.id for each in plan.steps]
        hint = did_you_mean(step, known) or f"its steps: {listed(known)}"
        raise InvalidUsage(f"{plan.name} has no step '{step}'", hint=hint)
    declared = {each.name for each in plan.inputs}
    stored = history.started.inputs if is_believed else {}
    before = {name: value for name, value in stored.items() if name in declared}
    inputs = project.inputs(plan, {**before, **given})
    anew = downstream(plan, StepId(step)) if step else frozenset()
    model = project.model(model) or (history.started.model if is_believed else None)
    workspace = history.started.workspace if is_believed else None
    plan = project.prepare(plan, model, workspace=workspace)
    start = replace(
        project.start(plan, inputs, model),
        parent=run,
        reusable=reusable(history.state, anew),
    )
    if not is_believed:  # nor is what somebody seems to have approved
        start = replace(start, reusable=replace(start.reusable, approved={}))
    elif history.started.workspace:
        start = replace(start, workspace=history.started.workspace)
    return drive(
        project, plan, model, as_json, lambda runs, runner, seen: runs.start(start, runner, seen)
    )


def _earlier_run(run: str, accepted: str | None, must_be_sealed: bool) -> tuple[History, bool]:
    """The run, and whether what it began with may be used again."""

    async def load() -> tuple[History, bool]:
        async with open_runs(home_of(os.environ), frozenset([accepted or ""])) as runs:
            history = await runs.history(RunId(run))
            try:
                runs.check(history)
            except PlanNotAccepted as error:
                if must_be_sealed:
                    raise
                said = f"{error.message}; its inputs, its model and its folder are not used"
                say(said, err=True)
                return history, False
            return history, True

    return asyncio.run(load())
