"""How steps and runs stand: the words of `runs`, `watch`, `report`, their JSON and the docs."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, TypeAlias


class StepStatus(StrEnum):
    WAITING = "waiting"  # for other steps, a free place or files
    AWAITING_APPROVAL = "awaiting approval"  # a person's
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    HELD = "held"
    CANCELLED = "cancelled"


class RunStatus(StrEnum):
    RUNNING = "running"
    WAITING = "waiting"  # a step awaits approval, and nothing else is left to do
    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"


# A step's status, told more finely where people want to know what it waits for.
StepWord: TypeAlias = Literal[
    "waiting",
    "awaiting approval",
    "overdue",
    "running",
    "retrying",
    "merging",
    "interrupted",
    "succeeded",
    "failed",
    "skipped",
    "held",
    "cancelled",
]
STEP_WORDS: Mapping[StepWord, str] = {
    "waiting": "it waits for earlier steps, for a free slot or for files",
    "awaiting approval": "a person must approve or reject it",
    "overdue": "its deadline passed before a person decided; `stretto resume` continues without it",
    "running": "an attempt is under way",
    "retrying": "it waits for its next attempt",
    "merging": "its work is done, and its changes are being collected or merged",
    "interrupted": "it was running when the process that drove the run ended",
    "succeeded": "it has an output",
    "failed": "all attempts failed",
    "skipped": "a condition left it out",
    "held": "a step that it needs failed",
    "cancelled": "the run ended before it did",
}
RUN_WORDS: Mapping[str, str] = {
    "running": "a process drives it",
    "waiting": "it waits for a person and nothing else is under way",
    "overdue": "it waited for a person and a deadline has passed; `stretto resume` continues it",
    "interrupted": "it has not ended and no process drives it; `stretto resume` continues it",
    "complete": "every step that was not routed away succeeded, and the run has an output",
    "partial": "it ended, but a part of it is missing",
    "failed": "it ended early, or no step succeeded",
    "cancelled": "a person stopped it",
    "unreadable": "its journal cannot be read",
}
UNFINISHED: tuple[StepWord, ...] = (
    "waiting",
    "awaiting approval",
    "overdue",
    "running",
    "retrying",
    "merging",
    "interrupted",
)
INTERRUPTED = "interrupted"
