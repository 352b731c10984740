"""The crash harness: a few kills lose nothing, and it would say so if they did."""

import asyncio
import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

CRASH = Path(__file__).parents[1] / "benchmarks" / "crash.py"


@pytest.fixture
def crash() -> ModuleType:
    spec = spec_from_file_location("crash", CRASH)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["crash"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_nothing_is_lost_and_nothing_that_ended_runs_again(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, CRASH, "--quick"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    figures = [line.rsplit(maxsplit=1) for line in done.stdout.splitlines()]
    named = {what.strip(): number for what, number in figures if number[0].isdigit()}
    assert named["kills"] == "10"
    assert int(named["steps"].replace(",", "")) >= 200
    assert named["lost"] == named["ended steps run twice"] == "0"
    assert named["effects without a durable start"] == "0"
    assert list(tmp_path.iterdir()) == []


def ended_runs(crash: ModuleType, folder: Path) -> list[list[object]]:
    """The effects of a few runs that nobody disturbed."""
    folder.mkdir()
    subprocess.run(
        [sys.executable, CRASH, "--child", str(folder), "0", "20"],
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=120,
    )
    assert asyncio.run(crash.compare(folder)).is_good
    lines = (folder / "effects.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_the_harness_sees_what_is_wrong(crash: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    effects = ended_runs(crash, folder)
    file = folder / "effects.jsonl"
    last = effects[-1]

    def verdict(rows: list[list[object]]) -> object:
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return asyncio.run(crash.compare(folder))

    again = verdict([*effects, last])
    assert again.run_twice  # type: ignore[attr-defined]
    assert not again.lost  # type: ignore[attr-defined]
    missing = verdict(effects[:-1])
    assert missing.lost  # type: ignore[attr-defined]
    stranger = verdict([*effects, [last[0], last[1], "nobody", "", 1]])
    assert stranger.unrecorded  # type: ignore[attr-defined]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in effects))
    with (folder / "acknowledged.jsonl").open("a") as acknowledged:
        acknowledged.write(json.dumps([last[1], "attempt_succeeded", "nobody", "", 1]) + "\n")
    assert asyncio.run(crash.compare(folder)).lost
