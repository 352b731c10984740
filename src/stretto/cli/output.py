"""`stretto output`: what a run, or one of its steps, gave. Nothing else is on stdout."""

import asyncio

import click

from stretto.cli.foreground import OpenStretto
from stretto.cli.handles import find_step
from stretto.cli.options import json_option
from stretto.cli.result import print_answer
from stretto.cli.terminal import print_json
from stretto.execution.history import History
from stretto.problems.errors import NotFound
from stretto.schedule.outputs import lack_of_output, output_of
from stretto.schedule.status import step_word
from stretto.vocabulary.json_value import Json


@click.command("output")
@click.argument("run", required=False)
@click.argument("step", required=False)
@json_option
def command(run: str | None, step: str | None, as_json: bool) -> None:
    """Print the output of a run, or of one STEP: text as it is, everything else as JSON."""
    history, step = asyncio.run(_load(run, step, as_json))
    run, state = history.started.run_id, history.state
    value: Json
    if step is None:
        value = output_of(state)
        why = lack_of_output(state.recipe) if state.has_ended else "the run has not ended"
    else:
        known = history.step(step)
        value, why = known.output, f"step '{step}' is {step_word(known)} and has no output"
    if value is None:
        raise NotFound(why or "there is no output", hint=f"stretto report {run}")
    if as_json:
        print_json({"ok": True, "run_id": run, "step": step, "output": value})
    else:
        print_answer(value)


async def _load(run: str | None, step: str | None, as_json: bool) -> tuple[History, str | None]:
    async with OpenStretto() as stretto:
        found, step = await find_step(stretto, run, step, as_json)
        return await stretto.open(found).history(), step
