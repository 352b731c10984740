"""What a person types or edits at a gate."""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stretto.cli.gate import edit_text
from support.cli import write


@pytest.fixture
def type_lines(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)

    def take(*lines: str) -> None:
        typed = io.StringIO("".join(f"{line}\n" for line in lines))
        monkeypatch.setattr(sys, "stdin", typed)

    return take


def test_typed_lines_keep_their_indentation(type_lines: Callable[..., None]) -> None:
    type_lines("steps:", "  - id: a", "    prompt: look", ".")
    assert edit_text("x", "recipe", ".yaml") == "steps:\n  - id: a\n    prompt: look"


@pytest.mark.parametrize("name", ["EDITOR", "VISUAL"])
def test_a_blank_editor_is_none(
    type_lines: Callable[..., None], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, " ")
    type_lines("by hand", ".")
    assert edit_text("x") == "by hand"


def test_a_blank_visual_does_not_hide_the_editor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = write(tmp_path, "editor.sh", "#!/bin/sh\necho edited > $1\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", " ")
    monkeypatch.setenv("EDITOR", str(editor))
    assert edit_text("x") == "edited"


@pytest.mark.parametrize("failing", ["exit 1", "printf '\\377' > $1"])
def test_an_editor_that_fails_saves_nothing_and_ends_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    failing: str,
) -> None:
    editor = write(tmp_path, "editor.sh", f"#!/bin/sh\n{failing}\n")
    editor.chmod(0o755)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(editor))
    assert edit_text("x") is None
    assert capsys.readouterr().err.startswith("nothing was saved: ")
