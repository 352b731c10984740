"""A file that the user names for an answer or a report: checked before the run, written whole."""

import os
import shutil
import tempfile
from pathlib import Path

from stretto.problems.errors import InvalidUsage, StrettoError


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
    """Over what is there. A crash leaves the old file or the new one."""
    place = file.resolve()  # a link stays a link
    draft = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    content = text.encode("utf-8", "replace")
    try:
        if not _is_replaced(file):
            file.write_bytes(content)
            return
        draft.write_bytes(content)
        if place.exists():
            shutil.copymode(place, draft)
        draft.replace(place)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise StrettoError(f"cannot write {file}: {error.strerror}") from error


def _is_replaced(file: Path) -> bool:
    """Whether a new file takes its place: not where it is a pipe, a device or an open stream."""
    is_stream = file.is_absolute() and file.parts[1:2] in (("dev",), ("proc",))
    return not is_stream and (file.is_file() or not file.exists())
