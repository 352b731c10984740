"""What is typed in the editor is never lost: reloads, other tabs, refusals, a server that goes away and comes back."""

import json
import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from browser.conftest import Site, opened_site
from browser.test_editor import PLAIN, QUICK, editor_of, save, saved, shown
from browser.test_quality import free_port
from stretto.server.process import ServeOptions
from support.served import served

PATIENCE = 60_000
JSON_RECIPE = json.dumps(
    {
        "name": "braces",
        "steps": [
            {"id": "find", "subagent": "researcher", "prompt": "Über {{run.id}} \U0001f389"},
            {"id": "write", "subagent": "writer", "prompt": "{{steps.find.output}}"},
        ],
    },
    indent="\t",
    ensure_ascii=False,
)


def text_of(page: Page) -> None:
    page.get_by_label("Text of the workflow").click()


def typed_at_end(page: Page, words: str) -> None:
    text_of(page)
    page.keyboard.press("Control+End")
    page.keyboard.type(words)
    page.wait_for_timeout(500)  # it is kept a moment after the last key


def test_three_steps_are_built_tried_saved_and_run_by_keys_alone(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/workflows")
        press(page, "New workflow", "link")
        page.get_by_label("Its name").fill("trio")
        page.keyboard.press("Enter")
        expect(page.locator("[data-step=first]")).to_be_visible(timeout=PATIENCE)
        page.get_by_role("button", name="Add a step").focus()
        page.keyboard.press("Tab")  # what cannot be done without a chosen step is skipped
        expect(page.locator("[data-step=first]")).to_be_focused()
        name = "first: researcher, waits for nothing"
        expect(page.get_by_role("button", name=name, exact=True)).to_be_focused()
        page.keyboard.press("a")
        expect(page.get_by_label("Its name")).to_be_focused()
        page.keyboard.type("write")
        page.get_by_label("Agent").select_option("writer")
        page.get_by_label("What it is told").focus()
        page.keyboard.type("Write about ")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Filter")).to_be_focused(timeout=PATIENCE)
        expect(page.get_by_label("Variables")).not_to_contain_text("steps.write")
        page.keyboard.type("first.output")
        page.keyboard.press("Enter")
        expect(page.get_by_label("What it is told")).to_be_focused()
        page.keyboard.type(".")
        press(page, "Add it")
        expect(page.locator("[data-step=write]")).to_be_focused(timeout=PATIENCE)
        page.keyboard.press("a")
        expect(page.get_by_label("Its name")).to_be_focused()
        page.keyboard.type("check")
        page.get_by_label("Agent").select_option("reviewer")
        page.get_by_label("What it is told").fill("Check it.")
        page.get_by_label("It waits for write").press("Space")
        press(page, "Add it")
        expect(page.locator("[data-step=check]")).to_be_focused(timeout=PATIENCE)
        name = "write: writer, waits for first"
        expect(page.get_by_role("button", name=name, exact=True)).to_be_visible()
        page.get_by_label("Let it wait for another step").select_option("write")
        press(page, "Wait for it")
        expect(page.get_by_text("no problems")).to_be_visible(timeout=PATIENCE)
        press(page, "Dry run …")
        dialog = page.get_by_role("dialog")
        press(page, "Show what it would do")
        expect(dialog.get_by_role("alert")).to_contain_text("Still missing: topic.")
        dialog.get_by_label("topic").fill("tea")
        press(page, "Show what it would do")
        expect(dialog.locator(".waves li")).to_have_count(3, timeout=PATIENCE)
        assert not (tmp_path / "workflows" / "trio.yaml").exists()
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Dry run …")).to_be_focused()
        page.keyboard.press("Control+s")
        press(page, "Save")
        expect(page.get_by_text("Nothing has changed.")).to_be_visible(timeout=PATIENCE)
        text = saved(site.served, "trio")
        assert 'prompt: "Write about {{steps.first.output}}."' in text
        assert "depends_on: [write]" in text
        press(page, "Run …", "link")
        page.get_by_label("topic").fill("tea")
        press(page, "Run")
        page.wait_for_url(re.compile(r"/runs/\d"))
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=PATIENCE)
        assert site.errors == []


def press(page: Page, name: str, role: str = "button") -> None:
    """By the keyboard: what cannot be reached with Tab cannot be pressed like this."""
    found = page.get_by_role(role, name=name, exact=role == "button" and ":" not in name).first  # type: ignore[arg-type]
    expect(found).to_be_enabled(timeout=PATIENCE)
    assert found.evaluate("each => each.tabIndex") == 0
    found.focus()
    page.keyboard.press("Enter")


