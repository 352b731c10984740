"""`stretto retry` and `stretto fork`: run again, and reuse what need not be done again."""

import asyncio
from dataclasses import replace

import click

from stretto.assembly.request import RunRequest
from stretto.cli.foreground import OpenStretto, drive, prepare
from stretto.cli.handles import find_run
from stretto.cli.inputs import given_inputs, input_options
from stretto.cli.options import accept_option, model_option
from stretto.cli.project import open_recipe
from stretto.cli.result import ResultOptions, result_options
from stretto.problems.errors import InvalidUsage


@click.command("retry")
@click.argument("run", required=False)
@click.option("--failed", is_flag=True, help="Only what did not succeed (the default).")
@click.option("--from", "step", metavar="STEP", help="This step and everything downstream.")
@click.option("--part", metavar="PART", help="With --from: only this branch, or element 0, 1, …")
@click.option("--recipe", metavar="FILE", help="The edited recipe; what is unchanged is reused.")
@input_options
@model_option
@accept_option
@result_options
def command(
    run: str | None,
    failed: bool,
    step: str | None,
    part: str | None,
    recipe: str | None,
    pairs: tuple[str, ...],
    input_json: str | None,
    model: str | None,
    accepted: str | None,
    result: ResultOptions,
) -> int:
    """Run again, reusing every step whose agent, prompt, tools, model and schema are unchanged."""
    if failed and step:
        raise InvalidUsage("--failed and --from exclude each other")
    stretto = OpenStretto()
    request = RunRequest(
        open_recipe(stretto.project, recipe) if recipe else None,
        given_inputs(pairs, input_json),
        from_step=step,
        part=part,
        model=model,
        accepted=frozenset([accepted] if accepted else []),
    )
    return asyncio.run(run_again(stretto, request, run, result))


async def run_again(
    stretto: OpenStretto, request: RunRequest, run: str | None, result: ResultOptions
) -> int:
    """`run`: the run that is run again, as the user names it."""
    async with stretto:
        request = replace(request, of=await find_run(stretto, run, result.as_json))
        return await drive(stretto, await prepare(stretto, request, result), result)
