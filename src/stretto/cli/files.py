"""Write recipes and their schema. A file that exists is overwritten only with --force."""

import json
import os
from pathlib import Path

from stretto.config.home import make_private
from stretto.problems.errors import InvalidUsage, RefusedToOverwrite
from stretto.recipe.grammar import recipe_schema

# Beside the recipes, so that the modeline works wherever the project is cloned to.
SCHEMA_FILE = ".recipe.schema.json"
MODELINE = f"# yaml-language-server: $schema={SCHEMA_FILE}\n"


def write_recipe(folder: Path, name: str, text: str, force: bool = False) -> Path:
    file = folder / f"{name}.yaml"
    refuse_overwriting(file, force)
    write_schema(folder)
    write_new(file, MODELINE + text, force)
    return file


def write_schema(folder: Path) -> None:
    make_folder(folder)
    schema = json.dumps(recipe_schema(), indent=1, ensure_ascii=False) + "\n"
    write_new(folder / SCHEMA_FILE, schema, force=True)


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidUsage(f"cannot make {folder}: {error.strerror}") from error


def make_home(folder: Path) -> None:
    """Make a folder that only the user can read."""
    try:
        make_private(folder)
    except OSError as error:
        raise InvalidUsage(f"cannot make {folder}: {error.strerror}") from error


def refuse_overwriting(file: Path, force: bool) -> None:
    if file.exists() and not force:
        raise RefusedToOverwrite(f"{file} exists already", hint="--force overwrites it")


def write_new(file: Path, text: str, force: bool = False) -> None:
    """Write the whole file or nothing: a crash leaves the old file or the new one."""
    refuse_overwriting(file, force)
    draft = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        draft.write_text(text, encoding="utf-8")
        if force:
            draft.replace(file)
        else:
            os.link(draft, file)  # fails if someone was quicker; replace() would overwrite
            draft.unlink()
    except FileExistsError as error:
        draft.unlink(missing_ok=True)
        raise RefusedToOverwrite(f"{file} exists already", hint="--force overwrites it") from error
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise InvalidUsage(f"cannot write {file}: {error.strerror}") from error
