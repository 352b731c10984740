"""The plug point for whatever does the work: one attempt in, its result out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from weft.events.model import FailureKind
from weft.vocabulary.ids import AgentId, StepId
from weft.vocabulary.usage import Usage
from weft.vocabulary.value import value
from weft.vocabulary.values import Json


@value
class AttemptRequest:
    """All that a subagent needs to know."""

    run_id: str
    step: StepId
    part: str
    attempt: int
    agent: AgentId
    instructions: str
    prompt: str
    model: str | None
    tools: tuple[str, ...]
    max_turns: int | None
    format: str | None
    schema: Mapping[str, Json] | None
    rules: tuple[str, ...]


@value
class Success:
    output: Json
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()
    model: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    kind: FailureKind
    error: str
    usage: Usage = Usage()
    retry_after_seconds: float | None = None
    model: str = ""


AttemptResult: TypeAlias = Success | Failure


class Runner(Protocol):
    async def run(self, request: AttemptRequest) -> AttemptResult:
        """Never raises for what a model or a tool did wrong; cancelling it stops the work."""
        ...
