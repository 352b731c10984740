"""What happened. A run's journal is a list of these, and its state is their fold.

Only facts from outside are events: that an attempt ended, a timer fired, a person decided.
What follows from them is decided by `schedule.advance` and needs no row of its own, except
AttemptStarted, which is written so that a crash can tell a started attempt from a planned one.
`at` is seconds since the epoch, stamped by the driver: the scheduler has no clock.
"""

import re
from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from stretto.events.attempts import AttemptId, Timer
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json, Large
from stretto.vocabulary.models import Setup
from stretto.vocabulary.names import AgentId, StepId

FailureKind: TypeAlias = Literal[
    "error", "timeout", "empty", "truncated", "validation", "refused", "in_doubt", "unavailable",
    "conflict",
    "permanent", "budget",
]  # fmt: skip
# The same work would fail again: a content filter, a wrong key, nothing left to spend.
NOT_RETRIED: frozenset[FailureKind] = frozenset({"refused", "permanent", "budget"})


# A time that a date can be made of: before the year 10000.
_Time: TypeAlias = Annotated[float, Meta(ge=0, lt=253_402_300_800)]


def _snake_case(name: str) -> str:
    """`RunStarted` → `run_started`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class _Event(Struct, frozen=True, gc=False, tag_field="type", tag=_snake_case):
    """What every event is: frozen, and a JSON object whose `type` says which event it is."""

    @property
    def type(self) -> str:
        return _snake_case(type(self).__name__)


class RunStarted(_Event, frozen=True):
    at: _Time
    run_id: str
    workflow: str
    digest: str  # of the recipe's text
    plan: Raw  # the JSON of the plan (plan.codec): editing the file never changes a run
    inputs: dict[str, Json]
    seed: int  # the only randomness of a run: the jitter of its retries follows from it
    parent: str | None = None  # the run this one was forked or retried from
    model: str | None = None  # what --model said; who resumes need not say it again
    workspace: str = ""  # the folder it works on, wherever it is resumed from
    project: str = ""  # the folder whose settings count, wherever it is resumed from
    trusted: str = ""  # the digest of that folder's own settings and agents, if it used them
    seal: str = ""  # a MAC of all of this with the user's secret; execution.seals
    setup: Setup | None = None  # who answers; None: it was not recorded
    owner: str = ""  # who started it over HTTP or MCP: the name of a token
    trigger: str = ""  # what started it, where no person at a terminal did: http, schedule NAME, …


class _AttemptEvent(_Event, frozen=True):
    """What happened to one attempt."""

    at: _Time
    attempt: AttemptId

    @property
    def step(self) -> StepId:
        return self.attempt.step


class AttemptStarted(_AttemptEvent, frozen=True):
    agent: AgentId
    key: str  # digest of agent, prompt, tools, model, schema: equal keys, equal work
    playbooks: tuple[str, ...] | UnsetType = UNSET  # that its instructions hold, by name


class AttemptSucceeded(_AttemptEvent, frozen=True):
    output: Json | Large
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()
    model: str = ""
    reused_from: str | None = None  # a run whose equal attempt gave this output
    # The digest and size of a large output, which the store keeps apart from the row.
    output_at: str | UnsetType = UNSET
    output_bytes: int | UnsetType = UNSET


class AttemptFailed(_AttemptEvent, frozen=True):
    kind: FailureKind
    error: str
    usage: Usage = Usage()
    retry_after_seconds: float | None = None  # what a provider asked for
    model: str = ""
    warnings: tuple[str, ...] = ()


class ModelSpoke(_AttemptEvent, frozen=True):
    """A piece of a reply, as it came in."""

    text: str


class ModelFailedOver(_AttemptEvent, frozen=True):
    """A model could not answer, and the next of `fallback_models` is asked."""

    model: str
    to: str
    error: str


class ModelRetried(_AttemptEvent, frozen=True):
    """A provider failed for a moment, and the same request is sent again after a delay. What the
    model had said of this answer is void; what tools have done stands."""

    model: str
    error: str
    retry: int  # from 1, over one request
    most: int
    delay_seconds: float


class ToolStarted(_AttemptEvent, frozen=True):
    """Written before a call that a crash would leave in doubt."""

    call: int  # from 1, over all calls of the attempt
    tool: str
    arguments: dict[str, Json]
    recovery: str  # keyed | in_doubt


class ToolEnded(_AttemptEvent, frozen=True):
    """Every call has one, also one that was refused."""

    call: int
    tool: str
    arguments: dict[str, Json]  # long texts are shortened
    verdict: str  # ok | error | refused
    result_bytes: int
    duration_seconds: float
    message: str = ""  # why it was refused, or how it failed
    result: str = ""  # the beginning of what the model was told, where the call worked


class PhaseLasted(_AttemptEvent, frozen=True):
    """What an attempt is busy with, written only where that takes longer than a moment, so that
    whoever watches is told: a copy is made, a server starts, a model has not said a word yet."""

    phase: str


class UsageNoted(_AttemptEvent, frozen=True):
    """What the attempt has used so far and, where a budget reserves for calls, what the call under
    way may take. This counts if no event says how the attempt ended."""

    usage: Usage


class CommandEnded(_AttemptEvent, frozen=True):
    """The command of an attempt has run to its end, or to a limit."""

    exit_code: int
    stderr: str  # its end, where it is long
    duration_seconds: float
    limit: str = ""  # which limit stopped it


class AttemptCancelled(_AttemptEvent, frozen=True):
    """The attempt was told to stop, and did, or was left behind. What it cost still counts."""

    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()


class ChangesCollected(_Event, frozen=True):
    """An isolated writer is done: what it changed is kept, and merged back if it should be."""

    at: _Time
    step: StepId
    artifact: str  # the folder that keeps the change
    files: int
    insertions: int
    deletions: int
    is_merged: bool
    warnings: tuple[str, ...] = ()
    question: str = ""  # what a person should know before they merge it
    is_unchanged: bool = False  # the files were compared, and the step had changed none
    diff: str = ""  # as a patch, cut where it is long
    changed: tuple[str, ...] = ()  # paths
    is_whole: bool = True  # False: it may hold half-done files of parts that did not succeed


class MergeFailed(_Event, frozen=True):
    """The change is kept, and the workspace is as it was."""

    at: _Time
    step: StepId
    artifact: str
    error: str
    paths: tuple[str, ...] = ()
    files: int = 0
    insertions: int = 0
    deletions: int = 0
    is_refused: bool = False  # whatever the workspace holds: it must not be merged
    diff: str = ""
    changed: tuple[str, ...] = ()
    is_whole: bool = True
    warnings: tuple[str, ...] = ()


class MergeHeld(_Event, frozen=True):
    """The change is kept, and a person must say whether it is merged: Approved or Rejected."""

    at: _Time
    step: StepId
    artifact: str
    question: str
    files: int = 0
    insertions: int = 0
    deletions: int = 0
    is_whole: bool = True
    warnings: tuple[str, ...] = ()


class MergeUndone(_Event, frozen=True):
    """A merge that a crash had cut off was undone, except for files that were changed since."""

    at: _Time
    paths: tuple[str, ...]  # the files that were left as they are
    kept: str  # the folder that holds these files as they were before the merge


class ChangesApplied(_Event, frozen=True):
    """A person merged the change of a step that had ended."""

    at: _Time
    step: StepId
    by: str = ""


class TimerFired(_Event, frozen=True):
    at: _Time
    timer: Timer


class ApprovalRequested(_Event, frozen=True):
    """A step goes no further until a person decides: Approved or Rejected, with the same key."""

    at: _Time
    step: StepId
    key: str  # digest of what would run: prompts, agents, tools, models, sets
    about: str = "start"  # start | again (after an interruption) | merge (its change)


class Approved(_Event, frozen=True):
    at: _Time
    step: StepId
    by: str = ""
    reason: str = ""
    key: str = ""  # what the person was shown; empty in journals from before approvals had keys
    prompts: dict[str, Json] | None = None  # by part: what the person wrote to be run instead
    decision: str = ""  # tells this decision from all others
    seal: str = ""  # a MAC of all of this but its time, with the user's secret; execution.seals


class Rejected(_Event, frozen=True):
    at: _Time
    step: StepId
    by: str = ""
    reason: str = ""
    key: str = ""
    decision: str = ""
    seal: str = ""  # as that of Approved


class CancelRequested(_Event, frozen=True):
    at: _Time
    reason: str = ""


class MessageDropped(_Event, frozen=True):
    """Something was left in the run's mailbox that does not count: forged, or not to be read."""

    at: _Time
    what: str


