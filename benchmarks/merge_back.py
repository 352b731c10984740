"""Kill merges with SIGKILL at every named point, and look for mixed trees. Exit 1 if there is one.

    python benchmarks/merge_back.py [--quick] [--seed N] [--files 5000] [--folder DIR] [--broken]

A child merges a change set into a workspace and stops at one point; it is killed there, what it
left is recovered, and the tree is compared: exactly the old one or exactly the new one, with
nothing left over. In a second round the recovery is killed as well, at each of its own points, and
begun again. Then the merge is made once more, and must arrive at the new tree.

After that: how long it takes to isolate a repository and a plain folder, to find the changes, and
to merge many files. SIGKILL leaves the page cache alone: what a power cut takes is not tried here.
"""

import argparse
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from stretto.workspaces.change import ChangeSet, find_changes
from stretto.workspaces.content import clone
from stretto.workspaces.isolated_copy import isolate, open_isolated, remove_tree
from stretto.workspaces.merge import Conflict
from stretto.workspaces.rollback import recover_merges
from stretto.workspaces.transaction import is_merged, merge_back

_Tree: TypeAlias = dict[str, tuple[str, int, bytes]]
_Act: TypeAlias = Callable[[Callable[[str], None]], None]

LINES = b"".join(b"line %d\n" % number for number in range(40))


# The change sets: what a workspace holds, and what a writer does in its copy.


def _base(root: Path, many: int = 0) -> None:
    for path, content, mode in (
        ("readme.md", LINES, 0o644),
        ("src/app.py", b"print('app')\n", 0o644),
        ("src/run.sh", b"#!/bin/sh\n", 0o755),
        ("src/secret.txt", b"kept\n", 0o600),
        ("docs/old/a.txt", b"a\n" * 20, 0o644),
        ("docs/old/b.txt", b"b\n" * 20, 0o644),
        ("image.bin", bytes(range(256)) * 8, 0o644),
        ("thing", b"a file that becomes a folder\n", 0o644),
        ("place/inner.txt", b"a folder that becomes a file\n", 0o644),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
        (root / path).chmod(mode)
    (root / "link").symlink_to("readme.md")
    for number in range(many):
        (root / f"many{number}.txt").write_bytes(b"%d\n" % number)


def _creates(root: Path) -> None:
    (root / "new/deep").mkdir(parents=True)
    for name in ("new/one.txt", "new/deep/two.txt", "three.txt"):
        (root / name).write_bytes(name.encode())
    (root / "new/link").symlink_to("../readme.md")


def _edits(root: Path) -> None:
    (root / "readme.md").write_bytes(LINES.replace(b"line 7\n", b"line seven\n"))
    (root / "src/app.py").write_bytes(b"no final newline")
    (root / "src/secret.txt").write_bytes(b"still for one reader\n")
    (root / "link").unlink()
    (root / "link").symlink_to("src/app.py")


def _deletes(root: Path) -> None:
    shutil.rmtree(root / "docs")
    (root / "src/app.py").unlink()
    (root / "link").unlink()


def _renames(root: Path) -> None:
    (root / "docs/old").rename(root / "docs/new")
    (root / "readme.md").rename(root / "README.txt")


def _modes(root: Path) -> None:
    (root / "src/app.py").chmod(0o755)
    (root / "src/run.sh").chmod(0o644)


def _binary(root: Path) -> None:
    (root / "image.bin").write_bytes(bytes(reversed(range(256))) * 8)
    (root / "large.bin").write_bytes(bytes(range(251)) * 4000)  # has a file of its own


def _kinds(root: Path) -> None:
    (root / "thing").unlink()
    (root / "thing").mkdir()
    (root / "thing/inside.txt").write_bytes(b"x\n")
    shutil.rmtree(root / "place")
    (root / "place").write_bytes(b"y\n")
    (root / "readme.md").unlink()
    (root / "readme.md").symlink_to("src/app.py")


def _all(root: Path) -> None:
    for edit in (_creates, _modes, _deletes, _binary, _kinds):
        edit(root)


def _many(root: Path) -> None:
    for number in range(60):
        (root / f"many{number}.txt").write_bytes(b"changed %d\n" % number)


SETS: dict[str, Callable[[Path], None]] = {
    "creates": _creates,
    "edits": _edits,
    "deletes": _deletes,
    "renames": _renames,
    "modes": _modes,
    "binary": _binary,
    "kinds": _kinds,
    "all of it": _all,
    "many files": _many,
}


@dataclass
class Figures:
    kills: int = 0
    in_recovery: int = 0
    old: int = 0
    new: int = 0
    mixed: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)  # merged again, and not the new tree
    points: Counter[str] = field(default_factory=Counter)

    @property
    def is_good(self) -> bool:
        return not self.mixed and not self.unfinished and self.kills > 0


