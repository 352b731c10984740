"""Curation over months on a virtual clock: what is used stays, what is pinned is never touched."""

import os
from pathlib import Path

import pytest

from stretto.playbooks.curation import (
    FLOOR,
    EmittedSkill,
    curate,
    curate_if_due,
    emit,
    read_emitted,
)
from stretto.playbooks.library import Library, confidence_at
from stretto.problems.errors import InvalidUsage, NotFound
from support.playbooks import Calendar, library, write_skill

WORDS = {
    "invoices": "Check the invoices of {{inputs.vendor}} for duplicates and wrong totals.",
    "bread": "Bake bread with a starter, fold the dough and let it rest overnight.",
    "server": "Restart the server when its memory is full and tell the people on duty.",
}


def emitted(opened: Library, name: str, words: str | None = None) -> str:
    template = words or WORDS[name]
    return emit(opened, EmittedSkill(name, f"How to: {template}", template, ("Read",))).name


def live(opened: Library) -> set[str]:
    return {each.name for each in opened.playbooks()}


def test_confidence_halves_with_every_half_life_since_the_last_use(tmp_path: Path) -> None:
    calendar = Calendar()
    with library(tmp_path, calendar) as opened:
        emitted(opened, "bread")
        for months, left in ((0, 0.5), (1, 0.25), (2, 0.125)):
            found = opened.named("bread")
            assert confidence_at(found, calendar.at + months * 30 * 86_400, 30) == pytest.approx(
                left
            )
        calendar.pass_days(60)
        opened.count_use(["bread"])
        assert confidence_at(opened.named("bread"), calendar.at, 30) == pytest.approx(0.5)


def test_curating_often_decays_no_more_than_curating_once(tmp_path: Path) -> None:
    calendar = Calendar()
    with library(tmp_path, calendar) as opened:
        emitted(opened, "bread")
        for _ in range(50):
            calendar.pass_days(1)
            assert curate(opened) == []
        assert confidence_at(opened.named("bread"), calendar.at, 30) == pytest.approx(
            0.5 * 0.5 ** (50 / 30)
        )


def test_a_year_of_use_and_neglect(tmp_path: Path) -> None:
    calendar = Calendar()
    write_skill(tmp_path, "by-hand", "How we do it by hand.")
    with library(tmp_path, calendar) as opened:
        for name in WORDS:
            emitted(opened, name)
        opened.pin("server", True)
        before = opened.store.every({str(tmp_path / "playbooks"): "user", "": "emitted"})
        pinned = {each.name: each for each in before if each.is_pinned}
        for week in range(52):
            calendar.pass_days(7)
            if week % 3 == 0:
                opened.count_use(["invoices"])
            curate_if_due(opened)
        assert live(opened) == {"by-hand", "server", "invoices"}
        assert {name: opened.store.every({str(tmp_path / "playbooks"): "u", "": "e"}, name)[0].confidence
                for name in pinned} == {name: each.confidence for name, each in pinned.items()}  # fmt: skip
        entries = [entry for entry in opened.store.audit(100) if entry.action == "prune"]
        assert [entry.name for entry in entries] == ["bread"]
        assert f"below {FLOOR}" in entries[0].why
        assert opened.restore("bread").name == "bread"
        assert curate(opened) == []  # its time began anew


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    calendar = Calendar()
    with library(tmp_path, calendar) as opened:
        emitted(opened, "bread")
        calendar.pass_days(365)
        before = opened.store.audit(100)
        (step,) = curate(opened, is_dry_run=True)
        assert (step.action, step.name) == ("prune", "bread")
        assert live(opened) == {"bread"}
        assert opened.store.audit(100) == before


