"""One project as one user sees it: recipes in every form, models, secrets, warnings about copies."""

import os
import time
from pathlib import Path

import pytest
from msgspec import structs

from stretto.assembly.project import Project
from stretto.config.settings import WorkspaceSettings
from stretto.plan.model import Plan
from stretto.problems.errors import InvalidRecipe, InvalidUsage, NotFound, PermissionDenied
from stretto.recipe.model import Budget
from stretto.vocabulary.names import AgentId
from support.assembled import settings_of

RECIPE = "name: r\nsteps: [{id: a, subagent: writer, prompt: go}]\n"
WRITER = """
name: w
steps:
  - id: a
    subagent: worker
    prompt: go
    posture: writer
    write_set: [build/**]
    workspace_mode: isolated
"""


def project_in(folder: Path, **changed: object) -> Project:
    return Project(
        environ={"A_SECRET_KEY": "hidden-value-1"}, settings=settings_of(folder, **changed)
    )


def test_a_recipe_is_read_from_whatever_names_it(tmp_path: Path) -> None:
    project = project_in(tmp_path)
    file = tmp_path / "r.yaml"
    file.write_text(RECIPE)
    content = {"name": "d", "steps": [{"id": "a", "subagent": "writer", "prompt": "go"}]}
    names = [
        project.read(source)[0].name
        for source in (RECIPE, file, str(file), content, '{"name": "j", "steps": []}')
    ]
    assert names == ["r", "r", "r", "d", "j"]
    read, _ = project.read(RECIPE)
    assert project.read(read) == (read, ())


def test_a_saved_recipe_is_found_by_name_and_a_typo_is_answered(tmp_path: Path) -> None:
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "mine.yaml").write_text(RECIPE.replace("name: r", "name: mine"))
    project = project_in(tmp_path)
    assert project.read("mine")[0].name == "mine"
    with pytest.raises(NotFound) as caught:
        project.read("mnie")
    assert caught.value.hint == "did you mean 'mine'?"


def test_a_recipe_that_shadows_a_bundled_one_unasked_is_passed_over_with_a_notice(
    tmp_path: Path,
) -> None:
    (tmp_path / "workflows").mkdir()
    text = RECIPE.replace("name: r", "name: research-and-brief")
    (tmp_path / "workflows" / "research-and-brief.yaml").write_text(text)
    recipe, (notice,) = project_in(tmp_path, may_shadow=False).read("research-and-brief")
    assert len(recipe.steps) > 1
    assert "research-and-brief.yaml is not used" in notice
    recipe, notices = project_in(tmp_path).read("research-and-brief")
    assert (len(recipe.steps), notices) == (1, ())


def test_values_that_are_not_json_are_refused(tmp_path: Path) -> None:
    for content in ({"name": {1, 2}}, {"name": float("nan")}, {1: object()}):
        with pytest.raises(InvalidUsage, match="not JSON"):
            project_in(tmp_path).read(content)  # type: ignore[arg-type]


def test_a_plan_has_the_budget_of_the_settings_and_its_problems_are_an_error(
    tmp_path: Path,
) -> None:
    project = project_in(tmp_path, budget=Budget(usd=2.0))
    plan, _ = project.open_plan(RECIPE)
    assert plan.budget == Budget(usd=2.0)
    with pytest.raises(InvalidRecipe, match="1 problem"):
        project.open_plan("name: x\nsteps: []\n")


def test_the_script_of_a_model_is_named_by_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    project = project_in(tmp_path, model="scripted:replies.yaml")
    absolute = f"scripted:{tmp_path.resolve() / 'replies.yaml'}"
    assert project.model(None) == absolute
    assert project.model("openai:x") == "openai:x"
    assert project.workspace(absolute, project.open_plan(RECIPE)[0]) == ""
    assert project_in(tmp_path, model="openai:y").model(None) is None


def test_what_is_journaled_holds_no_secret(tmp_path: Path) -> None:
    project = project_in(tmp_path)
    plan, _ = project.open_plan(RECIPE.replace("prompt: go", "prompt: use hidden-value-1"))
    start = project.start(plan, {"x": ["hidden-value-1"]}, None)
    assert "hidden-value-1" not in repr(start.plan)
    assert start.inputs == {"x": ["[redacted]"]}
    assert start.project == start.workspace == str(tmp_path)


def test_a_prepared_plan_has_the_users_permission(tmp_path: Path) -> None:
    project = project_in(tmp_path)
    plan, _ = project.open_plan(WRITER)
    assert [step.is_gated for step in project.prepare(plan, None, "ask").steps] == [True]
    with pytest.raises(PermissionDenied):
        project.prepare(plan, None, "read_only")


