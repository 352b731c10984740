"""Glob and Grep: what is found, in which order, and how much of it."""

import asyncio
import random
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings, strategies as st

from stretto.adapters.tools.files import Files
from stretto.adapters.tools.search import MOST_PATHS, glob, grep
from stretto.ports.tool import Tool
from stretto.vocabulary.json_value import Json
from support.toolbench import called, opened, reach_of


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "w"
    for path, text in {
        "b.py": "import os\nx = 1\ny = 2\n",
        "src/a.py": "def f():\n    return X\n",
        "src/deep/c.py": "x = 3\n",
        "src/deep/notes.md": "x marks\r\nthe spot\r\n",
        "secret/key.py": "x = 'hidden'\n",
        ".git/config": "x = git\n",
        ".hidden": "x\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, newline="")
    (root / "src" / "image.bin").write_bytes(b"x\0x")
    (root / "src" / "loop").symlink_to("..")
    (root / "src" / "key").symlink_to("../secret/key.py")
    return root


def test_a_glob_lists_what_it_covers_sorted_and_never_gits_own(workspace: Path) -> None:
    told = called(glob, reach_of(workspace), pattern="**/*.py")
    assert told.text.split("\n") == ["b.py", "secret/key.py", "src/a.py", "src/deep/c.py"]
    assert called(glob, reach_of(workspace), pattern="*.py").text == "b.py"
    assert called(glob, reach_of(workspace), pattern=".git/**").text == "No file matches."
    assert ".git" not in called(glob, reach_of(workspace), pattern="**").text


def test_a_glob_starts_from_a_folder(workspace: Path) -> None:
    told = called(glob, reach_of(workspace), pattern="*.{py,md}", path="src/deep")
    assert told.text.split("\n") == ["src/deep/c.py", "src/deep/notes.md"]
    told = called(glob, reach_of(workspace), pattern="**/*.py", path=str(workspace / "src"))
    assert told.text.split("\n") == ["src/a.py", "src/deep/c.py"]


def test_only_what_may_be_read_is_listed_and_searched(workspace: Path) -> None:
    reach = reach_of(workspace, read_set=("src/**",))
    assert called(glob, reach, pattern="**/*.py").text.split("\n") == ["src/a.py", "src/deep/c.py"]
    assert "hidden" not in called(grep, reach, pattern=".", output_mode="content").text
    told = called(glob, reach, pattern="**", path="secret")
    assert told.text == "No file matches."
    told = called(grep, reach, pattern="x", path="secret/key.py", output_mode="content")
    assert told.text == "Nothing matches."
    # Through a link neither.
    told = called(grep, reach, pattern="x", path="src/key", output_mode="content")
    assert "hidden" not in told.text
    assert called(glob, reach, pattern="**", path="src/loop/secret").text == "No file matches."


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("../*", "leaves the workspace"), ("[", "without its ']'"), ("/etc/*", "leaves the workspace"),
     ("{a,b", "without its '}'")],
)  # fmt: skip
def test_a_bad_glob_is_explained(workspace: Path, pattern: str, said: str) -> None:
    told = called(glob, reach_of(workspace), pattern=pattern)
    assert (told.verdict, said in told.text) == ("error", True)


@pytest.mark.parametrize("path", ["..", "/", ".git", "src/../.."])
@pytest.mark.parametrize("make", [glob, grep])
def test_no_search_starts_outside(
    workspace: Path, make: Callable[[Files], Tool], path: str
) -> None:
    assert called(make, reach_of(workspace), pattern="x", path=path).verdict == "refused"


def test_a_missing_folder_is_an_error(workspace: Path) -> None:
    assert called(glob, reach_of(workspace), pattern="*", path="none").verdict == "error"


def test_more_paths_than_a_model_can_use_are_cut_and_it_is_said(tmp_path: Path) -> None:
    for number in range(MOST_PATHS + 50):
        (tmp_path / f"{number:05}").touch()
    told = called(glob, reach_of(tmp_path), pattern="*")
    lines = told.text.split("\n")
    assert lines[0] == "00000"
    assert lines[-1] == "[only the first 1,000; there are more]"
    assert len(lines) == MOST_PATHS + 1


