"""Kill a run of three recipes in one another with -9, again and again, and see what is lost or done twice. Exit 1 if so.

    python benchmarks/workflow_kills.py [--kills 60] [--seed N] [--folder DIR]

Each run has agents in every recipe, an isolated writer in the second and a command in the third. It is killed one to
three times at random moments, resumed each time, and in the end left alone:

    lost      runs that were not complete at the end, or lacked an output or a file
    twice     steps that had succeeded, on record, and began again; and commands that began again though they
              are in doubt and nobody was asked
    unsaid    runs that neither ended nor asked a person

In half of the runs the command may be repeated (`effect: idempotent`), in the others a person is asked.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import killed
from command_kills import Figures, began_lines
from killed import PATIENCE_SECONDS, environment, read_options, say_figures, words_of

QUICK = 4  # kills
# A step that was at work at three crashes is given up otherwise, which is not looked at here.
PATIENT = {"STRETTO_MAX_CRASHES": "100"}
RUN = ("run", "top.yaml", "--model", "scripted:script.yaml")
MOST_KILLS_OF_A_RUN = 3
STEPS = ("first", "sub", "sub/look", "sub/deep", "sub/deep/x", "sub/deep/act", "sub/deep/y")
STEPS += ("sub/write", "last")
ASKED = tuple(id for id in STEPS if id not in ("sub", "sub/deep"))
FILES = {
    "top.yaml": """
name: top
steps:
  - {id: first, subagent: researcher, prompt: Begin}
  - {id: sub, workflow: parts/mid.yaml, inputs: {topic: "{{steps.first.output}}"}}
  - {id: last, subagent: writer, prompt: "End with {{steps.sub.output}}"}
""",
    "parts/mid.yaml": """
workflow:
  name: mid
  inputs: {topic: {required: true}}
  agents: {local: {prompt: "You look at {{inputs.topic}}."}}
  steps:
    - {id: look, agent: local}
    - {id: deep, workflow: deep.yaml, inputs: {n: 4}}
    - {id: write, run: 'printf %s "$SAID" > made.txt', env: {SAID: "{{steps.deep.output}}"},
       effect: idempotent, write_set: [made.txt]}
  output: "{{steps.deep.output}}"
""",
    "parts/deep.yaml": """
name: deep
inputs: {n: {type: number}}
steps:
  - {id: x, agent: researcher, task: "Do {{inputs.n}}"}
  - id: act
    run: |
      echo began >> log
      sleep 0.3
      echo ended >> log
    workspace_mode: shared
    write_set: [log]
    effect: EFFECT
    depends_on: x
  - {id: y, agent: researcher, task: Then this, depends_on: act}
output: "{{steps.y.output}}"
""",
    "script.yaml": "replies:\n"
    + "".join(
        f"  {id}: {{reply: '{id} said', delay: 80ms}}\n" for id in ASKED if "/act" not in id
    ).replace("  sub/write: {reply: 'sub/write said', delay: 80ms}\n", ""),
}


def ask(place: Path, *words: str) -> Any:
    return killed.ask(place, *words, more=PATIENT)


def try_kills(folder: Path, kills: int, chance: random.Random) -> Figures:
    figures = Figures(bad={"lost": 0, "twice": 0, "unsaid": 0})
    number = 0
    while figures.kills < kills:
        effect = ("in_doubt", "idempotent")[number % 2]
        _try_run(folder / str(number), effect, chance, figures)
        number += 1
    return figures


def _try_run(place: Path, effect: str, chance: random.Random, figures: Figures) -> None:
    for name, text in FILES.items():
        file = place / "work" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("EFFECT", effect))
    most = chance.randint(1, MOST_KILLS_OF_A_RUN)
    _drive_and_kill(place, RUN, chance, figures)
    was_asked = 0
    for attempt in range(20):
        runs = ask(place, "runs", "--json")["runs"]
        if not runs:  # it was killed before there was a run
            again: tuple[str, ...] = RUN
        elif runs[0]["status"] in ("complete", "partial", "failed", "cancelled"):
            break
        elif runs[0]["status"] == "waiting":
            was_asked += 1
            again = ("approve", runs[0]["run_id"], "sub/deep/act")
        else:
            again = ("resume", runs[0]["run_id"])
        if attempt + 1 < most:
            _drive_and_kill(place, again, chance, figures)
        else:
            ask(place, *again, "--json")
    judge(place, effect, was_asked, figures)


def _drive_and_kill(
    place: Path, command: tuple[str, ...], chance: random.Random, figures: Figures
) -> None:
    child = subprocess.Popen(
        words_of(*command, "--json"), cwd=place / "work", env=environment(place, PATIENT),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert child.stdout is not None
    # Before its first event there is only the start of Python, and the kills would all come there.
    if chance.random() < 0.9:
        child.stdout.readline()
        time.sleep(chance.uniform(0, 1.6))
    else:
        time.sleep(chance.uniform(0, 0.5))
    was_alive = child.poll() is None
    child.kill()
    child.stdout.close()
    child.wait(PATIENCE_SECONDS)
    figures.kills += was_alive
    figures.moments[_moment(place) if was_alive else "ended"] += 1


def _moment(place: Path) -> str:
    runs = ask(place, "runs", "--json")["runs"]
    ended = [each["attempt"]["step"] for each in _succeeded(_events(place, runs))]
    return f"after {max(map(ASKED.index, ended), default=-1) + 1} of {len(ASKED)} steps"


def _events(place: Path, runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not runs:
        return []
    done = subprocess.run(
        words_of("events", runs[0]["run_id"], "--json"), cwd=place / "work",
        env=environment(place), capture_output=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def _succeeded(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in events if each.get("type") == "attempt_succeeded"]


def judge(place: Path, effect: str, was_asked: int, figures: Figures) -> None:
    """What became of the run, by its report, its journal, and its files."""
    runs = ask(place, "runs", "--json")["runs"]
    status = runs[0]["status"] if runs else "none"
    if status != "complete":
        figures.bad["unsaid" if status in ("none", "running", "interrupted") else "lost"] += 1
        return
    events = _events(place, runs)
    made = place / "work/made.txt"
    outputs = {each["attempt"]["step"]: each["output"] for each in _succeeded(events)}
    expected = {id: f"{id} said" for id in ASKED} | {"sub/deep/act": "", "sub/write": ""}
    if outputs != expected or not made.exists() or made.read_text() != "sub/deep/y said":
        figures.bad["lost"] += 1
    if _count_repeated(events) or _is_repeated_unasked(place, effect, was_asked):
        figures.bad["twice"] += 1


def _count_repeated(events: list[dict[str, Any]]) -> int:
    """Attempts that began although their step had succeeded already."""
    ended, repeated = Counter[str](), 0
    for each in events:
        if each.get("type") == "attempt_started":
            repeated += ended[each["attempt"]["step"]]
        elif each.get("type") == "attempt_succeeded":
            ended[each["attempt"]["step"]] += 1
    return repeated + sum(count - 1 for count in ended.values())


def _is_repeated_unasked(place: Path, effect: str, was_asked: int) -> bool:
    began = began_lines(place / "work").count("began")
    return effect == "in_doubt" and began > 1 + was_asked


def main() -> int:
    options = read_options(__doc__, kills=60)
    with tempfile.TemporaryDirectory(prefix="stretto-kills-", dir=options.folder) as folder:
        figures = try_kills(Path(folder), options.kills, random.Random(options.seed))
    moments = ", ".join(f"{count} {moment}" for moment, count in sorted(figures.moments.items()))
    print(f"{figures.kills} kills ({moments})")
    say_figures(figures.bad)
    return 0 if figures.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
