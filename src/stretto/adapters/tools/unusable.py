"""A tool that cannot be had. In: its name and why. Out: a Tool that says so when it is called.

The model learns the reason, and the call is on record; a tool that were silently missing would
only be guessed at.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from stretto.adapters.tools.bounded import cut, outcome
from stretto.ports.tool import ToolOutcome, ToolSpec, Verdict
from stretto.vocabulary.values import Json

_ANY_OBJECT: Mapping[str, Json] = {"type": "object"}
_WORDS: Mapping[Verdict, str] = {"refused": "Refused", "error": "Error"}


@dataclass(frozen=True, slots=True)
class Unusable:
    spec: ToolSpec
    outcome: ToolOutcome

    async def call(self, arguments: Mapping[str, Json], key: str) -> ToolOutcome:
        return self.outcome


def unusable(name: str, why: str, verdict: Verdict = "refused") -> Unusable:
    # It does nothing, so it changes nothing and can be repeated.
    short = cut(why, 500)
    spec = ToolSpec(name, f"Not available: {short}", _ANY_OBJECT, fault=short)
    return Unusable(spec, outcome(f"{_WORDS[verdict]}: {why}", verdict))