def test_a_reload_brings_back_what_was_typed_until_it_is_saved_or_discarded(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK, {"plain": PLAIN}) as site:
        page = editor_of(site, "plain")
        typed_at_end(page, "# half a thou")
        page.reload()
        expect(page.locator("main").get_by_text("is here again")).to_be_visible(timeout=PATIENCE)
        assert "# half a thou" in shown(page)
        typed_at_end(page, "ght")
        page.get_by_role("link", name="Runs", exact=True).first.click()
        expect(page.get_by_role("heading", name="Runs")).to_be_visible()
        page.go_back()
        expect(page.locator("main").get_by_text("is here again")).to_be_visible(timeout=PATIENCE)
        assert "# half a thought" in shown(page)
        page.get_by_role("button", name="Discard it").click()
        expect(page.get_by_text("Nothing has changed.")).to_be_visible()
        page.get_by_role("button", name="Undo").click()
        assert "# half a thought" in shown(page)
        save(page)
        assert saved(site.served, "plain") == PLAIN + "# half a thought"
        page.reload()
        expect(page.locator("[data-step]").first).to_be_visible(timeout=PATIENCE)
        page.wait_for_timeout(1000)
        expect(page.locator("main").get_by_text("is here again")).to_have_count(0)
        assert site.errors == []


