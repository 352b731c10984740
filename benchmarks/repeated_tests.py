"""Run `make test` again and again in a fresh clone, beside a load, and count the runs that failed. Exit 1 if one did.

    python benchmarks/repeated_tests.py [--runs 10] [--folder FOLDER]

The clone has what is committed. The load comes in bursts, so that each test meets it in one run or another: for two
minutes a busy loop more than there are cores, and a writer that syncs every megabyte; then nothing for two and a half.

    passed   runs that ended with exit code 0
    runs     what each of them said at its end; the whole of it is in run-N.log in the folder
"""

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
ON_SECONDS, OFF_SECONDS = 120.0, 150.0
_BLOCK_BYTES = 1 << 20
_OF_MAKE = frozenset({"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES"})


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--folder", type=Path, help="for the clone and the logs; a temporary one")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="stretto-tests-"))
    clone = make_clone(ROOT, folder)
    with load(folder):
        passed = sum(run_tests(clone, folder, number) for number in range(1, options.runs + 1))
    print(f"{passed} of {options.runs} runs passed; their logs are in {folder}")
    return 0 if passed == options.runs else 1


def make_clone(repository: Path, folder: Path) -> Path:
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", str(repository), str(clone)], check=True)
    subprocess.run(["make", ".venv/.dev"], cwd=clone, env=_environment(), check=True)
    return clone


def run_tests(clone: Path, folder: Path, number: int) -> bool:
    log = folder / f"run-{number}.log"
    began = time.monotonic()
    with log.open("wb") as written:
        code = subprocess.call(
            ["make", "test"], cwd=clone, env=_environment(), stdout=written, stderr=written
        )
    seconds = time.monotonic() - began
    last = log.read_text(errors="replace").splitlines()[-1:] or [""]
    print(f"run {number}: exit code {code} after {seconds:.0f} s: {last[0]}", flush=True)
    return code == 0


def _environment() -> dict[str, str]:
    """Without what `make` tells a `make` that it has started."""
    return {name: value for name, value in os.environ.items() if name not in _OF_MAKE}


@contextmanager
def load(folder: Path) -> Iterator[None]:
    busy = (os.cpu_count() or 1) + 1
    works: list[tuple[Callable[..., None], tuple[object, ...]]] = [(_compute, ())] * busy
    works.append((_write, (folder / "load",)))
    children = [
        multiprocessing.Process(target=work, args=args, daemon=True) for work, args in works
    ]
    for child in children:
        child.start()
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.join()


def _compute() -> None:
    while True:
        _wait_for_burst()
        sum(number * number for number in range(20_000))


def _write(path: Path) -> None:
    block = os.urandom(_BLOCK_BYTES)
    while True:
        _wait_for_burst()
        with path.open("wb") as file:
            for _ in range(8):
                file.write(block)
                os.fsync(file.fileno())
        time.sleep(0.05)


def _wait_for_burst() -> None:
    while time.monotonic() % (ON_SECONDS + OFF_SECONDS) > ON_SECONDS:
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
