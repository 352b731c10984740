"""No run in which nothing really happened is complete without a word."""

import json
from html import unescape
from pathlib import Path

import pytest

from support.cli import stretto, write
from support.happening_kinds import KINDS, Kind
from support.silent_surfaces import MODEL, SAYS, SURFACES, prepare

LEAST = 100
SILENT: dict[str, bool] = {}  # by kind, as far as they were driven


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_it_is_told(kind: Kind, tmp_path: Path) -> None:
    happened = kind.happen(tmp_path)
    SILENT[kind.name] = happened.is_silent
    report, (markdown, page, written) = happened.report, happened.forms
    assert not happened.is_silent, markdown
    assert any(kind.says in issue.text for issue in report.issues), report.issues
    if not report.is_ok:
        assert happened.code != 0
    # What one form tells, all of them tell.
    for form in (markdown.replace("\\", ""), unescape(page), json.dumps(written)):
        assert kind.says.replace("`", "") in form.replace("`", "")
        assert report.status in form.lower()


def test_there_are_a_hundred_kinds_and_none_is_silent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, kind in enumerate(KINDS):
        if kind.name not in SILENT:
            folder = tmp_path / str(number)
            folder.mkdir()
            SILENT[kind.name] = kind.happen(folder).is_silent
    silent = [name for name, is_silent in SILENT.items() if is_silent]
    with capsys.disabled():
        print(f"\n{len(KINDS)} kinds: {len(silent)} complete without a word")
    assert len(SILENT) == len(KINDS) >= LEAST
    assert silent == []


@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_tells_it(surface: str, tmp_path: Path) -> None:
    assert SAYS in SURFACES[surface](prepare(tmp_path))


@pytest.mark.parametrize(
    "words", [("watch",), ("watch", "--json"), ("logs", "-f"), ("events", "--follow")]
)
def test_who_follows_a_run_is_told_by_the_exit_code_how_it_ended(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    prepare(tmp_path)
    assert stretto(tmp_path, "run", "note", *MODEL).code == 0
    assert stretto(tmp_path, *words).code == 0
    write(tmp_path, "script.yaml", "default: {fail: broke}\n")
    assert stretto(tmp_path, "run", "note", *MODEL).code == 1
    assert stretto(tmp_path, *words).code == 1
    assert stretto(tmp_path, "report").code == 0  # it shows what there is


def test_a_goal_says_why_an_iteration_was_not_complete(tmp_path: Path) -> None:
    prepare(tmp_path)
    write(tmp_path, "script.yaml", "default: {fail: broke}\n")
    goal = ("goal", "set", "x", "--verify", "command:test -f no", "--max-iterations", "1")
    stretto(tmp_path, *goal, "--workflow", "note", *MODEL)
    assert "broke" in stretto(tmp_path, "goal", "show").out
