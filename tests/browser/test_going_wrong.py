"""What goes wrong round a page: it says so, keeps what was typed, and goes on by itself where it can."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from browser.conftest import Site, opened_site
from browser.test_quality import come_to, posted
from browser.test_run_page import ended_run

QUICK = "default: {reply: 'An answer.', tokens: 5}\n"
PATIENCE = 60_000
TYPED = """
name: typed
inputs: [{name: them, type: json}, {name: many, type: number}]
steps: [{id: one, subagent: researcher, prompt: "{{inputs.them}} {{inputs.many}}"}]
"""


def refused(status: int, kind: str, message: str) -> dict[str, object]:
    error = {"kind": kind, "message": message, "details": {}}
    return {"status": status, "body": json.dumps({"ok": False, "error": error})}


def end_session(page: Page) -> None:
    page.evaluate(
        """() => fetch('/api/session').then(r => r.json()).then(({csrf}) =>
            fetch('/api/session', {method: 'DELETE', headers: {'X-CSRF-Token': csrf}}))"""
    )


def log_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()


def test_a_session_that_ends_while_somebody_types_is_opened_again_on_the_page(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/workflows/gated")
        page.get_by_label("topic").fill("tea for two")
        end_session(page)
        # The page itself may notice first: its dialog lies over the button then.
        page.get_by_role("button", name="Run", exact=True).dispatch_event("click")
        dialog = page.get_by_role("dialog", name="You are logged out")
        expect(dialog).to_be_visible(timeout=PATIENCE)
        log_in(page, "nobody's")
        expect(dialog).to_contain_text("This token does not count here.")
        log_in(page, site.served.token)
        expect(dialog).to_have_count(0)
        expect(page.get_by_label("topic")).to_have_value("tea for two")
        page.get_by_role("button", name="Run", exact=True).click()
        page.wait_for_url("**/runs/*")


def test_an_answer_to_what_was_asked_before_the_session_ended_opens_no_session(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.session.new_page()
        held: list[Route] = []
        page.route("**/api/runs?limit=20", lambda route: held.append(route))
        page.goto(f"{site.served.url}/single")
        page.get_by_label("What to do").fill("Say hello.")
        no = refused(401, "unauthenticated", "no")
        page.route("**/api/**", lambda route: route.fulfill(**no))  # type: ignore[arg-type]
        page.get_by_role("button", name="Run", exact=True).dispatch_event("click")
        dialog = page.get_by_role("dialog", name="You are logged out")
        expect(dialog).to_be_visible(timeout=PATIENCE)
        dialog.get_by_label("Token").fill("half a tok")
        with page.expect_response("**/api/runs?limit=20"):
            held[0].continue_()
        page.wait_for_timeout(1_000)
        expect(dialog.get_by_label("Token")).to_have_value("half a tok")


def test_what_another_tab_has_logged_in_again_goes_on_in_this_one(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/workflows/gated")
        page.get_by_label("topic").fill("tea for two")
        page.get_by_role(
            "button", name="Validate"
        ).click()  # the proof of this session is known now
        expect(page.get_by_text("No problems, and no warnings.")).to_be_visible()
        end_session(page)
        other = site.session.new_page()
        other.goto(f"{site.served.url}/runs")
        log_in(other, site.served.token)
        expect(other.locator("main h1")).to_be_visible(timeout=PATIENCE)
        page.get_by_role("button", name="Run", exact=True).click()
        page.wait_for_url("**/runs/*")


@pytest.mark.parametrize(
    ("status", "kind"), [(500, "internal"), (429, "too_many"), (507, "disk_full"), (503, "closing")]
)
def test_a_refusal_that_may_pass_is_said_and_asked_again(
    browser: Browser, tmp_path: Path, status: int, kind: str
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        run = ended_run(site, "slow")
        page = site.page("/workflows")
        answer = refused(status, kind, "No room for more.")
        page.route("**/api/runs?*", lambda route: route.fulfill(**answer))  # type: ignore[arg-type]
        page.get_by_role("link", name="Runs", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("No room for more.")
        expect(page.get_by_role("alert")).to_contain_text("tries again by itself")
        page.unroute("**/api/runs?*")
        expect(page.get_by_title(run)).to_be_visible(timeout=PATIENCE)
        expect(page.get_by_role("alert")).to_have_count(0)


def _new_secret(site: Site, page: Page) -> str:
    posted(site, "/api/hooks", {"name": "called", "workflow": "slow"})
    come_to(page, site, "/triggers")
    page.get_by_role("button", name="New secret …").click()
    return "Make a new secret"


def _log_out(site: Site, page: Page) -> str:
    come_to(page, site, "/settings")
    page.get_by_role("button", name="Log out everywhere …").click()
    return "Log out everywhere"


def _restore(site: Site, page: Page) -> str:
    for why in ("one", "two"):
        text = {"recipe": f"name: slow\nsteps: [{{id: a, subagent: writer, prompt: {why}}}]\n"}
        assert site.served.client().put("/api/workflows/slow", json=text).status_code == 200
    come_to(page, site, "/workflows/slow?tab=versions")
    page.get_by_role("button", name="Restore …").first.click()
    return "Restore it"


@pytest.mark.parametrize("opened", [_new_secret, _log_out, _restore])
def test_what_fails_in_a_dialog_is_said_in_the_dialog(
    browser: Browser, tmp_path: Path, opened: object
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/runs")
        button = opened(site, page)  # type: ignore[operator]

        def refuse(route: Route) -> None:
            if route.request.method == "GET":
                route.continue_()
            else:
                route.fulfill(**refused(507, "disk_full", "No room for more."))  # type: ignore[arg-type]

        page.route("**/api/**", refuse)
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name=button, exact=True).click()
        expect(dialog.get_by_role("alert")).to_contain_text("No room for more.")


@pytest.mark.parametrize(
    "path", ["/runs/%E0%A4%A", "/workflows/100%", "/goals/%ff", "/runs/x?step=%"]
)
def test_an_address_that_means_nothing_leaves_the_way_to_the_other_pages(
    browser: Browser, tmp_path: Path, path: str
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page(path)
        expect(page.get_by_role("alert")).to_be_visible()
        expect(page.locator("main h1")).to_be_visible()
        page.get_by_role("link", name="Goals", exact=True).click()
        expect(page.get_by_role("heading", name="Goals")).to_be_visible()


def test_a_page_that_breaks_says_so_and_leaves_the_others(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/workflows")
        wrong = {"status": 200, "body": json.dumps({"ok": True, "runs": [{}], "next": None})}
        page.route(re.compile(r"/api/runs\??$"), lambda route: route.fulfill(**wrong))  # type: ignore[arg-type]
        page.get_by_role("link", name="Runs", exact=True).click()
        expect(page.get_by_role("heading", name="This page broke")).to_be_visible()
        page.get_by_role("link", name="Goals", exact=True).click()
        expect(page.get_by_role("heading", name="Goals")).to_be_visible()


def test_a_step_and_a_tab_that_are_not_there_are_said(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        run = ended_run(site, "slow")
        for step in ("nobody", "toString"):
            page = site.page(f"/runs/{run}?step={step}")
            expect(page.get_by_text(f"This run has no step {step}.")).to_be_visible()
        page.goto(f"{site.served.url}/runs/{run}?tab=nothing")
        expect(page.get_by_role("link", name="second").first).to_be_visible()
        assert site.errors == []


def test_what_is_no_json_and_no_number_is_never_left_out_of_a_run(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK, {"typed": TYPED}) as site:
        page = site.page("/workflows/typed")
        page.get_by_label("them").fill("{no json")
        page.get_by_label("many").fill("three")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("them: this is no JSON")
        expect(page.get_by_role("alert")).to_contain_text("many: this is no number")
        assert site.served.client().get("/api/runs").json()["runs"] == []
        page.get_by_label("them").fill("[1]")
        page.get_by_label("many").fill("3")
        page.get_by_role("button", name="Run", exact=True).click()
        page.wait_for_url("**/runs/*")
        run = page.url.rsplit("/", 1)[1]
        assert site.served.client().get(f"/api/runs/{run}").json()["inputs"] == {
            "them": [1],
            "many": 3,
        }


def test_a_trigger_is_edited_with_the_inputs_that_it_has(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK, {"typed": TYPED}) as site:
        body = {"name": "t", "workflow": "typed", "cron": "0 6 * * *"}
        posted(site, "/api/schedules", {**body, "inputs": {"them": [1], "many": 3}})
        page = site.page("/triggers")
        page.get_by_role("button", name="Edit", exact=True).click()
        expect(page.get_by_label("them")).to_have_value("[\n  1\n]")
        expect(page.get_by_label("many")).to_have_value("3")


def is_quiet(page: Page) -> bool:
    """Whether the page stops asking. What it still loads at its start may come late."""
    asked: list[str] = []
    page.on("request", lambda r: asked.append(r.url))
    for _ in range(15):
        asked.clear()
        page.wait_for_timeout(2_000)
        if not asked:
            return True
    return False


def test_a_message_that_could_not_be_sent_is_not_waited_for(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/chat")

        def refuse(route: Route) -> None:
            if route.request.method == "GET":
                route.continue_()
            else:
                route.fulfill(**refused(507, "disk_full", "No room for more."))  # type: ignore[arg-type]

        page.route("**/api/chats", refuse)
        page.get_by_label("Ask the lead agent").fill("hello")
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("alert")).to_contain_text("No room for more.")
        expect(page.get_by_label("Ask the lead agent")).to_have_value("hello")
        assert is_quiet(page)


def test_what_is_typed_while_the_lead_agent_works_is_kept(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, "default: {reply: 'An answer.', delay: 2s}\n") as site:
        chat = posted(site, "/api/chats", {"text": "hello"})["chat"]
        page = site.page(f"/chat/{chat}")
        box = page.get_by_label("Your message")
        box.fill("and now?")
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("button", name="The lead agent works …")).to_be_visible()
        box.fill("and then?")
        expect(page.get_by_role("region", name="Turn 2")).to_contain_text(
            "An answer.", timeout=PATIENCE
        )
        expect(page.get_by_role("button", name="Send")).to_be_enabled(timeout=PATIENCE)
        expect(box).to_have_value("and then?")


def test_more_runs_are_shown_without_a_gap_when_one_begins(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        before = [ended_run(site, "slow") for _ in range(53)]
        page = site.page("/runs")
        rows = page.get_by_role("checkbox")
        expect(rows).to_have_count(50)
        page.get_by_role("button", name="Show more").click()
        expect(rows).to_have_count(53)
        after = [ended_run(site, "slow") for _ in range(2)]
        expect(page.get_by_title(after[-1])).to_be_visible(timeout=PATIENCE)
        shown = page.locator("td [title]").evaluate_all("all => all.map(each => each.title)")
        assert set(before + after) <= set(shown)
        expect(rows).to_have_count(55)


def test_a_workflow_that_ran_before_the_last_runs_is_not_said_to_have_never_run(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/goals")
        rows = site.served.client().get("/api/runs").json()
        page.route(
            "**/api/runs?limit=*",
            lambda route: route.fulfill(json={**rows, "runs": [], "next": "older"}),
        )
        page.get_by_role("link", name="Workflows", exact=True).click()
        row = page.get_by_role("row", name="slow")
        expect(row).to_contain_text("not among the last")
        expect(page.get_by_text("never", exact=True)).to_have_count(0)
