"""Kill `stretto run` while a writer works, merges and tidies up, and see what is lost. Exit 1 if any is.

    python benchmarks/writer_kills.py [--kills 500] [--files 3000] [--seed N] [--quick] [--src DIR] [--folder DIR]

Each trial has one isolated writer over a repository or a plain folder: an agent with tools, another
program's agent, a command, or an agent inside a workflow step. File operations are slow. It sends -9, HUP, TERM or INT at a random moment between the writer's first tool call and
the end of the run. Then `stretto resume`, which is killed too, sometimes; then `stretto resume` to its end,
and the workspace is compared, byte for byte:

    lost      files of the user that are gone or changed, though the step was told nothing of them
    mixed     trials after which some of the step's change was there and some was not
    unsaid    trials after which `resume` did not say whether the change had landed, or said it wrong
    litter    trials that left a copy, or a file of a merge

`--src` runs another source tree, such as an old one: a harness must be able to fail.
"""

import argparse
import json
import os
import random
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TextIO, TypeAlias

from stretto.testing.openai_script import Asked, Said, ServerAnswer, ToolCall
from stretto.testing.openai_server import OpenAIServer, serving

Tree: TypeAlias = dict[str, bytes]
Phase: TypeAlias = Literal["at work", "collecting and merging", "after the merge", "ended"]

