"""`weft reject`: no, said by a person."""

import click

from weft.cli.approve import decide
from weft.cli.options import json_option


@click.command("reject")
@click.argument("run")
@click.argument("step")
@click.option("--reason", default="", help="Why; kept in the journal.")
@json_option
def command(run: str, step: str, reason: str, as_json: bool) -> None:
    """Refuse a step that awaits approval; its failure policy decides what follows."""
    decide(run, step, False, reason, as_json)
