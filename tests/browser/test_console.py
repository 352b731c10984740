"""The console in a real browser: it shows what happens, as it happens, and never what is not so."""

import json
import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from browser.conftest import GATED, faults, opened_site
from support.hostile_markdown import hostile

QUICK = "default: {reply: 'An answer.', tokens: 5}\n"
PAGES = (
    *("/workflows", "/workflows/gated", "/workflows/gated?tab=edit", "/workflows/gated?tab=text"),
    *(
        "/runs",
        "/approvals",
        "/chat",
        "/single",
        "/goals",
        "/triggers",
        "/playbooks",
        "/agents",
        "/settings",
    ),
)


def seen_states(page: Page, step: str) -> None:
    """Note every state that the list shows for a step, from now on."""
    page.evaluate(
        """step => {
            window.seen = []
            const look = () => {
                const link = [...document.querySelectorAll('tbody a')].find(a => a.textContent === step)
                const state = link?.closest('tr')?.querySelector('.state')?.textContent
                if (state && window.seen.at(-1) !== state) window.seen.push(state)
            }
            look()
            new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true})
        }""",
        step,
    )


def test_the_states_of_a_step_are_seen_as_they_change(browser: Browser, tmp_path: Path) -> None:
    script = "default: {reply: 'An answer.', delay: 3s}\n"
    with opened_site(browser, tmp_path, script) as site:
        page = site.page(f"/runs/{site.start('slow')}")
        page.wait_for_selector("text=second")
        seen_states(page, "second")
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=60_000)
        assert page.evaluate("window.seen") == ["waiting", "running", "succeeded"]
        assert site.errors == []


def test_a_workflow_is_run_approved_and_done_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/workflows/gated")
        page.get_by_role("button", name="Run", exact=True).press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("Still missing: topic.")
        page.get_by_label("topic").press_sequentially("tea")
        page.get_by_role("button", name="Run", exact=True).press("Enter")
        page.wait_for_url(re.compile(r"/runs/\d"))
        page.get_by_role("button", name="Approve", exact=True).press("Enter", timeout=60_000)
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=60_000)
        assert site.errors == []


def test_of_two_tabs_that_decide_the_second_is_told_what_stands(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        site.start("gated", topic="tea")
        one, two = site.page("/approvals"), site.page("/approvals")
        for page in (one, two):
            page.wait_for_selector("section.asking", timeout=60_000)
        # The second tab sees nothing of the first decision before it decides.
        two.route("**/api/approvals", lambda route: route.abort())
        one.get_by_role("button", name="Approve", exact=True).click()
        one.wait_for_selector(".empty", timeout=60_000)
        two.get_by_role("button", name="Reject").click()
        said = two.locator("main").get_by_text("Already decided.")
        expect(said).to_be_visible(timeout=60_000)
        expect(two.get_by_role("status")).to_contain_text("Already decided.")


def test_nothing_that_a_model_says_runs_or_is_asked_for(browser: Browser, tmp_path: Path) -> None:
    texts = hostile("http://127.0.0.1:9")
    # What no script can hold is left to the tests of the text filter.
    said = "\n\n".join(text for text in texts if text.isprintable() or "\n" in text)
    script = f"default: {{reply: {json.dumps(said, ensure_ascii=False)}}}\n"
    with opened_site(browser, tmp_path, script) as site:
        run = site.start("slow")
        page = site.page(f"/runs/{run}")
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=60_000)
        for path in ("?step=first", "?tab=events", "?tab=report", "?tab=timeline"):
            page.goto(f"{site.served.url}/runs/{run}{path}")
            page.wait_for_selector("main h1")
            page.wait_for_timeout(500)  # for what would run late
            assert "hit" not in page.title()
        assert site.errors == []
        assert site.strangers == []


def test_no_page_has_a_fault_of_accessibility(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        run = site.start("gated", topic="tea")
        page = site.page("/workflows")
        for path in (
            *PAGES,
            f"/runs/{run}",
            f"/runs/{run}?tab=timeline",
            f"/runs/{run}?tab=events",
        ):
            page.goto(site.served.url + path)
            page.wait_for_selector("main h1")
            expect(page.get_by_text("Loading …")).to_have_count(0)
            assert (path, faults(page)) == (path, [])


def test_no_page_scrolls_sideways_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        run = site.start("gated", topic="tea")
        page = site.page("/workflows")
        page.set_viewport_size({"width": 390, "height": 800})
        for path in (*PAGES, f"/runs/{run}"):
            page.goto(site.served.url + path)
            page.wait_for_selector("main h1")
            expect(page.get_by_text("Loading …")).to_have_count(0)
            assert (path, page.evaluate("document.documentElement.scrollWidth")) == (path, 390)


def test_an_edit_keeps_every_other_byte_and_no_edit_saves_nothing(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/workflows/gated?tab=edit")
        save = page.get_by_role("button", name="Save …")
        editor = page.get_by_label("Text of the workflow")
        editor.click()
        expect(save).to_be_disabled()
        page.keyboard.press("Control+End")
        page.keyboard.type("# more")
        expect(save).to_be_enabled()
        save.click()
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text("Nothing has changed.")).to_be_visible(timeout=60_000)
        file = tmp_path / "workflows" / "gated.yaml"
        assert file.read_text(encoding="utf-8") == GATED + "# more"


def test_a_run_of_five_hundred_steps_is_painted_and_filtered(
    browser: Browser, tmp_path: Path
) -> None:
    steps = [f"  - {{id: s{n}, subagent: researcher, prompt: x}}" for n in range(499)]
    wide = "name: wide\nsteps:\n" + "\n".join(steps) + "\n"
    wide += "  - {id: join, subagent: writer, depends_on: [s0, s498], prompt: y}\n"
    with opened_site(browser, tmp_path, QUICK, {"wide": wide}) as site:
        page = site.page(f"/runs/{site.start('wide')}")
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=120_000)
        assert page.locator(".graph .node").count() < 20, "those that are alike are one box"
        page.get_by_role("button", name="Show every step").click()
        expect(page.locator(".graph .node")).to_have_count(500)
        page.get_by_label("Filter the steps").fill("s49")
        expect(page.locator("tbody tr")).to_have_count(10)
        assert site.errors == []


def test_a_token_in_the_form_logs_in(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        stranger = browser.new_context()
        page = stranger.new_page()
        page.goto(f"{site.served.url}/runs")
        page.get_by_label("Token").fill(site.served.token)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", name="Runs")).to_be_visible(timeout=60_000)
        stranger.close()
