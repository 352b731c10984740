"""How a step stands, as a person sees it. In: StepState. Out: a stage, and the sign for it."""

from collections.abc import Mapping
from typing import TypeAlias

from stretto.schedule.standing import word_of
from stretto.vocabulary.statuses import StepWord

Stage: TypeAlias = StepWord
stage_of = word_of

# A word stands beside every sign: colour and shape alone tell nothing to a screen reader or a log.
SIGNS: Mapping[Stage, str] = {
    "awaiting approval": "?",
    "overdue": "?",
    "retrying": "↻",
    "running": "▶",
    "merging": "▶",
    "interrupted": "-",
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
    "merging": ">",
    "failed": "x",
    "succeeded": "+",
    "waiting": ".",
}


def signs_for(encoding: str) -> Mapping[Stage, str]:
    return SIGNS if encoding.lower().startswith("utf") else ASCII_SIGNS
