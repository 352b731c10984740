"""Read a model's name that begins with `cli:`. In: the name. Out: who is meant, or what is wrong.

cli:claude   cli:claude:opus   cli:opencode/anthropic/claude-sonnet-4    a CLI, perhaps a model
cli:acp:gemini   cli:acp:my-agent --stdio                                an agent over ACP
cli:./answer.py --short                                                  any command
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from stretto.adapters.models.cli.described import Cli
from stretto.adapters.models.cli.known import KNOWN
from stretto.processes.programs import NOWHERE, Writable, find_command, find_program
from stretto.vocabulary.names import did_you_mean

PREFIX = "cli:"
_ACP = "acp:"
# No model's name begins with a dash: it would be read as an option.
_CLI = re.compile(r"(?P<name>[a-z]+)(?:[:/](?P<model>\w[\w.:/@+\[\]-]{0,199}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class AskedCli:
    cli: Cli
    model: str
    speaks_acp: bool = False


@dataclass(frozen=True, slots=True)
class AskedCommand:
    words: tuple[str, ...]
    speaks_acp: bool = False


Asked: TypeAlias = AskedCli | AskedCommand


def read_name(model_name: str) -> Asked | str:
    """A text is what is wrong with it."""
    rest = model_name.removeprefix(PREFIX).strip()
    speaks_acp = rest.startswith(_ACP) or rest == "acp"
    rest = rest[len(_ACP) :].strip() if speaks_acp else rest
    found = _CLI.fullmatch(rest)
    if found is not None and found["name"] in KNOWN:
        cli = KNOWN[found["name"]]
        if speaks_acp and not cli.speaks_acp:
            return f"'{cli.name}' does not speak ACP: write cli:{rest}"
        return AskedCli(cli, found["model"] or "", speaks_acp)
    try:
        words = tuple(shlex.split(rest))
    except ValueError as error:
        return f"'{model_name}' cannot be split into words: {str(error).lower()}"
    if not words or not words[0]:
        return f"'{model_name}' names nobody: one of {', '.join(KNOWN)}, acp:COMMAND, or a command"
    if any("\0" in word for word in words):
        return f"'{model_name}' holds a NUL byte"
    return AskedCommand(words, speaks_acp)


def cli_fault(model_name: str, path: str | None = None, writable: Writable = NOWHERE) -> str | None:
    """Why this model cannot be asked here, or None. For before a run."""
    asked = read_name(model_name)
    match asked:
        case str():
            return asked
        case AskedCli(cli):
            return None if find_program(cli.name, path, writable) else not_installed(cli)
        case AskedCommand(words):
            return (
                None if find_command(words[0], Path.cwd(), path, writable) else not_found(words[0])
            )


def not_installed(cli: Cli) -> str:
    return f"'{cli.name}' is not installed, or not on PATH: {cli.install}"


def not_found(program: str) -> str:
    guess = did_you_mean(re.split("[:/]", program, maxsplit=1)[0], [*KNOWN, "acp"])
    return f"there is no command '{program}' on PATH" + (f"; {guess}" if guess else "")
