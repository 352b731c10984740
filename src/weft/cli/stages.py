"""How a step stands, as a person sees it. In: StepState. Out: a stage, and the sign for it."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from weft.schedule.state import StepState
from weft.vocabulary.statuses import StepStatus

# The statuses of steps, and two that people want to tell from "running" and "waiting".
Stage: TypeAlias = Literal[
    "awaiting approval",
    "retrying",
    "running",
    "failed",
    "succeeded",
    "skipped",
    "held",
    "cancelled",
    "waiting",
]

# A word stands beside every sign: colour and shape alone tell nothing to a screen reader or a log.
SIGNS: Mapping[Stage, str] = {
    "awaiting approval": "?",
    "retrying": "↻",
    "running": "▶",
    "failed": "✗",
    "succeeded": "✓",
    "skipped": "-",
    "held": "-",
    "cancelled": "-",
    "waiting": "·",
}
ASCII_SIGNS: Mapping[Stage, str] = {
    **SIGNS,
    "retrying": "~",
    "running": ">",
    "failed": "x",
    "succeeded": "+",
    "waiting": ".",
}


def stage_of(step: StepState) -> Stage:
    if step.awaits_approval:
        return "awaiting approval"
    # Whatever is at work has an open attempt, so a running step without one waits for its next.
    if step.status is StepStatus.RUNNING and step.open_attempts == 0:
        return "retrying"
    return step.status.value


def signs_for(encoding: str) -> Mapping[Stage, str]:
    return SIGNS if encoding.lower().startswith("utf") else ASCII_SIGNS
