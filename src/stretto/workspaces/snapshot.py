"""Copy listed files, and keep their bytes. In: a Listing, an empty root. Out: Snapshot.

Every file is read once, so that the copy and the kept bytes are the same even while somebody
writes: a file that changes under the copy is whole in both, or torn alike in both.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from stretto.workspaces.blobs import LARGE_BYTES, BlobWriter
from stretto.workspaces.copying import copy_content
from stretto.workspaces.entries import Entry, Left
from stretto.workspaces.limits import Measure, WorkspaceLimits
from stretto.workspaces.listing import Listing
from stretto.workspaces.paths import FoundPath, PathAt, PathRefused, refuse_errors
from stretto.workspaces.rooted_dir import RootedDir

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Snapshot:
    files: dict[str, Entry]
    unread: tuple[Left, ...]


def take_snapshot(
    source: RootedDir, listing: Listing, root: Path, base: BlobWriter, limits: WorkspaceLimits
) -> Snapshot:
    root.mkdir()
    for folder in listing.folders:
        (root / folder).mkdir()
    copying = _Copying(base, Measure(limits))
    for folder, found in groupby(listing.files, key=lambda each: each.path.rpartition("/")[0]):
        with ExitStack() as held:
            try:
                from_fd = held.enter_context(source.folder(folder, follow=False))
            except PathRefused:
                continue  # removed since it was listed
            copying.copy_files(found, from_fd, held.enter_context(_folder(root / folder)))
    # Last of all, so that nothing is ever written through one.
    for path, target in copying.links:
        os.symlink(target, root / path)
    return Snapshot(copying.files, tuple(copying.unread))


@dataclass(slots=True)
class _Copying:
    base: BlobWriter
    measure: Measure  # once more: a file may have grown since it was listed
    files: dict[str, Entry] = field(default_factory=dict)
    unread: list[Left] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)

    def copy_files(self, found: Iterable[FoundPath], from_fd: int, to_fd: int) -> None:
        for each in found:
            place = PathAt(from_fd, each.path.rpartition("/")[2])
            # Only what cannot be read is passed over. A copy that cannot be written is no copy.
            try:
                source = place.link_target() if each.kind == "link" else place.open_file()
            except FileNotFoundError:
                continue
            except (OSError, PathRefused) as error:
                self.unread.append(Left(each.path, f"cannot be read: {error}"))
                continue
            if isinstance(source, str):
                content = os.fsencode(source)
                self.links.append((each.path, source))
                self.files[each.path] = Entry("link", 0, len(content), self.base.add(content))
            elif source is not None:
                with source:
                    self.files[each.path] = self._copy_file(source, to_fd, place.name)
                self.measure.add(each.path, self.files[each.path].size)

    def _copy_file(self, source: BinaryIO, to_fd: int, name: str) -> Entry:
        status = os.fstat(source.fileno())
        mode = stat.S_IMODE(status.st_mode) & 0o777
        with open(os.open(name, _CREATE, mode, dir_fd=to_fd), "w+b") as copy:
            os.fchmod(copy.fileno(), mode)
            if status.st_size > LARGE_BYTES:
                copy_content(source.fileno(), copy.fileno())
                size = os.fstat(copy.fileno()).st_size
                return Entry("file", mode, size, self.base.add_file(copy))
            content = source.read()
            copy.write(content)
            return Entry("file", mode, len(content), self.base.add(content))


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    with refuse_errors(str(path)):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)
