"""The proof itself, on this machine: real engine, real store, real copies and merges."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from stretto.events.model import AttemptStarted, AttemptSucceeded
from stretto.plan.build import Problems
from stretto.ports.journal import StoredEvent
from stretto.ports.runner import AttemptRequest, AttemptResult, Failure, Success, Witness
from stretto.smoke import verdicts
from stretto.smoke.journal import ReadBack, prompts_of, read_elsewhere
from stretto.smoke.prove import prove
from stretto.smoke.scenes import BAD_RECIPE, build_scene, plan_of, scenes
from stretto.smoke.verdicts import Check

NAMES = [
    "structure",
    "parallel readers",
    "overlapping writers",
    "disjoint writers",
    "hand-over",
    "merge back",
    "journal",
]


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Check]]:
    folder = tmp_path_factory.mktemp("proof")
    return folder, asyncio.run(prove(folder))


@pytest.fixture(scope="module")
def back(proof: tuple[Path, list[Check]]) -> ReadBack:
    return read_elsewhere(proof[0] / "home" / "runs.db")


def test_every_promise_is_proven_here(proof: tuple[Path, list[Check]]) -> None:
    checks = proof[1]
    assert [check.name for check in checks] == NAMES
    assert [check.says for check in checks if not check.is_proven] == []


def test_the_overlap_is_at_least_the_work_that_is_played(
    proof: tuple[Path, list[Check]],
) -> None:
    for check in proof[1]:
        if check.name in ("parallel readers", "disjoint writers"):
            overlap = check.evidence["overlap_ms"]
            assert isinstance(overlap, float)
            assert overlap >= 50


def test_the_files_of_both_rivals_are_in_the_workspace(proof: tuple[Path, list[Check]]) -> None:
    notes = proof[0] / "rivals" / "notes"
    assert {file.name: file.read_text() for file in notes.iterdir()} == {
        "first.txt": "first\n",
        "second.txt": "second\n",
    }


def test_the_journal_tells_what_a_step_was_told(back: ReadBack) -> None:
    journal = back.journals["smoke-handover"]
    assert prompts_of(journal)["use"].is_on_record
    assert "word-" in prompts_of(journal)["use"].prompt


def _tampered(journal: list[StoredEvent], step: str, **changed: object) -> list[StoredEvent]:
    """The same rows, with something else in the start or the answer of one step."""
    rows = []
    for row in journal:
        event = row.event
        is_meant = isinstance(event, AttemptStarted if "key" in changed else AttemptSucceeded)
        if is_meant and getattr(event, "step", "") == step:
            row = replace(row, event=structs.replace(event, **changed))  # type: ignore[arg-type]
        rows.append(row)
    return rows


def test_a_hand_over_is_not_proven_by_a_journal_that_was_changed(back: ReadBack) -> None:
    journal = back.journals["smoke-handover"]
    assert verdicts.check_handover("x", journal, "find", "use").is_proven
    # Another output asks for another prompt, whose key is not the one on record.
    other = _tampered(journal, "find", output="another word")
    assert not verdicts.check_handover("x", other, "find", "use", is_strict=False).is_proven
    other = _tampered(journal, "use", key="of other words")
    assert not verdicts.check_handover("x", other, "find", "use", is_strict=False).is_proven
    other = _tampered(journal, "use", output="what?")
    assert not verdicts.check_handover("x", other, "find", "use").is_proven
    assert verdicts.check_handover("x", other, "find", "use", is_strict=False).is_proven


def test_a_journal_that_was_shuffled_proves_nothing(back: ReadBack) -> None:
    journal = back.journals["smoke-rivals"]
    events = [row.event for row in journal]
    starts = [i for i, event in enumerate(events) if isinstance(event, AttemptStarted)]
    second = events.pop(starts[1])
    events.insert(starts[0] + 1, second)
    shuffled = [StoredEvent(seq, event) for seq, event in enumerate(events, 1)]
    assert not verdicts.check_order("x", shuffled, ("first", "second")).is_proven


class _Silent:
    """A model that writes no file and says as little as it may."""

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        await asyncio.sleep(0.01)
        return Success("ready")


class _Down:
    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        return Failure("unavailable", "nobody answers")


def test_a_model_that_only_answers_proves_all_but_the_merge(
    tmp_path: Path,
) -> None:
    checks = asyncio.run(prove(tmp_path, _Silent()))
    assert [check.says for check in checks if not check.is_proven] == [
        "the model of 'make' wrote no file, so nothing was merged"
    ]


def test_a_model_that_does_not_answer_proves_the_structure_and_nothing_else(
    tmp_path: Path,
) -> None:
    checks = asyncio.run(prove(tmp_path, _Down()))
    assert [check.name for check in checks if check.is_proven] == ["structure"]
    assert "nobody answers" in checks[1].says


def test_the_recipes_are_what_they_should_be() -> None:
    assert isinstance(build_scene(BAD_RECIPE), Problems)
    for scene in scenes(5):
        assert plan_of(scene).timeout_seconds == 5