@dataclass
class Trial:
    """One change set, tried again and again from the same beginning."""

    name: str
    folder: Path
    start: Path  # the workspace as it was
    changes: ChangeSet
    old: _Tree
    new: _Tree
    disturb: bool = False  # an editor saves a file in the middle of the merge
    is_broken: bool = False  # nothing is recovered

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def begin(self) -> None:
        remove_tree(self.workspace)
        remove_tree(self.home)
        shutil.copytree(self.start, self.workspace, symlinks=True)

    def merge(self, at: Callable[[str], None]) -> None:
        merge_back(self.changes, self.workspace, self.home, self._disturbing(at))

    def recover(self, at: Callable[[str], None]) -> None:
        if not self.is_broken:
            recover_merges(self.workspace, self.home, at)

    def _disturbing(self, at: Callable[[str], None]) -> Callable[[str], None]:
        def watch(point: str) -> None:
            if self.disturb and point == "created":
                save(self.workspace)
            at(point)

        return watch


def save(workspace: Path) -> None:
    """As an editor does: a new file, renamed over the old one."""
    (workspace / "zz.new").write_bytes(b"by hand\n")
    (workspace / "zz.new").rename(workspace / "zz.txt")


def make_trial(name: str, folder: Path, *, disturb: bool = False, is_broken: bool = False) -> Trial:
    start = folder / "start"
    start.mkdir(parents=True)
    _base(start, many=60 if name == "many files" else 0)
    if disturb:
        (start / "zz.txt").write_bytes(b"z\n")
    isolated = isolate(start, folder / "isolated")
    SETS[name](isolated.root)
    if disturb:
        (isolated.root / "zz.txt").write_bytes(b"by the step\n")
    changes = find_changes(isolated, folder / "artifact")
    old, new = tree_of(start), tree_of(isolated.root)
    if disturb:
        # It is refused: both changed zz.txt. Nothing else may have changed either.
        old["zz.txt"] = new["zz.txt"] = ("file", 0o644, b"by hand\n")
        new = old
    return Trial(name, folder, start, changes, old, new, disturb, is_broken)


def tree_of(root: Path) -> _Tree:
    found: _Tree = {}
    for folder, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            mode, key = stat.S_IMODE(status.st_mode), os.path.relpath(path, root)
            if stat.S_ISLNK(status.st_mode):
                found[key] = ("link", 0, os.fsencode(os.readlink(path)))
            elif stat.S_ISDIR(status.st_mode):
                found[key] = ("folder", mode, b"")
            else:
                found[key] = ("file", mode, Path(path).read_bytes())
    return found


# Killing


def points_of(act: _Act) -> list[str]:
    """The points that an undisturbed child passes."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run_child(act, lambda point: os.write(writer, f"{point}\n".encode()))
    os.close(writer)
    with open(reader) as lines:
        points = lines.read().splitlines()
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise SystemExit(f"a merge that nobody killed failed: {status}")
    return points


def kill_at(act: _Act, number: int) -> str:
    """Start a child, and kill it at its point of that number. "" when it ends before."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        left = iter(range(number, -1, -1))

        def stop(point: str) -> None:
            if next(left) == 0:
                os.write(writer, point.encode())
                signal.pause()

        _run_child(act, stop)
    os.close(writer)
    point = os.read(reader, 64).decode()
    os.close(reader)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return point


def _run_child(act: _Act, at: Callable[[str], None]) -> None:
    try:
        act(at)
    except BaseException as error:
        print(f"child: {type(error).__name__}: {error}", file=sys.stderr)
        os._exit(1)
    os._exit(0)


def try_all(trial: Trial, figures: Figures, share: float, chance: random.Random) -> None:
    trial.begin()
    points = points_of(trial.merge)
    if tree_of(trial.workspace) != trial.new:
        figures.unfinished.append(f"{trial.name}: undisturbed")
    for number, point in enumerate(points):
        if chance.random() > share:
            continue
        trial.begin()
        where = kill_at(trial.merge, number)
        figures.kills += 1
        figures.points[point] += 1
        _kill_recovery(trial, figures, share, chance)
        trial.recover(lambda _: None)
        _compare(trial, figures, f"{trial.name}: killed at {where} ({number + 1})")


def _kill_recovery(trial: Trial, figures: Figures, share: float, chance: random.Random) -> None:
    """Kill recoveries of what is there, each a point later than the last, until one gets through.

    What one leaves is what the next begins with.
    """
    number = 0
    while chance.random() <= share and kill_at(trial.recover, number):
        figures.in_recovery += 1
        number += 1


