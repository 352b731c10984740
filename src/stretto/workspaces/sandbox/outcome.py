"""What became of a command. In: nothing. Out: Ran, or Refused when it never started."""

from dataclasses import dataclass

from stretto.processes.watchdog import LimitName


@dataclass(frozen=True, slots=True)
class Ran:
    exit_code: int  # as a shell says it: 128 + the number of the signal that ended the command
    output: str  # stdout and stderr, as they came; where bytes were dropped it says so
    dropped_bytes: int  # from the middle of the output
    duration_seconds: float
    limit_hit: LimitName | None
    is_confined: bool
    kept_out: tuple[str, ...] = ()  # changes outside the write-set, which were not kept
    new_repositories: tuple[str, ...] = ()  # made by the command, and renamed since

    @property
    def truncated(self) -> bool:
        return self.dropped_bytes > 0

    @property
    def timed_out(self) -> bool:
        return self.limit_hit is LimitName.WALL

    @property
    def signal(self) -> int | None:
        return self.exit_code - 128 if 128 < self.exit_code <= 128 + 64 else None


@dataclass(frozen=True, slots=True)
class Refused:
    """The command was not started."""

    says: str
    fix: str = ""
