"""Search finds the playbook that a task is about, and a task that is about none is given none."""

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stretto.playbooks.choice import ChoiceLimits, choose, with_playbooks
from stretto.playbooks.library import Library, open_library
from stretto.playbooks.store import PlaybookUse
from stretto.problems.errors import NotFound
from stretto.registry.folders import Folder
from stretto.text.terms import terms
from support.playbooks import (
    HELD_OUT,
    Calendar,
    labelled_playbooks,
    labelled_queries,
    library,
    recall,
    write_skill,
)
from support.recipes import flat, plan_of


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("library")
    with library(folder) as opened:
        with opened.store.change():
            for each in labelled_playbooks():
                opened.store.put(str(folder / "playbooks"), each.name, "", each, 0.0)
        yield opened


@pytest.mark.parametrize("file", ["queries.txt", HELD_OUT])
def test_the_labelled_set_is_as_large_as_it_says(file: str) -> None:
    names = {each.name for each in labelled_playbooks()}
    asked = [name for _, name in labelled_queries(file) if name]
    assert (len(names), len(asked)) == (200, 60)
    assert set(asked) <= names


@pytest.mark.parametrize("file", ["queries.txt", HELD_OUT])
def test_nine_of_ten_queries_find_their_playbook_among_the_first_five(
    filled: Library, file: str
) -> None:
    found, missed = recall(filled, file)
    print(f"recall@5: {found:.3f}")
    assert found >= 0.9, missed


def test_what_no_playbook_is_about_is_given_none(filled: Library) -> None:
    about_none = [query for query, name in labelled_queries() if not name]
    assert len(about_none) >= 8
    assert [choose(filled, query, ChoiceLimits()).given for query in about_none] == [()] * len(
        about_none
    )


def test_a_long_prompt_finds_what_it_is_about(filled: Library) -> None:
    filler = "The following notes were gathered by the team during the last weeks. " * 200
    prompt = f"{filler}\nReconcile the bank statements of May with the ledger.\n{filler}"
    assert filled.search(prompt, 5)[0].playbook.name == "reconcile-accounts"


def test_what_is_given_stays_within_its_budget(filled: Library) -> None:
    query = "Reconcile the bank statement with the ledger, and check invoices for duplicates"
    chosen = choose(filled, query, ChoiceLimits(top=5, named=5, characters=70))
    assert sum(len(each.body) for each in chosen.given) <= 70
    assert "reconcile-accounts" in [each.name for each in (*chosen.given, *chosen.named)]
    assert choose(filled, query, ChoiceLimits(top=0, named=0)).text == ""


def test_quotes_operators_and_other_scripts_are_words_like_others(filled: Library) -> None:
    for query in (
        '"',
        "AND OR NOT NEAR(",
        "name:x *",
        "'; DROP TABLE words; --",
        "\x00",
        "",
        "日本",
    ):
        filled.search(query)


def test_words_are_found_in_other_forms_and_scripts(tmp_path: Path) -> None:
    assert terms("Migrating the databases") == terms("migrated database")
    assert terms("Überprüfung") == terms("uberprufung")
    write_skill(tmp_path, "kikaku", "発表資料の作り方")
    write_skill(tmp_path, "other", "料理の作り方")
    with library(tmp_path) as opened:
        assert opened.search("発表の資料を作る")[0].playbook.name == "kikaku"


def test_a_later_folder_shadows_an_earlier_one_and_none_is_found_twice(tmp_path: Path) -> None:
    from stretto.playbooks.library import open_library
    from stretto.registry.folders import Folder

    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    write_skill(mine, "deploy", "How to deploy the shop.", "Mine.")
    write_skill(theirs, "deploy", "How to deploy the shop.", "Theirs.")
    roots = (Folder(mine / "playbooks", "user"), Folder(theirs / "playbooks", "project"))
    with open_library(tmp_path / "p.db", roots, Calendar().now) as opened:
        (found,) = opened.search("deploy the shop")
        assert (found.playbook.body, found.playbook.layer) == ("Theirs.", "project")
        assert [each.body for each in opened.playbooks()] == ["Theirs."]