SIGNALS = (signal.SIGKILL, signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
PATIENCE_SECONDS = 300.0  # only keeps a run that hangs from hanging the harness
# A kill leaves the page cache alone, so a disk would add nothing but time: it takes ten times as long.
MEMORY = Path("/dev/shm")
SRC = Path(__file__).parents[1] / "src"
EDITED = tuple(f"d{number}/f{number}.txt" for number in (3, 4, 5))
REMOVED = tuple(f"d{number}/f{number}.txt" for number in (6, 7))

AGENTS = """
agents:
  tools: {{prompt: Write., tools: [Write, Read]}}
  program: {{prompt: Write., model: "cli:sh {program}"}}
"""
WRITER = "{{id: a, agent: {agent}, prompt: go, posture: writer, recovery: {recovery}}}"
RECIPES = {
    "tools": f"name: kills{AGENTS}steps: [{WRITER}]",
    "program": f"name: kills{AGENTS}steps: [{WRITER}]",
    "inner": "name: kills\nsteps: [{{id: o, workflow: inner.yaml}}]",
    "command": "name: kills\n"
    "steps: [{{id: a, run: {commands}, posture: writer, recovery: {recovery}}}]",
}
INNER = f"name: inner{AGENTS}steps: [{WRITER}]".replace("{agent}", "tools")
PROGRAM = """
set -e
touch {called}
{commands}
echo done
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is tried: on what, by whom, and what happens to an attempt that was cut off."""

    folder: Literal["repository", "plain folder"]
    agent: Literal["tools", "program", "command", "inner"]
    recovery: Literal["rerun", "ask"]

    @property
    def step(self) -> str:
        return "o/a" if self.agent == "inner" else "a"

    @property
    def may_remove(self) -> bool:
        return self.agent in ("program", "command")


KINDS = tuple(
    Kind(folder, agent, recovery)
    for folder in ("repository", "plain folder")
    for agent in ("tools", "program", "command", "inner")
    for recovery in ("rerun", "rerun", "rerun", "ask")
)


QUICK = (6, 200, 0.002)  # kills, files, seconds more a file operation


@dataclass
class Figures:
    signals: Counter[str] = field(default_factory=Counter)  # that killed
    phases: Counter[str] = field(default_factory=Counter)  # what the journal had when it died
    kinds: Counter[str] = field(default_factory=Counter)
    of_resume: int = 0
    trials: int = 0
    whole: int = 0
    not_at_all: int = 0
    lost: int = 0
    mixed: int = 0
    unsaid: int = 0
    litter: int = 0
    told: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return self.signals.total()

    @property
    def is_good(self) -> bool:
        return self.trials > 0 and not any(self.bad.values())

    @property
    def bad(self) -> dict[str, int]:
        """How often what must never happen did happen."""
        names = ("lost", "mixed", "unsaid", "litter")
        return {name: getattr(self, name) for name in names}


# The workspace, and what the writer is told to do to it.


def make_workspace(folder: Path, files: int, is_repository: bool) -> Tree:
    tree: Tree = {}
    for number in range(files):
        path = f"d{number % 50}/f{number}.txt"
        tree[path] = b"line %d\n" % number * 20
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(tree[path])
    if is_repository:
        for words in (("init", "-q"), ("add", "."), _commit_words()):
            subprocess.run(["git", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return tree


def _commit_words() -> tuple[str, ...]:
    return ("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "all")


def change_of(*, may_remove: bool) -> dict[str, bytes | None]:
    """What the writer shall do; None: it removes the file, which no tool can."""
    change: dict[str, bytes | None] = dict.fromkeys(EDITED, b"changed\n")
    change |= {"new/one.txt": b"one\n", "new/deep/two.txt": b"two\n"}
    if may_remove:
        change |= dict.fromkeys(REMOVED)
    return change


def change_commands() -> str:
    lines = [f"mkdir -p new/deep; rm {' '.join(REMOVED)}"]
    lines += [
        f"printf '%s\\n' {content.decode().strip()} > {path}"
        for path, content in change_of(may_remove=True).items()
        if content is not None
    ]
    return "\n".join(lines)


def changed(tree: Tree, change: dict[str, bytes | None]) -> Tree:
    return {path: content for path, content in {**tree, **change}.items() if content is not None}


def tree_of(root: Path) -> Tree:
    return {
        file.relative_to(root).as_posix(): file.read_bytes()
        for file in root.rglob("*")
        if ".git" not in file.parts and file.is_file()
    }


def restore(root: Path, tree: Tree) -> None:
    found = tree_of(root)
    for path in found.keys() - tree.keys():
        (root / path).unlink()
    for path, content in tree.items():
        if found.get(path) != content:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
    shutil.rmtree(root / "new", ignore_errors=True)


class Writer:
    """The model: it writes one file a call. Says when the first call was made."""

    def __init__(self) -> None:
        self.called = threading.Event()

    def __call__(self, asked: Asked) -> ServerAnswer:
        calls = [
            ToolCall("Write", {"file_path": path, "content": (content or b"").decode()})
            for path, content in change_of(may_remove=False).items()
        ]
        made = sum(message["role"] == "tool" for message in asked.messages)
        if made:
            self.called.set()
        if made >= len(calls):
            return Said("Done.")
        return Said("", tool_calls=(calls[made],))


# One worker: two workspaces, one server, one run at a time.


@dataclass
class Bench:
    folder: Path
    trees: dict[str, Tree]
    server: OpenAIServer
    writer: Writer
    nursery: "subprocess.Popen[str]"
    chance: random.Random
    # How long a run goes on after the writer's first call: to its last event, and to its exit.
    durations: dict[Kind, tuple[float, float]] = field(default_factory=dict)

    def workspace(self, kind: Kind) -> Path:
        return self.folder / kind.folder.replace(" ", "-")

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def called(self) -> Path:
        return self.folder / "called"

    def start(self, kind: Kind, *words: str) -> "Run":
        return Run(self.nursery, self.workspace(kind), self.folder, [*words, "--json"])

    def begin(self, kind: Kind) -> "Run":
        """A run whose writer has just made its first call."""
        shutil.rmtree(self.home, ignore_errors=True)
        self.writer.called.clear()
        self.called.unlink(missing_ok=True)
        recipe = self.folder / "kills.yaml"
        words = {
            "program": self.folder / "program.sh",
            "commands": json.dumps(change_commands()),
            "agent": kind.agent,
            "recovery": kind.recovery,
        }
        recipe.write_text(RECIPES[kind.agent].format(**words))
        (self.folder / "inner.yaml").write_text(INNER.format(**words))
        model = ("--model", "openai:m") if kind.agent in ("tools", "inner") else ()
        run = self.start(kind, "run", str(recipe), *model)
        until = time.monotonic() + PATIENCE_SECONDS
        while not self.has_begun(kind):
            if run.has_ended() or time.monotonic() > until:
                raise SystemExit(f"a run that nobody killed did not work: {run.wait()}")
            time.sleep(0.002)
        return run

    def has_begun(self, kind: Kind) -> bool:
        """Whether the writer has made its first call. What a command does is seen in its copy alone."""
        if kind.agent == "command":
            return any((self.home / "workspaces").glob("*/*/copy-*/**/new"))
        return self.writer.called.is_set() or self.called.exists()

    def events(self) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(self.home / "runs.db")) as db:
            return [json.loads(row) for (row,) in db.execute("SELECT event FROM events")]

    def phase(self) -> Phase:
        """What was on record when the process died."""
        types = {event["type"] for event in self.events()}
        if "run_ended" in types:
            return "ended"
        if "changes_collected" in types:
            return "after the merge"
        return "collecting and merging" if "attempt_succeeded" in types else "at work"


@contextmanager
def bench(
    folder: Path, files: int, src: Path, slow_seconds: float, chance: random.Random
) -> Iterator[Bench]:
    folder.mkdir(parents=True)
    writer = Writer()
    with serving(writer) as server, nursery(folder, server.url, src, slow_seconds) as children:
        made = Bench(folder, {}, server, writer, children, chance)
        for kind in KINDS:
            if kind.folder not in made.trees:
                is_repository = kind.folder == "repository"
                tree = make_workspace(made.workspace(kind), files, is_repository)
                made.trees[kind.folder] = tree
        program = PROGRAM.format(called=made.called, commands=change_commands())
        (folder / "program.sh").write_text(program)
        yield made


# A child that has imported what `stretto` imports, and is forked for every run: the same code in a
# process of its own, without the second that its imports take.


class Run:
    def __init__(
        self, nursery: "subprocess.Popen[str]", cwd: Path, folder: Path, words: list[str]
    ) -> None:
        self._nursery = nursery
        self._out, self._err = folder / "out", folder / "err"
        asked = {"cwd": str(cwd), "words": words, "out": str(self._out), "err": str(self._err)}
        assert nursery.stdin is not None
        nursery.stdin.write(f"{json.dumps(asked)}\n")
        nursery.stdin.flush()
        self._pid = 0
        self._pid = int(self._line())
        self._code: int | None = None

    def has_ended(self) -> bool:
        if self._code is None and select.select([self._nursery.stdout], [], [], 0)[0]:
            self._code = int(self._line())
        return self._code is not None

    def send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def wait(self) -> tuple[int, str, str]:
        if self._code is None:
            self._code = int(self._line())
        return self._code, self._out.read_text(), self._err.read_text()

    def _line(self) -> str:
        assert self._nursery.stdout is not None
        if not select.select([self._nursery.stdout], [], [], PATIENCE_SECONDS)[0]:
            raise SystemExit(
                f"a run hangs: {_state(self._pid)}\n{self._out.read_text()}{self._err.read_text()}"
            )
        # Byte by byte: a reader that takes more would keep the next line from `select`.
        fd, line = self._nursery.stdout.fileno(), b""
        while not line.endswith(b"\n"):
            line += os.read(fd, 1) or b"1\n"  # the process that forks has ended
        return line.decode()


def _state(pid: int) -> str:
    """What the kernel says of a process that hangs: is it there, and in which call?"""
    with suppress(OSError):
        return "".join(Path(f"/proc/{pid}/{name}").read_text() for name in ("stat", "wchan"))
    return "it has ended"


@contextmanager
def nursery(
    folder: Path, url: str, src: Path, slow_seconds: float
) -> Iterator["subprocess.Popen[str]"]:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "STRETTO_HOME": str(folder / "home"),
        "STRETTO_TRUST": "1",
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "sk-loopback-0123456789",
        "PYTHONPATH": str(src),
    }
    words = [sys.executable, "-u", __file__, "--nursery", "--slow", str(slow_seconds)]
    with subprocess.Popen(
        words, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=0
    ) as child:
        yield child
        assert child.stdin is not None
        child.stdin.close()


def rear(slow_seconds: float) -> None:
    """For each line that asks for one: a child. Its pid, and later its exit code, are printed."""
    is_warm = False
    for name in ("unlink", "remove", "rename", "replace", "rmdir", "link"):
        setattr(os, name, _slowly(getattr(os, name), slow_seconds))
    for line in sys.stdin:
        asked = json.loads(line)
        with tempfile.TemporaryFile("w+") as used:
            child = os.fork()
            if child == 0:
                _live(asked, used)
            print(child, flush=True)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            is_warm = is_warm or _import_again(used)


def _import_again(used: TextIO) -> bool:
    """Import what the first child that was not killed has imported: each run would take a second
    to start otherwise."""
    used.seek(0)
    names = used.read().split()
    for name in names:
        with suppress(Exception):
            import_module(name)
    return bool(names)


def _live(asked: dict[str, Any], used: TextIO) -> None:
    """`stretto WORDS`, in a folder, alone in its session as with a terminal of its own."""
    os.setsid()
    os.chdir(asked["cwd"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    code = 1
    try:
        from stretto.cli.main import main

        main(asked["words"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        used.write("\n".join(sys.modules))
        used.flush()
        os._exit(code)


def _slowly(act: Callable[..., Any], seconds: float) -> Callable[..., Any]:
    def slow(*args: Any, **kwargs: Any) -> Any:
        time.sleep(seconds)
        return act(*args, **kwargs)

    return slow


# One trial


def measure(at: Bench, kind: Kind) -> None:
    """How long a run takes when nobody kills it."""
    run = at.begin(kind)
    began = time.time()
    code, out, err = run.wait()
    if code != 0:
        raise SystemExit(f"a run that nobody killed failed: {out}{err}")
    last_event_at: float = at.events()[-1]["at"]
    at.durations[kind] = (max(0.0, last_event_at - began), time.time() - began)
    restore(at.workspace(kind), at.trees[kind.folder])


def kill(at: Bench, kind: Kind, run: Run, figures: Figures) -> bool:
    """At a random moment. False: it had ended before."""
    number = at.chance.choice(SIGNALS)
    # Two in three before the last event: what follows it, tidying up, takes longer than the rest.
    to_end, to_exit = at.durations[kind]
    time.sleep(at.chance.uniform(0, to_end if at.chance.random() < 0.67 else to_exit))
    if run.has_ended():
        return False
    run.send(number)
    run.wait()
    figures.signals[number.name] += 1
    figures.phases[at.phase()] += 1
    return True


def resume(at: Bench, kind: Kind, figures: Figures) -> dict[str, Any]:
    """To the end; on the way it may be killed too. Its report."""
    run_id = next((at.home / "workspaces").glob("2*")).name
    while at.chance.random() < 0.3:
        again = at.start(kind, "resume", run_id)
        figures.of_resume += kill(at, kind, again, figures)
    _, out, err = at.start(kind, "resume", run_id).wait()
    printed = out.splitlines()
    report: dict[str, Any] = json.loads(printed[-1]) if printed else {"error": err}
    return report


def attempt(at: Bench, kind: Kind, figures: Figures) -> bool:
    """Whether it counts: a run that ended before it could be killed does not."""
    run = at.begin(kind)
    if kill(at, kind, run, figures):
        report = resume(at, kind, figures)
        figures.trials += 1
        figures.kinds[f"{kind.folder}, {kind.agent}, {kind.recovery}"] += 1
        judge(at, kind, report, figures)
        restore(at.workspace(kind), at.trees[kind.folder])
        return True
    restore(at.workspace(kind), at.trees[kind.folder])
    return False


def judge(at: Bench, kind: Kind, report: dict[str, Any], figures: Figures) -> None:
    old, change = at.trees[kind.folder], change_of(may_remove=kind.may_remove)
    new, found = changed(old, change), tree_of(at.workspace(kind))
    lost = [path for path in old if path not in change and found.get(path) != old[path]]
    figures.lost += len(lost)
    has_landed = found == new
    if has_landed:
        figures.whole += 1
    elif found == old:
        figures.not_at_all += 1
    elif {path: found.get(path) for path in change} not in (
        {path: new.get(path) for path in change},
        {path: old.get(path) for path in change},
    ):
        figures.mixed += 1
    step = report.get("steps", {}).get(kind.step, {})
    says = step.get("changes", {}).get("merged", False)
    is_said = "steps" in report and says == has_landed
    figures.unsaid += not is_said
    litter = _litter(at, kind, report)
    figures.litter += bool(litter)
    if lost or litter or not is_said or found not in (old, new):
        stranger = sorted(found.keys() - old.keys() - new.keys())
        figures.told.append(
            f"{kind}: lost {len(lost)}, landed {has_landed}, said {says} "
            f"({report.get('status')}, {report.get('error')}), left {litter[:3]}, more {stranger[:3]}"
        )


def _litter(at: Bench, kind: Kind, report: dict[str, Any]) -> list[str]:
    left = list(at.workspace(kind).glob(".stretto-merge-*"))
    if report.get("status") != "waiting":  # a run that waits may still need its copies
        left += (at.home / "workspaces").glob("*/*/copy-*")
        left += (at.home / "workspaces").glob("*/*/*.new-*")
        left += (at.home / "workspaces/trash").glob("*")
    return [path.name for path in left]


def try_kills(at: Bench, kills: int) -> Figures:
    figures = Figures()
    for kind in set(KINDS):
        measure(at, kind)
    while figures.kills < kills:
        attempt(at, at.chance.choice(KINDS), figures)
        if figures.trials % 50 == 0 and figures.trials:
            print(f"… {figures.kills} kills", file=sys.stderr, flush=True)
    return figures


def show(figures: Figures) -> None:
    print(f"kills                        {figures.kills:>6,}")
    for name, count in sorted(figures.signals.items()):
        print(f"  {name:<27}{count:>6,}")
    for name, count in sorted(figures.phases.items()):
        print(f"  while it was {name:<23}".ljust(29) + f"{count:>6,}")
    print(f"  of a resume                {figures.of_resume:>6,}")
    print(f"trials                       {figures.trials:>6,}")
    for name, count in sorted(figures.kinds.items()):
        print(f"  {name:<34}{count:>6,}")
    print(f"the change landed whole      {figures.whole:>6,}")
    print(f"the change landed not at all {figures.not_at_all:>6,}")
    print(f"lost files of the user       {figures.lost:>6,}")
    print(f"mixed trees                  {figures.mixed:>6,}")
    print(f"unsaid                       {figures.unsaid:>6,}")
    print(f"litter                       {figures.litter:>6,}")
    for line in figures.told[:20]:
        print(f"  {line}")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--files", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--slow", type=float, default=0.0002, help="seconds a file operation")
    parser.add_argument("--src", type=Path, default=SRC)
    parser.add_argument("--folder", type=Path, default=MEMORY if MEMORY.is_dir() else None)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--nursery", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.nursery:
        rear(chosen.slow)
        return 0
    seed = random.randrange(10**6) if chosen.seed is None else chosen.seed
    wanted = (chosen.kills, chosen.files, chosen.slow)
    kills, files, slow_seconds = QUICK if chosen.quick else wanted
    print(f"seed {seed}, {files:,} files, {slow_seconds * 1000:g} ms more a file operation")
    with (
        tempfile.TemporaryDirectory(prefix="stretto-kills-", dir=chosen.folder) as folder,
        bench(Path(folder) / "b", files, chosen.src, slow_seconds, random.Random(seed)) as at,
    ):
        figures = try_kills(at, kills)
    show(figures)
    return 0 if figures.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
