"""Options that several commands share, and how their values are read."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from stretto.problems.errors import InvalidUsage
from stretto.vocabulary.values import Json

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")


model_option = click.option("--model", metavar="MODEL", help="provider:name, or scripted:FILE.")


accept_option = click.option(
    "--accept-plan",
    "accepted",
    metavar="FINGERPRINT",
    help="Take a stored plan that has no valid seal as it is; stretto plan --run RUN shows it.",
)


def input_options(function: F) -> F:
    given = click.option(
        "-i", "--input", "pairs", multiple=True, metavar="NAME=VALUE", help="An input."
    )
    from_file = click.option(
        "--input-json", metavar="FILE", help="Inputs from a JSON object; '-' reads stdin."
    )
    return given(from_file(function))


def given_inputs(pairs: tuple[str, ...], input_json: str | None) -> dict[str, Json]:
    """`-i` wins over the file, the last `-i` over the ones before it."""
    given: dict[str, Json] = dict(_from_json(input_json)) if input_json else {}
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
