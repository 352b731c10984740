"""Plays the model, offline. In: an attempt. Out: what a model would do: wait, call tools, answer.

The tools are the real ones, with the real guard. Steps that should run side by side wait for each
other here: were they run one after the other, they would never meet, and fail.
"""

import asyncio
from collections.abc import Mapping
from json import dumps
from pathlib import Path

from stretto.adapters.tools.toolbox import StandardToolbox, ToolSettings
from stretto.agents.calling import Calling
from stretto.ports.model import RequestedCall
from stretto.ports.runner import AttemptRequest, AttemptResult, Failure, Success, Witness
from stretto.smoke.scenes import MADE, NEIGHBOURS, READERS, RIVALS
from stretto.text.redaction import NOTHING_SECRET
from stretto.vocabulary.values import Json

MODEL = "played"
_WORK_SECONDS = 0.06  # so long that whoever should not overlap would be seen to
_PATIENCE_SECONDS = 20.0


class Player:
    def __init__(self, workspace: Path, word: str) -> None:
        """`word`: what nobody can know who was not told."""
        self._word = word
        self._toolbox = StandardToolbox(ToolSettings(project=workspace), {})
        readers, neighbours = asyncio.Barrier(len(READERS)), asyncio.Barrier(len(NEIGHBOURS))
        self._meeting = {
            **dict.fromkeys(READERS, readers),
            **dict.fromkeys(NEIGHBOURS, neighbours),
        }

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        if (barrier := self._meeting.get(request.step)) is not None:
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    await barrier.wait()
            except (TimeoutError, asyncio.BrokenBarrierError):
                return Failure("timeout", "the steps beside it did not start", model=MODEL)
        await asyncio.sleep(_WORK_SECONDS)
        return await self._act(request, witness)

    async def _act(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        match request.step:
            case "find":
                return Success(self._word, model=MODEL)
            case "use":  # it knows the word from its prompt, or not at all
                return Success(request.prompt, model=MODEL)
            case "make":
                content = f"{self._word}\n"
                return await self._call(request, witness, "Write", file_path=MADE, content=content)
            case "look":
                return await self._call(request, witness, "Read", file_path=MADE)
            case step if step in RIVALS:
                return await self._write(request, witness, f"notes/{step}.txt")
            case step if step in NEIGHBOURS:
                return await self._write(request, witness, f"{step}/{step}.txt")
            case _:
                return Success("ready", model=MODEL)

    async def _write(self, request: AttemptRequest, witness: Witness, file: str) -> AttemptResult:
        folder = Path(request.workspace, file).parent
        seen = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        word = request.step
        done = await self._call(request, witness, "Write", file_path=file, content=f"{word}\n")
        if isinstance(done, Failure):
            return done
        return Success(f"done; before me there was: {', '.join(seen) or 'nothing'}", model=MODEL)

    async def _call(
        self, request: AttemptRequest, witness: Witness, tool: str, **arguments: Json
    ) -> AttemptResult:
        given: Mapping[str, Json] = arguments
        async with self._toolbox.open(request) as tools:
            calling = Calling(request, witness, tools, NOTHING_SECRET)
            (told,) = await calling.carry_out([RequestedCall("1", tool, dumps(given))])
        if told.outcome.verdict != "ok":
            return Failure("error", f"{tool}: {told.outcome.text}", model=MODEL)
        return Success(told.outcome.text, model=MODEL)
