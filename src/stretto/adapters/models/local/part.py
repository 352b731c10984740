"""A file that is still arriving. In: bytes, in order. Out: how many there are, after a crash too."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stretto.problems.errors import StrettoError


class Unreachable(StrettoError):
    """The source did not answer: another one may."""

    kind = "unreachable"


@dataclass(frozen=True, slots=True)
class Part:
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
        """Gives a function that appends, and says how many bytes there are then."""
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
