"""Inputs of type file_path name files of the workspace."""

import pytest

from stretto.assembly.project import finder_in
from stretto.plan.inputs import Misfit, bind, convert
from stretto.recipe.model import Input


@pytest.fixture
def workspace(tmp_path):
    inside = tmp_path / "work"
    (inside / "docs").mkdir(parents=True)
    (inside / "docs" / "a.md").write_text("a")
    (tmp_path / "secret").write_text("s")
    (inside / "out").symlink_to(tmp_path / "secret")
    (inside / "in").symlink_to(inside / "docs" / "a.md")
    (inside / "loop").symlink_to(inside / "loop")
    return inside


FILE = Input(name="file", at=(), type="file_path")


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("docs/a.md", "docs/a.md"),
        ("./docs/../docs/a.md", "docs/a.md"),
        ("in", "docs/a.md"),
    ],
)
def test_a_file_in_the_workspace_is_its_path(workspace, given, path):
    assert convert(FILE, given, finder_in(workspace)) == path


def test_a_folder_is_no_file(workspace):
    misfit = convert(FILE, "docs", finder_in(workspace))
    assert isinstance(misfit, Misfit)
    assert "is a folder" in misfit.message


def test_an_absolute_path_may_lie_inside_too(workspace):
    assert convert(FILE, str(workspace / "docs" / "a.md"), finder_in(workspace)) == "docs/a.md"


@pytest.mark.parametrize(
    "given", ["../secret", "/etc/passwd", "out", "docs/../../secret", "..", "/"]
)
def test_a_file_outside_is_refused_even_through_a_link(workspace, given):
    misfit = convert(FILE, given, finder_in(workspace))
    assert isinstance(misfit, Misfit)
    assert misfit.code == "RCP305"
    assert "is outside the workspace" in misfit.message


@pytest.mark.parametrize("given", ["no.md", "docs/a.md/x", "loop", "a\0b", "x" * 5000])
def test_a_file_that_is_not_there_is_refused(workspace, given):
    misfit = convert(FILE, given, finder_in(workspace))
    assert isinstance(misfit, Misfit)
    assert misfit.code == "RCP305"
    assert "there is no file" in misfit.message


def test_the_default_of_a_file_path_is_held_to_the_workspace_too(workspace):
    for default, code in (("docs/a.md", []), ("no.md", ["RCP305"]), ("../secret", ["RCP305"])):
        file = Input(name="f", at=(), type="file_path", has_default=True, default=default)
        _, problems = bind((file,), {}, finder_in(workspace))
        assert [problem.code for problem in problems] == code
