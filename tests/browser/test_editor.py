"""Workflows are edited in a real browser: text and graph are one, and what nobody touched stays byte for byte."""

import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from browser.conftest import GATED, Site, faults, opened_site
from properties.test_step_changes import TEXTS
from support.served import Served

QUICK = "default: {reply: 'An answer.', tokens: 5}\n"
PLAIN = """\
# Mine.
name: plain
inputs:
  - {name: topic, required: true}
steps:
  - {id: find, subagent: researcher, prompt: "About {{inputs.topic}}"}   # first
  - id: write
    subagent: writer
    prompt: "{{steps.find.output}} and"
  - {id: check, subagent: reviewer, prompt: 'x'}
"""
BROKEN = PLAIN.replace("plain", "broken") + "x: 1\n"
HOSTILE = "<img src=x onerror=\\\"document.title='hit'\\\">"


def editor_of(site: Site, name: str) -> Page:
    page = site.page(f"/workflows/{name}?tab=edit")
    expect(page.locator("[data-step]").first).to_be_visible(timeout=60_000)
    return page


def shown(page: Page) -> str:
    text: str = page.evaluate(
        "document.querySelector('.editor').shadowRoot.querySelector('.cm-content').innerText"
    )
    return text


def save(page: Page) -> None:
    page.get_by_role("button", name="Save …", exact=True).click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Nothing has changed.")).to_be_visible(timeout=60_000)


def saved(served: Served, name: str) -> str:
    return (served.folder / "workflows" / f"{name}.yaml").read_bytes().decode()


def test_a_graph_is_changed_by_keys_alone_and_the_text_with_it(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK, {"plain": PLAIN}) as site:
        page = editor_of(site, "plain")
        page.locator("[data-step=check]").focus()
        page.keyboard.press("F2")
        page.get_by_label("Its name").fill("review")
        page.keyboard.press("Enter")
        expect(page.locator("[data-step=review]")).to_be_visible(timeout=60_000)
        page.get_by_label("Let it wait for another step").select_option("write")
        page.get_by_role("button", name="Wait for it").press("Enter")
        expect(page.get_by_role("button", name="Do not wait for write")).to_be_visible()
        page.locator("[data-step=review]").focus()
        page.keyboard.press("a")
        page.get_by_label("Its name").fill("last")
        page.get_by_label("Agent").select_option("writer")
        page.get_by_label("What it is told").fill("End it.")
        page.get_by_label("It waits for review").press("Space")
        page.get_by_role("button", name="Add it").press("Enter")
        expect(page.locator("[data-step=last]")).to_be_visible(timeout=60_000)
        save(page)
        assert (
            saved(site.served, "plain")
            == PLAIN.replace(
                "{id: check, subagent: reviewer, prompt",
                "{id: review, subagent: reviewer, depends_on: [write], prompt",
            )
            + "  - id: last\n    subagent: writer\n    prompt: End it.\n"
        )
        for _ in range(3):
            page.get_by_role("button", name="Undo").press("Enter")
        expect(page.locator("[data-step=check]")).to_be_visible(timeout=60_000)
        save(page)
        assert saved(site.served, "plain") == PLAIN
        assert site.errors == []


def test_an_edge_is_drawn_and_what_cannot_be_is_said(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK, {"plain": PLAIN}) as site:
        page = editor_of(site, "plain")
        page.locator("[data-step=find] .port").hover()
        page.mouse.down()
        page.locator("[data-step=check] rect").hover()
        page.mouse.up()
        expect(page.get_by_role("button", name="Do not wait for find")).to_be_visible()
        assert "depends_on: [find], prompt: 'x'" in shown(page)
        page.get_by_role("button", name="Do not wait for find").click()
        expect(page.locator(".waits")).to_contain_text("nothing")
        page.locator("[data-step=write] .port").hover()
        page.mouse.down()
        page.locator("[data-step=find] rect").hover()
        page.mouse.up()
        expect(page.get_by_role("alert")).to_contain_text("find → write → find")
        page.locator("[data-step=find]").click()
        page.get_by_role("button", name="Remove", exact=True).click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("line 9: step 'write' names 'find' in its prompt")
        dialog.get_by_role("button", name="Keep it").click()
        page.get_by_role("button", name="Remove", exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name="Remove it").click()
        expect(page.get_by_label("Problems")).to_contain_text("unknown step 'find'")
        refused = [each for each in site.errors if "Failed to load resource" not in each]
        assert refused == []


