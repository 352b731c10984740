"""The inputs of a run: from -i and --input-json, and by asking for those that are missing."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from stretto.assembly.project import Project, finder_in
from stretto.cli.terminal import prompt, say
from stretto.plan.check import Problems
from stretto.plan.inputs import Misfit, convert, missing
from stretto.problems.errors import InvalidUsage
from stretto.recipe.model import Input, Recipe
from stretto.vocabulary.json_value import Json

F = TypeVar("F", bound=Callable[..., Any])


def input_options(function: F) -> F:
    given = click.option(
        "-i",
        "--input",
        "pairs",
        multiple=True,
        metavar="NAME=VALUE",
        help="The value of an input; may be repeated.",
    )
    from_file = click.option(
        "--input-json",
        metavar="FILE",
        help="A file with the inputs as a JSON object; '-' reads stdin.",
    )
    return given(from_file(function))


def given_inputs(pairs: tuple[str, ...], input_json: str | None) -> dict[str, Json]:
    """`-i` wins over the file, the last `-i` over the ones before it."""
    given: dict[str, Json] = dict(_from_json(input_json)) if input_json else {}
    return {**given, **input_pairs(pairs)}


def input_pairs(pairs: tuple[str, ...]) -> dict[str, str]:
    """The last one of a name counts."""
    given = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InvalidUsage(f"'{pair}' is not an input", hint="write -i name=value")
        given[name.strip()] = _value(value)
    return given


def _value(written: str) -> str:
    # `-i text=@notes.md` reads a file, as curl does; `@@` starts with a real @.
    if written.startswith("@@"):
        return written[1:]
    if written.startswith("@"):
        try:
            return Path(written[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidUsage(f"{written[1:]} cannot be read: {error}") from error
    return written


def _from_json(file: str) -> dict[str, Json]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        value = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidUsage(f"--input-json {file}: {error}") from error
    if not isinstance(value, dict):
        raise InvalidUsage(f"--input-json {file}: it must be a JSON object")
    return value


def ask_missing(project: Project, recipe: Recipe, given: Mapping[str, Json]) -> dict[str, Json]:
    """Ask for inputs that are missing, when there is somebody to ask."""
    answers = dict(given)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return answers
    wanted = list(missing(recipe.inputs, given))
    if not wanted or isinstance(project.check(recipe), Problems):
        return answers  # a recipe that cannot run is reported without questions
    for each in wanted:
        if each.description:
            say(each.description, err=True)
        answers[each.name] = prompt(each.name, _checker(each, project.settings.project))
    return answers


def _checker(declared: Input, workspace: Path) -> Callable[[str], str]:
    def check(answer: str) -> str:
        if not answer.strip():
            raise click.UsageError("it must not be blank")
        found = convert(declared, answer, finder_in(workspace))
        if isinstance(found, Misfit):
            raise click.UsageError(f"{found.message}. {found.hint}".strip())
        return answer

    return check
