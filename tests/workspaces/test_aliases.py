"""Other names of the files that globs name, in workspaces with links and without case."""

import os
import time
from pathlib import Path

import pytest

from stretto.globs.glob import Glob, overlap, parse_glob, text_of
from stretto.globs.pattern import ANY, Pattern
from stretto.workspaces.aliases import EVERYTHING, aliases
from stretto.workspaces.links import ignores_case
from support.trees import Tree, write_tree

TREE: Tree = {
    "src/a.py": b"",
    "src/deep/b.py": b"",
    "docs/c.md": b"",
    "lib/d.py": b"",
    "link": "src",
    "chain": "link",
    "one.py": "src/a.py",
    "src/d": "../docs",
    "lib/self": ".",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "work", TREE)


def exactly(workspace: Path, *globs: str) -> set[str]:
    return set(aliases(workspace, globs, is_case_ignored=False))


@pytest.mark.parametrize(
    ("glob", "others"),
    [
        ("src/a.py", set()),
        ("link/a.py", {"src/a.py"}),
        ("link/new/x.py", {"src/new/x.py"}),
        ("link/*.py", {"src/*.py"}),
        ("link", {"src", "docs"}),
        ("chain/**/b.py", {"src/**/b.py", "docs/**/b.py"}),
        ("one.py", {"src/a.py"}),
        ("*.py", {"src/a.py"}),
        ("{one,two}.py", {"src/a.py"}),
        ("src/**", {"docs"}),
        ("src/deep/**", set()),
        ("src/*", set()),
        ("src/*/c.md", {"docs/c.md"}),
        ("**/d/*.md", {"docs/*.md"}),
        ("**/*.md", set()),
        ("lib/self/self/d.py", {"lib/self/d.py", "lib/d.py"}),
        ("**", set()),
        ("nothing/here", set()),
    ],
)
def test_what_a_link_leads_to_is_named_by_its_own_path(
    workspace: Path, glob: str, others: set[str]
) -> None:
    assert exactly(workspace, glob) == others


def test_a_link_in_a_circle_or_out_of_the_workspace_leads_to_no_file(tmp_path: Path) -> None:
    tree: Tree = {"a": "b", "b": "a", "out": "/etc", "up": "..", "me": "me"}
    workspace = write_tree(tmp_path / "work", tree)
    assert exactly(workspace, "a", "b/x", "out/passwd", "up/x", "me", "*", "*/x") == set()


def test_a_link_that_leads_nowhere_yet_is_named_by_what_would_be_made(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "work", {"new.py": "src/later.py"})
    assert exactly(workspace, "new.py") == {"src/later.py"}


def test_a_link_by_its_absolute_path_and_one_out_and_back_are_followed(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "work", {"src/a.py": b""})
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "back").symlink_to(workspace / "src")
    (workspace / "out").symlink_to(tmp_path / "elsewhere")
    (workspace / "whole").symlink_to(workspace / "src")
    assert exactly(workspace, "whole/a.py") == {"src/a.py"}
    assert exactly(workspace, "out/back/a.py") == {"src/a.py"}


def test_a_workspace_that_is_reached_through_a_link_is_the_same(
    tmp_path: Path, workspace: Path
) -> None:
    (tmp_path / "way").symlink_to(workspace)
    assert exactly(tmp_path / "way", "link/*.py") == {"src/*.py"}


def test_names_that_mean_something_in_a_glob_are_written_as_plain_names(tmp_path: Path) -> None:
    odd = ("a*b", "{x}", "[y]", "~z", "c:", "q?")
    tree: Tree = {f"{name}/f": b"" for name in odd} | {
        f"l{at}": name for at, name in enumerate(odd)
    }
    workspace = write_tree(tmp_path / "work", tree)
    for at, name in enumerate(odd):
        (said,) = aliases(workspace, [f"l{at}/*"], is_case_ignored=False)
        glob = parse_glob(said)
        assert isinstance(glob, Glob)
        assert glob.matches(f"{name}/f")
        assert not glob.matches(f"{name}x/f")
        assert not glob.matches("aab/f")


def test_names_that_no_glob_can_hold_are_covered_all_the_same(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "work", {"a\\b\n/f": b"", "l": "a\\b\n"})
    (said,) = aliases(workspace, ["l/f"], is_case_ignored=False)
    glob = parse_glob(said)
    assert isinstance(glob, Glob)
    assert glob.matches("a\\b\n/f")


