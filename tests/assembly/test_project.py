"""One project as one user sees it: recipes in every form, models, secrets, warnings about copies."""

from pathlib import Path

import pytest

from stretto.assembly.project import Project
from stretto.config.settings import WorkspaceSettings
from stretto.problems.errors import InvalidRecipe, InvalidUsage, NotFound, PermissionDenied
from stretto.recipe.model import Budget
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
