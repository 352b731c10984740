"""Plans that claim files, not only names."""

import json
import time
from pathlib import Path

from msgspec import Raw

from stretto.plan.codec import decode_plan, encode_plan
from stretto.plan.model import Plan
from stretto.plan.prepare import RunPolicy, claimed_sets, prepare
from stretto.workspaces.aliases import aliases_of_sets
from support.scheduling import plan_of
from support.trees import Tree, write_tree

TREE: Tree = {"src/a.py": b"", "docs/b.md": b"", "link": "src"}


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
    workspace = write_tree(tmp_path, TREE)
    for mode in ("shared", "isolated"):
        two = plan(writer("a", "link/a.py", mode=mode), writer("b", "src/**"))
        assert not conflict(two)
        claimed = with_aliases(two, workspace)
        assert conflict(claimed)
        assert claimed.steps[0].write_set == ("link/a.py",)
        assert claimed.steps[0].write_aliases == ("src/a.py",)


def test_a_reader_through_a_link_minds_a_shared_writer_but_no_isolated_one(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path, TREE)
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
    workspace = write_tree(tmp_path, TREE)
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
