"""What values cost: to make, to write as JSON and to read back; and what planning costs.

    python benchmarks/values.py [--against CHECKOUT]

Everything is measured as CPU time, the best of several rounds. With --against, the same is measured
for another checkout of this project, in processes that take turns with ours, and the ratio is
shown: a ratio means the same on a slow machine, on a fast and on a busy one.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve()
ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="another checkout, to compare with")
    parser.add_argument("--measure", help=argparse.SUPPRESS)  # the package; in a child
    wanted = parser.parse_args()
    if wanted.measure:
        print(json.dumps(measured(wanted.measure)))
        return
    folders = [HERE.parents[1], *([wanted.against.resolve()] if wanted.against else [])]
    best: list[dict[str, float]] = [{} for _ in folders]
    for _ in range(ROUNDS):
        for folder, figures in zip(folders, best, strict=True):
            for what, cost in _in_child(folder).items():
                figures[what] = min(cost, figures.get(what, cost))
    width = max(map(len, best[0]))
    print(
        f"{'µs':{width}}  {'here':>9}" + (f"  {'there':>9}  {'ratio':>6}" if wanted.against else "")
    )
    for what, cost in best[0].items():
        there = best[1].get(what) if wanted.against else None
        more = f"  {there:9.2f}  {cost / there:6.2f}" if there else ""
        print(f"{what:{width}}  {cost:9.2f}{more}")


def _in_child(folder: Path) -> dict[str, float]:
    (package,) = {path.parent.name for path in (folder / "src").glob("*/__init__.py")}
    path = os.pathsep.join([str(folder / "src"), str(folder / "benchmarks")])
    done = subprocess.run(
        [sys.executable, str(HERE), "--measure", package],
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        capture_output=True,
        text=True,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def measured(package: str) -> dict[str, float]:
    return {**_events(package), **_planning(package)}


def _events(package: str) -> dict[str, float]:
    codec = import_module(f"{package}.events.codec")
    model = import_module(f"{package}.events.model")
    usage = model.Usage  # wherever the checkout keeps it
    text = "Some text that a model wrote. " * 10

    def make() -> object:
        spent = usage(120, 300, 0.002, 1)
        return model.AttemptSucceeded(
            at=1767225600.25, output=text, usage=spent, model="m", **place
        )

    place = _place(package)
    event = make()
    row = codec.encode(event)
    return {
        "an event: make": _cost(make),
        "an event: write": _cost(lambda: codec.encode_apart(event)),
        "an event: read": _cost(lambda: codec.decode(row)),
    }


def _place(package: str) -> dict[str, object]:
    """Which attempt of which step, as this version or an older one says it."""
    try:
        attempts = import_module(f"{package}.events.attempts")
    except ModuleNotFoundError:
        return {"step": "review", "part": "", "attempt": 1}
    return {"attempt": attempts.AttemptId("review", 1)}


def _planning(package: str) -> dict[str, float]:
    shapes = import_module("shapes")
    read_recipe = import_module(f"{package}.recipe.read").read_recipe
    build = import_module(f"{package}.plan.build").build
    agent = import_module(f"{package}.recipe.model").Agent("writer", prompt="Write.")
    catalog = import_module(f"{package}.plan.catalog").Catalog({"writer": agent})
    figures = {}
    for name, shape in {
        "a chain": shapes.chain(1000),
        "dense layers": shapes.layers(20, 50),
    }.items():
        text, steps = shape.text, shape.steps

        def read(text: str = text) -> object:
            return read_recipe(text, "measured.yaml", shapes.LIMITS)

        recipe = read()

        def plan(recipe: object = recipe) -> object:
            return build(recipe, catalog, shapes.LIMITS, 4)

        figures[f"{name}: read a step"] = _cost(read, 1) / steps
        figures[f"{name}: plan a step"] = _cost(plan, 1) / steps
    return figures


def _cost(work: Callable[[], object], times: int = 20_000, rounds: int = 3) -> float:
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        begun = time.process_time()
        for _ in range(times):
            work()
        best = min(best, time.process_time() - begun)
    return best / times * 1e6


if __name__ == "__main__":
    main()