def test_what_says_the_same_is_merged_into_what_is_worth_more(tmp_path: Path) -> None:
    calendar = Calendar()
    write_skill(
        tmp_path,
        "baking",
        f"How to: {WORDS['bread']}",
        f"This prompt worked: {WORDS['bread']} Tools used: Read",
    )
    with library(tmp_path, calendar) as opened:
        emitted(opened, "bread")
        emitted(opened, "invoices")
        (step,) = curate(opened)
        assert (step.action, step.name) == ("merge", "bread")
        assert live(opened) == {"baking", "invoices"}
        assert opened.named("baking").uses == 0  # pinned: not even a count is changed


def test_what_worked_again_is_strengthened_not_kept_twice(tmp_path: Path) -> None:
    with library(tmp_path) as opened:
        assert emitted(opened, "bread") == "bread"
        assert emitted(opened, "bread-again", WORDS["bread"]) == "bread"
        assert opened.named("bread").confidence == pytest.approx(0.75)
        assert emitted(opened, "bread", WORDS["server"]) == "bread-2"


def test_an_emitted_playbook_never_stands_in_for_one_that_a_person_wrote(tmp_path: Path) -> None:
    write_skill(tmp_path, "bread", "Our way to bake.", "By hand.")
    with library(tmp_path) as opened:
        assert emitted(opened, "bread") == "bread-2"
        assert opened.named("bread").body == "By hand."


def test_deleting_is_undone_and_everything_is_in_the_audit_log(tmp_path: Path) -> None:
    place = write_skill(tmp_path, "bread", "Our way to bake.")
    with library(tmp_path) as opened:
        opened.delete("bread", by="ann")
        assert live(opened) == set()
        assert opened.search("bake") == []
        with pytest.raises(NotFound):
            opened.named("bread")
    with library(tmp_path) as opened:
        assert live(opened) == set()  # also when the folder is read again
        opened.restore("bread", by="ann")
        assert live(opened) == {"bread"}
        actions = [(entry.action, entry.by) for entry in opened.store.audit(10)]
        assert actions == [("restore", "ann"), ("delete", "ann")]
        with pytest.raises(NotFound, match="nothing was deleted"):
            opened.restore("bread")
    assert (place / "SKILL.md").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no json", "is not JSON"),
        ("[]", "is no playbook"),
        ('{"format": "skill-v1", "name": "x"}', "description, prompt_template"),
        ('{"format": "skill-v1", "name": "../x", "description": "d", "prompt_template": "p"}', "name"),
        ('{"format": "skill-v1", "name": "x", "description": "d", "prompt_template": "p", '
         '"confidence": 7}', "confidence"),
    ],
)  # fmt: skip
def test_a_skill_file_that_is_wrong_says_how(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "skill.json"
    file.write_text(text)
    with pytest.raises(InvalidUsage, match=says):
        read_emitted(file)


def test_a_clock_that_was_set_back_is_curated_by_once_and_not_at_every_use(tmp_path: Path) -> None:
    calendar = Calendar()
    with library(tmp_path, calendar) as opened:
        curate_if_due(opened)
        calendar.pass_days(-400)
        for _ in range(5):
            curate_if_due(opened)
        done = [each for each in opened.store.audit(50) if each.action == "curate"]
        assert len(done) == 2


def test_names_that_are_not_utf_8_keep_no_other_playbook_from_its_use(tmp_path: Path) -> None:
    write_skill(tmp_path, "fine", "a fine one")
    odd = write_skill(tmp_path, "odd", "an odd one")
    for bad in (os.fsencode(odd.parent) + b"/bad\xff", os.fsencode(odd) + b"/more\xff"):
        os.mkdir(bad)
        Path(os.fsdecode(bad), "SKILL.md").write_text("---\nname: bad\ndescription: b\n---\nx\n")
    with library(tmp_path) as opened:
        assert opened.named("fine").is_usable
        [broken] = [each for each in opened.all() if each.name == "odd"]
        assert "not UTF-8" in broken.fault


def test_a_use_of_nothing_counts_for_nobody(tmp_path: Path) -> None:
    with library(tmp_path) as opened:
        emitted(opened, "bread")
        opened.count_use([])
        assert opened.named("bread").uses == 0
