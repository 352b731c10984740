"""What a workspace holds and how it changed, as values between the parts of this room."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

EntryKind: TypeAlias = Literal["file", "link"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a link at some moment. Its bytes (a link's target) are kept by their digest."""

    kind: EntryKind
    mode: int  # permission bits; 0 for a link
    size: int
    digest: str  # sha256

    @property
    def is_executable(self) -> bool:
        return bool(self.mode & 0o100)

    def is_same(self, other: "Entry | None") -> bool:
        """Of the mode only "executable" counts, as in git: the rest differs from umask to umask."""
        return (
            other is not None
            and (self.kind, self.digest) == (other.kind, other.digest)
            and self.is_executable == other.is_executable
        )


@dataclass(frozen=True, slots=True)
class Change:
    """One path. With `renamed_from`, `before` is what was at that path."""

    path: str
    before: Entry | None  # None: it was not there
    after: Entry | None  # None: it is gone
    renamed_from: str | None = None
    is_ignored: bool = False  # the writer made it where a `.gitignore` leaves files out of copies

    @property
    def touched(self) -> tuple[str, ...]:
        return (self.path,) if self.renamed_from is None else (self.renamed_from, self.path)


@dataclass(frozen=True, slots=True)
class Left:
    """A path that was not taken along, and why."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What an isolated writer did. Enough to show it and to merge it, without its copy."""

    id: str
    artifact: Path  # the folder that holds the bytes
    changes: tuple[Change, ...]  # by path
    refused: tuple[Left, ...] = ()  # what no merge may bring into a workspace
    left: tuple[Left, ...] = ()  # what is simply not taken along
    base_files: int = 0  # how many files the writer was given; 0: not known
    key: str = ""  # of the attempt that made it; empty: more than one did
    is_explained: bool = False  # a call of the step can have removed what it removes

    @property
    def removed(self) -> tuple[str, ...]:
        return tuple(change.path for change in self.changes if change.after is None)

    @property
    def objects(self) -> Path:
        return self.artifact / "objects"
