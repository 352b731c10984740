"""What must happen next. Out of: advance. In to: the driver, which carries them out in order.

A command is carried out only after the event that caused it is durable, and a StartAttempt only
after its AttemptStarted is. Every attempt that was started is answered by one event that ends
it; a CancelAttempt asks for that answer soon.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from msgspec import Struct

from stretto.ports.runner import FunctionArguments
from stretto.vocabulary.ids import AgentId, StepId
from stretto.vocabulary.statuses import RunStatus

ApprovalSubject: TypeAlias = Literal["start", "again", "merge"]


class StartAttempt(Struct, frozen=True):
    step: StepId
    part: str  # which delegation of the step, as in AttemptStarted
    attempt: int
    agent: AgentId
    prompt: str  # complete: input, results, feedback, why the last answer was not accepted
    instructions: str  # the system prompt, where the prompt does not hold it already
    model: str | None  # None: the agent does not say
    timeout_seconds: float | None  # for the executor's information; the timer is the scheduler's
    key: str  # equal keys, equal work
    arguments: FunctionArguments | None = None  # only for a Python function


@dataclass(frozen=True, slots=True)
class CancelAttempt:
    step: StepId
    part: str
    attempt: int


@dataclass(frozen=True, slots=True)
class SetTimer:
    timer: str
    due_at: float  # seconds since the epoch; a TimerFired is due then, or at once if that is past


@dataclass(frozen=True, slots=True)
class ClearTimer:
    timer: str


@dataclass(frozen=True, slots=True)
class AskApproval:
    """A person must decide: ApprovalRequested says so, and Approved or Rejected answers it."""

    step: StepId
    key: str  # of what would run
    about: ApprovalSubject


@dataclass(frozen=True, slots=True)
class CollectChanges:
    """An isolated writer is done: ChangesCollected, MergeFailed or MergeHeld answers."""

    step: StepId
    is_merged: bool  # back into the workspace, if it can be
    is_allowed: bool = False  # by a person, who was asked about this change


@dataclass(frozen=True, slots=True)
class EndRun:
    status: RunStatus


Command: TypeAlias = (
    StartAttempt | CancelAttempt | SetTimer | ClearTimer | AskApproval | CollectChanges | EndRun
)
