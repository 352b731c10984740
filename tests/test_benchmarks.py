"""The benchmarks measure what they say. How fast it is, is for people to read and not for tests."""

import asyncio
import multiprocessing
import subprocess
from pathlib import Path

import pytest

from stretto.adapters.clock import SystemClock
from stretto.adapters.stores.memory import MemoryJournal
from stretto.execution.runs import Runs, Start
from stretto.ports.runner import AttemptRequest, AttemptResult, Success, Witness
from support.benchmarks import load_benchmark


def test_the_speeds_of_commands_and_planning_are_measured(tmp_path: Path) -> None:
    speed = load_benchmark("speed")
    rows = {row.what: row for row in speed.measure(tmp_path, is_quick=True)}
    assert {
        "stretto --version",
        "stretto validate, 3 steps",
        "stretto run, 3 model calls",
        "of that, imports",
        "read and plan 500 steps",
        "refuse: brackets",
        "refuse: 10 MB",
        "conflicts of 500 steps: own files",
    } <= set(rows)
    assert all(row.reached > 0 for row in rows.values())
    without_goal = {what for what, row in rows.items() if row.goal is None}
    assert without_goal == {"of that, imports", "refuse: values"}


def test_the_memory_of_large_outputs_is_measured() -> None:
    works = load_benchmark("size").measure(20, 100)
    assert list(works) == ["nothing", "run", "resume", "html", "json", "md"]
    assert all(figures["peak"] > 0 for figures in works.values())
    made = {work for work, figures in works.items() if figures["bytes"]}
    assert made == {"html", "json", "md"}


def test_the_engine_is_measured_against_the_limits() -> None:
    goals = load_benchmark("engine").measure_quickly()
    assert [goal.what for goal in goals] == [
        "chain of 20: × the durable limit",
        "fan-out of 20: × the durable limit",
        "3×5 layers: × the durable limit",
        "chain: 100 steps against 10",
        "20 runs at once, MB",
    ]
    assert all(goal.reached > 0 for goal in goals)


def test_every_way_through_the_engine_is_timed(tmp_path: Path) -> None:
    engine = load_benchmark("engine")
    taken = asyncio.run(engine.measure(engine.chain(5), tmp_path, 0, None))
    assert list(taken) == [engine.PLAIN, engine.LIMIT, engine.FLOOR, engine.MEMORY, engine.SQLITE]
    assert all(each.wall > 0 for some in taken.values() for each in some)


def test_model_calls_and_a_whole_command_are_measured() -> None:
    models = load_benchmark("models")
    taken = models.measure(None, 1, 1, clients=False)
    assert set(taken) == {(way, shape) for way in models.OURS for shape in models.IDEAL}
    # Faster than the answers of the server would be a fault of the clock.
    assert all(
        each.wall >= models.IDEAL[shape] for (_, shape), some in taken.items() for each in some
    )
    assert models.goals_missed(dict.fromkeys(taken, 1.0)) == []
    assert models.whole_command(1) > 0


class Listening:
    def __init__(self) -> None:
        self.prompts: dict[str, str] = {}

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        self.prompts[request.step] = request.prompt
        return Success(f"{request.step} is done.")


@pytest.mark.parametrize(("family", "size"), [("chain", (4,)), ("fan", (5,)), ("layers", (3, 4))])
def test_the_limits_put_together_the_prompts_that_stretto_renders(
    family: str, size: tuple[int, ...]
) -> None:
    shapes = load_benchmark("shapes")
    shape, runner = getattr(shapes, family)(*size), Listening()
    runs = Runs(MemoryJournal(), SystemClock())
    asyncio.run(runs.start(Start(shape.plan(), {"topic": shapes.TOPIC}), runner))
    said = {step: f"{step} is done." for step in shape.befores}
    assert runner.prompts == {step: shape.prompt(step, said) for step in shape.befores}
    last = list(shape.befores)[-1]
    assert all(f"{before} is done." in runner.prompts[last] for before in shape.befores[last])


def test_the_time_of_a_search_in_playbooks_is_measured() -> None:
    measured = load_benchmark("playbooks").measure(300, rounds=1)
    assert measured.playbooks == 300
    assert measured.found >= 60
    assert 0 < measured.median_ms <= measured.slowest_ms


def test_a_run_of_the_tests_that_fails_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repeated = load_benchmark("repeated_tests")
    repository = tmp_path / "repository"
    repository.mkdir()
    # Its second run fails: the first one has left a file.
    (repository / "Makefile").write_text(
        ".venv/.dev:\n\tmkdir .venv\ntest:\n\t@echo 7 passed\n\t@test ! -e seen && touch seen\n"
    )
    git = ["git", "-C", str(repository), "-c", "user.name=t", "-c", "user.email=t@example.com"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "Add tests"]):
        subprocess.run([*git, *words], check=True)
    clone = repeated.make_clone(repository, tmp_path)
    with repeated.load(tmp_path):
        passed = [repeated.run_tests(clone, tmp_path, number) for number in (1, 2)]
    assert passed == [True, False]
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("run 1: exit code 0 after ")
    assert first.endswith(" s: 7 passed")
    assert second.startswith("run 2: exit code 2 after ")
    assert not multiprocessing.active_children()
