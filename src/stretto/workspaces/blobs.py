"""Bytes by their sha256, in one folder. In: bytes. Out: digests; and back.

Small ones stand one behind the other in one file: a thousand files cost one fsync, not a thousand.
Large ones have a file of their own, so that a file system with reflinks need not copy them.
"""

import json
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, cast

from stretto.problems.errors import StrettoError
from stretto.workspaces.copying import copy_content
from stretto.workspaces.durable import sync, write_durably

LARGE_BYTES = 256 * 1024
_CHUNK = 1024 * 1024


class BlobLost(StrettoError):
    kind = "blob_lost"


@dataclass(slots=True)
class BlobWriter:
    """Of a new folder. Nothing can be read before `finish`."""

    folder: Path
    _places: dict[str, tuple[int, int]] = field(default_factory=dict)
    _end: int = 0
    _pack: BinaryIO = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self._pack = (self.folder / "pack").open("xb", buffering=_CHUNK)

    def add(self, content: bytes) -> str:
        digest = sha256(content).hexdigest()
        if digest not in self._places:
            self._pack.write(content)
            self._places[digest] = (self._end, len(content))
            self._end += len(content)
        return digest

    def add_file(self, file: BinaryIO) -> str:
        """A large one, from a file that nobody changes now. It is read twice, never held whole."""
        digest = digest_of(file)
        own = self.folder / digest
        if not own.exists():
            file.seek(0)
            with own.open("xb") as copy:
                copy_content(file.fileno(), copy.fileno())
        return digest

    def finish(self, *, durable: bool) -> None:
        self._pack.flush()
        index = json.dumps(self._places, separators=(",", ":")).encode()
        if durable:
            for file in self.folder.iterdir():
                sync(file)
            write_durably(self.folder / "index.json", index)
        else:
            (self.folder / "index.json").write_bytes(index)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._pack.close()


class Blobs:
    """Of a folder that a writer finished."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        text = (folder / "index.json").read_bytes()
        self._places = cast(dict[str, tuple[int, int]], json.loads(text))

    def read(self, digest: str) -> bytes:
        """Checked: a byte that the disk lost must not reach a workspace."""
        try:
            if digest in self._places:
                offset, size = self._places[digest]
                with (self._folder / "pack").open("rb") as pack:
                    pack.seek(offset)
                    content = pack.read(size)
            else:
                content = (self._folder / digest).read_bytes()
        except OSError as error:
            raise BlobLost(f"{self._folder} lacks the bytes of {digest}: {error}") from error
        if sha256(content).hexdigest() != digest:
            raise BlobLost(f"the bytes of {digest} in {self._folder} are damaged")
        return content

    def own_file(self, digest: str) -> Path | None:
        """Where a large one is."""
        return None if digest in self._places else self._folder / digest

    def copy_to(self, digest: str, target: BinaryIO) -> None:
        """Into an empty file that can also be read. A large one is never held whole."""
        if digest in self._places:
            target.write(self.read(digest))
            target.flush()
            return
        try:
            with (self._folder / digest).open("rb") as own:
                copy_content(own.fileno(), target.fileno())
        except FileNotFoundError as error:
            raise BlobLost(f"{self._folder} lacks the bytes of {digest}") from error
        if digest_of(target) != digest:
            raise BlobLost(f"the bytes of {digest} in {self._folder} are damaged")


def digest_of(file: BinaryIO) -> str:
    file.seek(0)
    state = sha256()
    while chunk := file.read(_CHUNK):
        state.update(chunk)
    return state.hexdigest()