def test_a_name_composed_otherwise_on_disk_is_the_same_name(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "work", {"src/a": b"", "e\u0301": "src"})
    assert exactly(workspace, "\u00e9/a") == {"src/a"}


def test_folders_that_nobody_edits_are_looked_into_only_where_a_glob_names_them(
    tmp_path: Path,
) -> None:
    tree: Tree = {"packages/x/a.js": b"", "web/node_modules/x": "../../packages/x"}
    workspace = write_tree(tmp_path / "work", tree)
    assert exactly(workspace, "web/**") == set()
    assert exactly(workspace, "web/node_modules/**") == {"packages/x"}
    assert exactly(workspace, "web/node_modules/x/*.js") == {"packages/x/*.js"}


def test_where_there_is_too_much_to_look_at_everything_is_claimed(workspace: Path) -> None:
    assert aliases(workspace, ["src/**"], is_case_ignored=False, most_looked_at=3) == EVERYTHING
    # What is named plainly needs no looking around.
    few = aliases(workspace, ["link/a.py"], is_case_ignored=False, most_looked_at=0)
    assert few == ("src/a.py",)


def test_many_links_into_each_other_take_no_time(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    for number in range(60):
        folder = workspace / f"d{number}"
        folder.mkdir(parents=True)
        for other in range(60):
            (folder / f"l{other}").symlink_to(f"../d{other}")
    begun = time.process_time()  # of our own: others may keep us waiting
    found = aliases(workspace, ["d0/**/*/*/x.py", "d1/l2/l3/l4/*.md"], is_case_ignored=False)
    assert time.process_time() - begun < 5
    assert found == EVERYTHING or "d4/*.md" in found


def test_a_folder_nested_too_deeply_is_claimed_whole(tmp_path: Path) -> None:
    deep = tmp_path / "work" / "/".join(["d"] * 200)
    deep.mkdir(parents=True)
    assert aliases(tmp_path / "work", ["d/**/x"], is_case_ignored=False) == EVERYTHING


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SRC/a.py", "src/A.PY"),
        ("Src/*.PY", "sRC/new.py"),
        ("LINK/a.py", "src/A.py"),
        ("src/[!a].py", "SRC/B.PY"),
        ("src/[A-Z].py", "src/b.py"),
        ("Straße/x", "STRASSE/X"),
        ("stra?e/x", "STRASSE/X"),
        ("src/*/C.md", "DOCS/c.MD"),
    ],
)
def test_where_case_does_not_count_two_spellings_of_one_file_overlap(
    workspace: Path, one: str, other: str
) -> None:
    def globs(text: str, is_case_ignored: bool) -> list[Glob]:
        said = (text, *aliases(workspace, [text], is_case_ignored=is_case_ignored))
        return [glob for glob in map(parse_glob, said) if isinstance(glob, Glob)]

    def meet(is_case_ignored: bool) -> bool:
        theirs = globs(other, is_case_ignored)
        return any(overlap(a, b) for a in globs(one, is_case_ignored) for b in theirs)

    assert meet(is_case_ignored=True)
    assert not meet(is_case_ignored=False)


def test_where_case_does_not_count_other_files_still_differ(workspace: Path) -> None:
    found = aliases(workspace, ["Lib/*.PY"], is_case_ignored=True)
    assert found == ("lib/*.py",)


def test_whether_case_counts_is_asked_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "Probe").mkdir()
    truth = os.path.exists(tmp_path / "pROBE")
    assert ignores_case(tmp_path) is truth
    assert ignores_case(tmp_path / "Probe") is truth  # empty: by its own name
    assert ignores_case(tmp_path / "missing") is False


def test_two_hard_links_that_differ_by_case_do_not_fool_the_probe(tmp_path: Path) -> None:
    folder = tmp_path / "Work"
    folder.mkdir()
    (folder / "a").write_text("")
    if (folder / "A").exists():
        pytest.skip("this disk ignores case")
    os.link(folder / "a", folder / "A")
    assert ignores_case(folder) is False


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (("src", ANY), "src"),
        ((ANY,), "**"),
        (("src", ANY, "a"), "src/**/a"),
        (("~x", ANY), "[~]x/**"),
        (("c:", "d", ANY), "[c]:/d/**"),
    ],
)
def test_a_pattern_is_written_so_that_it_reads_the_same(pattern: Pattern, text: str) -> None:
    assert text_of(pattern) == text
    glob = parse_glob(text)
    assert isinstance(glob, Glob)
    names = "/".join(part for part in pattern if isinstance(part, str))
    assert glob.matches(names)