def test_of_two_folders_with_one_name_the_one_that_does_not_count_is_told(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        place = write_skill(tmp_path, folder, f"Tuning of {folder}.")
        file = place / "SKILL.md"
        file.write_text(file.read_text().replace(f"name: {folder}", "name: tune"))
    with library(tmp_path) as opened:
        opened.refresh()
        listed = [(each.name, each.fault) for each in opened.playbooks()]
        said = "the folder 'one' has the same name as 'two' beside it, which is used"
        assert listed == [("tune", ""), ("tune", said)]
        assert opened.named("tune").description == "Tuning of two."
        assert [each.playbook.description for each in opened.search("tuning")] == ["Tuning of two."]


def test_the_steps_that_used_it_are_known_newest_first_and_each_once(tmp_path: Path) -> None:
    write_skill(tmp_path, "deploy", "How to deploy.")
    calendar = Calendar()
    roots = (Folder(tmp_path / "playbooks", "user"),)
    with open_library(tmp_path / "p.db", roots, calendar.now) as opened:
        opened.refresh()
        for number in range(300):
            opened.count_use(["deploy"], PlaybookUse(f"run-{number:03}", "a"))
            calendar.pass_days(0.001)
        opened.count_use(["deploy"], PlaybookUse("run-250", "a"))
        found = opened.named("deploy")
        used = opened.store.uses_of(found.id, 1_000)
        assert found.uses == 301
        assert [each.run_id for each in used[:3]] == ["run-250", "run-299", "run-298"]
        assert len(used) == len({each.run_id for each in used}) == 200
        opened.count_use(["deploy"])  # by nobody's step
        assert len(opened.store.uses_of(found.id, 1_000)) == 200


def test_a_folder_that_changes_or_goes_is_noticed(tmp_path: Path) -> None:
    place = write_skill(tmp_path, "deploy", "How to deploy.", "Old words.")
    with library(tmp_path) as opened:
        opened.count_use(["deploy"])
    write_skill(tmp_path, "deploy", "How to deploy.", "New words, zebra.")
    with library(tmp_path) as opened:
        (found,) = opened.search("zebra")
        assert found.playbook.uses == 1  # what is known of its use stays
        assert opened.search("old") == []
    (place / "SKILL.md").unlink()
    with library(tmp_path) as opened:
        assert opened.all() == []
        assert opened.search("zebra deploy") == []


def test_a_folder_that_was_away_for_a_while_comes_back_as_a_person_left_it(tmp_path: Path) -> None:
    for name in ("deploy", "tidy", "bake"):
        write_skill(tmp_path, name, f"How to {name}.")
    with library(tmp_path) as opened:
        opened.pin("deploy", False)
        opened.delete("tidy")
        opened.count_use(["deploy"], PlaybookUse("run", "step"))
        before = [replace(each, id=0) for each in opened.all()]
    root = tmp_path / "playbooks"
    for _ in range(2):  # renamed, or not mounted, and looked for meanwhile
        root.rename(tmp_path / "elsewhere")
        for _ in range(2):
            with library(tmp_path) as opened:
                assert (opened.all(), opened.search("deploy"), opened.store.count()) == ([], [], 0)
                with pytest.raises(NotFound):
                    opened.restore("tidy")
        (tmp_path / "elsewhere").rename(root)
        with library(tmp_path) as opened:
            assert [replace(each, id=0) for each in opened.all()] == before
            assert [each.playbook.name for each in opened.search("deploy tidy bake")] == [
                "bake",
                "deploy",
            ]
            assert opened.store.uses_of(opened.named("deploy").id, 5)


def test_a_query_is_made_of_no_more_than_it_holds(filled: Library) -> None:
    many = flat(
        "{id: a, subagent: writer, prompt: '" + "{{inputs.t}}" * 100 + "'}", head="inputs: {t: {}}"
    )
    plan, text = plan_of(many), "invoice " * 125_000
    tracemalloc.start()
    try:
        with_playbooks(plan, {"t": text}, filled, ChoiceLimits())
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
