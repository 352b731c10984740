"""Commands of Stretto in a process of their own, in a place of their own, killed with -9.

In: a place (a folder with `work`, `home` and `user`) and words. Out: what a command said.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 120.0  # only keeps a command that hangs from hanging the harness
SRC = Path(__file__).parents[1] / "src"


def words_of(*words: str) -> list[str]:
    return [sys.executable, "-m", "stretto", *words]


def environment(place: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    home = {"HOME": str(place / "user"), "STRETTO_HOME": str(place / "home")}
    path = {"PATH": os.defpath, "PYTHONPATH": str(SRC), "LANG": "C.UTF-8"}
    return {**path, **home, **(more or {})}


def ask(place: Path, *words: str, more: Mapping[str, str] | None = None) -> Any:
    """The last line of what a command printed, which is JSON."""
    done = subprocess.run(
        words_of(*words), cwd=place / "work", env=environment(place, more), capture_output=True,
        stdin=subprocess.DEVNULL, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    if not done.stdout.strip():
        raise RuntimeError(f"{words} in {place} said nothing but: {done.stderr.decode()}")
    return json.loads(done.stdout.splitlines()[-1])


def start(
    place: Path, words: Sequence[str], more: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        words_of(*words), cwd=place / "work", env=environment(place, more),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def kill(child: "subprocess.Popen[bytes]") -> bool:
    """Whether it was still alive."""
    was_alive = child.poll() is None
    child.kill()
    child.wait()
    return was_alive


def read_options(doc: str | None, kills: int, quick: int | None = None) -> argparse.Namespace:
    """`kills`, `seed` and `folder`, as all of these programs take them."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=kills)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--folder", type=Path, default=None)
    if quick is not None:
        parser.add_argument("--quick", action="store_const", const=quick, dest="kills")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {options.seed}", flush=True)  # at once: a harness that hangs can be begun again
    return options


def say_figures(bad: Mapping[str, int], say: Callable[[str], None] = print) -> None:
    say(", ".join(f"{count} {name}" for name, count in bad.items()))
