"""`stretto reject`: no, said by a person."""

import click

from stretto.cli.approve import no_resume_option, reject
from stretto.cli.options import accept_option, json_option, model_option


@click.command("reject")
@click.argument("run")
@click.argument("step")
@click.option("--reason", default="", help="Why; kept in the journal.")
@no_resume_option
@model_option
@accept_option
@json_option
def command(
    run: str,
    step: str,
    reason: str,
    is_left: bool,
    model: str | None,
    accepted: str | None,
    as_json: bool,
) -> int:
    """Refuse a step that awaits approval; its failure policy decides what follows, at once."""
    return reject(run, step, reason, is_left, model, accepted, as_json)
