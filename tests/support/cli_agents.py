"""What these tests share: an attempt, and somebody who watches it."""

import asyncio
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stretto.adapters.models.cli.runner import CliRunner
from stretto.events.attempts import AttemptId
from stretto.events.model import Happening, ModelSpoke, ToolEnded
from stretto.ports.runner import AttemptRequest, AttemptResult
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import AgentId, StepId

READING = ("Read", "Glob", "Grep")
WRITING = ("Read", "Glob", "Grep", "Write", "Edit", "Bash")


@dataclass
class Watching:
    events: list[Happening] = field(default_factory=list)
    spent: Usage = Usage()
    clock: Callable[[], float] = time.time
    is_read_along: bool = False

    def now(self) -> float:
        return self.clock()

    def is_followed(self) -> bool:
        return self.is_read_along

    def note(self, event: Happening) -> None:
        self.events.append(event)

    async def record(self, event: Happening) -> None:
        self.events.append(event)

    async def confirm(self) -> None:
        pass

    def spend(self, usage: Usage) -> None:
        self.spent += usage

    @property
    def spoken(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ModelSpoke))

    @property
    def calls(self) -> list[ToolEnded]:
        return [event for event in self.events if isinstance(event, ToolEnded)]


def attempt(
    model: str,
    workspace: Path | None = None,
    *,
    prompt: str = "How many?",
    instructions: str = "",
    tools: tuple[str, ...] = READING,
    may_write: bool = False,
    max_turns: int | None = None,
    schema: Mapping[str, Json] | None = None,
) -> AttemptRequest:
    return AttemptRequest(
        run_id="r1",
        attempt=AttemptId(StepId("count"), 1),
        agent=AgentId("counter"),
        instructions=instructions,
        prompt=prompt,
        model=model,
        tools=tools,
        max_turns=max_turns,
        format=None,
        schema=schema,
        rules=(),
        workspace=str(workspace) if workspace else "",
        may_write=may_write,
    )


def run(
    request: AttemptRequest,
    watching: Watching | None = None,
    environ: Mapping[str, str] = os.environ,
    passes: tuple[str, ...] = (),
    may_run: bool = True,
) -> AttemptResult:
    runner = CliRunner(lambda _: may_run, environ, passes)
    return asyncio.run(runner.run(request, watching or Watching()))


def script(folder: Path, name: str, lines: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def wait_until(claim: Callable[[], bool], seconds: float = 5.0) -> bool:
    until = time.monotonic() + seconds
    while not claim():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def pids_in(files: Iterable[Path]) -> list[int]:
    assert wait_until(lambda: all(file.exists() and file.read_text().strip() for file in files))
    return [int(file.read_text()) for file in files]
