"""Files as values, and their bytes by digest.

A `FileEntry` is a file or a link at some moment. Its bytes are kept in a folder, by their sha256:
small ones one behind the other in one file, because a thousand files would cost a thousand fsyncs;
large ones in a file of their own, so that a file system with reflinks need not copy them.

The room's own records survive a power cut: all of a record is there, or the one before it. They lie
in folders that only the engine writes. A record that cannot be read is a damaged disk, or the work
of another version of Stretto: that is an error, never a guess.
"""

import ctypes
import errno
import fcntl
import json
import os
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, Self, TypeAlias, TypeVar

import msgspec

from stretto.problems.errors import NotFound, StrettoError
from stretto.workspaces.paths import PathAt, PathRefused

# Past this many files it is cheaper to sync the file system once: 1,000 files took 2.6 s one by
# one and 0.04 s together. For a few, it would wait for what others have written.
FEW = 8


def write_durably(file: Path, content: bytes) -> None:
    """Write beside the file, sync, rename, sync the folder: a crash leaves the old or the new."""
    temporary = file.with_name(f"{file.name}.new")
    with temporary.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    temporary.rename(file)
    sync(file.parent)


def sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_file_system(fd: int) -> bool:
    """The whole file system that the fd is on. False where that is not possible, or failed."""
    return sys.platform == "linux" and bool(_libc().syncfs(ctypes.c_int(fd)) == 0)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


_VERSION = 2
_Record = TypeVar("_Record")


class Unreadable(StrettoError):
    kind = "unreadable"


def read_record(file: Path, kind: type[_Record], what: str) -> _Record:
    """Raises NotFound when there is none, and Unreadable."""
    try:
        stored = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise NotFound(f"there is no {what} at {file.parent}") from None
    except (OSError, ValueError) as error:
        raise Unreadable(f"{file} cannot be read: {error}") from error
    if not isinstance(stored, dict) or stored.get("version") != _VERSION:
        raise Unreadable(f"{file} was not written by this version of Stretto")
    try:
        return msgspec.convert(stored.get("record"), kind, dec_hook=_from_text)
    except msgspec.ValidationError as error:
        raise Unreadable(f"{file} cannot be read: {error}") from error


def encode_record(record: object) -> bytes:
    # ASCII: names of files need not be UTF-8, and JSON's escapes keep what they are.
    stored = {"version": _VERSION, "record": msgspec.to_builtins(record, enc_hook=str)}
    return json.dumps(stored, separators=(",", ":")).encode("ascii")


def _from_text(kind: type, text: str) -> object:
    """Paths are the only values in a record that are more than JSON."""
    return kind(text)


