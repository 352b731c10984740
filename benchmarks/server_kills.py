"""Kill `stretto serve` with -9 under live runs and start it again. Exit 1 if a run is lost or doubled.

    python benchmarks/server_kills.py [--runs 200] [--kills 3] [--seed N] [--folder DIR] [--workers 1]

Runs of a scripted workflow of three steps are started over HTTP, each request with a key of its own and
sent until it is answered, while the server is killed at random moments and started again. A client
streams one run with Last-Event-ID through all of it. At the end:

    lost      runs that did not end as complete
    doubled   requests that began more than one run, and steps that ended twice in one run
    gaps      events that the streaming client missed or was given twice
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

QUICK = (12, 1)  # runs, kills
PATIENCE_SECONDS = 300.0
SRC = Path(__file__).parents[1] / "src"
RECIPE = """\
name: three
inputs: [{name: n, required: true}]
steps:
  - {id: a, subagent: writer, prompt: "{{inputs.n}}"}
  - {id: b, subagent: writer, prompt: "{{steps.a.output}}"}
  - {id: c, subagent: writer, prompt: "{{steps.b.output}}"}
"""
SCRIPT = "default: {reply: Done., delay: 700ms}\n"


@dataclass
class Figures:
    runs: int = 0
    kills: int = 0
    resumed: int = 0
    lost: int = 0
    doubled: int = 0
    gaps: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.doubled or self.gaps)


class Bench:
    def __init__(self, folder: Path, workers: int = 1) -> None:
        self.folder = folder
        self.workers = workers
        self.process: subprocess.Popen[str] | None = None
        self.url = ""
        (folder / "workflows").mkdir(parents=True, exist_ok=True)
        (folder / "workflows" / "three.yaml").write_text(RECIPE)
        (folder / "script.yaml").write_text(SCRIPT)
        self.token = "t" * 8 + "oken-of-a-harness"

    def start(self) -> None:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "user"),
            "STRETTO_HOME": str(self.folder / "home"),
            "STRETTO_TOKEN": self.token,
            "STRETTO_TRUST": "1",
            "STRETTO_MODEL": f"scripted:{self.folder / 'script.yaml'}",
            "STRETTO_MAX_CRASHES": "100",
            "PYTHONPATH": str(SRC),
        }
        words = [sys.executable, "-m", "stretto", "serve", "--port", "0"]
        words += ["--workers", str(self.workers)] if self.workers > 1 else []
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                words, cwd=self.folder, env=environ, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("Stretto is at "), (line, (self.folder / "log").read_text())
        self.url = line.removeprefix("Stretto is at ").strip()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def ask(self, method: str, path: str, **more: Any) -> Any:
        """Until it is answered, by whichever server is there."""
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while True:
            headers = {"Authorization": f"Bearer {self.token}", **more.get("headers", {})}
            try:
                answer = httpx2.request(
                    method, f"{self.url}{path}", timeout=30, trust_env=False,
                    **{**more, "headers": headers},
                )  # fmt: skip
                if answer.status_code < 500:
                    assert answer.status_code < 300, answer.text
                    return answer.json()
            except httpx2.TransportError:
                pass
            assert time.monotonic() < give_up_at, "no server answers"
            time.sleep(0.05)


def try_kills(
    folder: Path, runs: int, kills: int, chance: random.Random, workers: int = 1
) -> Figures:
    bench, figures = Bench(folder, workers), Figures(runs=runs)
    bench.start()
    ids: dict[int, str] = {}

    def begin(number: int) -> None:
        body = {"inputs": {"n": str(number)}, "wait": False}
        key = {"Idempotency-Key": f"run-{number}"}
        ids[number] = bench.ask("POST", "/api/workflows/three/run", json=body, headers=key)[
            "run_id"
        ]

    def begin_all() -> None:
        for number in range(1, runs):
            begin(number)

    begin(0)
    seen: list[int] = []
    streaming = threading.Thread(target=_stream, args=(bench, ids[0], seen), daemon=True)
    starting = threading.Thread(target=begin_all, daemon=True)
    streaming.start()
    starting.start()
    for _ in range(kills):
        time.sleep(chance.uniform(0.3, 2.5))
        bench.kill()
        figures.kills += 1
        bench.start()
    starting.join(PATIENCE_SECONDS)
    streaming.join(PATIENCE_SECONDS)
    try:
        _judge(bench, ids, seen, figures)
    finally:
        bench.kill()
    return figures


def _judge(bench: Bench, ids: dict[int, str], seen: list[int], figures: Figures) -> None:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up_at:
        rows = _all_runs(bench)
        if all(row["ended_at"] for row in rows) and len(rows) >= figures.runs:
            break
        time.sleep(0.2)
    status = {row["run_id"]: row["status"] for row in rows}
    figures.lost = sum(status.get(id) != "complete" for id in ids.values())
    figures.doubled = max(0, len(rows) - figures.runs) + (len(ids) - len(set(ids.values())))
    for id in ids.values():
        ended = [each for each in _events(bench, id) if each["type"] == "attempt_succeeded"]
        figures.doubled += len(ended) != 3
        figures.resumed += any(each["type"] == "run_resumed" for each in _events(bench, id))
    expected = list(range(1, len(_events(bench, ids[0])) + 1))
    figures.gaps = int(seen != expected)
    if figures.gaps:
        figures.notes.append(f"streamed {seen}, journaled {expected}")


def _all_runs(bench: Bench) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = bench.ask("GET", f"/api/runs?limit=200{cursor}")
        found += page["runs"]
        if page["next"] is None:
            return found
        cursor = f"&cursor={page['next']}"


def _events(bench: Bench, run: str) -> list[dict[str, Any]]:
    headers = {"Authorization": f"Bearer {bench.token}"}
    answer = httpx2.get(
        f"{bench.url}/api/runs/{run}/events?after=0", headers=headers, timeout=60, trust_env=False
    )
    lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    return [each for each in map(json.loads, (line[6:] for line in lines)) if "type" in each]


def _stream(bench: Bench, run: str, seen: list[int]) -> None:
    """As an EventSource does: whenever the stream breaks, go on with the last number."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up_at:
        headers = {"Authorization": f"Bearer {bench.token}"}
        url = f"{bench.url}/api/runs/{run}/events"
        if seen:
            headers["Last-Event-ID"] = str(seen[-1])
        else:
            url += "?after=0"
        try:
            with httpx2.stream("GET", url, headers=headers, timeout=30, trust_env=False) as answer:
                for line in answer.iter_lines():
                    if line.startswith("id: "):
                        seen.append(int(line[4:]))
                    if line == "event: end":
                        return
        except httpx2.TransportError:
            pass
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="stretto-server-kills-"))
    chance = random.Random(given.seed)
    figures = try_kills(folder, given.runs, given.kills, chance, given.workers)
    print(
        f"runs      {figures.runs}, {figures.resumed} of them resumed after {figures.kills} kills"
    )
    print(f"lost      {figures.lost}")
    print(f"doubled   {figures.doubled}")
    print(f"gaps      {figures.gaps}")
    print("\n".join(figures.notes))
    sys.exit(0 if figures.is_good else 1)


if __name__ == "__main__":
    main()
