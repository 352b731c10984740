"""How fast Stretto starts, reads and plans. In: nothing. Out: a table of goals and what was reached.

    python benchmarks/speed.py [--quick] [--check]

Starting is measured as CPU time of the child, as a ratio to `python -c pass`, the two taken
turn about: a ratio of medians means the same on a slow machine, on a fast and on a busy one.
Work inside the process is measured as CPU time, and so is a whole `stretto run`; the best of
several runs is shown, since nothing makes a run faster than it is.
"""

import argparse
import compileall
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import stretto
from stretto.agents.agent_files import load_catalog
from stretto.plan.build import build
from stretto.plan.claims import ConflictIndex
from stretto.plan.dry_run import dry_run
from stretto.plan.model import Plan
from stretto.recipe.read import read_recipe, read_recipe_file

PACKAGE = Path(stretto.__file__).parent
THREE_STEPS = """\
name: three
inputs: [{name: topic, default: bees}]
steps:
  - id: look
    subagent: researcher
    prompt: Find facts about {{inputs.topic}}.
  - id: write
    subagent: writer
    prompt: "Write it up: {{steps.look.output}}"
  - id: check
    subagent: reviewer
    prompt: "Check {{steps.write.output}}"
"""


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    reached: float
    goal: float | None  # None: measured to be known, without a goal
    unit: str  # '×' or ' ms'

    @property
    def is_reached(self) -> bool:
        return self.goal is None or self.reached <= self.goal


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few runs: rough figures")
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder), is_quick=wanted.quick)
    width = max(len(row.what) for row in rows)
    print(f"{'':{width}}  {'goal':>9}  {'reached':>9}")
    for row in rows:
        goal = "-" if row.goal is None else f"{row.goal:g}{row.unit}"
        reached = f"{row.reached:.2f}{row.unit}"
        print(f"{row.what:{width}}  {goal:>9}  {reached:>9}{'' if row.is_reached else '  missed'}")
    missed = sum(not row.is_reached for row in rows)
    print(f"\n{len(rows) - missed} of {len(rows)} goals reached")
    return 1 if missed and wanted.check else 0


def measure(folder: Path, *, is_quick: bool) -> list[Row]:
    return [
        *starts(folder, 3 if is_quick else 31),
        *whole_run(folder, 1 if is_quick else 9),
        *planning(2 if is_quick else 9),
        *bombs(folder, 1 if is_quick else 5),
        *conflicts(50 if is_quick else 500),
    ]


# --- starting ------------------------------------------------------------------------------