class RunResumed(_Event, frozen=True):
    """A new process drives the run. Attempts that were under way are in doubt."""

    at: _Time
    permission: str = "auto"  # what it may do to files from here on: auto | ask
    setup: Setup | None = None  # who answers from here on
    is_after_crash: bool = False  # the process before this one died; it was not stopped
    most_crashes: int = 3  # a step during which so many processes died is not tried again


class RunEnded(_Event, frozen=True):
    """The driver's last row. It repeats what the fold says, for those who only list runs."""

    at: _Time
    status: str
    warnings: tuple[str, ...] = ()


# What an attempt does while it is under way.
Happening: TypeAlias = (
    ModelSpoke
    | ModelFailedOver
    | ModelRetried
    | ToolStarted
    | ToolEnded
    | PhaseLasted
    | UsageNoted
    | CommandEnded
)

Event: TypeAlias = (
    RunStarted
    | AttemptStarted
    | AttemptSucceeded
    | AttemptFailed
    | AttemptCancelled
    | ModelSpoke
    | ModelFailedOver
    | ModelRetried
    | ToolStarted
    | ToolEnded
    | PhaseLasted
    | UsageNoted
    | CommandEnded
    | ChangesCollected
    | MergeFailed
    | MergeHeld
    | MergeUndone
    | ChangesApplied
    | TimerFired
    | ApprovalRequested
    | Approved
    | Rejected
    | CancelRequested
    | MessageDropped
    | RunResumed
    | RunEnded
)
