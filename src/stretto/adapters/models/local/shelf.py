"""The folder of model weights, and whether a file in it is what it should be.

A gigabyte is hashed once. What was found is kept beside the files with their size, times and
inode; a file that differs in any of these is hashed again.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stretto.adapters.models.local.catalog import Loadable, Weights
from stretto.problems.errors import NotFound, StrettoError
from stretto.vocabulary.json_value import Json

State = Literal["absent", "unchecked", "verified"]
Progress = Callable[[int], None]  # how many bytes have been dealt with
_RECORD = "verified.json"
_CHUNK = 1 << 20


def models_folder(home: Path, environ: Mapping[str, str]) -> Path:
    named = environ.get("STRETTO_MODELS_DIR")
    return Path(named).expanduser().absolute() if named else home / "models"


@dataclass(frozen=True, slots=True)
class Shelf:
    folder: Path

    def path(self, weights: Weights) -> Path:
        return self.folder / weights.file

    def state(self, weights: Weights) -> State:
        """Without reading the file."""
        stat = _stat_of(self.path(weights))
        if stat is None:
            return "absent"
        is_known = self._record().get(weights.file) == {**stat, "sha256": weights.sha256}
        return "verified" if is_known else "unchecked"

    def take(self, weights: Weights, progress: Progress | None = None) -> Loadable:
        """Hashes a file that is not known to be right."""
        path = self.path(weights)
        match self.state(weights):
            case "absent":
                raise missing(weights)
            case "unchecked":
                self.check(path, weights, progress)
                self.remember(weights)
            case "verified":
                pass
        return Loadable(weights.model, path, weights.traits)

    def check(self, path: Path, weights: Weights, progress: Progress | None = None) -> None:
        found = digest(path, progress)
        if found != weights.sha256:
            raise StrettoError(
                f"{path} is not {weights.title}: its sha256 is {found}, not {weights.sha256}",
                hint=f"delete it, then stretto models pull {weights.name}",
            )

    def remember(self, weights: Weights) -> None:
        stat = _stat_of(self.path(weights))
        if stat is None:
            return
        record = {**self._record(), weights.file: {**stat, "sha256": weights.sha256}}
        new = self.folder / f".{_RECORD}.{os.getpid()}"
        try:
            new.write_text(json.dumps(record, indent=1), encoding="utf-8")
            new.replace(self.folder / _RECORD)
        except OSError:
            new.unlink(missing_ok=True)  # a read-only folder: it is hashed again the next time

    def _record(self) -> dict[str, Json]:
        try:
            record = json.loads((self.folder / _RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return record if isinstance(record, dict) else {}


def missing(weights: Weights) -> NotFound:
    message = f"the weights of {weights.title} are not on this machine"
    return NotFound(message, hint=f"stretto models pull {weights.name}")


def digest(path: Path, progress: Progress | None = None) -> str:
    sha256, done = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                sha256.update(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(done)
    except OSError as error:
        raise StrettoError(f"{path} cannot be read: {error.strerror or error}") from error
    return sha256.hexdigest()


def _stat_of(path: Path) -> dict[str, Json] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return {
        "size": stat.st_size,
        "mtime_ns": stat.st_mtime_ns,
        "ctime_ns": stat.st_ctime_ns,  # set by the system alone: an mtime can be put back
        "inode": stat.st_ino,
    }
