"""`stretto fork`: another way from a step on."""

import click

from stretto.cli.inputs import given_inputs, input_options
from stretto.cli.options import accept_option, json_option, model_option
from stretto.cli.retry import run_again


@click.command("fork")
@click.argument("run")
@click.option("--from", "step", metavar="STEP", required=True, help="Where the two part ways.")
@input_options
@model_option
@accept_option
@json_option
def command(
    run: str,
    step: str,
    pairs: tuple[str, ...],
    input_json: str | None,
    model: str | None,
    accepted: str | None,
    as_json: bool,
) -> int:
    """A new run that shares everything before a step, and does that step and the rest anew.

    New inputs (-i) may be given; what they change is done anew as well.
    """
    return run_again(run, step, None, given_inputs(pairs, input_json), model, accepted, as_json)
