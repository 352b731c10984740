"""The harnesses that kill Stretto: a few kills lose nothing, and they would say so if they did."""

import asyncio
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stretto.ports.model import ModelFault
from support.benchmarks import FOLDER, load_benchmark


def kill_runs(folder: Path) -> Any:
    crash = load_benchmark("crash")
    kills, steps = crash.QUICK
    return crash.try_kills(folder / "killed", kills, steps, random.Random(1))


def kill_writers(folder: Path) -> Any:
    harness = load_benchmark("writer_kills")
    kills, files, slow_seconds = harness.QUICK
    with harness.bench(folder / "b", files, harness.SRC, slow_seconds, random.Random(1)) as at:
        return harness.try_kills(at, kills)


def kill_commands(folder: Path) -> Any:
    harness = load_benchmark("command_kills")
    return harness.try_kills(folder, harness.QUICK, random.Random(1))


def kill_goals(folder: Path) -> Any:
    harness = load_benchmark("goal_kills")
    return harness.try_kills(folder, harness.QUICK, random.Random(1))


def kill_workflows(folder: Path) -> Any:
    harness = load_benchmark("workflow_kills")
    return harness.try_kills(folder, harness.QUICK, random.Random(1))


@pytest.mark.parametrize(
    ("harness", "kills"),
    [
        (kill_runs, 10),
        (kill_writers, 6),
        (kill_commands, 6),
        (kill_goals, 6),
        (kill_workflows, 4),
    ],
    ids=["runs", "writers", "commands", "goals", "workflows"],
)
def test_a_few_kills_lose_nothing(harness: Any, kills: int, tmp_path: Path) -> None:
    figures = harness(tmp_path)
    assert figures.kills >= kills
    assert figures.bad == dict.fromkeys(figures.bad, 0), figures
    assert figures.is_good


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    full = load_benchmark("crash").fill_disk(tmp_path / "full")
    assert full.said
    assert full.verdict.steps
    assert full.verdict.is_good


# Damage to what a few runs or a writer left behind, and what the harness must find.


@pytest.fixture(scope="module")
def ended_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that nobody disturbed."""
    folder = tmp_path_factory.mktemp("crash") / "runs"
    folder.mkdir()
    words = [sys.executable, FOLDER / "crash.py", "--child", str(folder), "0", "20"]
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True, timeout=120)
    return folder


RUNS: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "an effect that happened again": ("run_twice",),
    "an effect that is gone": ("lost",),
    "an effect that nobody started": ("unrecorded",),
    "an acknowledged event that is gone": ("lost",),
}


@pytest.mark.parametrize("damage", RUNS)
def test_the_harness_of_runs_sees_damage(damage: str, ended_runs: Path) -> None:
    effects, acknowledged = ended_runs / "effects.jsonl", ended_runs / "acknowledged.jsonl"
    before = {file: file.read_text() for file in (effects, acknowledged)}
    *most, last = before[effects].splitlines(keepends=True)
    where, run, *_ = json.loads(last)
    changed = {
        "nothing": before,
        "an effect that happened again": {effects: "".join([*most, last, last])},
        "an effect that is gone": {effects: "".join(most)},
        "an effect that nobody started": {
            effects: before[effects] + json.dumps([where, run, "nobody", "", 1]) + "\n"
        },
        "an acknowledged event that is gone": {
            acknowledged: before[acknowledged]
            + json.dumps([run, "attempt_succeeded", "nobody", "", 1])
            + "\n"
        },
    }[damage]
    try:
        for file, text in changed.items():
            file.write_text(text)
        figures = asyncio.run(load_benchmark("crash").compare(ended_runs))
    finally:
        for file, text in before.items():
            file.write_text(text)
    assert tuple(name for name, count in figures.bad.items() if count) == RUNS[damage]
    assert figures.is_good == (not RUNS[damage])


MERGED = {"status": "complete", "steps": {"a": {"changes": {"merged": True}}}}
OPEN: dict[str, Any] = {"status": "complete", "steps": {"a": {}}}


@pytest.mark.parametrize(
    ("damage", "report", "bad"),
    [
        ({}, OPEN, ()),
        ({"d0/f0.txt": None}, OPEN, ("lost",)),
        ({"d0/f0.txt": b"torn"}, OPEN, ("lost",)),
        ({"d3/f3.txt": b"changed\n"}, OPEN, ("mixed",)),
        ({}, MERGED, ("unsaid",)),
        ({}, {"error": "it crashed"}, ("unsaid",)),
        ({".stretto-merge-1/new/0": b"x"}, OPEN, ("litter",)),
    ],
)
def test_the_harness_of_writers_sees_damage(
    tmp_path: Path, damage: dict[str, bytes | None], report: dict[str, Any], bad: tuple[str, ...]
) -> None:
    harness = load_benchmark("writer_kills")
    kind = harness.Kind("plain folder", "tools", "rerun")
    at = harness.Bench(tmp_path, {}, None, None, None, random.Random(1))
    at.trees[kind.folder] = harness.make_workspace(at.workspace(kind), 60, False)
    for path, content in damage.items():
        file = at.workspace(kind) / path
        file.parent.mkdir(exist_ok=True, parents=True)
        file.unlink() if content is None else file.write_bytes(content)
    figures = harness.Figures(trials=1)
    harness.judge(at, kind, report, figures)
    assert tuple(name for name, count in figures.bad.items() if count) == bad
    assert figures.is_good == (not bad)


def test_a_command_that_began_twice_unasked_is_found(tmp_path: Path) -> None:
    harness = load_benchmark("command_kills")
    work = tmp_path / "work"
    work.mkdir()
    recipe = harness.RECIPE.format(effect="in_doubt").replace("echo began", "echo began began")
    (work / "r.yaml").write_text(recipe)
    harness.ask(tmp_path, "run", "r.yaml", "--json")
    figures = harness.Figures()
    harness.judge(tmp_path, "in_doubt", figures)
    assert figures.bad["repeated"] == 1
    assert not figures.is_good


@pytest.fixture(scope="module")
def ended_goal(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A goal over a workflow with a budget, which nobody disturbed, and what its model gave."""
    harness = load_benchmark("goal_kills")
    provider = harness.Provider((), random.Random(1))
    with harness.serving(provider.answer) as server:
        place = tmp_path_factory.mktemp("goals") / "one"
        trial = harness.Trial(harness.WORKFLOW_GOAL, place, server.url, is_bounded=True)
        trial.prepare()
        trial.go_on(trial.words())
        assert trial.words() is None
        yield trial, provider.given


