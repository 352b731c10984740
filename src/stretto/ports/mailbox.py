"""Messages to the process that drives a run: a person approves a step, or cancels the run.

Only the driver writes a run's journal. Others leave their events here, and the driver takes
them in. A message may be taken twice after a crash; no event of this kind does harm twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stretto.events.codec import UnknownEvent
from stretto.events.model import Approved, CancelRequested, ChangesApplied, Event, Rejected
from stretto.vocabulary.ids import RunId

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
