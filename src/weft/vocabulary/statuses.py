"""How steps and runs stand."""

from enum import StrEnum


class StepStatus(StrEnum):
    WAITING = "waiting"  # for other steps, a free place or files
    AWAITING_APPROVAL = "awaiting approval"  # a person's
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    HELD = "held"
    CANCELLED = "cancelled"


UNFINISHED = (StepStatus.WAITING, StepStatus.AWAITING_APPROVAL, StepStatus.RUNNING)


class RunStatus(StrEnum):
    RUNNING = "running"
    WAITING = "waiting"  # a step awaits approval, and nothing else is left to do
    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"
