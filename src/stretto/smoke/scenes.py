"""The recipes of the proof. In: nothing. Out: scenes, each a plan for one promise.

All are structural (seed 002). The tasks are so small that any model can do them.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from stretto.agents.catalog import load_catalog
from stretto.plan.build import Problems, build
from stretto.plan.catalog import Catalog
from stretto.plan.model import Plan
from stretto.problems.errors import InvalidRecipe
from stretto.problems.render import count
from stretto.recipe.read import read_recipe

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


def _writing(file: str, word: str) -> str:
    return (
        f"Use the Write tool to write the file {file} with the content '{word}'. "
        "Then answer with the single word done."
    )


_READING = "".join(f"  - {{id: {id}, agent: reader, task: {_READY}}}\n" for id in READERS)
_RIVALLING = "".join(
    f"""
  - id: {id}
    agent: writer
    write_set: [{written}]
    task: {_writing(f"notes/{id}.txt", id)}
"""
    # The globs differ and overlap: the scheduler has to see it.
    for id, written in zip(RIVALS, ("notes/**", "notes/*.txt"), strict=True)
)
_BESIDE = "".join(
    f"""
  - id: {id}
    agent: writer
    write_set: [{id}/**]
    task: {_writing(f"{id}/{id}.txt", id)}
"""
    for id in NEIGHBOURS
)
_HANDING_OVER = f"""
  - {{id: find, agent: reader, task: {_READY}}}
  - {{id: use, agent: reader, depends_on: [find], task: Repeat the result of the step before you.}}
"""
_MERGING = f"""
  - id: make
    agent: writer
    write_set: [{MADE}]
    task: {_writing(MADE, "made")}
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
        "readers": _READING,
        "rivals": _RIVALLING,
        "neighbours": _BESIDE,
        "handover": _HANDING_OVER,
        "merge": _MERGING,
    }
    return tuple(Scene(name, f"name: smoke-{name}\n{head}{body}") for name, body in bodies.items())


def built(recipe: str) -> Plan | Problems:
    return build(read_recipe(recipe), _bundled())


def plan_of(scene: Scene) -> Plan:
    plan = built(scene.recipe)
    if isinstance(plan, Problems):
        raise InvalidRecipe(f"{scene.name} has {count(plan.problems)}", plan.problems)
    return plan


@cache
def _bundled() -> Catalog:
    return load_catalog((), Path())
