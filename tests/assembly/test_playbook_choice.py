"""Curation on its schedule: over months of runs on a virtual clock, once a day at the first run."""

from dataclasses import replace
from pathlib import Path

from stretto.assembly.playbook_choice import equip_plan, open_playbooks
from stretto.assembly.project import Project
from stretto.config.settings import Settings
from stretto.plan.model import Plan
from stretto.playbooks.curation import EmittedSkill, emit
from support.playbooks import Calendar, write_skill

USED = "Check the invoices of a vendor for duplicates and wrong totals."
UNUSED = "Bake bread with a starter, fold the dough and let it rest overnight."
PINNED = "Restart the server when its memory is full and tell the people on duty."
RECIPE = f"name: pay\nsteps:\n  - {{id: check, subagent: reviewer, prompt: '{USED}'}}\n"


def test_half_a_year_of_runs_keeps_what_is_used_and_pinned(tmp_path: Path) -> None:
    settings, plan = opened(tmp_path)
    calendar, read_by_hand = Calendar(), write_skill(tmp_path / "home", "by-hand", "By hand.")
    with open_playbooks(settings, calendar.now) as library:
        for name, said in {"used": USED, "unused": UNUSED, "pinned": PINNED}.items():
            emit(library, EmittedSkill(name, f"How to: {said}", said))
        library.pin("pinned", True)
        pinned = library.named("pinned")
    given = set[str]()
    for _ in range(26):  # weeks, with two runs on one day in each
        for days in (6.75, 0.25):
            calendar.pass_days(days)
            chosen, notices = equip_plan(plan, {}, settings, calendar.now)
            given |= set(chosen.playbooks)
            assert notices == ()
            with open_playbooks(settings, calendar.now) as library:
                library.count_use(name for name in chosen.playbooks if name == "used")
    assert "used" in given
    with open_playbooks(settings, calendar.now) as library:
        assert {each.name for each in library.playbooks() if each.layer != "bundled"} == {
            "used", "pinned", "by-hand",
        }  # fmt: skip
        assert library.named("pinned") == pinned
        entries = library.store.audit(1000)
        assert len([entry for entry in entries if entry.action == "curate"]) == 26, "once a day"
        pruned = [entry for entry in entries if entry.action == "prune"]
        assert [entry.name for entry in pruned] == ["unused"]
        assert "last used never" in pruned[0].why
    assert (read_by_hand / "SKILL.md").exists()


def test_a_clock_that_is_set_back_does_not_put_curation_off(tmp_path: Path) -> None:
    settings, plan = opened(tmp_path)
    calendar = Calendar()
    with open_playbooks(settings, calendar.now) as library:
        emit(library, EmittedSkill("used", f"How to: {USED}", USED))
    future = replace(calendar)
    future.pass_days(40)
    equip_plan(plan, {}, settings, future.now)
    calendar.pass_days(1)
    with open_playbooks(settings, calendar.now) as library:
        emit(library, EmittedSkill("twin", f"How to: {UNUSED}", UNUSED))
    equip_plan(plan, {}, settings, calendar.now)
    with open_playbooks(settings, calendar.now) as library:
        curated = [entry.at for entry in library.store.audit(100) if entry.action == "curate"]
    assert curated == [calendar.at, future.at]


def opened(tmp_path: Path) -> tuple[Settings, Plan]:
    home = tmp_path / "home"
    (home / "playbooks").mkdir(parents=True)
    project = Project(tmp_path, {"STRETTO_HOME": str(home)})
    return project.settings, project.plan(project.recipe_from_text(RECIPE))
