"""Where the focus is and what is said, for whoever works by keys or by ear."""

import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from browser.conftest import opened_site
from browser.test_quality import come_to, posted

QUICK = "default: {reply: 'An answer.', tokens: 5}\n"
PATIENCE = 60_000
TWO_GATES = """
name: two-gates
steps:
  - {id: early, subagent: researcher, prompt: "Slow."}
  - {id: first, subagent: researcher, gate: human, depends_on: [early], prompt: "One."}
  - {id: second, subagent: researcher, gate: human, prompt: "Two."}
"""
SLOW_ONE = "default: {reply: 'An answer.'}\nreplies: {early: {reply: x, delay: 3s}}\n"


def focused(page: Page) -> str:
    words: str = page.evaluate("document.activeElement.textContent.trim()")
    return words


def test_a_page_that_is_gone_to_is_heard_by_its_heading_and_named_with_what_waits(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        site.start("gated", topic="tea")
        page = site.page("/runs")
        expect(page).to_have_title("(1) Runs · Stretto", timeout=PATIENCE)
        page.locator("td.title a").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("h1 .state")).to_have_text("waiting")
        expect(page.locator("h1")).to_be_focused()
        expect(page).to_have_title("(1) waiting · gated · Stretto")
        page.get_by_role("link", name="Goals", exact=True).press("Enter")
        expect(page.get_by_role("heading", name="Goals")).to_be_focused()
        expect(page).to_have_title("(1) Goals · Stretto")
        page.go_back()
        expect(page.locator("h1 .state")).to_have_text("waiting")
        expect(page.locator("h1")).to_be_focused()
        page.goto(f"{site.served.url}/runs/nobody")
        expect(page.get_by_role("alert")).to_be_visible()
        expect(page).to_have_title("(1) Run · Stretto")


def test_a_button_that_is_off_while_it_works_has_the_focus_afterwards(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/workflows/gated")
        button = page.get_by_role("button", name="Validate")
        button.press("Enter")
        expect(page.get_by_text("No problems, and no warnings.")).to_be_visible()
        expect(button).to_be_focused()


def test_what_is_decided_hands_the_focus_on_nearby(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        for topic in ("tea", "coffee"):
            site.start("gated", topic=topic)
        page = site.page("/approvals")
        expect(page.locator("section.asking")).to_have_count(2, timeout=PATIENCE)
        page.get_by_role("button", name="Approve", exact=True).first.press("Enter")
        expect(page.locator("section.asking")).to_have_count(1, timeout=PATIENCE)
        expect(page.get_by_role("heading", name="Approvals")).to_be_focused()
        body = {"name": "nightly", "workflow": "slow", "cron": "0 6 * * *"}
        posted(site, "/api/schedules", body)
        come_to(page, site, "/triggers")
        page.get_by_role("button", name="Pause").press("Enter")
        expect(page.get_by_role("button", name="Go on")).to_be_visible()
        page.wait_for_timeout(300)
        assert page.evaluate("document.activeElement.closest('section')?.ariaLabel") == "nightly"
        page.get_by_role("button", name="Delete …").press("Enter")
        page.get_by_role("button", name="Delete it").press("Enter")
        expect(page.get_by_role("heading", name="Triggers")).to_be_focused()


def test_what_is_said_twice_is_heard_twice_in_the_one_region(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/workflows/gated")
        page.evaluate(
            """() => {
                window.heard = []
                const region = document.querySelector('[aria-live=polite]')
                const hear = () => region.textContent === window.heard.at(-1) || window.heard.push(region.textContent)
                const look = () => region.textContent && hear()
                new MutationObserver(look).observe(region, {subtree: true, childList: true, characterData: true})
            }"""
        )
        for times in (1, 2):
            page.get_by_role("button", name="Validate").click()
            page.wait_for_function("times => window.heard.length === times", arg=times)
        heard = [each.strip() for each in page.evaluate("window.heard")]
        assert heard == ["0 problems and 0 warnings."] * 2


def test_there_is_one_polite_region_whatever_a_page_has_to_say(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/workflows/gated")
        page.get_by_role("button", name="Validate").click()
        expect(page.get_by_text("No problems, and no warnings.")).to_be_visible()
        for path in ("/workflows/gated", "/triggers?for=slow", "/workflows/gated?tab=edit"):
            if path != "/workflows/gated":
                come_to(page, site, path)
                page.wait_for_timeout(600)
            # The text editor's own is of the text that is edited.
            polite = ":is([role=status], [role=log], [aria-live=polite]):not(.cm-announced)"
            assert page.locator(polite).count() == 1, path


def test_what_somebody_types_at_a_gate_does_not_give_way_to_another_gate(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, SLOW_ONE, {"two-gates": TWO_GATES}) as site:
        page = site.page(f"/runs/{site.start('two-gates')}")
        gate = page.get_by_role("region", name="Approval of second")
        gate.get_by_label("Reason").fill("not on a Friday")
        expect(page.get_by_role("row", name=re.compile("^first . awaiting"))).to_be_visible(
            timeout=PATIENCE
        )
        page.wait_for_timeout(500)
        expect(gate.get_by_label("Reason")).to_have_value("not on a Friday")