def test_what_the_copy_of_a_writer_will_lack_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "x.txt").write_text("x")
    (tmp_path / "other" / ".git").mkdir(parents=True)
    (tmp_path / "other" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    project = project_in(tmp_path)
    plan, _ = project.open_plan(WRITER.replace("[build/**]", "['**/*.txt']"))
    warned = project.with_copy_warnings(plan, None)
    said = [each.message for each in warned.warnings if each.code == "RCP905"]
    assert [("build" in each, "other" in each) for each in said] == [(True, False), (False, True)]
    # Made again, as for a stored plan, they do not add up.
    assert project.with_copy_warnings(warned, None).warnings == warned.warnings
    assert project.with_copy_warnings(plan, "scripted:x").warnings == plan.warnings


def test_a_folder_that_cannot_be_carried_is_a_warning(tmp_path: Path) -> None:
    copies = WorkspaceSettings(carry=("deps",))
    project = project_in(tmp_path, workspace=copies, sandbox="off")
    plan, _ = project.open_plan(WRITER)
    said = [each.message for each in project.with_copy_warnings(plan, None).warnings]
    assert any("of workspace.carry is not a folder of this workspace" in each for each in said)
    assert any("the sandbox is off" in each for each in said)


def let_files_rest() -> None:
    """Until a change of theirs would be told from the one before by its time."""
    time.sleep(0.12)


def test_a_plan_is_made_anew_once_what_it_was_made_of_changes(tmp_path: Path) -> None:
    settings = structs.replace(settings_of(tmp_path), agents_dirs=(tmp_path / "agents",))
    project = Project(environ={}, settings=settings)
    recipe, agent = tmp_path / "workflows" / "r.yaml", tmp_path / "agents" / "scribe.md"
    for file in (recipe, agent):
        file.parent.mkdir()
    recipe.write_text("name: r\nsteps: [{id: a, subagent: scribe, prompt: one}]\n")
    agent.write_text("Write.\n")
    let_files_rest()

    def plan() -> Plan:
        entry = project.saved("r")
        assert entry is not None
        return project.open_plan(entry.recipe)[0]

    first = plan()
    assert plan() is first
    agent.write_text("Sing.\n")
    let_files_rest()
    second = plan()
    assert second.agents[AgentId("scribe")].prompt.text == "Sing."
    assert plan() is second
    recipe.write_text("name: r\nsteps: [{id: a, subagent: scribe, prompt: two}]\n")
    assert "two" in str(plan().steps[0].work)
    recipe.unlink()
    assert project.saved("r") is None


def test_a_file_that_has_changed_just_now_is_read_again_whatever_its_time(tmp_path: Path) -> None:
    settings = structs.replace(settings_of(tmp_path), agents_dirs=(tmp_path / "agents",))
    project = Project(environ={}, settings=settings)
    agent, recipe = tmp_path / "agents" / "scribe.md", tmp_path / "workflows" / "r.yaml"
    for file in (agent, recipe):
        file.parent.mkdir()
    now = time.time()
    for prompt in ("Sing.", "Rest."):
        agent.write_text(f"{prompt}\n")
        recipe.write_text(f"name: r\nsteps: [{{id: a, subagent: scribe, prompt: {prompt}}}]\n")
        for file in (agent, recipe):
            os.utime(file, (now, now))  # two changes within one tick
        assert project.catalog().agents[AgentId("scribe")].prompt == prompt
        entry = project.saved("r")
        assert entry is not None
        assert prompt in entry.recipe.source.text


def test_a_file_that_a_copying_program_wrote_with_its_old_time_is_read_again(
    tmp_path: Path,
) -> None:
    project = project_in(tmp_path)
    recipe = tmp_path / "workflows" / "r.yaml"
    recipe.parent.mkdir()
    for prompt in ("one", "two"):  # the same size, the same time of the last write, the same file
        recipe.write_text(f"name: r\nsteps: [{{id: a, subagent: writer, prompt: {prompt}}}]\n")
        os.utime(recipe, (1_000, 1_000))
        let_files_rest()
        entry = project.saved("r")
        assert entry is not None
        assert prompt in entry.recipe.source.text


def test_a_recipe_that_uses_another_one_sees_it_change(tmp_path: Path) -> None:
    project = project_in(tmp_path)
    outer, inner = tmp_path / "workflows" / "outer.yaml", tmp_path / "parts" / "inner.yaml"
    for file in (outer, inner):
        file.parent.mkdir()
    outer.write_text("name: outer\nsteps: [{id: a, workflow: ../parts/inner.yaml}]\n")
    for name in ("one", "two"):
        inner.write_text(f"name: inner\nsteps: [{{id: {name}, subagent: writer, prompt: go}}]\n")
        let_files_rest()
        entry = project.saved("outer")
        assert entry is not None
        plan, _ = project.open_plan(entry.recipe)
        assert [step.id for step in plan.steps] == ["a", f"a/{name}"]


def test_no_run_starts_in_a_folder_that_no_journal_can_name(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff"))
    folder.mkdir()
    project = project_in(folder)
    plan, _ = project.open_plan(RECIPE)
    with pytest.raises(InvalidUsage, match="name is not UTF-8"):
        project.start(plan, {}, None)
