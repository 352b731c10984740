"""`stretto models use`: write `model:` into the user's own stretto.yaml, and touch nothing else there."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import click

from stretto.adapters.models.local.catalog import is_local, is_own_file, own_file, weights_named
from stretto.adapters.models.local.shelf import Shelf, models_folder
from stretto.assembly.project import Project
from stretto.cli.files import make_home, write_new
from stretto.cli.options import json_option
from stretto.cli.terminal import print_json, say
from stretto.config.settings import CONFIG_FILE
from stretto.documents.document import read_text
from stretto.documents.node import plain
from stretto.problems.errors import InvalidConfig, InvalidUsage

# A key at the left margin, its value, and a comment behind it.
_MODEL = re.compile(r"^model[ \t]*:(?:[ \t]+(?P<value>(?:[^#\n]|(?<=\S)#)*?))?(?P<rest>[ \t]*(?:[ \t]#.*)?)$", re.M)  # fmt: skip
_PLAIN = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_./:@+-]*[A-Za-z0-9_]")


@click.command("use")
@click.argument("name")
@json_option
def command(name: str, as_json: bool) -> None:
    """Use a model for agents that name none: local:NAME, provider:name or a file of weights.

    It is written into your own stretto.yaml. Flags, STRETTO_MODEL and a project's file go before it.
    """
    project = Project()
    model, note = _checked(name, project.settings.home, project.environ)
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
        line_end = "" if not text or text.endswith("\n") else "\n"
        changed = f"{text}{line_end}model: {written}\n"
    # Read back: a value over several lines, or a file in another style, is not ours to guess at.
    after = read_text(changed, file)
    value = plain(after.root) if after.root is not None else None
    if after.problems or not isinstance(value, dict) or value.get("model") != model:
        hint = f"write it there yourself: model: {written}"
        raise InvalidConfig(f"{file} is not written in a way that can be changed safely", hint=hint)
    return changed


def _checked(name: str, home: Path, environ: Mapping[str, str]) -> tuple[str, str]:
    """The model's full name, and what the user should know about it."""
    if is_own_file(name):
        return own_file(name, may_name_a_file=True).model, ""
    if is_local(name):
        weights = weights_named(name)
        is_absent = Shelf(models_folder(home, environ)).state(weights) == "absent"
        return (
            weights.model,
            f"not here yet: stretto models pull {weights.name}" if is_absent else "",
        )
    from stretto.adapters.models.model_names import Fault, check_name, meaning

    meant = meaning(name, environ)
    if isinstance(meant, Fault):
        raise InvalidUsage(meant.says, hint=meant.hint)
    if meant.name is None:
        raise InvalidUsage(f"'{name}' names no model", hint="write provider:name")
    fault = check_name(name, environ)
    return meant.name, f"{fault.says}: {fault.hint}" if fault else ""


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{file} cannot be read: {error}") from error
