"""What a tool tells the model: bounded text with a verdict, and tools that can only say why not."""

from collections.abc import Mapping
from dataclasses import dataclass

from stretto.ports.tool import ToolOutcome, ToolSpec, Verdict
from stretto.text.short import cut_middle
from stretto.vocabulary.json_value import Json

MOST_CHARACTERS = 30_000
_ANY_OBJECT: Mapping[str, Json] = {"type": "object"}
_WORDS: Mapping[Verdict, str] = {"refused": "Refused", "error": "Error"}


class CallRefused(Exception):
    """A rule forbids what the model asks for. The text tells it what it may do instead."""


class CallFailed(Exception):
    """The call was carried out and did not work."""


@dataclass(frozen=True, slots=True)
class UnusableTool:
    """A tool that cannot be used. A call of it says why and is on record; if the tool were
    silently missing, the model could only guess."""

    spec: ToolSpec
    outcome: ToolOutcome

    async def call(self, arguments: Mapping[str, Json], key: str) -> ToolOutcome:
        return self.outcome


def unusable(name: str, why: str, verdict: Verdict = "refused") -> UnusableTool:
    # It does nothing, so it changes nothing and can be repeated.
    short = cut_middle(why, 500)
    spec = ToolSpec(name, f"Not available: {short}", _ANY_OBJECT, fault=short)
    return UnusableTool(spec, outcome(f"{_WORDS[verdict]}: {why}", verdict))


def outcome(text: str, verdict: Verdict = "ok", most: int = MOST_CHARACTERS) -> ToolOutcome:
    text = encodable(text)
    if len(text) <= most:
        return ToolOutcome(text, verdict)
    return ToolOutcome(cut_middle(text, most), verdict, result_bytes=len(text.encode()))


def encodable(text: str) -> str:
    """With `?` for each lone surrogate, which no encoding can write."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
