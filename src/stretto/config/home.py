"""The user's own folder (~/.stretto): made for the user alone, and the secret that is kept in it."""

import os
from contextlib import suppress
from pathlib import Path

from stretto.problems.errors import StrettoError

_SECRET_FILE = "secret"
_SECRET_BYTES = 32


def path_named(written: str) -> Path:
    """As it was written, with the home folder for `~`. Raises ValueError for what can be no path."""
    if "\0" in written:
        raise ValueError("no path holds a NUL byte")
    try:
        return Path(written).expanduser()
    except RuntimeError:
        raise ValueError(f"no home folder of {written.split('/')[0]} is known") from None


def make_private(folder: Path) -> None:
    """Make every folder that is missing, for the user alone.

    `parents=True` of `Path.mkdir` would leave the folders above to the umask, and the first to be
    made is the user's own folder, with prompts and answers in it. A folder that is there stays as
    it is: the user may share it on purpose.
    """
    for path in reversed((folder, *folder.parents)):
        if not path.exists():
            with suppress(FileExistsError):  # another process was quicker
                os.mkdir(path, 0o700)
    if not folder.is_dir():
        raise NotADirectoryError(20, "Not a directory", str(folder))


_known: dict[str, tuple[object, bytes]] = {}


def user_secret(home: Path) -> bytes:
    """The 32 bytes with which Stretto seals what it stores; made once, and kept in one file.

    Whoever can read the file can forge a seal, so it is readable by its owner alone, and no step may
    open the home folder. Raises StrettoError when the file holds no secret: a new one would make
    every seal invalid.
    """
    file = os.path.join(home, _SECRET_FILE)  # each run asks for it, and a Path is slow to make
    try:
        try:
            status = os.stat(file)
        except FileNotFoundError:
            _make(Path(file))
            status = os.stat(file)
        # A file that was replaced or rewritten differs in one of these.
        now = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)
        known = _known.get(file)
        if known is not None and known[0] == now:
            return known[1]
        found = Path(file).read_bytes()
    except OSError as error:
        raise StrettoError(f"{file} cannot be used: {error.strerror}") from error
    if len(found) != _SECRET_BYTES:
        hint = "restore it from a backup, or remove it: then no earlier run is resumed without your consent"
        raise StrettoError(f"{file} does not hold {_SECRET_BYTES} bytes", hint=hint)
    _known[file] = (now, found)
    return found


def _make(file: Path) -> None:
    """Whole or not at all. Of two processes that try, one wins: a link to a name in use fails."""
    import secrets  # not for commands that only read: it brings random and hashlib

    make_private(file.parent)
    draft = file.with_name(f".{_SECRET_FILE}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with open(descriptor, "wb") as opened:
            opened.write(secrets.token_bytes(_SECRET_BYTES))
            opened.flush()
            os.fsync(opened.fileno())
        os.link(draft, file)
    except FileExistsError:
        pass  # another process was quicker, and its secret is as good
    finally:
        draft.unlink()
