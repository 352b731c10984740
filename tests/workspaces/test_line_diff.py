"""Lines that two texts share, and three texts merged by them."""

import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from stretto.workspaces.line_diff import LineClashes, find_shared_lines, merge_text, split_lines

LETTERS = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n", b"e\n"]), max_size=30)


@given(st.binary(max_size=60))
def test_lines_put_together_are_the_text(content: bytes) -> None:
    assert b"".join(split_lines(content)) == content


@given(LETTERS, LETTERS)
def test_shared_runs_are_equal_and_in_order(a: list[bytes], b: list[bytes]) -> None:
    at = (0, 0)
    for run in find_shared_lines(a, b):
        assert run.length > 0
        assert (run.a, run.b) >= at
        assert run.a >= at[0]
        assert run.b >= at[1]
        assert a[run.a : run.a + run.length] == b[run.b : run.b + run.length]
        at = (run.a + run.length, run.b + run.length)
    assert at[0] <= len(a)
    assert at[1] <= len(b)


def longest_common(a: list[bytes], b: list[bytes]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        before = 0
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], before + 1 if x == y else max(row[j], row[j - 1])
    return row[-1]


@settings(max_examples=200)
@given(st.lists(st.sampled_from([b"a\n", b"b\n"]), max_size=24), st.data())
def test_where_no_line_is_unique_the_shortest_edit_is_found(
    half: list[bytes], data: st.DataObject
) -> None:
    a = [b"a\n", b"b\n"] * 2 + half
    b = [b"b\n", b"a\n"] * 2 + data.draw(st.permutations(half))
    assert sum(run.length for run in find_shared_lines(a, b)) == longest_common(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([b"x\n"] * 60_000, [b"x\n"] * 30_000 + [b"y\n"] + [b"x\n"] * 29_000),
        ([b"a\n", b"b\n"] * 20_000, [b"b\n", b"b\n", b"a\n"] * 14_000),
        ([b"%d\n" % n for n in range(50_000)], [b"%d\n" % n for n in range(50_000, 0, -1)]),
        ([b"a\n", b"b\n"] * 20_000, [b"c\n", b"d\n"] * 20_000),
    ],
)
def test_hostile_texts_take_a_bounded_effort(a: list[bytes], b: list[bytes]) -> None:
    began = time.process_time()
    find_shared_lines(a, b)
    assert time.process_time() - began < 8


def text(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


BASE = text("1", "2", "3", "4", "5", "6")


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        (text("1", "2", "3", "4", "5", "six"), text("one", "2", "3", "4", "5", "6"), None),
        (text("0", "1", "2", "3", "4", "5", "6"), text("1", "2", "3", "4", "5", "6", "7"), None),
        (text("1", "3", "4", "5", "6"), text("1", "2", "3", "4", "6"), None),
        (text("1", "x", "3", "4", "5", "6"), text("1", "x", "3", "4", "5", "6"), None),
        (text("1", "x", "3", "4", "5", "6"), text("1", "x", "3", "4", "y", "6"), None),
        (BASE, b"", b""),
        (BASE + b"7", text("0", "1", "2", "3", "4", "5", "6"), None),
        (text("1", "2", "3", "4", "5") + b"6", text("x", "2", "3", "4", "5", "6"), None),
        (BASE.replace(b"\n", b"\r\n"), BASE, BASE.replace(b"\n", b"\r\n")),
    ],
)
def test_edits_apart_from_each_other_are_both_taken(
    ours: bytes, theirs: bytes, merged: bytes | None, tmp_path: Path
) -> None:
    expected = merged_by_git(BASE, ours, theirs, tmp_path) if merged is None else merged
    assert expected is not None
    assert merge_text(BASE, ours, theirs) == expected
    assert merge_text(BASE, theirs, ours) == expected


@pytest.mark.parametrize(
    ("ours", "theirs", "lines"),
    [
        (text("1", "x", "3", "4", "5", "6"), text("1", "y", "3", "4", "5", "6"), ((2, 2),)),
        (text("1", "x", "3", "4", "5", "6"), text("1", "2", "y", "4", "5", "6"), ((2, 3),)),
        (text("1", "3", "4", "5", "6"), text("1", "y", "3", "4", "5", "6"), ((2, 2),)),
        (BASE + b"7", BASE + b"8", ((7, 7),)),
        (b"", text("1", "2", "3", "4", "5", "x"), ((1, 1),)),
    ],
)
def test_edits_that_touch_clash(
    ours: bytes, theirs: bytes, lines: tuple[tuple[int, int], ...]
) -> None:
    assert merge_text(BASE, ours, theirs) == LineClashes(lines)


def merged_by_git(base: bytes, ours: bytes, theirs: bytes, folder: Path) -> bytes | None:
    for name, content in (("base", base), ("ours", ours), ("theirs", theirs)):
        (folder / name).write_bytes(content)
    done = subprocess.run(
        ["git", "merge-file", "-p", "-q", "ours", "base", "theirs"], cwd=folder, capture_output=True
    )
    return done.stdout if done.returncode == 0 else None


EDITS = st.lists(
    st.tuples(st.integers(0, 19), st.sampled_from(["drop", "change", "insert"])), max_size=4
)


def edited(lines: list[bytes], edits: list[tuple[int, str]], mark: bytes) -> bytes:
    result = list[bytes]()
    chosen = dict(edits)
    for number, line in enumerate(lines):
        match chosen.get(number):
            case "drop":
                continue
            case "change":
                result.append(line.strip() + mark + b"\n")
            case "insert":
                result.extend([mark + b" %d\n" % number, line])
            case _:
                result.append(line)
    return b"".join(result)


@settings(max_examples=60, deadline=None)
@given(EDITS, EDITS)
def test_what_git_merges_we_merge_alike(
    tmp_path_factory: pytest.TempPathFactory,
    ours: list[tuple[int, str]],
    theirs: list[tuple[int, str]],
) -> None:
    lines = [b"line %d\n" % number for number in range(20)]
    sides = b"".join(lines), edited(lines, ours, b"ours"), edited(lines, theirs, b"theirs")
    merged = merge_text(*sides)
    by_git = merged_by_git(*sides, tmp_path_factory.mktemp("merge"))
    assert (None if isinstance(merged, LineClashes) else merged) == by_git
