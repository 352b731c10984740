"""What the tests of the public API share. Like them it imports nothing below `stretto`."""

from pathlib import Path

import pytest

import stretto
from support.api import Open, Scripted


@pytest.fixture
def scripted(tmp_path: Path) -> Scripted:
    """The name of a model that answers from a script."""

    def make(script: str = "default: an answer") -> str:
        file = tmp_path / f"script-{len(list(tmp_path.iterdir()))}.yaml"
        file.write_text(script, encoding="utf-8")
        return f"scripted:{file}"

    return make


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def open_stretto(tmp_path: Path, project: Path, scripted: Scripted) -> Open:
    """A Stretto of a project and a home of its own, with a scripted model unless told otherwise."""

    def make(script: str = "default: an answer", **options: object) -> stretto.Stretto:
        options.setdefault("model", scripted(script))
        return stretto.Stretto(project, home=tmp_path / "home", **options)  # type: ignore[arg-type]

    return make
