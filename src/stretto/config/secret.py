"""The user's own secret, with which Stretto seals what it stores. In: the home folder. Out: 32 bytes.

It is made once and never leaves its file. Whoever can read that file can forge a seal, so it is
readable by its owner alone, and no step may open the home folder.
"""

import os
import secrets
from pathlib import Path

from stretto.config.private import make_private
from stretto.problems.errors import StrettoError

_FILE = "secret"
_BYTES = 32


def user_secret(home: Path) -> bytes:
    """Raises StrettoError when there is a file that holds no secret: a new one would undo every seal."""
    file = home / _FILE
    try:
        if not file.exists():
            _make(file)
        found = file.read_bytes()
    except OSError as error:
        raise StrettoError(f"{file} cannot be used: {error.strerror}") from error
    if len(found) != _BYTES:
        hint = "restore it from a backup, or remove it: then no earlier run can be resumed unasked"
        raise StrettoError(f"{file} does not hold {_BYTES} bytes", hint=hint)
    return found


def _make(file: Path) -> None:
    """Whole or not at all, and of two processes that try this one wins: a link fails if it is there."""
    make_private(file.parent)
    draft = file.with_name(f".{_FILE}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with open(descriptor, "wb") as opened:
            opened.write(secrets.token_bytes(_BYTES))
            opened.flush()
            os.fsync(opened.fileno())
        os.link(draft, file)
    except FileExistsError:
        pass  # another process was quicker, and its secret is as good
    finally:
        draft.unlink()
