"""The scenes of the proof: small recipes, one for each promise, and a Player in place of a model.

The recipes are structural, with tasks so small that any model can do them. Offline a Player does the
work: it waits, calls the real tools with their real limits, and answers. It lets steps that should
run side by side wait for each other: if they ran one after the other, the first would time out.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from json import dumps
from pathlib import Path

from stretto.adapters.tools.toolbox import StandardToolbox, ToolSettings
from stretto.agents.agent_files import load_catalog
from stretto.agents.tool_calls import ToolCaller
from stretto.plan.build import Problems, build
from stretto.plan.catalog import Catalog
from stretto.plan.model import Plan
from stretto.ports.model import RequestedCall
from stretto.ports.runner import AttemptRequest, AttemptResult, Failure, Success, Witness
from stretto.problems.errors import InvalidRecipe
from stretto.problems.render import count
from stretto.recipe.read import read_recipe
from stretto.text.redaction import NOTHING_SECRET
from stretto.vocabulary.json_value import Json

READERS = ("north", "south", "east")
RIVALS = ("first", "second")  # writers whose write-sets overlap
NEIGHBOURS = ("left", "right")  # writers whose write-sets do not
MADE = "made.txt"

_AGENTS = """
agents:
  reader: {prompt: You answer in one word., tools: [Read], max_turns: 4}
  writer: {prompt: You do what the task says and nothing else., tools: [Read, Write], max_turns: 6}
"""
_READY = "Answer with the single word ready."


def _write_task(file: str, word: str) -> str:
    return (
        f"Use the Write tool to write the file {file} with the content '{word}'. "
        "Then answer with the single word done."
    )


_READER_STEPS = "".join(f"  - {{id: {id}, agent: reader, task: {_READY}}}\n" for id in READERS)
_RIVAL_STEPS = "".join(
    f"""
  - id: {id}
    agent: writer
    write_set: [{written}]
    task: {_write_task(f"notes/{id}.txt", id)}
"""
    # The globs differ but overlap, which the scheduler has to find out.
    for id, written in zip(RIVALS, ("notes/**", "notes/*.txt"), strict=True)
)
_NEIGHBOUR_STEPS = "".join(
    f"""
  - id: {id}
    agent: writer
    write_set: [{id}/**]
    task: {_write_task(f"{id}/{id}.txt", id)}
"""
    for id in NEIGHBOURS
)
_HANDOVER_STEPS = f"""
  - {{id: find, agent: reader, task: {_READY}}}
  - {{id: use, agent: reader, depends_on: [find], task: Repeat the result of the step before you.}}
"""
_MERGE_STEPS = f"""
  - id: make
    agent: writer
    write_set: [{MADE}]
    task: {_write_task(MADE, "made")}
  - id: look
    agent: reader
    depends_on: [make]
    task: Use the Read tool to read the file {MADE}. Then answer with what it says.
"""
# Each mistake stands on a line of its own.
BAD_RECIPE = """\
max_concurrency: 6
steps:
  - {id: a, task: look, depends_on: [nobody]}
  - {id: b, task: look, depends_on: [c]}
  - {id: c, task: look, depends_on: [b]}
  - {id: d, task: write, write_set: [../elsewhere]}
  - {id: d, task: look}
"""
BAD_CODES = ("RCP104", "RCP105", "RCP106", "RCP121")


@dataclass(frozen=True, slots=True)
class Scene:
    name: str  # also its run's id
    recipe: str


def scenes(timeout_seconds: int) -> tuple[Scene, ...]:
    head = f"max_concurrency: 6\ntimeout: {timeout_seconds}s{_AGENTS}steps:\n"
    bodies = {
        "readers": _READER_STEPS,
        "rivals": _RIVAL_STEPS,
        "neighbours": _NEIGHBOUR_STEPS,
        "handover": _HANDOVER_STEPS,
        "merge": _MERGE_STEPS,
    }
    return tuple(Scene(name, f"name: smoke-{name}\n{head}{body}") for name, body in bodies.items())


def build_scene(recipe: str) -> Plan | Problems:
    return build(read_recipe(recipe), _bundled_catalog())


def plan_of(scene: Scene) -> Plan:
    plan = build_scene(scene.recipe)
    if isinstance(plan, Problems):
        raise InvalidRecipe(f"{scene.name} has {count(plan.problems)}", plan.problems)
    return plan


@cache
def _bundled_catalog() -> Catalog:
    return load_catalog((), Path())


MODEL = "played"
_WORK_SECONDS = 0.06  # long enough for a forbidden overlap to show
_PATIENCE_SECONDS = 20.0


class Player:
    def __init__(self, workspace: Path, word: str) -> None:
        """`word`: a random word. A step that repeats it was given it, or has read it."""
        self._word = word
        self._toolbox = StandardToolbox(ToolSettings(project=workspace), {})
        readers, neighbours = asyncio.Barrier(len(READERS)), asyncio.Barrier(len(NEIGHBOURS))
        self._barriers = {
            **dict.fromkeys(READERS, readers),
            **dict.fromkeys(NEIGHBOURS, neighbours),
        }

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        if (barrier := self._barriers.get(request.step)) is not None:
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
            case "use":  # it can know the word only from its prompt
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
            calling = ToolCaller(request, witness, tools, NOTHING_SECRET)
            (result,) = await calling.carry_out([RequestedCall("1", tool, dumps(given))])
        if result.outcome.verdict != "ok":
            return Failure("error", f"{tool}: {result.outcome.text}", model=MODEL)
        return Success(result.outcome.text, model=MODEL)