def test_grep_names_files_by_default(workspace: Path) -> None:
    told = called(grep, reach_of(workspace), pattern=r"x = \d")
    assert told.text.split("\n") == ["b.py", "src/deep/c.py"]


def test_grep_shows_lines_with_context(workspace: Path) -> None:
    told = called(
        grep, reach_of(workspace), pattern="^x = 1", output_mode="content", context=1, path="b.py"
    )
    assert told.text.split("\n") == ["b.py-1-import os", "b.py:2:x = 1", "b.py-3-y = 2"]


def test_lines_far_apart_are_separated(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("hit\n.\n.\n.\nhit\nhit\n")
    told = called(grep, reach_of(tmp_path), pattern="hit", output_mode="content", context=1)
    assert told.text.split("\n") == ["a:1:hit", "a-2-.", "--", "a-4-.", "a:5:hit", "a:6:hit"]


def test_grep_counts_filters_and_ignores_case(workspace: Path) -> None:
    reach = reach_of(workspace)
    told = called(grep, reach, pattern="X", output_mode="count", ignore_case=True, glob="*.py")
    assert told.text.split("\n") == ["b.py:1", "secret/key.py:1", "src/a.py:1", "src/deep/c.py:1"]
    assert called(grep, reach, pattern="X", glob="*.py").text == "src/a.py"
    told = called(grep, reach, pattern="x", glob="src/**/*.md")
    assert told.text == "src/deep/notes.md"


def test_a_pattern_may_go_over_line_ends_when_asked(workspace: Path) -> None:
    reach = reach_of(workspace)
    pattern = r"def f.*return"
    assert called(grep, reach, pattern=pattern).text == "Nothing matches."
    told = called(grep, reach, pattern=pattern, multiline=True, output_mode="content")
    assert told.text.split("\n") == ["src/a.py:1:def f():", "src/a.py:2:    return X"]


def test_the_end_of_a_windows_line_is_its_end(workspace: Path) -> None:
    told = called(grep, reach_of(workspace), pattern="spot$", output_mode="content")
    assert told.text == "src/deep/notes.md:2:the spot"


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(unclosed", "missing )"),
        ("(?=x)y", "look-ahead and look-behind are not supported"),
        (r"(a)\1", "back-references are not supported"),
        ("(?:(?:(?:x{9999}){9999}){9999}){9999}", "a repetition may count to 1,000"),
        (r"\pL{1000}", "too large"),
    ],
)
def test_a_pattern_that_re2_does_not_know_is_explained(
    workspace: Path, pattern: str, said: str
) -> None:
    told = called(grep, reach_of(workspace), pattern=pattern)
    assert told.verdict == "error"
    assert "not a regular expression that RE2 knows" in told.text
    assert said in told.text


@pytest.mark.parametrize(
    ("content", "pattern", "told"),
    [
        ("", "^$", "Nothing matches."),
        ("\n", "^$", "a:1:"),
        ("x\n\n", "^$", "a:2:"),
        ("x\n", "^$", "Nothing matches."),
        ("a\nb", r"a\sb", "Nothing matches."),
        ("a\nb", "[^x]b", "Nothing matches."),
        ("a\nab\nb", "b$", "a:2:ab\na:3:b"),
        ("caf\u00e9", r"f.$", "a:1:caf\u00e9"),
        ("a" * 600, "a", f"a:1:{'a' * 500} […]"),
    ],
)
def test_a_pattern_sees_one_line_at_a_time(
    tmp_path: Path, content: str, pattern: str, told: str
) -> None:
    (tmp_path / "a").write_text(content, newline="")
    assert called(grep, reach_of(tmp_path), pattern=pattern, output_mode="content").text == told