def test_only_what_can_be_named_is_offered_in_braces(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK, {"plain": PLAIN}) as site:
        page = editor_of(site, "plain")
        page.get_by_role("button", name="Insert a variable").click()
        expect(page.get_by_role("dialog")).to_contain_text("Nothing is filled in at line 1")
        page.get_by_role("button", name="Close").click()
        page.locator("[data-step=write]").click()  # the cursor goes to its line
        page.get_by_label("Text of the workflow").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("End")
        page.keyboard.press("ArrowLeft")
        page.keyboard.type(" {{")
        options = page.get_by_role("listbox").get_by_role("option")
        expect(options.first).to_be_visible(timeout=60_000)
        names = " ".join(options.all_text_contents())
        assert "steps.find.output" in names
        assert "steps.check.output" in names
        assert "steps.write" not in names
        page.keyboard.type("inp")
        expect(options.first).to_contain_text("inputs.topic", timeout=60_000)  # what Enter takes
        page.wait_for_timeout(150)  # a list that has just come takes no keys
        page.keyboard.press("Enter")
        expect(page.locator(".editor")).to_contain_text(
            '"{{steps.find.output}} and {{inputs.topic}}"'
        )
        page.keyboard.press("Control+End")
        page.keyboard.type("  - {id: z, suba")
        expect(page.get_by_role("listbox").get_by_role("option").first).to_contain_text(
            "subagent", timeout=60_000
        )
        page.wait_for_timeout(150)  # a list that has just come takes no keys
        page.keyboard.press("Tab")
        page.keyboard.type("resea")
        expect(page.get_by_role("listbox").get_by_role("option").first).to_contain_text(
            "researcher", timeout=60_000
        )
        assert site.errors == []


def test_a_file_that_was_changed_meanwhile_is_shown_beside_what_was_typed(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK, {"plain": PLAIN}) as site:
        page = editor_of(site, "plain")
        page.get_by_label("Text of the workflow").click()
        page.keyboard.press("Control+End")
        page.keyboard.type("# typed here")
        file = tmp_path / "workflows" / "plain.yaml"
        file.write_text(PLAIN.replace("# Mine.", "# Somebody's."))
        page.get_by_role("button", name="Save …", exact=True).click()
        page.get_by_role("button", name="Save", exact=True).click()
        told = page.get_by_role("alert")
        expect(told).to_contain_text("changed by somebody else", timeout=60_000)
        expect(told).to_contain_text("+# Somebody's.")
        expect(told).to_contain_text("+# typed here")
        assert "# typed here" in shown(page)
        assert file.read_text() == PLAIN.replace("# Mine.", "# Somebody's.")
        page.get_by_role("button", name="Keep mine").click()
        save(page)
        assert file.read_text() == PLAIN + "# typed here"


def test_what_is_not_edited_stays_byte_for_byte(browser: Browser, tmp_path: Path) -> None:
    named = {Path(name).stem: text for name, text in TEXTS.items() if name.endswith(".yaml")}
    named["windows"] = "\ufeff" + PLAIN.replace("plain", "windows").replace("\n", "\r\n")
    named["both"] = PLAIN.replace("plain", "both").replace("x'}\n", "x'}\r\n").rstrip()
    with opened_site(browser, tmp_path, QUICK) as site:
        folder = tmp_path / "workflows"
        for name, text in named.items():
            (folder / f"{name}.yaml").write_bytes(text.encode())
        page = site.page("/workflows")
        for name, text in named.items():
            page.goto(f"{site.served.url}/workflows/{name}?tab=edit")
            button = page.get_by_role("button", name="Save …", exact=True)
            expect(button).to_be_disabled(timeout=60_000)
            page.get_by_label("Text of the workflow").click()
            page.keyboard.press("Control+Home")
            page.keyboard.type("#")
            expect(button).to_be_enabled()
            page.keyboard.press("Backspace")
            expect(button).to_be_disabled()
            assert saved(site.served, name) == text
        for name in ("windows", "both"):
            page.goto(f"{site.served.url}/workflows/{name}?tab=edit")
            page.get_by_label("Text of the workflow").click()
            page.keyboard.press("Control+Home")
            page.keyboard.type("# more")
            page.keyboard.press("Enter")
            save(page)
            first = "\r\n" if name == "windows" else "\n"
            text = named[name]
            mark = "\ufeff" if text.startswith("\ufeff") else ""
            assert saved(site.served, name) == f"{mark}# more{first}{text.removeprefix(mark)}"
        assert site.errors == []


def test_the_editor_its_dialogs_and_forms_have_no_fault_of_accessibility(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK, {"plain": PLAIN, "broken": BROKEN}) as site:
        page = site.page("/workflows")

        def check(what: str, *clicks: str) -> None:
            page.goto(f"{site.served.url}{what}")
            page.wait_for_selector("main h1")
            expect(page.get_by_text("Loading …")).to_have_count(0)
            for name in clicks:
                page.get_by_role("button", name=name, exact=":" not in name).first.click()
            page.wait_for_timeout(300)
            assert (what, faults(page)) == (what, [])
            page.set_viewport_size({"width": 390, "height": 800})
            assert (what, page.evaluate("document.documentElement.scrollWidth")) == (what, 390)
            page.set_viewport_size({"width": 1280, "height": 900})

        edit = "/workflows/plain?tab=edit"
        check("/workflows/plain", "Validate")
        check("/workflows/broken?tab=edit")
        check("/workflows/broken?tab=text")
        check(edit, "find: researcher", "Add a step")
        check(edit, "Insert a variable")
        check(edit, "Save as …")
        check("/workflows?new")
        check("/triggers", "New trigger")
        check("/goals", "Set a goal")
        assert site.errors == []


