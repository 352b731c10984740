"""A file or link as an Entry. In: a name in an open folder. Out: what it is now, and its digest."""

import os
import stat
from hashlib import sha256

from stretto.workspaces.blobs import LARGE_BYTES, BlobWriter, digest_of
from stretto.workspaces.entries import Entry
from stretto.workspaces.paths import PathAt, PathRefused


def entry_at(place: PathAt, keep: BlobWriter | None = None) -> Entry:
    """Hashed, and its bytes kept if asked for. Raises OSError; PathRefused for other things."""
    target = place.link_target()
    if target is not None:
        content = os.fsencode(target)
        return Entry("link", 0, len(content), _digest(content, keep))
    with place.open_file() as file:
        status = os.fstat(file.fileno())
        mode = stat.S_IMODE(status.st_mode) & 0o777
        if status.st_size > LARGE_BYTES:
            digest = digest_of(file) if keep is None else keep.add_file(file)
            return Entry("file", mode, status.st_size, digest)
        content = file.read()
        return Entry("file", mode, len(content), _digest(content, keep))


def holds(place: PathAt, entry: Entry | None) -> bool:
    """Whether exactly this is there now."""
    try:
        return entry_at(place).is_same(entry)
    except FileNotFoundError:
        return entry is None
    except (OSError, PathRefused):
        return False


def _digest(content: bytes, keep: BlobWriter | None) -> str:
    return sha256(content).hexdigest() if keep is None else keep.add(content)
