"""Kill `stretto run` with -9 while a command runs, and see whether it is silently repeated. Exit 1 if it is.

    python benchmarks/command_kills.py [--kills 100] [--seed N] [--folder DIR]

Each trial runs a recipe with one command, which notes that it began and that it ended, and sends -9 at
a random moment. Then `stretto resume`. A command is in doubt unless it says `effect: idempotent`, so:

    repeated   trials after which a command that is in doubt had begun twice, and nobody was asked
    unsaid     trials after which the run had neither ended nor asked a person
    lost       trials in which a command that may be repeated had not ended after `resume`

Half of the trials are of commands in doubt, half of idempotent ones, which must be repeated.
"""

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from killed import PATIENCE_SECONDS, ask, kill, read_options, say_figures, start

QUICK = 6  # kills
RUN_SECONDS = 1.5  # how long after the start the last kills come
RECIPE = """
name: kills
steps:
  - id: a
    run: |
      echo began >> log
      sleep 0.4
      echo ended >> log
    workspace_mode: shared
    effect: {effect}
"""


@dataclass
class Figures:
    kills: int = 0
    moments: Counter[str] = field(default_factory=Counter)
    bad: dict[str, int] = field(default_factory=lambda: {"repeated": 0, "unsaid": 0, "lost": 0})

    @property
    def is_good(self) -> bool:
        return not any(self.bad.values())


def try_kills(folder: Path, kills: int, chance: random.Random) -> Figures:
    figures = Figures()
    number = 0
    while figures.kills < kills:  # in some trials the command has ended before
        effect = ("in_doubt", "idempotent")[number % 2]
        _try_kill(folder / str(number), effect, chance.uniform(0.3, RUN_SECONDS), figures)
        number += 1
    return figures


def _try_kill(place: Path, effect: str, seconds: float, figures: Figures) -> None:
    work = place / "work"
    work.mkdir(parents=True)
    (work / "r.yaml").write_text(RECIPE.format(effect=effect))
    child = start(place, ("run", "r.yaml", "--json"))
    _wait(child, work, seconds)
    was_alive = kill(child)
    figures.kills += was_alive
    began = began_lines(work)
    moment = {0: "before it", 1: "at work"}.get(len(began), "after it") if was_alive else "ended"
    figures.moments[moment] += 1
    judge(place, effect, figures)


def _wait(child: "subprocess.Popen[bytes]", work: Path, seconds: float) -> None:
    """Most moments are counted from when the command begins: before it there is only the start."""
    until = time.monotonic() + PATIENCE_SECONDS
    while seconds < RUN_SECONDS * 0.8 and time.monotonic() < until:
        if child.poll() is not None or (work / "log").exists():
            time.sleep(seconds / RUN_SECONDS * 0.5)
            return
        time.sleep(0.005)
    time.sleep(seconds)


def judge(place: Path, effect: str, figures: Figures) -> None:
    """Resume the run that was killed, and look at what its command did."""
    work = place / "work"
    runs = ask(place, "runs", "--json")["runs"]
    if not runs:
        return  # it was killed before there was a run
    ask(place, "resume", runs[0]["run_id"], "--json")
    status = ask(place, "runs", "--json")["runs"][0]["status"]
    log = began_lines(work)
    is_asked = status == "waiting"
    if status not in ("waiting", "complete"):
        figures.bad["unsaid"] += 1
    if effect == "in_doubt" and log.count("began") > 1:
        figures.bad["repeated"] += 1
    if effect == "idempotent" and (is_asked or log[-1:] != ["ended"]):
        figures.bad["lost"] += 1


def began_lines(work: Path) -> list[str]:
    return (work / "log").read_text().split() if (work / "log").exists() else []


def main() -> int:
    options = read_options(__doc__, kills=100)
    with tempfile.TemporaryDirectory(prefix="stretto-kills-", dir=options.folder) as folder:
        figures = try_kills(Path(folder), options.kills, random.Random(options.seed))
    moments = ", ".join(f"{count} {moment}" for moment, count in figures.moments.items())
    print(f"{figures.kills} kills ({moments})")
    say_figures(figures.bad)
    return 0 if figures.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
