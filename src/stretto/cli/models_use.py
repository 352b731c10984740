"""`stretto models use`: write `model:` into the user's own stretto.yaml, and touch nothing else there."""

import json
import re
from pathlib import Path

import click

from stretto.assembly.local_models import LocalModels
from stretto.assembly.project import Project
from stretto.cli.files import make_home, write_new
from stretto.cli.options import json_option
from stretto.cli.terminal import print_json, say
from stretto.config.settings import CONFIG_FILE
from stretto.documents.document import read_text
from stretto.documents.node import plain
from stretto.problems.errors import InvalidConfig

# A key at the left margin, its value, and a comment behind it.
_MODEL = re.compile(r"^model[ \t]*:(?:[ \t]+(?P<value>(?:[^#\r\n]|(?<=\S)#)*?))?(?P<rest>[ \t]*(?:[ \t]#.*?)?)(?=\r?$)", re.M)  # fmt: skip
_PLAIN = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_./:@+-]*[A-Za-z0-9_]")


@click.command("use")
@click.argument("name")
@json_option
def command(name: str, as_json: bool) -> None:
    """Use a model for agents that name none: local:NAME, provider:name or a file of weights.

    It is written into your own stretto.yaml. Flags, STRETTO_MODEL and a project's file go before it.
    """
    project = Project()
    model, note = LocalModels(project).check_use(name)
    file = project.settings.home / CONFIG_FILE
    make_home(file.parent)
    write_new(file.resolve(), with_model(_read(file), model, str(file)), force=True)
    if as_json:
        print_json({"ok": True, "model": model, "file": str(file), "note": note})
        return
    say(f"{file}: model: {model}")
    if note:
        say(note)


def with_model(text: str, model: str, file: str = CONFIG_FILE) -> str:
    """The same text with another model. Raises InvalidConfig rather than damage a file."""
    if text.strip():
        before = read_text(text, file)
        if before.problems and [problem.code for problem in before.problems] != ["RCP016"]:
            raise InvalidConfig(f"{file} cannot be changed while it has problems", before.problems)
    written = model if _PLAIN.fullmatch(model) else json.dumps(model)
    found = _MODEL.search(text)
    if found is not None:
        changed = f"{text[: found.start()]}model: {written}{found['rest']}{text[found.end() :]}"
    else:
        line_break = "\r\n" if "\r\n" in text else "\n"
        line_end = "" if not text or text.endswith("\n") else line_break
        changed = f"{text}{line_end}model: {written}{line_break}"
    # Read it back: the pattern cannot tell a value over several lines, or a file in another style.
    after = read_text(changed, file)
    value = plain(after.root) if after.root is not None else None
    if after.problems or not isinstance(value, dict) or value.get("model") != model:
        hint = f"write it there yourself: model: {written}"
        raise InvalidConfig(f"{file} is not written in a way that can be changed safely", hint=hint)
    return changed


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode()  # read as text, it would lose its line breaks
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{file} cannot be read: {error}") from error
