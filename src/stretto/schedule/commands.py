"""What must happen next: `advance` decides it, and the driver carries it out in order.

A command is carried out only after the event that caused it is durable, and a StartAttempt only
after its AttemptStarted is. Every attempt that was started is answered by one event that ends
it; a CancelAttempt asks for that answer soon.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from msgspec import Struct

from stretto.events.attempts import AttemptId, Timer
from stretto.ports.runner import AttemptRequest
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import RunStatus

ApprovalSubject: TypeAlias = Literal["start", "again", "merge"]


class StartAttempt(Struct, frozen=True, gc=False):
    request: AttemptRequest  # the whole work: the driver looks nothing up to carry it out
    key: str  # equal keys, equal work

    @property
    def attempt(self) -> AttemptId:
        return self.request.attempt

    @property
    def step(self) -> StepId:
        return self.request.attempt.step


@dataclass(frozen=True, slots=True)
class CancelAttempt:
    attempt: AttemptId


@dataclass(frozen=True, slots=True)
class SetTimer:
    timer: Timer
    due_at: float  # seconds since the epoch; a TimerFired is due then, or at once if that is past


@dataclass(frozen=True, slots=True)
class ClearTimer:
    timer: Timer


@dataclass(frozen=True, slots=True)
class AskApproval:
    """A person must decide: ApprovalRequested says so, and Approved or Rejected answers it."""

    step: StepId
    key: str  # of what would run
    about: ApprovalSubject


@dataclass(frozen=True, slots=True)
class CollectChanges:
    """A writer is done, in a copy or not: ChangesCollected, MergeFailed or MergeHeld answers."""

    step: StepId
    is_merged: bool  # back into the workspace, if it can be
    is_allowed: bool = False  # by a person, who was asked about this change


@dataclass(frozen=True, slots=True)
class EndRun:
    status: RunStatus


Command: TypeAlias = (
    StartAttempt | CancelAttempt | SetTimer | ClearTimer | AskApproval | CollectChanges | EndRun
)