@given(
    st.text("ab\n", max_size=30),
    st.sampled_from(["a", "^a", "b$", "ab|ba", "^$", "a*", "(a|b)+$", r"\bab", "^[^b]*$"]),
)
@settings(max_examples=60, deadline=None)
def test_the_lines_are_those_that_pythons_own_matcher_finds(content: str, pattern: str) -> None:
    lines = content.split("\n")[:-1] if content.endswith("\n") else content.split("\n")
    hits = [n for n, line in enumerate(lines, 1) if content and re.search(pattern, line)]
    with TemporaryDirectory() as folder:
        (Path(folder) / "a").write_text(content)
        told = called(grep, reach_of(Path(folder)), pattern=pattern, output_mode="content").text
    assert [int(line.split(":")[1]) for line in told.split("\n") if ":" in line] == hits


def test_matches_that_share_lines_show_each_line_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a1\nb a2\n.\nb\n.\n")
    request: dict[str, Json] = {"pattern": r"a\d.*?b", "multiline": True}
    told = called(grep, reach_of(tmp_path), output_mode="content", **request)
    assert told.text.split("\n") == ["a:1:a1", "a:2:b a2", "a:3:.", "a:4:b"]
    assert called(grep, reach_of(tmp_path), output_mode="count", **request).text == "a:4"


def test_too_many_hits_are_cut_and_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("hit\n" * 10_000)
    (tmp_path / "b").write_text("hit\n")
    told = called(grep, reach_of(tmp_path), pattern="hit", output_mode="content", head_limit=5)
    assert told.text.split("\n") == [
        *(f"a:{n}:hit" for n in range(1, 6)),
        "[there is more: raise head_limit, or narrow the search]",
    ]


def test_a_pattern_that_would_take_python_years_is_answered(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("hit\n")
    (tmp_path / "b").write_text("a" * 60 + "!\n")
    told = called(grep, reach_of(tmp_path), pattern="hit|(a+)+$", output_mode="content")
    assert told.text == "a:1:hit"


def test_a_search_ends_at_its_deadline_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("hit\n")
    told = called(partial(grep, timeout_seconds=0.0), reach_of(tmp_path), pattern="hit")
    assert told.text == "[stopped after 0 s: narrow the search, or use a simpler pattern]"


# RE2 must simulate this one state by state, which is the slowest that it ever gets.
SLOW = "(a|b)*a(a|b){200}c"


def slow_line(size: int) -> str:
    return "".join(random.Random(1).choices("ab", k=size))


@pytest.mark.parametrize(
    ("multiline", "note"), [(False, "of longer lines only"), (True, "of a only the first")]
)
def test_a_search_of_a_long_line_is_bounded_before_it_starts(
    tmp_path: Path, multiline: bool, note: str
) -> None:
    (tmp_path / "a").write_text(f"{slow_line(4_000_000)}\n")
    (tmp_path / "b").write_text("a" * 300 + "c\n")
    began = time.process_time()
    told = called(grep, reach_of(tmp_path), pattern=SLOW, multiline=multiline)
    assert time.process_time() - began < 15  # all of it would take twenty
    assert told.text.startswith("b\n[")
    assert note in told.text


def test_a_file_with_line_ends_of_windows_that_is_too_large_is_told_as_cut(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x\r\n" * 1_700_000 + b"NEEDLE\r\n")
    told = called(grep, reach_of(tmp_path), pattern="NEEDLE")
    assert "of a only the first" in told.text


def test_other_tasks_go_on_during_a_search_and_cancelling_ends_it(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number}").write_text(f"{slow_line(400_000)}\n")

    async def cancel() -> tuple[int, float]:
        with opened(grep, reach_of(tmp_path)) as tool:
            task = asyncio.create_task(tool.call({"pattern": SLOW}, "k"))
            turns = 0
            for _ in range(30):
                await asyncio.sleep(0.01)
                turns += not task.done()
            began = time.monotonic()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            return turns, time.monotonic() - began

    turns, seconds = asyncio.run(cancel())
    assert turns == 30
    assert seconds < 30  # all files would take longer than its deadline
