"""What `.gitignore` leaves out: the same as git, which is asked."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from stretto.workspaces.file_list import (
    DEFAULT_LIMITS,
    Selection,
    WorkspaceLimits,
    WorkspaceTooLarge,
    list_workspace,
)
from stretto.workspaces.git import MOST_BYTES, MOST_RULES, read_rules
from stretto.workspaces.paths import PathRefused
from stretto.workspaces.rooted_dir import RootedDir
from support.trees import git, write_tree

PATHS = [
    "a",
    "b.log",
    "keep.log",
    "a.py",
    "a b",
    "x]y",
    "#hash",
    "!bang",
    "d/a",
    "d/b.log",
    "d/keep.log",
    "d/e/a",
    "d/e/f/a.py",
    "d/e/f/keep.log",
    "build/out.o",
    "build/keep.log",
    "src/build/out.o",
    "src/b1.txt",
    "src/b2.txt",
    "src/bb.txt",
]


def listed(root: Path) -> set[str]:
    with RootedDir(root) as rooted:
        listing = list_workspace(rooted, Selection(), DEFAULT_LIMITS)
    return {found.path for found in listing.files}


def listed_by_git(root: Path) -> set[str]:
    out = git(
        root, "-c", "core.excludesFile=/dev/null", "ls-files", "-z", "-o", "--exclude-standard"
    )
    return {path.decode() for path in out.split(b"\0") if path}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_tree(tmp_path_factory.mktemp("tree"), dict.fromkeys(PATHS, b""))
    git(root, "init", "-q")
    return root


RULES = [
    "*.log\n!keep.log",
    "build/",
    "/build",
    "build/*\n!build/keep.log",
    "build/\n!build/keep.log",
    "a",
    "/a",
    "d/a",
    "d/**",
    "**/a",
    "d/**/a",
    "d/**/a.py",
    "**/build/**",
    "**",
    "*",
    "*\n!*/\n!*.py",
    "# no rule\n\\#hash\n\\!bang",
    "a\\ b",
    "a b   ",
    "a b\\ ",
    "src/b[0-9].txt",
    "src/b[!1].txt",
    "src/b[^1].txt",
    "src/b[[:digit:]].txt",
    "src/b[]b].txt",
    "x[]]y",
    "x\\]y",
    "src/b?.txt",
    "s*c/b*",
    "src*",
    "d*/a",
    "d/e*",
    "e/",
    "f/a.py",
    "e/f",
    "/d/*\n!/d/e",
    "\\",
    "[",
    "a[",
    "[a[",
    "[]",
    "src/b[[1].txt",
    "x[\\]]y",
    "a \\   ",
    "b.log\r\n",
    "!a",
    "/",
    "//a",
    "***",
    "a***",
    "***/a",
    "d/***",
]


@pytest.mark.parametrize("rules", RULES)
def test_a_rule_leaves_out_what_git_leaves_out(tree: Path, rules: str) -> None:
    (tree / ".gitignore").write_bytes(rules.encode())
    assert listed(tree) == listed_by_git(tree)


PARTS = st.sampled_from(
    [
        "a",
        "b",
        "*",
        "**",
        "?",
        "/",
        "/",
        "[ab]",
        "[!a]",
        ".log",
        "keep",
        "build",
        "d",
        "e",
        "!",
        "src",
    ]
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.lists(PARTS, min_size=1, max_size=5).map("".join), min_size=1, max_size=4))
def test_any_rules_leave_out_what_git_leaves_out(tree: Path, rules: list[str]) -> None:
    # git compares the letters before the first wildcard apart, so `a**/b` is `a` and then `**/b` to it,
    # against its own documentation. We follow the documentation, and copy more rather than less.
    assume(not any(re.match(r"!?/?[^*?\[\\\\]*[^*?\[/!\\\\]\*\*", rule) for rule in rules))
    (tree / ".gitignore").write_text("\n".join(rules))
    assert listed(tree) == listed_by_git(tree)


def test_the_rules_of_a_deeper_folder_come_last(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            ".gitignore": b"*.log\n/only-here\n",
            "a.log": b"",
            "only-here": b"",
            "d/.gitignore": b"!b.log\nlocal\n",
            "d/a.log": b"",
            "d/b.log": b"",
            "d/local": b"",
            "d/only-here": b"",
            "local": b"",
        },
    )
    git(tmp_path, "init", "-q")
    assert listed(tmp_path) == listed_by_git(tmp_path)


def test_folders_that_nobody_edits_are_left_out_unless_tracked_or_asked_for(tmp_path: Path) -> None:
    write_tree(tmp_path, {"node_modules/a.js": b"", "x/__pycache__/a.pyc": b"", "x/a.py": b""})
    assert listed(tmp_path) == {"x/a.py"}
    with RootedDir(tmp_path) as rooted:
        tracked = Selection(frozenset({"node_modules/a.js"}))
        files = list_workspace(rooted, tracked, DEFAULT_LIMITS).files
    assert {found.path for found in files} == {"node_modules/a.js", "x/a.py"}


def test_a_hostile_pattern_takes_no_time() -> None:
    rules = read_rules(b"*a" * 500 + b"b\n" + b"**/a/" * 200 + b"b\n", ".gitignore")
    began = time.process_time()  # of our own: others may keep us waiting
    assert rules.verdict("/".join(["a" * 200] * 20), is_folder=False) is None
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "line",
    [b"[" * MOST_BYTES, b"[" * (MOST_BYTES - 2) + b"\\]", b"a" + b" " * (MOST_BYTES - 2) + b"b"],
    ids=["unclosed", "closed by nothing", "blanks"],
)
def test_a_hostile_line_is_read_in_no_time(line: bytes) -> None:
    began = time.process_time()
    read_rules(line, ".gitignore")
    assert time.process_time() - began < 5


def test_too_many_rules_are_refused() -> None:
    for text in (b"a\n" * (MOST_RULES + 2), b"a" * (MOST_BYTES + 1)):
        with pytest.raises(PathRefused, match="more than"):
            read_rules(text, ".gitignore")


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        (WorkspaceLimits(files=3), "more than 3 files"),
        (WorkspaceLimits(bytes=3000), r"more than 2\.9 KiB.*'big' 2\.0 KiB"),
        (WorkspaceLimits(file_bytes=1500), r"'big/0' has 2\.0 KiB.* at most 1\.5 KiB"),
    ],
)
def test_a_workspace_past_a_limit_is_refused_with_its_sizes(
    tmp_path: Path, limits: WorkspaceLimits, says: str
) -> None:
    write_tree(tmp_path, {"big/0": b"x" * 2048, "a": b"", "b": b"", "c": b"x" * 1024})
    with RootedDir(tmp_path) as rooted, pytest.raises(WorkspaceTooLarge, match=says) as caught:
        list_workspace(rooted, Selection(), limits)
    assert ".gitignore" in caught.value.hint
