"""Who answers in a run, and with what: what a plan leaves to the machine that it runs on.

A plan says `model: fast` or nothing at all; only the machine knows that this is a certain model
behind a certain URL. Two attempts are the same work only if this is the same too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from stretto.vocabulary.values import Json


@dataclass(frozen=True, slots=True)
class Setup:
    # A model as a plan writes it ("" where it names none) → who really answers, and where.
    models: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)  # a tool's name → how it is configured
    judge: str = ""  # who decides the rules that code cannot decide


def setup_to_json(setup: Setup) -> dict[str, Json]:
    return {"models": dict(setup.models), "tools": dict(setup.tools), "judge": setup.judge}


def setup_from_json(value: Mapping[str, Json] | None) -> Setup | None:
    """None for a journal that was written before runs recorded their setup."""
    if value is None:
        return None
    return Setup(_texts(value.get("models")), _texts(value.get("tools")), str(value.get("judge")))


def _texts(value: Json) -> dict[str, str]:
    entries = value.items() if isinstance(value, dict) else ()
    return {name: text for name, text in entries if isinstance(text, str)}
