"""Ask for what is missing, when there is someone to ask (RECIPES §2)."""

import sys
from collections.abc import Mapping

import click

from weft.plan.inputs import Misfit, convert, missing
from weft.recipe.model import Input
from weft.vocabulary.values import Json


def ask_missing(declared: tuple[Input, ...], given: Mapping[str, Json]) -> dict[str, Json]:
    answers = dict(given)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return answers
    for each in missing(declared, given):
        if each.description:
            click.echo(each.description, err=True)
        answers[each.name] = click.prompt(each.name, value_proc=_checked(each), err=True)
    return answers


def _checked(declared: Input):  # type: ignore[no-untyped-def]
    def check(answer: str) -> str:
        found = convert(declared, answer)
        if isinstance(found, Misfit):
            raise click.UsageError(f"{found.message}. {found.hint}".strip())
        return answer

    return check
