"""What a model name that begins with `cli:` means.

cli:claude   cli:claude:opus   cli:opencode/anthropic/claude-sonnet-4    a CLI, perhaps a model
cli:acp:gemini   cli:acp:my-agent --stdio                                an agent over ACP
cli:./answer.py --short                                                  any command
"""

import re
import shlex
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from stretto.adapters.models.cli.cli_spec import Cli
from stretto.processes.programs import NOWHERE, Writable, find_command, find_program
from stretto.text.short import did_you_mean
from stretto.vocabulary.models import CLI_MODEL

CLI_NAMES = ("claude", "codex", "gemini", "opencode", "goose")
_ACP = "acp:"
# No model's name begins with a dash: it would be read as an option.
_CLI = re.compile(r"(?P<name>[a-z]+)(?:[:/](?P<model>\w[\w.:/@+\[\]-]{0,199}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class NamedCli:
    cli: Cli
    model: str
    speaks_acp: bool = False


@dataclass(frozen=True, slots=True)
class NamedCommand:
    words: tuple[str, ...]
    speaks_acp: bool = False


NamedProgram: TypeAlias = NamedCli | NamedCommand


def read_name(model_name: str) -> NamedProgram | str:
    """Which program is meant, or a text that says what is wrong with the name."""
    rest = model_name.removeprefix(CLI_MODEL).strip()
    speaks_acp = rest.startswith(_ACP) or rest == "acp"
    rest = rest[len(_ACP) :].strip() if speaks_acp else rest
    found = _CLI.fullmatch(rest)
    if found is not None and found["name"] in CLI_NAMES:
        cli = known_cli(found["name"])
        if speaks_acp and not cli.speaks_acp:
            return f"'{cli.name}' does not speak ACP: write cli:{rest}"
        return NamedCli(cli, found["model"] or "", speaks_acp)
    try:
        words = tuple(shlex.split(rest))
    except ValueError as error:
        return f"'{model_name}' cannot be split into words: {str(error).lower()}"
    if not words or not words[0]:
        return f"'{model_name}' names no program: use one of {', '.join(CLI_NAMES)}, acp:COMMAND, or a command"
    if any("\0" in word for word in words):
        return f"'{model_name}' holds a NUL byte"
    return NamedCommand(words, speaks_acp)


def known_cli(name: str) -> Cli:
    """One of CLI_NAMES. Its module is imported here: most runs ask no CLI at all."""
    module = import_module(f"stretto.adapters.models.cli.{name}")
    cli: Cli = module.CLI
    return cli


def cli_fault(model_name: str, path: str | None = None, writable: Writable = NOWHERE) -> str | None:
    """Why this model cannot be asked here, or None. Called before a run."""
    asked = read_name(model_name)
    match asked:
        case str():
            return asked
        case NamedCli(cli):
            return None if find_program(cli.name, path, writable) else not_installed(cli)
        case NamedCommand(words):
            return (
                None if find_command(words[0], Path.cwd(), path, writable) else not_found(words[0])
            )


def not_installed(cli: Cli) -> str:
    return f"'{cli.name}' is not installed, or not on PATH: {cli.install}"


def not_found(program: str) -> str:
    guess = did_you_mean(re.split("[:/]", program, maxsplit=1)[0], [*CLI_NAMES, "acp"])
    return f"there is no command '{program}' on PATH" + (f"; {guess}" if guess else "")
