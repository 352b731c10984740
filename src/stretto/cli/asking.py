"""Ask for what is missing, when there is someone to ask (RECIPES §2)."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from stretto.cli.printing import prompt, say
from stretto.plan.inputs import Misfit, convert, missing
from stretto.recipe.model import Input
from stretto.vocabulary.values import Json


def ask_missing(
    declared: tuple[Input, ...], given: Mapping[str, Json], workspace: Path
) -> dict[str, Json]:
    answers = dict(given)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return answers
    for each in missing(declared, given):
        if each.description:
            say(each.description, err=True)
        answers[each.name] = prompt(each.name, _checked(each, workspace))
    return answers


def _checked(declared: Input, workspace: Path) -> Callable[[str], str]:
    def check(answer: str) -> str:
        if not answer.strip():
            raise click.UsageError("it must not be blank")
        found = convert(declared, answer, workspace)
        if isinstance(found, Misfit):
            raise click.UsageError(f"{found.message}. {found.hint}".strip())
        return answer

    return check