def test_a_new_one_that_was_never_saved_is_there_after_a_reload(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/workflows/fresh?tab=edit&from=flat")
        expect(page.locator("[data-step]").first).to_be_visible(timeout=PATIENCE)
        typed_at_end(page, "# mine")
        page.reload()
        expect(page.locator("main").get_by_text("is here again")).to_be_visible(timeout=PATIENCE)
        assert "# mine" in shown(page)


def test_two_tabs_on_one_file_tell_each_other_and_their_texts_are_merged(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK, {"plain": PLAIN}) as site:
        first, second = editor_of(site, "plain"), editor_of(site, "plain")
        first.bring_to_front()
        typed_at_end(first, "# of the first\n")
        second.bring_to_front()
        told = second.locator("main").get_by_text("This workflow is being edited in another tab.")
        expect(told).to_be_visible(timeout=PATIENCE)
        text_of(second)
        second.keyboard.press("Control+Home")
        second.keyboard.type("# of the second\n")
        save(second)
        assert saved(site.served, "plain") == "# of the second\n" + PLAIN
        first.bring_to_front()
        changed = first.locator("main").get_by_text("The file was changed by somebody else.")
        expect(changed).to_be_visible(timeout=PATIENCE)
        assert "# of the first" in shown(first)
        first.get_by_role("button", name="Merge them", exact=True).click()
        save(first)
        both = "# of the second\n" + PLAIN + "# of the first\n"
        assert saved(site.served, "plain") == both
        assert site.errors == []


def test_lines_that_two_tabs_changed_both_stand_between_marks_until_they_are_settled(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK, {"plain": PLAIN}) as site:
        page = editor_of(site, "plain")
        text_of(page)
        page.keyboard.press("Control+Home")
        page.keyboard.type("# Changed here. ")
        theirs = PLAIN.replace("# Mine.", "# Somebody's.")
        (tmp_path / "workflows" / "plain.yaml").write_text(theirs)
        page.keyboard.press("Control+s")
        page.get_by_role("button", name="Save", exact=True).click()
        page.get_by_role("button", name="Merge them, and settle 1 clash").click(timeout=PATIENCE)
        text = shown(page)
        assert "# Changed here. # Mine." in text
        assert "# Somebody's." in text
        assert (tmp_path / "workflows" / "plain.yaml").read_text() == theirs
        page.get_by_role("button", name="Undo").click()
        assert "# Somebody's." not in shown(page)


def test_a_closed_tab_leaves_its_text_to_the_next_one(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK, {"plain": PLAIN}) as site:
        page = editor_of(site, "plain")
        typed_at_end(page, "# left behind")
        page.close()
        page = editor_of(site, "plain")
        expect(page.locator("main").get_by_text("A tab that was closed left a text")).to_be_visible(
            timeout=PATIENCE
        )
        page.get_by_role("button", name="Take that text").click()
        assert "# left behind" in shown(page)
        save(page)
        assert saved(site.served, "plain") == PLAIN + "# left behind"


def test_a_save_that_is_refused_keeps_what_was_typed(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK, {"plain": PLAIN}) as site:
        page = editor_of(site, "plain")
        typed_at_end(page, "nonsense: [")
        expect(page.locator(".toolbar .bad")).to_contain_text("problem", timeout=PATIENCE)
        page.keyboard.press("Control+s")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("It is saved only without any")
        dialog.get_by_role("button", name="Save", exact=True).click()
        expect(dialog.get_by_role("alert")).to_be_visible(timeout=PATIENCE)
        dialog.get_by_role("button", name="Back to the text").click()
        assert "nonsense: [" in shown(page)
        assert saved(site.served, "plain") == PLAIN


def test_a_server_that_restarts_takes_nothing_and_the_text_is_saved_to_the_new_one(
    browser: Browser, tmp_path: Path
) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(QUICK)
    env = {"STRETTO_MODEL": f"scripted:{script}"}
    options = ServeOptions("127.0.0.1", free_port())
    session = browser.new_context(viewport={"width": 1280, "height": 900})
    page = session.new_page()
    with served(tmp_path, {"plain": PLAIN}, env, options) as at:
        page.goto(at.login_url)
        page.wait_for_url(f"{at.url}/")
        page.goto(f"{at.url}/workflows/plain?tab=edit")
        expect(page.locator("[data-step]").first).to_be_visible(timeout=PATIENCE)
    typed_at_end(page, "# typed while it was away")
    expect(page.get_by_text("not checked: the server does not answer")).to_be_visible(
        timeout=PATIENCE
    )
    page.keyboard.press("Control+s")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("does not answer")
    page.get_by_role("button", name="Back to the text").click()
    assert "# typed while it was away" in shown(page)
    with served(tmp_path, {}, env, options):
        expect(page.locator(".toolbar .good")).to_have_text("no problems", timeout=PATIENCE)
        save(page)
        text = (tmp_path / "workflows" / "plain.yaml").read_text()
        assert text == PLAIN + "# typed while it was away"
    session.close()


def test_a_json_recipe_is_built_completed_and_saved_as_it_is_written(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        file = tmp_path / "workflows" / "braces.json"
        file.write_text(JSON_RECIPE, encoding="utf-8")
        page = editor_of(site, "braces")
        page.locator("[data-step=write]").focus()
        page.keyboard.press("a")
        page.get_by_label("Its name").fill("last")
        page.get_by_label("What it is told").fill('Say "done".')
        page.get_by_role("button", name="Add it").click()
        expect(page.locator("[data-step=last]")).to_be_visible(timeout=PATIENCE)
        page.keyboard.press("F2")
        page.get_by_label("Its name").fill("end")
        page.keyboard.press("Enter")
        expect(page.locator("[data-step=end]")).to_be_visible(timeout=PATIENCE)
        save(page)
        text = file.read_bytes().decode()
        head = JSON_RECIPE[: JSON_RECIPE.rindex("}", 0, JSON_RECIPE.rindex("]")) + 1]
        assert text.startswith(head)
        assert [each["id"] for each in json.loads(text)["steps"]] == ["find", "write", "end"]
        page.get_by_role("button", name="Undo").click()
        page.get_by_role("button", name="Undo").click()
        save(page)
        assert file.read_bytes().decode() == JSON_RECIPE
        text_of(page)
        page.keyboard.press("Control+Home")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("End")
        page.keyboard.type(' "descr')
        offered = page.get_by_role("listbox").get_by_role("option").first
        expect(offered).to_contain_text("description", timeout=PATIENCE)
        assert site.errors == []


def test_undo_goes_back_over_the_graph_and_the_text_in_the_order_of_what_was_done(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK, {"plain": PLAIN}) as site:
        page = editor_of(site, "plain")
        texts = [shown(page)]
        typed_at_end(page, "# one")
        texts.append(shown(page))
        page.locator("[data-step=check]").focus()
        page.keyboard.press("d")
        page.get_by_role("button", name="Duplicate", exact=True).last.click()
        expect(page.locator("[data-step=check-2]")).to_be_visible(timeout=PATIENCE)
        texts.append(shown(page))
        typed_at_end(page, " two")
        texts.append(shown(page))
        assert len(set(texts)) == 4
        for text in reversed(texts[:-1]):
            page.get_by_role("button", name="Undo").click()
            assert shown(page) == text
        expect(page.locator("[data-step=check-2]")).to_have_count(0, timeout=PATIENCE)
        for text in texts[1:]:
            page.get_by_role("button", name="Redo").click()
            assert shown(page) == text
        expect(page.locator("[data-step=check-2]")).to_be_visible(timeout=PATIENCE)


def large(many: int) -> str:
    steps = "".join(
        f"  - {{id: s{n}, subagent: writer, depends_on: [s{n // 10}], prompt: x}}\n"
        for n in range(1, many)
    )
    return f"name: large\nsteps:\n  - {{id: s0, subagent: writer, prompt: x}}\n{steps}"


# The gaps between the frames that the page draws, by its own clock.
RECORD = """() => {
  window.gaps = []
  let last = performance.now()
  const frame = (now) => { window.gaps.push(now - last); last = now; requestAnimationFrame(frame) }
  requestAnimationFrame(frame)
}"""
WORDS = "# some words that somebody types"


def cost_of_a_key(page: Page) -> tuple[float, int]:
    """How many milliseconds the page works for a key, and how many of the frames came late."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def busy() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

    page.evaluate(RECORD)
    before = busy()
    page.keyboard.type(WORDS, delay=60)
    page.wait_for_timeout(1500)  # and what follows once the keys have rested
    milliseconds = 1000 * (busy() - before) / len(WORDS)
    return milliseconds, page.evaluate("window.gaps.filter((gap) => gap > 50).length")


def test_above_three_hundred_steps_the_graph_is_folded_and_a_key_costs_as_in_a_small_file(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK, {"large": large(1000), "plain": PLAIN}) as site:
        cost = {}
        for name in ("plain", "large"):
            page = editor_of(site, name)
            text_of(page)
            page.keyboard.press("Control+Home")
            page.wait_for_timeout(1500)
            cost[name] = cost_of_a_key(page)
        assert page.locator("[data-step]").count() < 100
        expect(page.get_by_text("1000 steps, those that are alike shown as one.")).to_be_visible()
        page.get_by_label("Go to a step").select_option("s777")
        expect(page.locator("[data-step=s777]")).to_have_attribute("aria-pressed", "true")
        page.locator("[data-step=s777]").focus()
        page.keyboard.press("F2")
        page.get_by_label("Its name").fill("named")
        page.keyboard.press("Enter")
        expect(page.locator("[data-step=named]")).to_be_visible(timeout=PATIENCE)
        page.get_by_role("button", name="Show every step").click()
        expect(page.locator("[data-step]")).to_have_count(1000, timeout=PATIENCE)
        print("milliseconds a key, late frames:", cost)
        assert cost["large"][0] < 5 * cost["plain"][0]
        assert site.errors == []


STATES: dict[str, tuple[str, ...]] = {
    "chosen": ("find: researcher",),
    "add": ("find: researcher", "Add a step"),
    "add with variables": ("find: researcher", "Add a step", "Insert a variable here"),
    "rename": ("find: researcher", "Rename"),
    "duplicate": ("find: researcher", "Duplicate"),
    "remove": ("find: researcher", "Remove"),
    "variable": ("Insert a variable",),
    "variable in a text": ("write: writer", "Insert a variable"),
    "dry run": ("Dry run …", "Show what it would do"),
    "save as": ("Save as …",),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_state_and_dialog_is_accessible_fits_390_px_and_twice_the_size(
    browser: Browser, tmp_path: Path, scheme: str
) -> None:
    with opened_site(browser, tmp_path, QUICK, {"plain": PLAIN}) as site:
        page = editor_of(site, "plain")
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for state, names in STATES.items():
            page.goto(f"{site.served.url}/workflows/plain?tab=edit")
            expect(page.locator("[data-step]").first).to_be_visible(timeout=PATIENCE)
            for name in names:
                page.get_by_role("button", name=name, exact=":" not in name).first.click()
                if state == "variable in a text" and ":" in name:
                    text_of(page)
            page.wait_for_timeout(400)
            check_page(page, state)
        check_typed(page, site, tmp_path)
        expected = [each for each in site.errors if "Failed to load resource" not in each]
        assert expected == []


def check_typed(page: Page, site: Site, folder: Path) -> None:
    """States that follow from a text that was typed."""
    page.goto(f"{site.served.url}/workflows/plain?tab=edit")
    expect(page.locator("[data-step]").first).to_be_visible(timeout=PATIENCE)
    typed_at_end(page, "  - {id: find, sub")
    page.wait_for_timeout(600)
    check_page(page, "problems, and words that are offered")
    page.keyboard.press("Escape")
    page.reload()
    expect(page.locator("main").get_by_text("is here again")).to_be_visible(timeout=PATIENCE)
    check_page(page, "restored")
    page.keyboard.press("Control+s")
    check_page(page, "save")
    page.keyboard.press("Escape")
    other = editor_of(site, "plain")
    expect(other.locator("main").get_by_text("is being edited in another tab")).to_be_visible(
        timeout=PATIENCE
    )
    check_page(other, "edited in another tab")
    other.close()
    (folder / "workflows" / "plain.yaml").write_text(PLAIN + "# theirs\n")
    page.evaluate("dispatchEvent(new Event('focus'))")
    expect(page.locator("main").get_by_text("changed by somebody else")).to_be_visible(
        timeout=PATIENCE
    )
    check_page(page, "changed on disk")


def check_page(page: Page, state: str) -> None:
    found = Axe().run(page).response["violations"]
    assert [(state, each["id"], each["nodes"][0]["html"]) for each in found] == []
    for width, height in ((390, 800), (640, 450)):  # a telephone; 1280 by 900 at 200 %
        page.set_viewport_size({"width": width, "height": height})
        assert (state, page.evaluate("document.documentElement.scrollWidth")) == (state, width)
    page.set_viewport_size({"width": 1280, "height": 900})