def starts(folder: Path, rounds: int) -> Iterator[Row]:
    # Bytecode first: what is measured is starting, not compiling.
    compileall.compile_dir(PACKAGE, quiet=2)
    recipe = folder / "three.yaml"
    recipe.write_text(THREE_STEPS, encoding="utf-8")
    commands = {
        "bare": ["-c", "pass"],
        "stretto --version": ["-m", "stretto", "--version"],
        "stretto validate, 3 steps": ["-m", "stretto", "validate", str(recipe)],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for words in commands.values():  # once unmeasured, so that the files are in memory
        _cpu_seconds(words, folder)
    for _ in range(rounds):
        for name, words in commands.items():
            taken[name].append(_cpu_seconds(words, folder))
    bare = statistics.median(taken["bare"])
    yield Row("stretto --version", statistics.median(taken["stretto --version"]) / bare, 5, "×")
    validated = statistics.median(taken["stretto validate, 3 steps"]) / bare
    yield Row("stretto validate, 3 steps", validated, 15, "×")


def whole_run(folder: Path, rounds: int) -> Iterator[Row]:
    """`stretto run` of three model calls, with a server on this machine in its own process."""
    recipe = folder / "calls.yaml"
    recipe.write_text(
        "name: calls\nsteps:\n"
        "  - {id: a, subagent: analyst, prompt: Go.}\n"
        "  - {id: b, subagent: analyst, prompt: Go., depends_on: a}\n"
        "  - {id: c, subagent: analyst, prompt: Go., depends_on: b}\n",
        encoding="utf-8",
    )
    server_words = [sys.executable, "-m", "stretto.testing.openai_server"]
    with subprocess.Popen(server_words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            words = ["-m", "stretto", "run", str(recipe), "--json", "--model", "openai:m"]
            taken = [_cpu_seconds(words, folder, OPENAI_BASE_URL=url) for _ in range(rounds + 1)]
            log = folder / "imports.txt"
            with log.open("w") as output:
                traced, began = ["-X", "importtime", *words], time.monotonic()
                _cpu_seconds(traced, folder, output.fileno(), OPENAI_BASE_URL=url)
                seconds = time.monotonic() - began  # importtime counts by the same clock
        finally:
            server.terminate()
    # `import time: SELF | CUMULATIVE | NAME`, in microseconds; the first line is the head.
    columns = [line.split("|") for line in log.read_text().splitlines() if line.count("|") == 2]
    imported = sum(int(own.rpartition(":")[2]) for own, _, _ in columns[1:]) / 1e6
    yield Row("stretto run, 3 model calls", min(taken[1:]) * 1e3, 700, " ms")
    yield Row("of that, imports", 100 * imported / seconds, None, " %")


def _cpu_seconds(
    words: list[str], folder: Path, errors: int = subprocess.DEVNULL, **more: str
) -> float:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environ |= {"STRETTO_HOME": str(folder / "home"), **more}
    with subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=errors,
    ) as child:
        # wait4 and not getrusage(RUSAGE_CHILDREN): that one adds up all children so far.
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime


# --- reading and planning ------------------------------------------------------------------


def recipe_of(steps: int, write_set: Callable[[int], str] | None = None) -> str:
    """A recipe as people write them: prompts of a few lines, each step with two before it."""
    lines = ["name: large", "inputs: [{name: topic, required: true}]", "steps:"]
    for n in range(steps):
        before = [f"s{m}" for m in (n - 1, n - 7) if m >= 0]
        lines += [
            f"  - id: s{n}",
            f"    subagent: {'worker' if write_set else 'writer'}",
            f"    depends_on: [{', '.join(before)}]" if before and not write_set else "",
            f"    write_set: ['{write_set(n)}']" if write_set else "",
            "    prompt: |",
            f"      Step {n} about {{{{inputs.topic}}}}.",
            *(f"      It goes on from this: {{{{steps.{id}.output}}}}" for id in before[:1]),
        ]
    return "\n".join(line for line in lines if line) + "\n"


def planning(rounds: int) -> Iterator[Row]:
    text = recipe_of(500)
    catalog = load_catalog((), Path.cwd())

    def read_and_plan() -> None:
        assert isinstance(build(read_recipe(text, "large.yaml"), catalog), Plan)

    yield Row("read and plan 500 steps", _best_ms(read_and_plan, rounds), 150, " ms")
    plan = build(read_recipe(text, "large.yaml"), catalog)
    assert isinstance(plan, Plan)
    inputs = {plan.inputs[0].name: "bees"}
    yield Row("dry run of 500 steps", _best_ms(lambda: dry_run(plan, inputs), rounds), 150, " ms")


# --- bombs --------------------------------------------------------------------

STEP = "steps: [{id: a, subagent: writer, prompt: x}]\n"
KEYS = "".join(f"k{n % 1000}: {n}\n" for n in range(20_000))
TEXTS: dict[str, str | bytes] = {
    "brackets": "[" * 1_000_000,
    "braces": "{a: " * 250_000,
    "dashes": "- " * 500_000,
    "brackets in JSON": '{"name": ' + "[" * 1_000_000,
    "aliases": "a0: &a0 [x,x]\n"
    + "".join(f"a{n}: &a{n} [*a{n - 1},*a{n - 1}]\n" for n in range(1, 100)),
    "merge keys": "m0: &m0 {a: 1}\n"
    + "".join(f"m{n}: &m{n} {{<<: [*m{n - 1}, *m{n - 1}]}}\n" for n in range(1, 100)),
    "10 MB": b"# " + b"x" * 10_000_000,
    "duplicate keys": KEYS,
    "tabs": "name: x\nsteps:\n" + "\t" * 1_000_000,
    "NUL": "name: x\n" + STEP + "# " + "x" * 1_000_000 + "\0",
    "bad UTF-8": b"# " + b"x" * 1_000_000 + b"\xff",
    "values": "a: [" + "1," * 500_000 + "]",
    "100 kB expression": "name: x\nsteps: [{id: a, subagent: writer, prompt: x, when: '"
    + "(" * 50_000
    + "1"
    + ")" * 50_000
    + "'}]\n",
    "100 kB template": "name: x\nsteps: [{id: a, subagent: writer, prompt: '"
    + "{{" * 50_000
    + "'}]\n",
}


def bombs(folder: Path, rounds: int) -> Iterator[Row]:
    catalog = load_catalog((), Path.cwd())
    for name, text in TEXTS.items():
        file = folder / f"bomb.{'json' if 'JSON' in name else 'yaml'}"
        file.write_bytes(text.encode() if isinstance(text, str) else text)

        def refuse(file: Path = file, name: str = name) -> None:
            assert not isinstance(build(read_recipe_file(file), catalog), Plan), name

        # Reading 50,000 values takes what it takes: the limit is on the values, not on a trick.
        goal = None if name == "values" else 50
        yield Row(f"refuse: {name}", _best_ms(refuse, rounds), goal, " ms")


# --- globs ---------------------------------------------------------------------------------


def own_files(n: int) -> str:
    return f"src/part{n}/**/*.py"


def one_folder(n: int) -> str:
    """The worst: every pair overlaps, and no first folder tells them apart."""
    return f"src/*{n}*.py"


def conflicts(worst_steps: int) -> Iterator[Row]:
    for what, write_set, steps, rounds in (
        ("own files", own_files, 500, 3),
        ("one folder", one_folder, worst_steps, 1),
    ):
        yield Row(
            f"conflicts of {steps} steps: {what}", _deciding(write_set, steps, rounds), 500, " ms"
        )


def _deciding(write_set: Callable[[int], str], steps: int, rounds: int) -> float:
    catalog = load_catalog((), Path.cwd())
    plan = build(read_recipe(recipe_of(steps, write_set), "large.yaml"), catalog)
    assert isinstance(plan, Plan), plan.problems[0]

    def decide() -> None:
        index = ConflictIndex([step.claims for step in plan.steps])
        for step in plan.steps:
            index.partners(step.index)

    return _best_ms(decide, rounds)


def _best_ms(work: Callable[[], object], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best * 1000


if __name__ == "__main__":
    sys.exit(main())
