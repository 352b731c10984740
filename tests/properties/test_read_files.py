"""A command is given its old answer exactly where the files that it may read are what they were.

Random files, sets and edits; the answer is what a fresh look at each file says.

    python tests/properties/test_read_files.py 2000     # more of them, and the figures
"""

import asyncio
import os
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from shutil import rmtree
from tempfile import TemporaryDirectory

from stretto.adapters.workspaces import LocalWorkspaces
from stretto.globs.glob import parse_globs
from stretto.ports.workspace import FilesToRead, SharedWorkspace
from stretto.vocabulary.names import StepId
from stretto.workspaces.read_files import ReadFileFinder, stamp_of

WORLDS = 60
PATHS = ("a.py", "src/a.py", "src/b.py", "src/deep/a.py", "docs/a.md", ".env", "src/.hidden")
SETS = (("**/*",), ("src",), ("src/*.py",), ("docs", "a.py"), ("**/a.*",), ("src/deep",))
CONTENTS = (b"", b"one", b"two", b"\xff\0")
COMMAND, WRITER = StepId("command"), StepId("writer")


def view(folder: Path, read_set: tuple[str, ...]) -> dict[str, object]:
    globs = parse_globs(read_set)
    return {
        path: (os.readlink(file) if file.is_symlink() else file.read_bytes(), _is_run(file))
        for path in PATHS
        if ((file := folder / path).is_symlink() or file.exists())
        and any(glob.matches(path) for glob in globs)
    }


def _is_run(file: Path) -> bool:
    return not file.is_symlink() and os.access(file, os.X_OK) and bool(file.stat().st_mode & 0o100)


def stamps(folder: Path) -> dict[str, tuple[int, ...]]:
    found = {path: (folder / path).lstat() for path in PATHS if os.path.lexists(folder / path)}
    return {p: (s.st_mtime_ns, s.st_size, s.st_ino, s.st_mode) for p, s in found.items()}


def edit(folder: Path, luck: Random, *, is_sly: bool = True) -> None:
    file = folder / luck.choice(PATHS)
    match luck.randint(0, 9):
        case 0:
            file.unlink(missing_ok=True)
        case 1 if file.exists() and not file.is_symlink():
            file.chmod(luck.choice((0o600, 0o644, 0o755)))
        case 2:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)
            file.symlink_to(luck.choice(("a.py", "nowhere")))
        case _:
            before = file.stat() if file.is_file() and not file.is_symlink() else None
            file.parent.mkdir(parents=True, exist_ok=True)
            if file.is_symlink():
                file.unlink()
            file.write_bytes(luck.choice(CONTENTS))
            if is_sly and before is not None and luck.random() < 0.5:
                os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


async def play(folder: Path, luck: Random, figures: Counter[str]) -> None:
    work = folder / "work"
    work.mkdir()
    port = LocalWorkspaces(folder / "home")
    for _ in range(luck.randint(1, 6)):
        edit(work, luck)
    read_set = luck.choice(SETS)
    first = FilesToRead("one", COMMAND, "", work, read_set)
    digest, then = (await port.look(first)).digest, view(work, read_set)
    if luck.random() < 0.4:
        edit(work, luck)  # while the command runs
    ended = view(work, read_set)
    unsure = {path for path in PATHS if then.get(path) != ended.get(path)}
    assert await port.note_read(first) == ("" if unsure else digest)
    # What the run itself writes afterwards, and then what its user does.
    shared = SharedWorkspace("one", WRITER, work, ("**/*",))
    await port.watch(shared)
    before = stamps(work)
    await asyncio.sleep(0.01)  # one tick of the file system's clock, within which nothing is seen
    for _ in range(luck.choice((0, 0, 1, 2))):
        edit(work, luck, is_sly=False)
    await port.undeclared_changes(shared, ("**/*",))
    left = view(work, PATHS)
    own = {path for path in PATHS if before.get(path) != stamps(work).get(path)}
    for _ in range(luck.choice((0, 0, 1, 2, 3))):
        edit(work, luck)
    now = view(work, read_set)
    again = FilesToRead("two", COMMAND, "", work, read_set)
    expected = all(
        (now.get(path) == then.get(path) and path not in unsure)
        or (path in own and now.get(path) == left.get(path))
        for path in now.keys() | then.keys() | unsure
    )
    is_reused = await port.can_reuse_read(again, "one", COMMAND, "", [WRITER])
    assert is_reused == expected, (read_set, then, left, now)
    assert ((await port.look(again)).digest == digest) == (now == then)
    figures["reused" if is_reused else "anew"] += 1
    figures["unsure"] += bool(unsure)


def run(worlds: int, seed: int = 0) -> Counter[str]:
    figures: Counter[str] = Counter()
    with TemporaryDirectory() as folder:
        for number in range(worlds):
            place = Path(folder) / str(number)
            place.mkdir()
            asyncio.run(play(place, Random(f"{seed} {number}"), figures))
            rmtree(place)
    return figures


def test_an_answer_counts_for_the_files_that_were_read_and_for_no_others() -> None:
    figures = run(WORLDS)
    assert min(figures["reused"], figures["anew"], figures["unsure"]) > WORLDS / 15, figures


def test_a_file_that_changed_just_now_is_read_again(tmp_path: Path) -> None:
    """It may change again within the same tick of the file system's clock, to the same size."""
    finder, file = ReadFileFinder(), tmp_path / "a.py"
    file.write_bytes(b"1")
    assert finder.find(tmp_path, ("**/*",))
    assert not finder._known
    deadline = time.monotonic() + 30
    while not finder._known and time.monotonic() < deadline:
        time.sleep(0.2)
        assert finder.find(tmp_path, ("**/*",))
    assert list(finder._known) == [f"{file.resolve()}"]


def test_another_file_at_the_same_place_is_read_again(tmp_path: Path) -> None:
    """Renaming a folder leaves the times of its files alone, and files that were made together may
    have the same ones."""
    status = tmp_path.lstat()
    one, two = list(status), list(status)
    two[1] += 1  # the inode
    assert stamp_of(os.stat_result(one)) != stamp_of(os.stat_result(two))


def test_what_lies_deeper_than_anybody_looks_is_never_reused(tmp_path: Path) -> None:
    deep = "/".join(["d"] * 130)
    (tmp_path / deep).mkdir(parents=True)
    (tmp_path / deep / "a.py").write_bytes(b"1")
    assert ReadFileFinder().find(tmp_path, ("**/*",)) is None
    assert ReadFileFinder().find(tmp_path, ("src",)) is not None


def test_a_note_of_an_attempt_before_is_no_note_of_what_came_after(tmp_path: Path) -> None:
    """The second attempt could read too much: what the first one has read says nothing about it."""
    asyncio.run(_look_twice(tmp_path))


async def _look_twice(folder: Path) -> None:
    work = folder / "work"
    work.mkdir()
    (work / "a.py").write_bytes(b"1")
    port = LocalWorkspaces(folder / "home")
    files = FilesToRead("one", COMMAND, "", work, ("**/*",))
    again = FilesToRead("two", COMMAND, "", work, ("**/*",))
    await port.look(files)
    assert await port.note_read(files)
    assert await port.can_reuse_read(again, "one", COMMAND, "", ())
    with (work / "huge").open("wb") as huge:
        huge.truncate(300 * 2**20)
    assert not (await port.look(files)).digest
    assert not await port.note_read(files)
    (work / "huge").unlink()
    assert not await port.can_reuse_read(again, "one", COMMAND, "", ())


if __name__ == "__main__":
    print(dict(run(int(sys.argv[1]), Random().randrange(1 << 30))))