FileEntryKind: TypeAlias = Literal["file", "link"]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file or a link at some moment. Its bytes (a link's target) are kept by their digest."""

    kind: FileEntryKind
    mode: int  # permission bits; 0 for a link
    size: int
    digest: str  # sha256

    @property
    def is_executable(self) -> bool:
        return bool(self.mode & 0o100)

    def is_same(self, other: "FileEntry | None") -> bool:
        """Of the mode only "executable" counts, as in git: the rest differs from umask to umask."""
        return (
            other is not None
            and (self.kind, self.digest) == (other.kind, other.digest)
            and self.is_executable == other.is_executable
        )


@dataclass(frozen=True, slots=True)
class SkippedPath:
    """A path that is not copied or not merged, and why."""

    path: str
    why: str


_FICLONE = 0x40049409
_COPY_CHUNK = 1024 * 1024
# What other file systems, pairs of them, or kernels say instead of copying.
_UNABLE = (errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EPERM)


def copy_content(source_fd: int, target_fd: int) -> None:
    """Copy all of it. The files share their blocks where the file system can do that."""
    if clone(source_fd, target_fd) or _copy_in_kernel(source_fd, target_fd):
        return
    os.lseek(source_fd, 0, os.SEEK_SET)
    os.ftruncate(target_fd, 0)
    os.lseek(target_fd, 0, os.SEEK_SET)
    while chunk := os.read(source_fd, _COPY_CHUNK):
        view = memoryview(chunk)
        while view:
            view = view[os.write(target_fd, view) :]


def clone(source_fd: int, target_fd: int) -> bool:
    """Whether the target now shares the source's blocks."""
    with suppress(OSError):
        fcntl.ioctl(target_fd, _FICLONE, source_fd)
        return True
    return False


def _copy_in_kernel(source_fd: int, target_fd: int) -> bool:
    if not hasattr(os, "copy_file_range"):
        return False
    offset = 0
    try:
        while copied := os.copy_file_range(
            source_fd, target_fd, 1 << 30, offset_src=offset, offset_dst=offset
        ):
            offset += copied
    except OSError as error:
        if error.errno in _UNABLE:
            return False
        raise
    # Some file systems answer 0 for files whose size they do not know.
    return offset >= os.fstat(source_fd).st_size


LARGE_BYTES = 256 * 1024
_CHUNK = 1024 * 1024


class BlobLost(StrettoError):
    kind = "blob_lost"


@dataclass(slots=True)
class BlobWriter:
    """Fills a new folder. Nothing can be read from it before `finish`."""

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
        """The bytes of a large file that nobody changes now. They are read twice, never held whole."""
        digest = hash_file(file)
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
    """The bytes in a folder that a `BlobWriter` has finished. Raises BlobLost where the disk or a
    person has lost some of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            text = (folder / "index.json").read_bytes()
            self._places = msgspec.json.decode(text, type=dict[str, tuple[int, int]])
        except (OSError, msgspec.MsgspecError) as error:
            raise BlobLost(f"{folder} lacks the index of its bytes: {error}") from error

    def read(self, digest: str) -> bytes:
        """Checked against the digest: a byte that the disk lost must not reach a workspace."""
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
        """The file of a large content; None for a small one."""
        return None if digest in self._places else self._folder / digest

    def copy_to(self, digest: str, target: BinaryIO) -> None:
        """Write into an empty file that can also be read. A large content is never held whole."""
        if digest in self._places:
            target.write(self.read(digest))
            target.flush()
            return
        try:
            with (self._folder / digest).open("rb") as own:
                copy_content(own.fileno(), target.fileno())
        except FileNotFoundError as error:
            raise BlobLost(f"{self._folder} lacks the bytes of {digest}") from error
        if hash_file(target) != digest:
            raise BlobLost(f"the bytes of {digest} in {self._folder} are damaged")


def hash_file(file: BinaryIO) -> str:
    file.seek(0)
    state = sha256()
    while chunk := file.read(_CHUNK):
        state.update(chunk)
    return state.hexdigest()


def read_entry(place: PathAt, keep: BlobWriter | None = None) -> FileEntry:
    """What is there now. Its bytes are added to `keep`. Raises OSError, or PathRefused for what is
    neither a file nor a link."""
    target = place.link_target()
    if target is not None:
        content = os.fsencode(target)
        return FileEntry("link", 0, len(content), _digest(content, keep))
    with place.open_file() as file:
        status = os.fstat(file.fileno())
        mode = stat.S_IMODE(status.st_mode) & 0o777
        if status.st_size > LARGE_BYTES:
            digest = hash_file(file) if keep is None else keep.add_file(file)
            return FileEntry("file", mode, status.st_size, digest)
        content = file.read()
        return FileEntry("file", mode, len(content), _digest(content, keep))


def holds_entry(place: PathAt, entry: FileEntry | None) -> bool:
    """Whether exactly this entry is there now."""
    try:
        return read_entry(place).is_same(entry)
    except FileNotFoundError:
        return entry is None
    except (OSError, PathRefused):
        return False


def _digest(content: bytes, keep: BlobWriter | None) -> str:
    return sha256(content).hexdigest() if keep is None else keep.add(content)