@pytest.mark.parametrize(
    ("more", "marks", "seen"),
    [
        (0, (), ()),
        (1, (), ("uncounted",)),
        (-1, (), ("twice",)),
        (0, ("again",), ("doubled",)),
    ],
    ids=["nothing", "usage that is not counted", "usage counted twice", "work done twice"],
)
def test_the_harness_of_goals_sees_damage(
    more: int, marks: tuple[str, ...], seen: tuple[str, ...], ended_goal: Any
) -> None:
    harness = load_benchmark("goal_kills")
    trial, given = ended_goal
    for name in marks:
        (trial.place / "work" / "marks" / name).touch()
    figures = harness.Figures()
    asyncio.run(harness.judge(trial, given + more, figures))
    assert tuple(name for name, count in figures.bad.items() if count) == seen, figures.notes


@pytest.mark.parametrize("damage", ["a step that is repeated", "a file that is lost"])
def test_the_harness_of_recipes_in_recipes_sees_damage(tmp_path: Path, damage: str) -> None:
    harness = load_benchmark("workflow_kills")
    figures = harness.Figures(bad={"lost": 0, "twice": 0, "unsaid": 0})
    for name, text in harness.FILES.items():
        file = tmp_path / "work" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        text = text.replace("EFFECT", "in_doubt")
        file.write_text(text.replace("echo began", "echo began began") if "rep" in damage else text)
    harness.ask(tmp_path, *harness.RUN, "--json")
    if "lost" in damage:
        (tmp_path / "work/made.txt").unlink()
    harness.judge(tmp_path, "in_doubt", 0, figures)
    assert figures.bad == {"lost": "lost" in damage, "twice": "rep" in damage, "unsaid": 0}


def test_no_hostile_value_is_executed(tmp_path: Path) -> None:
    harness = load_benchmark("hostile_values")
    figures = harness.attack(tmp_path, harness.VALUES[::7])
    assert figures.ways >= 80
    assert figures.bad == dict.fromkeys(figures.bad, 0), figures


def test_the_harness_of_hostile_values_sees_one_that_is_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = load_benchmark("hostile_values")
    monkeypatch.setattr(harness, "ENVIRONMENT", 'eval "$V" | sha256sum')
    figures = harness.attack(tmp_path, ["; touch PWNED", "$(touch PWNED)"])
    assert figures.bad["executed"]
    assert figures.bad["changed"]


def test_the_harness_of_faults_sees_one_that_is_taken_for_another() -> None:
    harness = load_benchmark("provider_faults")
    wanted = harness.anthropic("unavailable", 429, "rate_limit_error", "slow", wait=7)
    assert not harness.what_is_wrong(wanted, ModelFault("unavailable", "it is slow", 7), 1)
    for fault, asked in (
        (None, 1),
        (ModelFault("permanent", "it is slow", 7), 1),
        (ModelFault("unavailable", "it is slow"), 1),
        (ModelFault("unavailable", "it is busy", 7), 1),
        (ModelFault("unavailable", "it is slow", 7), 2),
    ):
        assert harness.what_is_wrong(wanted, fault, asked)
