"""The store: journals of events, the mailboxes of runs, and the cache of answers.

The process that drives a run leases it and gets a fence: a number that grows with each lease of that run. Every
append shows its fence, so a driver that slept through the end of its lease can do no harm.

How long a lease lasts is counted by a clock that nobody can set, alike in all processes of one boot.

StrettoError
├── Leased         leased          another process drives the run
├── Fenced         fenced          another process has taken the run over, or it was released
└── JournalFull    journal_full    the store cannot write: no space, an I/O error, a lock
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from stretto.events.codec import UnknownEvent
from stretto.events.model import Approved, CancelRequested, ChangesApplied, Event, Rejected
from stretto.problems.errors import StrettoError
from stretto.vocabulary.json_value import Json, Large
from stretto.vocabulary.names import RunId

ExternalEvent = Approved | Rejected | CancelRequested | ChangesApplied


@dataclass(frozen=True, slots=True)
class Message:
    number: int
    run_id: RunId
    event: Event | UnknownEvent  # as it was found: whoever takes it says what does not count


class Mailbox(Protocol):
    async def send(self, run_id: RunId, event: ExternalEvent) -> None:
        """Returns when it is durable."""
        ...

    async def pending(self) -> list[Message]:
        """All that nobody has taken, oldest first."""
        ...

    async def acknowledge(self, numbers: Sequence[int]) -> None: ...


@dataclass(frozen=True, slots=True)
class CachedOutput:
    output: Json
    run_id: str  # the run that made it


class Cache(Protocol):
    async def put(self, key: str, kept: CachedOutput) -> None: ...

    async def get(self, key: str) -> CachedOutput | None: ...


@dataclass(frozen=True, slots=True)
class StoredEvent:
    seq: int  # its place in the run's journal, from 1, without gaps
    event: Event | UnknownEvent


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as lists show it. What is not in RunStarted, RunResumed or RunEnded is not here."""

    run_id: RunId
    workflow: str
    status: str
    started_at: float
    ended_at: float | None
    leased_by: str | None = None  # None: nobody drives it, or its lease has run out
    is_let_go: bool = True  # False: whoever leased it last still holds it, or died with it


@dataclass(frozen=True, slots=True)
class RunNews:
    """Runs that have new events, of this process or another one. What a model says is no news: no
    state depends on it, and a run that is only being written would be loaded ten times a second."""

    cursor: int
    run_ids: tuple[RunId, ...]
    is_whole: bool = True  # False: the store was compacted since, and any run may have changed


@dataclass(frozen=True, slots=True)
class Loss:
    """Events of a run that were acknowledged, and are not in the journal any more."""

    run_id: RunId
    acknowledged: int
    held: int  # how many of them the journal had when it was found
    kept: str  # the folder with the journal's files as they were then

    @property
    def told(self) -> str:
        return (
            f"run {self.run_id} has lost {self.acknowledged - self.held} of its "
            f"{self.acknowledged} events: the journal was damaged (its files as they were "
            f"found: {self.kept})"
        )


def _nobody_is_dead(name: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class LeaseOwner:
    """A process that leases runs, by its name, and how it tells that another process is dead."""

    name: str
    is_dead: Callable[[str], bool] = _nobody_is_dead  # True only where that is certain


class Leased(StrettoError):
    kind = "leased"
    exit_code = 5

    def __init__(self, run_id: RunId, by: str, seconds_left: float) -> None:
        hint = f"stretto watch {run_id} follows it; or wait until it ends, or until its lease does"
        # In brackets is what tells two processes with one pid apart; it means nothing to a reader.
        super().__init__(f"run {run_id} is driven by {by.partition(' (')[0]}", hint=hint)
        self.by = by
        self.seconds_left = seconds_left


class Fenced(StrettoError):
    kind = "fenced"

    def __init__(self, run_id: RunId, fence: int) -> None:
        hint = (
            f"another process took it over, or this one was away too long: stretto watch {run_id}"
        )
        super().__init__(f"run {run_id} is no longer driven from here (fence {fence})", hint=hint)
        self.fence = fence


class JournalFull(StrettoError):
    """Nothing of the append was written. What was acknowledged before is safe."""

    kind = "journal_full"


class Journal(Protocol):
    """One open store. Of an append, a lease or a renewal all takes effect, or nothing does."""

    @property
    def is_shared(self) -> bool:
        """Whether processes that open the same store have the same runs: one's leases and fences count
        for the others, and what one has written the others read. A store that does not say so is for
        one process alone."""
        ...

    async def append(
        self, run_id: RunId, events: Sequence[Event], *, fence: int
    ) -> Mapping[int, Large]:
        """Returns when the events are durable; appends that wait together may share one fsync.

        Out: large outputs that the store keeps apart, by the place of their event in `events`. They
        are as durable as their events.

        Raises Fenced, JournalFull, or ValueError for an event that is not JSON. A caller that is
        cancelled while waiting cannot know whether the events were written.
        """
        ...

    async def read(
        self, run_id: RunId, after: int = 0, *, with_speech: bool = True, limit: int | None = None
    ) -> list[StoredEvent]:
        """The events whose seq is greater than `after`, the first `limit` of them; none for a run that
        is not known.

        `with_speech`: also what models said piece by piece, which no state depends on and which is
        as long as all answers together. A large output is a Large: read when it is used.
        """
        ...

    async def first(self, run_id: RunId) -> Event | UnknownEvent | None:
        """How a run began, without reading the rest of it."""
        ...

    async def runs(self, limit: int = 50, before: RunId | None = None) -> list[RunRow]:
        """The runs that started, newest first. `before`: those that come after this one in that order."""
        ...

    async def unended(self) -> list[RunRow]:
        """All that started and have not ended, however many came after them; newest first."""
        ...

    async def run(self, run_id: RunId) -> RunRow | None:
        """One of them, if it started."""
        ...

    async def news(self, after: int | None) -> "RunNews":
        """Which runs have new events since `after`, the cursor of an earlier answer; None: from now on.
        Events that hold words of a model alone do not count."""
        ...

    async def lease(self, run_id: RunId, owner: str, seconds: float) -> int:
        """The fence, greater than any before. Raises Leased while another owner's lease lasts.

        An owner that leases again gets a new fence too: it may be a new process by an old name.
        """
        ...

    async def begin(self, run_id: RunId, owner: str, seconds: float, first: Event) -> int:
        """A new run: its lease and its first event, both or neither. The fence, as of `lease`.

        Raises RefusedToOverwrite for a run that has begun before, also if it was removed since, and
        what `lease` and `append` raise.
        """
        ...

    async def renew(self, run_id: RunId, *, fence: int, seconds: float) -> None:
        """The lease lasts `seconds` from now. A lease that ran out is renewed if nobody took it.

        Raises Fenced.
        """
        ...

    async def release(self, run_id: RunId, *, fence: int) -> None:
        """Others may lease the run at once. Of no effect when it is no longer held."""
        ...

    async def forget(self, run_id: RunId, *, fence: int) -> None:
        """Remove a run that has ended: its events, its messages, the answers that it has cached, and
        large values that no other run uses. Its id is never used again. Raises Fenced.
        """
        ...

    async def compact(self) -> None:
        """Give the space of what was removed back, if that can be done now."""
        ...

    def losses(self) -> Sequence[Loss]:
        """What was acknowledged once and is gone, for as long as the damaged files are kept."""
        ...

    async def close(self) -> None:
        """Waits for the calls made before, then refuses others. Closing it again does nothing."""
        ...
