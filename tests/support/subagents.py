"""A subagent with real tools and a real HTTP server that plays the model. Out: what it did."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stretto.adapters.models.named import NamedModels
from stretto.adapters.tools.functions import AnyFunctionTool
from stretto.adapters.tools.toolbox import StandardToolbox, ToolSettings
from stretto.agents.conversation import LeadTurn
from stretto.agents.subagent import Subagents
from stretto.events.attempts import AttemptId
from stretto.events.model import Happening, ModelRetried, ToolEnded
from stretto.ports.runner import AttemptRequest, AttemptResult, Failure, Success
from stretto.testing.openai_server import OpenAIServer
from stretto.text.redaction import Redactor
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.models import ModelSelection
from stretto.vocabulary.names import AgentId, StepId
from support.toolbench import longest_pause


@dataclass
class Heard:
    """A witness that keeps what it was told, in order."""

    events: list[Happening] = field(default_factory=list)
    durable: list[Happening] = field(default_factory=list)
    spent: Usage = Usage()
    clock: float = 0.0
    slept: list[float] = field(default_factory=list)

    def now(self) -> float:
        self.clock += 0.01
        return self.clock

    def is_followed(self) -> bool:
        return False

    def note(self, event: Happening) -> None:
        self.events.append(event)

    async def record(self, event: Happening) -> None:
        self.events.append(event)
        self.durable.append(event)

    async def confirm(self) -> None:
        pass

    def spend(self, usage: Usage) -> None:
        self.spent += usage

    async def sleep(self, seconds: float) -> None:
        """At once: how long it would have been is kept."""
        self.slept.append(seconds)

    @property
    def retries(self) -> list[ModelRetried]:
        return [event for event in self.events if isinstance(event, ModelRetried)]

    @property
    def calls(self) -> list[ToolEnded]:
        return [event for event in self.events if isinstance(event, ToolEnded)]


@dataclass
class Outcome:
    result: AttemptResult
    heard: Heard
    server: OpenAIServer
    pause: float  # the longest time that nothing else on the loop could go on

    @property
    def output(self) -> Any:
        assert isinstance(self.result, Success), self.result
        return self.result.output

    @property
    def failure(self) -> Failure:
        assert isinstance(self.result, Failure), self.result
        return self.result


def request(prompt: str = "Go.", **fields: Any) -> AttemptRequest:
    given: dict[str, Any] = {
        "run_id": "run-1",
        "attempt": AttemptId(StepId("a"), 1),
        "agent": AgentId("worker"),
        "instructions": "",
        "prompt": prompt,
        "model": None,
        "tools": (),
        "max_turns": None,
        "format": None,
        "schema": None,
        "rules": (),
    }
    return AttemptRequest(**{**given, **fields})


def play(
    script: Any,
    asked: AttemptRequest | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    judge: str | None = None,
    tools: ToolSettings | None = None,
    timeout: float = 30.0,
    retries: int = 3,
    functions: Sequence[AnyFunctionTool] = (),
    lead: LeadTurn | None = None,
    redactor: Redactor | None = None,
) -> Outcome:
    async def main() -> Outcome:
        async with OpenAIServer(script) as server:
            given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test-0123456789"}
            given |= environ or {}
            toolbox = StandardToolbox(
                tools or ToolSettings(project=Path("/")),
                given,
                functions={each.name: each for each in functions},
            )
            heard = Heard()
            subagents = Subagents(
                ModelSelection("openai:first", judge=judge),
                NamedModels(given),
                toolbox,
                redactor=redactor or Redactor(given),
                retries=retries,
                sleep=heard.sleep,
                lead=lead,
            )
            try:
                async with asyncio.timeout(timeout):
                    result, pause = await longest_pause(subagents.run(asked or request(), heard))
            finally:
                await toolbox.close()
            return Outcome(result, heard, server, pause)

    return asyncio.run(main())
