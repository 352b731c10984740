"""`stretto fork`: a new run that shares what came before a step of an earlier one."""

import asyncio

import click

from stretto.assembly.request import RunRequest
from stretto.cli.foreground import OpenStretto
from stretto.cli.inputs import given_inputs, input_options
from stretto.cli.options import accept_option, model_option
from stretto.cli.result import ResultOptions, result_options
from stretto.cli.retry import run_again


@click.command("fork")
@click.argument("run", required=False)
@click.option(
    "--from", "step", metavar="STEP", required=True, help="The first step that runs again."
)
@input_options
@model_option
@accept_option
@result_options
def command(
    run: str | None,
    step: str,
    pairs: tuple[str, ...],
    input_json: str | None,
    model: str | None,
    accepted: str | None,
    result: ResultOptions,
) -> int:
    """Start a new run that shares everything before a step, and runs that step and the rest again.

    Give new inputs with -i; steps that they change run again as well.
    """
    request = RunRequest(
        None,
        given_inputs(pairs, input_json),
        from_step=step,
        model=model,
        accepted=frozenset([accepted] if accepted else []),
    )
    return asyncio.run(run_again(OpenStretto(), request, run, result))
