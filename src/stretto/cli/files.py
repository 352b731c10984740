"""Write files for the user: recipes and their schema, answers and reports. A crash leaves the old file
or the new one. A recipe that exists is overwritten only with --force.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path

from stretto.config.home import make_private
from stretto.problems.errors import InvalidUsage, RefusedToOverwrite, StrettoError

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
    from stretto.recipe.grammar import recipe_schema  # what reports and answers need not load

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
        _write_draft(draft, text.encode("utf-8"), file)
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


def check_target(file: Path) -> None:
    """Raises InvalidUsage where `write_target` could not write; leaves nothing behind."""
    place = file.resolve()
    try:
        if place.is_dir():
            raise InvalidUsage(f"cannot write {file}: it is a folder")
        if place.exists() and not os.access(place, os.W_OK):
            raise InvalidUsage(f"cannot write {file}: it is read-only")
        if _is_replaced(file):
            tempfile.TemporaryFile(dir=place.parent).close()
        elif not file.exists():
            raise InvalidUsage(f"cannot write {file}: there is no such device")
    except OSError as error:
        raise InvalidUsage(f"cannot write {file}: {error.strerror}") from error


def write_target(file: Path, text: str) -> None:
    """Write the file, over one that is there."""
    place = file.resolve()  # a link stays a link
    draft = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    content = text.encode("utf-8", "replace")
    try:
        if not _is_replaced(file):
            file.write_bytes(content)
            return
        _write_draft(draft, content, place)
        draft.replace(place)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise StrettoError(f"cannot write {file}: {error.strerror}") from error


def _write_draft(draft: Path, content: bytes, file: Path) -> None:
    """`file`: whose place it takes."""
    with draft.open("wb") as opened:
        if file.exists():
            # Before there is anything to read: what only the user may read stays so.
            shutil.copymode(file, draft)
        opened.write(content)


def _is_replaced(file: Path) -> bool:
    """Whether a new file takes its place: not where it is a pipe, a device or an open stream."""
    is_stream = file.is_absolute() and file.parts[1:2] in (("dev",), ("proc",))
    return not is_stream and (file.is_file() or not file.exists())
