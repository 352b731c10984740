"""Fetch a file over HTTP into a partial file, and go on where an earlier attempt broke off."""

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from stretto.adapters.models.local.catalog import Weights
from stretto.problems.errors import StrettoError
from stretto.vocabulary.version import VERSION

_STALL_SECONDS = 30.0
_TRIES = 4  # in a row without a byte gained
_CHUNK = 1 << 18
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")
_OTHER_SOURCE = "check the network, or use another source: --from URL, --from FILE or --from pypi"


class PullProgress(Protocol):
    """Shows a user how far a pull has come."""

    def begin(self, doing: str, total_bytes: int) -> None: ...
    def done(self, bytes_so_far: int) -> None: ...
    def say(self, line: str) -> None: ...


class SourceUnreachable(StrettoError):
    """The source did not answer; another source may."""

    kind = "unreachable"


@dataclass(frozen=True, slots=True)
class PartialFile:
    """A file that is still arriving; what came before a crash is kept."""

    path: Path

    @property
    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def cut(self, size: int) -> None:
        """Keep the first bytes only."""
        with self.path.open("ab") as file:
            file.truncate(size)

    @contextmanager
    def adding(self) -> Iterator[Callable[[bytes], int]]:
        """Gives a function that appends a chunk and returns the size of the file then."""
        with self.path.open("ab") as file:

            def add(chunk: bytes) -> int:
                file.write(chunk)
                return file.tell()

            yield add

    def etag(self, url: str) -> str | None:
        """What the server called the file of which this is the beginning."""
        try:
            known = json.loads(self._note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        is_this = isinstance(known, dict) and known.get("url") == url
        etag = known.get("etag") if is_this else None
        return etag if isinstance(etag, str) else None

    def note_etag(self, url: str, etag: str | None) -> None:
        if etag is None or etag.startswith("W/"):  # a weak one promises nothing about bytes
            self._note.unlink(missing_ok=True)
        else:
            self._note.write_text(json.dumps({"url": url, "etag": etag}), encoding="utf-8")

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    @property
    def _note(self) -> Path:
        return self.path.with_name(f"{self.path.name}.etag")


class _Broken(Exception):
    """The download may work when it is tried again."""


def download(url: str, weights: Weights, part: PartialFile, watch: "PullProgress") -> None:
    tries = 0
    while True:
        before = part.size
        try:
            return _go_on(url, weights, part, watch)
        except _Broken as error:
            tries = 1 if part.size > before else tries + 1
            if tries >= _TRIES:
                kept = f"; {part.size / 1e6:,.0f} MB are kept" if part.size else ""
                message = f"{url} cannot be fetched: {error}{kept}"
                raise SourceUnreachable(message, hint=_OTHER_SOURCE) from error
            watch.say(f"the download broke off ({error}); going on at {part.size / 1e6:,.0f} MB")
            time.sleep(0.2 * 2**tries)


def _go_on(url: str, weights: Weights, part: PartialFile, watch: "PullProgress") -> None:
    total = weights.size_bytes
    if part.size > total:
        part.cut(0)
    if part.size == total:
        return
    with _answer(url, part) as response:
        _place(response, weights, part)
        part.note_etag(url, response.headers.get("ETag"))
        have = part.size
        with part.adding() as add:
            while have < total:
                # Never more than the weights have: a hostile server may never stop sending.
                chunk = _read(response, min(_CHUNK, total - have))
                if not chunk:
                    raise _Broken("the server stopped in the middle")
                have = add(chunk)
                watch.done(have)


def _answer(url: str, part: PartialFile) -> http.client.HTTPResponse:
    headers = {"User-Agent": f"stretto/{VERSION}", "Accept-Encoding": "identity"}
    if part.size:
        headers["Range"] = f"bytes={part.size}-"
        if etag := part.etag(url):
            headers["If-Range"] = etag  # another file by now: it comes from its beginning
    try:
        request = urllib.request.Request(url, headers=headers)
        response = urllib.request.urlopen(request, timeout=_STALL_SECONDS)
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(url, error, part) from error
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(getattr(error, "reason", None) or error) from error
    except ValueError as error:
        raise StrettoError(f"{url} is not a URL: {error}") from error
    assert isinstance(response, http.client.HTTPResponse)
    return response


def _refusal(url: str, error: urllib.error.HTTPError, part: PartialFile) -> Exception:
    if error.code == 416:  # what there is does not belong to the server's file
        part.cut(0)
        return _Broken("the server has no such range")
    if error.code in (408, 425, 429) or error.code >= 500:
        return _Broken(f"HTTP {error.code}")
    return SourceUnreachable(f"{url} answers HTTP {error.code} {error.reason}", hint=_OTHER_SOURCE)


def _place(response: http.client.HTTPResponse, weights: Weights, part: PartialFile) -> None:
    """Make the part end where the answer begins."""
    total = weights.size_bytes
    if response.status == 206:
        found = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if found is None or int(found[1]) != part.size:
            part.cut(0)
            raise _Broken("the server sent another range than was asked for")
        size = int(found[2])
    else:
        part.cut(0)
        size = int(response.headers.get("Content-Length") or total)
    if size != total:
        raise StrettoError(
            f"{response.url} is not {weights.title}: it has {size:,} bytes, not {total:,}",
            hint="another source: --from URL, --from FILE or --from pypi",
        )


def _read(response: http.client.HTTPResponse, most: int) -> bytes:
    try:
        return response.read(most)
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(str(error) or type(error).__name__) from error
