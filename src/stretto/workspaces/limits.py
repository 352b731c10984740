"""How much a workspace may hold to be copied and compared. In: what was seen. Out: or TooLarge."""

from collections import Counter
from dataclasses import dataclass, field

from stretto.problems.errors import StrettoError
from stretto.workspaces.paths import quote_path

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class WorkspaceLimits:
    files: int = 50_000
    bytes: int = 2048 * MIB
    file_bytes: int = 256 * MIB

    @property
    def with_room(self) -> "WorkspaceLimits":
        """For a copy that a step has worked in: what just fitted may have grown, and the model
        is paid by then."""
        return WorkspaceLimits(2 * self.files, 2 * self.bytes, 2 * self.file_bytes)


DEFAULT_LIMITS = WorkspaceLimits()


class TooLarge(StrettoError):
    kind = "workspace_too_large"


@dataclass(slots=True)
class Measure:
    """Counts while a workspace is listed, and stops it when it is too much."""

    limits: WorkspaceLimits
    files: int = 0
    bytes: int = 0
    by_folder: Counter[str] = field(default_factory=Counter)

    def add(self, path: str, size: int) -> None:
        self.files += 1
        self.bytes += size
        self.by_folder[path.partition("/")[0]] += size
        if size > self.limits.file_bytes:
            most = _bytes(self.limits.file_bytes)
            raise TooLarge(
                f"{quote_path(path)} has {_bytes(size)}; a file in an isolated workspace has at most {most}",
                hint=_WHAT_TO_DO,
            )
        if self.files > self.limits.files:
            raise self._too_much(f"more than {self.limits.files:,} files")
        if self.bytes > self.limits.bytes:
            raise self._too_much(f"more than {_bytes(self.limits.bytes)}")

    def _too_much(self, what: str) -> TooLarge:
        largest = ", ".join(
            f"{quote_path(name)} {_bytes(size)}" for name, size in self.by_folder.most_common(3)
        )
        return TooLarge(
            f"the workspace holds {what}, too much for a copy of its own (so far: {largest})",
            hint=_WHAT_TO_DO,
        )


_WHAT_TO_DO = (
    "list what the step does not need in .gitignore, raise workspace.max_files or "
    "workspace.max_mib of stretto.yaml, or give the step 'workspace_mode: shared' and a narrow write_set"
)


def _bytes(size: int) -> str:
    if size < 1024:
        return f"{size} bytes"
    return f"{size / MIB:,.1f} MiB" if size >= MIB else f"{size / 1024:.1f} KiB"
