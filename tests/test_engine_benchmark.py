"""The engine's benchmark runs and prints its tables. What it measures is for people to read."""

import asyncio
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.adapters.clock import SystemClock
from stretto.adapters.stores.memory import MemoryJournal
from stretto.execution.runs import Runs, Start
from stretto.ports.runner import AttemptRequest, AttemptResult, Success, Witness

ENGINE = Path(__file__).parents[1] / "benchmarks" / "engine.py"


def test_the_tables_of_the_engine_are_printed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ENGINE, "--quick"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    for what in (
        "chain of 20",
        "fan-out of 20",
        "3×5 layers",
        "  asyncio",
        "  the durable limit",
        "  stretto, in memory",
        "  stretto, SQLite",
        "CPU µs a step, in memory",
        "20 runs of 3 steps at once",
    ):
        assert [line for line in lines if line.startswith(what)], what
    assert lines[-1].endswith("goals reached")
    assert list(tmp_path.iterdir()) == []


class Listening:
    def __init__(self) -> None:
        self.prompts: dict[str, str] = {}

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        self.prompts[request.step] = request.prompt
        return Success(f"{request.step} is done.")


@pytest.mark.parametrize(("family", "size"), [("chain", (4,)), ("fan", (5,)), ("layers", (3, 4))])
def test_the_limits_put_together_the_prompts_that_stretto_renders(
    family: str, size: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ENGINE.parent)
    shapes = importlib.import_module("shapes")
    shape, runner = getattr(shapes, family)(*size), Listening()
    runs = Runs(MemoryJournal(), SystemClock())
    asyncio.run(runs.start(Start(shape.plan(), {"topic": shapes.TOPIC}), runner))
    said = {step: f"{step} is done." for step in shape.befores}
    assert runner.prompts == {step: shape.prompt(step, said) for step in shape.befores}
    last = list(shape.befores)[-1]
    assert all(f"{before} is done." in runner.prompts[last] for before in shape.befores[last])