def test_names_and_inputs_that_are_hostile_stay_words(browser: Browser, tmp_path: Path) -> None:
    hostile = f"""\
name: hostile
description: "{HOSTILE}"
inputs:
  - {{name: a, enum: ["{HOSTILE}", b], description: "{HOSTILE}", required: true}}
agents:
  mine: {{role: "{HOSTILE}", prompt: "{HOSTILE}"}}
steps:
  - {{id: one, agent: mine, prompt: "{{{{inputs.a}}}} {HOSTILE}", "{HOSTILE}": 1}}
  - {{id: "{HOSTILE}", agent: "{HOSTILE}", prompt: x}}
"""
    with opened_site(browser, tmp_path, QUICK, {"hostile": hostile}) as site:
        page = site.page("/workflows")
        for path in ("", "/hostile", "/hostile?tab=edit", "/hostile?tab=text"):
            page.goto(f"{site.served.url}/workflows{path}")
            page.wait_for_selector("main h1")
            page.wait_for_timeout(700)
            assert "hit" not in page.title()
            assert page.locator("main img").count() == 0
        assert site.errors == []
        assert site.strangers == []


def test_triggers_are_made_changed_and_deleted_and_a_goal_is_set(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK, {"gated": GATED}) as site:
        page = site.page("/triggers?for=gated")
        page.get_by_label("Its name").fill("nightly")
        page.get_by_label("minute, hour, day").fill("0 9 * * 1-5")
        page.get_by_label("By the clock of").fill("Asia/Tokyo")
        expect(
            page.locator("main").get_by_text("It runs at 09:00 from Monday to Friday.")
        ).to_be_visible()
        page.get_by_role("button", name="Make it").click()
        expect(page.get_by_role("alert")).to_contain_text("Still missing: topic.")
        page.get_by_label("topic").fill("tea")
        page.get_by_role("button", name="Make it").click()
        card = page.get_by_role("region", name="nightly")
        expect(card).to_contain_text("there, Asia/Tokyo", timeout=60_000)
        card.get_by_role("button", name="Edit").click()
        page.get_by_role("button", name="every hour").click()
        page.get_by_role("button", name="Save it").click()
        expect(card).to_contain_text("every hour, by the clock of Asia/Tokyo", timeout=60_000)
        card.get_by_role("button", name="Delete …").click()
        page.get_by_role("button", name="Delete it").click()
        expect(card).to_have_count(0, timeout=60_000)

        page.get_by_role("button", name="New trigger").click()
        page.get_by_label("When it is called").check()
        page.get_by_label("Its name").fill("hook")
        page.get_by_label("Starts the workflow").select_option("gated")
        page.get_by_role("button", name="Make it").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_label("Secret")).not_to_have_value("", timeout=60_000)
        secret = dialog.get_by_label("Secret").input_value()
        dialog.get_by_role("button", name="I have it").click()
        page.reload()
        page.get_by_role("region", name="hook").wait_for()
        assert secret not in page.content()

        page.goto(f"{site.served.url}/goals")
        page.get_by_role("button", name="Set a goal").click()
        page.get_by_label("What is to be so").fill("it is so")
        page.get_by_label("Which").fill("true")
        page.get_by_label("Iterations").fill("2")
        page.get_by_role("button", name="Set it").click()
        page.wait_for_url(re.compile(r"/goals/."))
        expect(page.get_by_role("heading", name="it is so")).to_be_visible(timeout=60_000)
        assert site.errors == []


def test_words_become_a_draft_that_is_saved_and_run_once_it_is_approved(
    browser: Browser, tmp_path: Path
) -> None:
    lines = "".join(f"    {line}\n" for line in PLAIN.replace("plain", "drafted").splitlines())
    with opened_site(browser, tmp_path, f"{QUICK}draft:\n  - |\n{lines}") as site:
        page = site.page("/workflows?new")
        page.get_by_label("What is to be done").fill("find, then write, then check")
        page.get_by_role("button", name="Draft it").click()
        expect(page.get_by_label("Recipe", exact=True)).to_contain_text("id: find", timeout=60_000)
        assert not (tmp_path / "workflows" / "drafted.yaml").exists()
        page.get_by_role("button", name="Open in the editor").click()
        expect(page.locator("[data-step=check]")).to_be_visible(timeout=60_000)
        page.go_back()
        page.get_by_label("What is to be done").fill("find, then write, then check")
        page.get_by_role("button", name="Draft it").click()
        page.get_by_role("button", name="Approve and run").click(timeout=60_000)
        expect(page.get_by_role("alert")).to_contain_text("Still missing: topic.")
        page.get_by_role("textbox", name="topic").fill("tea")
        page.get_by_role("button", name="Approve and run").click()
        page.wait_for_url(re.compile(r"/runs/\d"))
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=60_000)
        assert site.errors == []
