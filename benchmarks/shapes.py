"""What the engine is measured on. In: a size. Out: a Shape: who waits for whom, as YAML and bare.

Each is written as an author would write it, in YAML: ids, edges, and prompts that name the input
and the output of every step that they go on from. In layers of 50, that is 50 outputs a prompt;
the join of a fan-out names all its branches. The bare form, for those that are compared with Stretto,
is the same graph, and the same prompts put together in plain Python.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from stretto.agents.agent_files import load_catalog
from stretto.plan.build import build
from stretto.plan.model import Plan
from stretto.recipe.read import read_recipe
from stretto.vocabulary.amounts import Limits

TOPIC = "bees"
LIMITS = Limits(
    text_bytes=64 * 1024 * 1024, nodes=10_000_000, steps=100_000, map_items_ceiling=100_000
)


@dataclass(frozen=True)
class Shape:
    name: str
    befores: Mapping[str, tuple[str, ...]]  # by step, in listing order
    width: int

    @property
    def steps(self) -> int:
        return len(self.befores)

    @cached_property
    def text(self) -> str:
        lines = ["name: measured", f"inputs: [{{name: topic, default: {TOPIC}}}]", "steps:"]
        for step, befores in self.befores.items():
            lines += [f"  - id: {step}", "    subagent: writer"]
            if len(befores) > 1:
                lines.append(f"    depends_on: [{', '.join(befores)}]")
            lines += ["    prompt: |-", f"      Write {step} about {{{{inputs.topic}}}}."]
            lines += [f"      Go on from: {{{{steps.{before}.output}}}}" for before in befores]
        return "\n".join(lines) + "\n"

    def prompt(self, step: str, said: Mapping[str, str]) -> str:
        """What Stretto renders for the step, without Stretto. `said`: what the steps before it said."""
        befores = "".join([f"\nGo on from: {said[before]}" for before in self.befores[step]])
        return f"Write {step} about {TOPIC}.{befores}"

    def plan(self) -> Plan:
        recipe = read_recipe(self.text, "measured.yaml", LIMITS)
        plan = build(recipe, load_catalog((), Path.cwd()), LIMITS, self.width)
        assert isinstance(plan, Plan), plan.problems[0]
        return plan


def chain(steps: int) -> Shape:
    befores = {f"s{n}": (f"s{n - 1}",) if n else () for n in range(steps)}
    return Shape(f"chain of {steps:,}", befores, 4)


def reversed_chain(steps: int) -> Shape:
    """The same chain, its last step listed first."""
    befores = dict(reversed(list(chain(steps).befores.items())))
    return Shape(f"chain of {steps:,}, reversed", befores, 4)


def fan(branches: int) -> Shape:
    names = tuple(f"b{n}" for n in range(branches))
    befores = {"first": (), **dict.fromkeys(names, ("first",)), "join": names}
    return Shape(f"fan-out of {branches:,}", befores, branches)


def layers(depth: int, breadth: int) -> Shape:
    """Every step of a layer waits for every step of the layer before."""
    rows = [tuple(f"l{d}_{n}" for n in range(breadth)) for d in range(depth)]
    befores = {step: rows[d - 1] if d else () for d, row in enumerate(rows) for step in row}
    return Shape(f"{depth}×{breadth} layers", befores, breadth)