def _compare(trial: Trial, figures: Figures, where: str) -> None:
    now = tree_of(trial.workspace)
    is_edited = trial.disturb and now.get("zz.txt") != ("file", 0o644, b"z\n")
    start = trial.old if is_edited or not trial.disturb else tree_of(trial.start)
    if now == trial.new and is_merged(trial.changes, trial.workspace, trial.home):
        figures.new += 1
    elif now == start:
        figures.old += 1
    else:
        wrong = [path for path in now.keys() | start.keys() if now.get(path) != start.get(path)]
        figures.mixed.append(f"{where}: {', '.join(sorted(wrong)[:5])}")
    result = merge_back(
        trial.changes, trial.workspace, trial.home, trial._disturbing(lambda _: None)
    )
    if tree_of(trial.workspace) != trial.new or isinstance(result, Conflict) != trial.disturb:
        figures.unfinished.append(where)


# Times


def make_files(root: Path, count: int) -> None:
    chance = random.Random(1)
    for number in range(count):
        folder = root / f"d{number % 50}" / f"e{number % 7}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = (
            b"line %d %d\n" % (n, chance.random() * 1e9) for n in range(chance.randint(20, 400))
        )
        (folder / f"f{number}.py").write_bytes(b"".join(lines))


def timed(what: str, act: Callable[[], object], *, times: int = 1) -> None:
    best = cpu = float("inf")
    for _ in range(times):
        wall, work = time.perf_counter(), time.process_time()
        act()
        best = min(best, time.perf_counter() - wall)
        cpu = min(cpu, time.process_time() - work)
    print(f"{what:44}{best:8.2f} s   (cpu {cpu:.2f} s)")


def measure(folder: Path, count: int) -> None:
    make_files(folder / "plain", count)
    shutil.copytree(folder / "plain", folder / "repository")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *words], cwd=folder / "repository", check=True)
    print(f"{'reflinks':44}{'yes' if _has_reflinks(folder) else 'no':>8}")
    for name in ("repository", "plain"):
        what = f"isolate a {'folder' if name == 'plain' else name} of {count:,} files"
        homes = iter(folder / "copies" / name / str(number) for number in range(3))
        timed(what, lambda name=name, homes=homes: isolate(folder / name, next(homes)), times=3)
    isolated = open_isolated(folder / "copies" / "plain" / "2")
    timed(f"find no changes in {count:,} files", lambda: find_changes(isolated, folder / "none"))
    for number in range(count // 5):
        name = f"d{number % 50}/e{number % 7}/f{number}.py"
        (isolated.root / name).write_bytes(b"changed\n")
    changes: list[ChangeSet] = []
    timed(
        f"find {count // 5:,} changes",
        lambda: changes.append(find_changes(isolated, folder / "artifact")),
    )
    timed(
        f"merge {count // 5:,} changes",
        lambda: merge_back(changes[0], folder / "plain", folder / "home"),
    )


def _has_reflinks(folder: Path) -> bool:
    (folder / "one").write_bytes(b"x" * 8192)
    with (folder / "one").open("rb") as one, (folder / "two").open("wb") as two:
        return clone(one.fileno(), two.fileno())


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="some of the points, few files")
    options.add_argument("--broken", action="store_true", help="recover nothing: it must be seen")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--files", type=int, default=5_000)
    options.add_argument(
        "--folder", type=Path, help="where to work: the file system is what counts"
    )
    chosen = options.parse_args()
    chance = random.Random(chosen.seed)
    figures = Figures()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        folder = Path(name)
        for number, kind in enumerate(SETS):
            share = 1.0
            if chosen.quick:
                share = 0.03 if kind in ("many files", "all of it") else 0.15
            trial = make_trial(kind, folder / str(number), is_broken=chosen.broken)
            try_all(trial, figures, share, chance)
        disturbed = make_trial("creates", folder / "disturbed", disturb=True)
        try_all(disturbed, figures, 0.2 if chosen.quick else 1.0, chance)
        print(f"{'change sets':44}{len(SETS) + 1:8}")
        print(f"{'named points':44}{len(figures.points):8}")
        print(f"{'kills in a merge':44}{figures.kills:8}")
        print(f"{'kills in its recovery':44}{figures.in_recovery:8}")
        print(f"{'old tree after recovery':44}{figures.old:8}")
        print(f"{'new tree after recovery':44}{figures.new:8}")
        print(f"{'mixed trees':44}{len(figures.mixed):8}")
        print(f"{'merged again, not the new tree':44}{len(figures.unfinished):8}")
        for line in (*figures.mixed, *figures.unfinished):
            print(f"  {line}", file=sys.stderr)
        measure(folder / "times", 200 if chosen.quick else chosen.files)
    return 0 if figures.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
