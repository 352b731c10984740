"""The harness that kills writers: a few kills lose nothing, and it would say so if they did."""

import random
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

KILLS = Path(__file__).parents[1] / "benchmarks" / "writer_kills.py"


@pytest.fixture
def kills() -> ModuleType:
    spec = spec_from_file_location("writer_kills", KILLS)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["writer_kills"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_a_few_kills_lose_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, KILLS, "--quick"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    figures = dict(
        line.strip().rsplit(maxsplit=1) for line in done.stdout.splitlines() if line[-1:].isdigit()
    )
    assert int(figures["kills"]) >= 6
    for bad in ("lost files of the user", "mixed trees", "unsaid", "litter"):
        assert figures[bad] == "0"
    assert list(tmp_path.iterdir()) == []


MERGED = {"status": "complete", "steps": {"a": {"changes": {"merged": True}}}}
OPEN: dict[str, Any] = {"status": "complete", "steps": {"a": {}}}


@pytest.mark.parametrize(
    ("damage", "report", "bad"),
    [
        ({}, OPEN, ""),
        ({"d0/f0.txt": None}, OPEN, "lost"),
        ({"d0/f0.txt": b"torn"}, OPEN, "lost"),
        ({"d3/f3.txt": b"changed\n"}, OPEN, "mixed"),
        ({}, MERGED, "unsaid"),
        ({}, {"error": "it crashed"}, "unsaid"),
        ({".stretto-merge-1/new/0": b"x"}, OPEN, "litter"),
    ],
)
def test_it_sees_what_is_lost_mixed_unsaid_or_left(
    kills: ModuleType,
    tmp_path: Path,
    damage: dict[str, bytes | None],
    report: dict[str, Any],
    bad: str,
) -> None:
    kind = kills.Kind("plain folder", "tools", "rerun")
    at = kills.Bench(tmp_path, {}, None, None, None, random.Random(1))
    at.trees[kind.folder] = kills.make_workspace(at.workspace(kind), 60, False)
    for path, content in damage.items():
        file = at.workspace(kind) / path
        file.parent.mkdir(exist_ok=True, parents=True)
        file.unlink() if content is None else file.write_bytes(content)
    figures = kills.Figures(trials=1)
    kills.judge(at, kind, report, figures)
    assert figures.is_good == (bad == "")
    found = {name: getattr(figures, name) for name in ("lost", "mixed", "unsaid", "litter")}
    assert [name for name, count in found.items() if count] == ([bad] if bad else [])
