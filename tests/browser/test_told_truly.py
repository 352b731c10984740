"""What the console says of work is so: how it stands, why it did not begin, what is gone, what limits it."""

import itertools
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from browser.conftest import CHROMIUM, FLAGS, SLOW, Site, faults, opened_site
from browser.test_going_wrong import end_session, log_in, refused
from browser.test_quality import come_to, posted
from browser.test_run_page import ended_run, model_site
from stretto.server.process import ServeOptions
from stretto.testing.openai_script import Asked, Said, Status, ToolCall
from support.served import served

QUICK = "default: {reply: 'An answer.', tokens: 5}\n"
PATIENCE = 60_000
RIVALS = """
name: rivals
agents: {scribe: {prompt: Write., tools: [Write]}}
steps:
  - {id: one, agent: scribe, prompt: go, write_set: ["out/**"], workspace_mode: shared}
  - {id: two, agent: scribe, prompt: go, write_set: ["out/*.txt"], workspace_mode: shared}
"""
AGAIN = """
name: again
steps:
  - {id: hard, subagent: researcher, prompt: x, retry: {max_attempts: 20, backoff: exponential}}
  - {id: after, subagent: researcher, depends_on: [hard], prompt: y}
"""


@pytest.mark.parametrize("path", ["/goals", "/settings", "/triggers", "/chat", "/approvals"])
def test_a_page_without_runs_knows_when_anything_happened_last(
    browser: Browser, tmp_path: Path, path: str
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        ended_run(site, "slow")
        page = site.page(path)
        expect(page.locator(".freshness")).to_contain_text(
            re.compile("last event (now|[0-9]+ s ago)")
        )


def delegating(asked: Asked) -> Said | Status:
    tasks = [{"agent": "writer", "prompt": "Do the hard one"}, {"agent": "writer", "prompt": "Ok"}]
    if "hard one" in asked.prompt:
        return Status(400, "no such word")
    if "two things" not in asked.prompt or asked.messages[-1].get("role") == "tool":
        return Said("Done.")
    gated = {"name": "gated", "inputs": {"topic": "tea"}}
    calls = (ToolCall("task_batch", {"tasks": tasks}), ToolCall("run_workflow", gated))
    return Said("", tool_calls=calls)


def test_a_delegation_has_the_state_of_its_run(browser: Browser, tmp_path: Path) -> None:
    with model_site(browser, tmp_path, delegating) as site:
        chat = posted(site, "/api/chats", {"text": "Do two things."})["chat"]
        page = site.page(f"/chat/{chat}")
        cards = page.locator("main .task > details > summary .state")
        expect(cards).to_have_text(["partial", "waiting"], timeout=PATIENCE)
        assert site.errors == []


def test_run_now_says_why_nothing_has_begun(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        posted(site, "/api/schedules", {"name": "t", "workflow": "slow", "cron": "0 6 * * *"})
        page = site.page("/triggers")
        page.get_by_role("button", name="Run now").click()
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=PATIENCE)
        assert site.errors == [], "nothing is shown as missing that has not begun yet"
        (tmp_path / "workflows" / "slow.yaml").unlink()
        come_to(page, site, "/triggers")
        card = page.get_by_role("region", name="t", exact=True)
        expect(card).to_contain_text("There is no workflow slow any more")
        card.get_by_role("button", name="Run now").click()
        expect(card.get_by_role("alert")).to_contain_text(
            "there is no saved workflow", timeout=PATIENCE
        )
        expect(page.get_by_role("heading", name="Triggers")).to_be_visible()


@pytest.mark.parametrize(
    ("field", "typed", "says"),
    [
        ("Iterations", "ten", "Iterations: give a whole number"),
        ("Tokens", "2 million", "“2 million” is no whole number"),
        ("US dollars", "1,50", "“1,50” is no amount"),
    ],
)
def test_a_limit_that_is_none_is_told_and_not_left_out(
    browser: Browser, tmp_path: Path, field: str, typed: str, says: str
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/goals")
        page.get_by_role("button", name="Set a goal").click()
        page.get_by_label("What is to be so").fill("It is green")
        page.get_by_label("Which").fill("true")
        page.get_by_label(field).fill(typed)
        page.get_by_role("button", name="Set it").click()
        expect(page.get_by_role("alert")).to_contain_text(says)
        expect(page.get_by_label(field)).to_have_value(typed)
        assert site.served.client().get("/api/goals").json()["goals"] == []
        page.get_by_label(field).fill("3")
        page.get_by_role("button", name="Set it").click()
        page.wait_for_url("**/goals/g-*")


def test_a_save_that_finds_the_file_gone_makes_it_anew(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "workflows" / "slow.yaml"
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/workflows/slow?tab=edit")
        page.get_by_label("Text of the workflow").click()
        page.keyboard.press("Control+End")
        page.keyboard.type("# more")
        file.unlink()
        page.get_by_role("button", name="Save …").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Save", exact=True).click()
        expect(dialog.get_by_role("alert")).to_contain_text("The file was deleted meanwhile.")
        assert not file.exists()
        dialog.get_by_role("button", name="Save", exact=True).click()
        expect(dialog).to_have_count(0)
        assert file.read_text() == SLOW + "# more"


def test_what_is_not_there_leads_to_what_is(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/workflows/nobody")
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("there is no workflow 'nobody'")
        expect(alert).not_to_contain_text("GET /api")
        assert faults(page) == []
        alert.get_by_role("link", name="See all that are there").click()
        expect(page.get_by_role("link", name="slow", exact=True)).to_be_visible()


@pytest.mark.parametrize("name", ["Weekly digest", "Übersicht", "100%", "#1"])
def test_a_workflow_that_a_person_named_in_words_is_opened_and_run(
    browser: Browser, tmp_path: Path, name: str
) -> None:
    recipe = SLOW.replace("name: slow", f"name: '{name}'")
    with opened_site(browser, tmp_path, QUICK, {"named": recipe}) as site:
        page = site.page("/workflows")
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(name)
        page.get_by_role("link", name="Versions", exact=True).click()
        expect(page.get_by_text("Each save through Stretto")).to_be_visible()
        page.get_by_role("link", name="Run", exact=True).click()
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=PATIENCE)
        expect(page.get_by_text("edited since")).to_have_count(0)
        assert site.errors == []


def test_the_files_that_a_step_waits_for_keep_their_stars(browser: Browser, tmp_path: Path) -> None:
    script = "default: {reply: x, delay: 20s}\n"
    with opened_site(browser, tmp_path, script, {"rivals": RIVALS}) as site:
        body = {"wait": False, "permission": "auto"}
        run = posted(site, "/api/workflows/rivals/run", body)["run_id"]
        page = site.page(f"/runs/{run}?step=")
        waiting = page.locator(".task", has_text="two")
        expect(waiting).to_contain_text("waits for the files of one (out/**)", timeout=PATIENCE)


def test_a_countdown_stands_beside_what_it_counts_down_to(browser: Browser, tmp_path: Path) -> None:
    script = "default: x\nreplies: {hard: {fail: 'no such word'}}\n"
    with opened_site(browser, tmp_path, script, {"again": AGAIN}) as site:
        page = site.page(f"/runs/{site.start('again')}?step=")
        expect(page.locator("tr.why").first).to_have_text(
            re.compile(r"failed \(no such word\); tries again in \d+ s · \d+ attempts"),
            timeout=PATIENCE,
        )


def lose(page: Page) -> None:
    """The connection, and with it what is shown: it is of before."""
    page.route("**/api/**", lambda route: route.abort())
    page.evaluate("dispatchEvent(new Event('focus'))")


def test_what_is_dimmed_can_be_read_and_has_no_colour(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        run = ended_run(site, "slow")
        page = site.page("/workflows")
        expect(page.get_by_role("link", name="slow", exact=True)).to_be_visible()
        lose(page)
        expect(page.locator(".stale").first).to_be_visible(timeout=PATIENCE)
        assert faults(page) == []
        page.unroute("**/api/**")
        come_to(page, site, f"/runs/{run}")
        colour = "getComputedStyle(document.querySelector('h1 .state')).color"
        before = page.evaluate(colour)
        page.evaluate("document.querySelector('main > div').classList.add('stale')")
        assert page.evaluate(colour) != before
        assert faults(page) == []


def test_who_may_not_know_who_asks_is_told_so_and_not_that_nobody_answers(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        full = refused(507, "disk_full", "No room for more.")

        def refuse(route: Route) -> None:
            route.fulfill(**full)  # type: ignore[arg-type]

        # Before the page is opened: it may ask by itself, and asks only once.
        site.session.route("**/api/session", refuse)
        page = site.page("/workflows/slow")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("No room for more.")


def apart(site: Site, page: Page, path: str, selector: str) -> None:
    come_to(page, site, path)
    boxes = page.locator(selector).evaluate_all(
        "all => all.map(each => each.getBoundingClientRect()).filter(each => each.width)"
        ".map(({left, right}) => [left, right])"
    )
    assert len(boxes) > 1
    for (_, end), (begin, _) in itertools.pairwise(boxes):
        assert end <= begin, f"{selector} run into each other: {boxes}"


def test_a_phone_shows_moments_apart_the_whole_search_and_the_step_that_was_asked_for(
    browser: Browser, tmp_path: Path
) -> None:
    script = "default: {reply: 'An answer.', delay: 500ms}\n"
    with opened_site(browser, tmp_path, script) as site:
        run = ended_run(site, "slow")
        page = site.page("/runs")
        page.set_viewport_size({"width": 390, "height": 800})
        apart(site, page, f"/runs/{run}?tab=timeline", ".axis span, .gantt th.num")
        come_to(page, site, "/runs")
        search = page.get_by_label("Text in id, workflow or inputs")
        assert search.evaluate("each => each.getBoundingClientRect().width") > 300
        come_to(page, site, f"/runs/{run}?step=second")
        page.wait_for_function(
            "() => Math.abs(document.querySelector('.detail').getBoundingClientRect().top) < 40"
        )


def test_who_is_logged_out_elsewhere_is_asked_who_they_are_before_they_do_anything(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page, other = site.page("/runs"), site.page("/settings")
        expect(page.locator(".freshness .state")).to_have_text("live")
        end_session(other)
        ended_run(site, "slow")  # of which the stream cannot tell any more
        expect(page.get_by_role("dialog", name="You are logged out")).to_be_visible()
        expect(page.locator(".freshness .state")).to_have_text("logged out")
        log_in(page, site.served.token)
        expect(page.locator(".freshness .state")).to_have_text("live")
        expect(page.get_by_role("link", name="slow", exact=True)).to_be_visible()


def test_a_page_that_came_over_plain_http_says_what_to_open_instead(
    browser: Browser, tmp_path: Path
) -> None:
    flags = [*FLAGS, "--host-resolver-rules=MAP stretto.test 127.0.0.1"]
    options = ServeOptions("127.0.0.1", 0, hosts=("stretto.test",))
    with served(tmp_path, {"slow": SLOW}, {}, options) as at:
        stranger = browser.browser_type.launch(executable_path=CHROMIUM, args=flags)
        page = stranger.new_page()
        page.goto(at.url.replace("127.0.0.1", "stretto.test") + "/runs")
        log_in(page, at.token)
        expect(page.get_by_role("heading", name="The console needs a safe address")).to_be_visible()
        assert faults(page) == []
        stranger.close()


def test_a_retry_from_the_step_that_failed_is_at_hand_without_choosing_it(
    browser: Browser, tmp_path: Path
) -> None:
    script = "default: x\nreplies: {second: {fail: 'no such word'}}\n"
    with opened_site(browser, tmp_path, script) as site:
        run = ended_run(site, "slow")
        page = site.page(f"/runs/{run}?tab=timeline")
        page.get_by_text("Retry ▾").click()
        page.get_by_role("button", name="From second on").click()
        page.wait_for_url(lambda url: "/runs/" in url and run not in url)


def test_what_somebody_types_at_a_gate_stays_when_another_tab_decides(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        run = site.start("gated", topic="tea")
        one, two = site.page("/approvals"), site.page("/approvals")
        typing = two.get_by_label("Reason")
        expect(typing).to_be_visible(timeout=PATIENCE)
        typing.press_sequentially("It names nobody")
        one.get_by_role("button", name="Approve", exact=True).click()
        expect(one.locator("section.asking")).to_have_count(0, timeout=PATIENCE)
        said = two.locator("section.asking")
        expect(said).to_contain_text("It was decided elsewhere", timeout=PATIENCE)
        expect(typing).to_have_value("It names nobody")
        expect(typing).to_be_focused()
        expect(said.get_by_role("link", name="See its run")).to_have_attribute(
            "href", f"/runs/{run}?step=publish"
        )
        assert faults(two) == []
        said.get_by_role("button", name="Close this").click()
        expect(two.get_by_text("Nothing waits now.")).to_be_visible()
        assert site.errors == []


TYPED = """
name: typed
inputs: [{name: tone, enum: [plain, formal], required: true}, {name: many, type: number, default: 3}]
steps: [{id: one, subagent: researcher, prompt: "{{inputs.tone}} {{inputs.many}}"}]
"""


def test_a_retry_with_other_inputs_asks_for_them_as_the_workflow_does(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK, {"typed": TYPED}) as site:
        page = site.page(f"/runs/{ended_run(site, 'typed', tone='plain', many=7)}")
        page.get_by_text("Retry ▾").click()
        page.get_by_role("button", name="With other inputs").click()
        start = page.get_by_role("button", name="Start the retry")
        page.get_by_label("many").fill("seven")
        expect(page.get_by_role("dialog")).to_contain_text("this is no number")
        expect(start).to_be_disabled()
        page.get_by_label("many").fill("")
        page.get_by_label("tone").select_option(label="formal")
        start.click()
        expect(page.get_by_role("dialog")).to_have_count(0, timeout=PATIENCE)
        run = page.url.rsplit("/", 1)[1]
        found = site.served.client().get(f"/api/runs/{run}").json()["inputs"]
        assert found == {"tone": "formal", "many": 3}, "what is empty is what the recipe says"
        assert site.errors == []


def test_a_phone_gives_each_check_and_each_model_the_whole_width(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/runs")
        page.set_viewport_size({"width": 390, "height": 800})
        for path, words in (("/settings", "is writable"), ("/agents", "good answers")):
            come_to(page, site, path)
            cell = page.get_by_role("cell").filter(has_text=words).first
            expect(cell).to_be_visible()
            assert cell.evaluate("each => each.getBoundingClientRect().width") > 340, path
        assert faults(page) == []


def test_what_is_searched_for_among_the_runs_is_found_as_it_is_typed_and_stays_typed(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        for topic in ("tea", "coffee"):
            site.start("gated", topic=topic)
        page = site.page("/runs")
        rows = page.get_by_role("checkbox")
        expect(rows).to_have_count(2, timeout=PATIENCE)
        search = page.get_by_label("Text in id, workflow or inputs")
        search.press_sequentially("coff")
        expect(rows).to_have_count(1)
        expect(page.get_by_text("topic: coffee")).to_be_visible()
        site.start("gated", topic="iced coffee")
        expect(rows).to_have_count(2, timeout=PATIENCE)
        expect(search).to_have_value("coff")
        expect(search).to_be_focused()
        assert page.url.endswith("?text=coff")
        assert site.errors == []


def test_an_address_with_a_slash_or_a_tab_too_many_shows_the_page(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        run = ended_run(site, "slow")
        page = site.page(f"/runs/{run}/")
        expect(page.locator("h1 .state")).to_have_text("complete")
        for path in ("/workflows/slow/", "/workflows/slow?tab=nothing", "/workflows/slow?from="):
            come_to(page, site, path)
            expect(page.get_by_role("button", name="Run", exact=True)).to_be_visible()
        assert site.errors == []


def test_a_page_that_counts_the_approvals_does_not_load_what_they_are_about(
    browser: Browser, tmp_path: Path
) -> None:
    script = f"default: {{reply: '{'word ' * 20_000}'}}\n"
    with opened_site(browser, tmp_path, script) as site:
        first, second = (site.start("gated", topic=topic) for topic in ("tea", "coffee"))
        page = site.page("/runs")
        expect(page).to_have_title("(2) Runs · Stretto", timeout=PATIENCE)
        sizes: list[int] = []
        page.on("response", lambda r: "/api/approvals" in r.url and sizes.append(len(r.body())))
        come_to(page, site, "/goals")
        expect(page).to_have_title("(2) Goals · Stretto")
        assert sum(sizes) < 5_000
        come_to(page, site, f"/runs/{first}")
        expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible()
        assert sum(sizes) < 300_000, "what is asked in one run, and not in each"
        assert second not in page.content()


def test_a_goal_says_what_it_has_cost_of_what_it_may(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        body = {"text": "It is green", "verify": "command:true", "budget": {"usd": 1.5}}
        goal = posted(site, "/api/goals", {**body, "wait": True})["goal"]
        assert isinstance(goal, dict)
        page = site.page(f"/goals/{goal['id']}")
        expect(page.get_by_label("About this goal")).to_contain_text(
            re.compile(r"Cost(\$0|unknown) of \$1\.50")
        )
