"""Sets that name one file by different paths overlap."""

import json
import os
import time
from pathlib import Path

import pytest
from msgspec import Raw

from stretto.globs.glob import Glob, overlap, parse_glob, text_of
from stretto.globs.pattern import ANY, Pattern
from stretto.plan.model import Plan, decode_plan, encode_plan
from stretto.plan.prepare import RunPolicy, claimed_sets, prepare
from stretto.workspaces.links import EVERYTHING, aliases, aliases_of_sets, ignores_case
from support.scheduling import plan_of
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


CLAIMED_TREE: Tree = {"src/a.py": b"", "docs/b.md": b"", "link": "src"}


def writer(id: str, *globs: str, mode: str = "shared") -> dict[str, object]:
    return {"id": id, "posture": "writer", "write_set": list(globs), "workspace_mode": mode}


def reader(id: str, *globs: str) -> dict[str, object]:
    return {"id": id, "posture": "read_only", "read_set": list(globs)}


def plan(*steps: dict[str, object]) -> Plan:
    told = {"agent": "worker", "task": "go", "depends_on": []}
    return plan_of(json.dumps({"name": "any", "steps": [{**told, **step} for step in steps]}))


def with_aliases(plan: Plan, workspace: Path, is_case_ignored: bool | None = None) -> Plan:
    sets = claimed_sets(plan)
    found = aliases_of_sets(workspace, sets, is_case_ignored=is_case_ignored)
    return prepare(plan, RunPolicy(), found)


def conflict(plan: Plan) -> bool:
    one, other = plan.steps
    return one.claims.conflicts(other.claims)


def test_two_writers_of_one_file_by_two_names_conflict(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path, CLAIMED_TREE)
    for mode in ("shared", "isolated"):
        two = plan(writer("a", "link/a.py", mode=mode), writer("b", "src/**"))
        assert not conflict(two)
        claimed = with_aliases(two, workspace)
        assert conflict(claimed)
        assert claimed.steps[0].write_set == ("link/a.py",)
        assert claimed.steps[0].write_aliases == ("src/a.py",)


def test_a_reader_through_a_link_minds_a_shared_writer_but_no_isolated_one(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path, CLAIMED_TREE)
    shared = with_aliases(plan(writer("a", "src"), reader("b", "link/*.py")), workspace)
    assert conflict(shared)
    assert shared.steps[1].read_aliases == ("src/*.py",)
    isolated = plan(writer("a", "src", mode="isolated"), reader("b", "link/*.py"))
    assert not conflict(with_aliases(isolated, workspace))


def test_where_nobody_writes_the_workspace_is_not_looked_at(tmp_path: Path) -> None:
    readers = plan(reader("a", "link"), reader("b", "src"))
    assert with_aliases(readers, tmp_path / "missing") == readers


def test_a_workspace_without_links_leaves_the_steps_as_they_are(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path, {"src/a.py": b""})
    two = plan(writer("a", "src"), reader("b", "docs/**"))
    assert with_aliases(two, workspace, is_case_ignored=False) == two


def test_a_resumed_run_claims_the_same_and_claiming_again_changes_nothing(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path, CLAIMED_TREE)
    claimed = with_aliases(plan(writer("a", "link"), reader("b", "SRC/A.py")), workspace)
    stored = json.loads(bytes(encode_plan(claimed)))
    (workspace / "link").unlink()  # what the run found at its start is what counts
    resumed = decode_plan(Raw(json.dumps(stored)))
    assert resumed == claimed
    assert [step.claims for step in resumed.steps] == [step.claims for step in claimed.steps]
    (workspace / "link").symlink_to("src")
    assert with_aliases(resumed, workspace) == claimed
    (workspace / "link").unlink()
    again = with_aliases(resumed, workspace)
    assert again.steps[0].write_aliases == ()
    assert again.steps[0].claims == plan(writer("a", "link")).steps[0].claims


def test_a_plan_stored_before_there_were_aliases_can_be_read(tmp_path: Path) -> None:
    two = plan(writer("a", "src"), reader("b", "docs"))
    stored = json.loads(bytes(encode_plan(two)))
    assert not any("aliases" in key for step in stored["steps"] for key in step)
    assert decode_plan(Raw(json.dumps(stored))) == two


def test_many_steps_look_at_a_large_workspace_once(tmp_path: Path) -> None:
    for number in range(2_000):
        (tmp_path / "src" / f"d{number % 50}" / f"e{number}").mkdir(parents=True)
    (tmp_path / "src" / "l").symlink_to("../docs")
    steps = [writer(f"w{n}", f"src/**/f{n}.py", f"src/d{n % 50}/*/g.py") for n in range(300)]
    many = plan(*steps)
    begun = time.process_time()  # of our own: others may keep us waiting
    claimed = with_aliases(many, tmp_path)
    assert time.process_time() - begun < 5
    assert claimed.steps[7].write_aliases == ("docs/**/f7.py",)
