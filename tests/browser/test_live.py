"""What many tabs are told of changes: one of them holds the stream, and none misses anything."""

import re
from pathlib import Path

from playwright.sync_api import Browser, Page, Response, Route, expect

from browser.conftest import opened_site
from browser.test_run_page import ONE, model_site
from stretto.testing.openai_script import Said

QUICK = "default: {reply: 'An answer.', tokens: 5}\n"


def test_a_tab_that_takes_over_the_stream_misses_nothing(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        run = site.start("gated", topic="tea")
        leader = site.page("/runs")
        expect(leader.get_by_text("live")).to_be_visible()
        heir = site.page(f"/runs/{run}")
        expect(heir.locator("h1 .state")).to_have_text("waiting", timeout=60_000)
        held: list[Route] = []
        heir.route("**/api/events*", lambda route: held.append(route))
        leader.close()
        while not held:
            heir.wait_for_timeout(50)
        decided = site.served.client().post(f"/api/runs/{run}/steps/publish/approve", json={})
        assert decided.status_code == 200
        while site.served.client().get(f"/api/runs/{run}").json()["status"] != "complete":
            heir.wait_for_timeout(50)
        expect(heir.locator("h1 .state")).to_have_text("waiting")
        held[0].continue_()
        expect(heir.locator("h1 .state")).to_have_text("complete", timeout=60_000)


def counted(page: Page, run: str) -> list[int]:
    """The bytes of each answer about a run, from now on."""
    sizes: list[int] = []

    def count(response: Response) -> None:
        if f"/api/runs/{run}" in response.url:
            sizes.append(len(response.body()))

    page.on("response", count)
    return sizes


def test_of_a_long_run_only_what_has_changed_is_loaded(browser: Browser, tmp_path: Path) -> None:
    steps = [f"  - {{id: s{n}, subagent: researcher, prompt: x}}" for n in range(249)]
    wide = "name: wide\nsteps:\n" + "\n".join(steps) + "\n"
    wide += "  - {id: join, subagent: writer, depends_on: [s0, s248], prompt: y}\n"
    script = "default: {reply: 'An answer.', tokens: 5, delay: 200ms}\n"
    with opened_site(browser, tmp_path, script, {"wide": wide}) as site:
        run = site.start("wide")
        page = site.page("/runs")
        sizes = counted(page, run)
        page.evaluate(
            f"history.pushState(null, '', '/runs/{run}?step='); dispatchEvent(new Event('popstate'))"
        )
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=180_000)
        whole = len(site.served.client().get(f"/api/runs/{run}").content)
        before = len(sizes) * whole
        print(f"{len(sizes)} answers, {sum(sizes):,} bytes; {before:,} if each had the whole run")
        assert len(sizes) > 8, "it was seen as it went on"
        # A step is told when it begins and when it has ended, and not each time another one does.
        assert sum(sizes[1:]) < 3 * whole
        assert max(sizes[1:]) < whole
        assert site.errors == []


def test_words_come_several_times_a_second_and_load_nothing(
    browser: Browser, tmp_path: Path
) -> None:
    text = " ".join(f"word-{number}" for number in range(250))
    slow = Said(text, chunks=250, chunk_delay_seconds=0.06)
    with model_site(browser, tmp_path, [slow], one=ONE) as site:
        run = site.start("one")
        page = site.page(f"/runs/{run}")
        page.locator("pre.live").wait_for(timeout=60_000)
        sizes = counted(page, run)
        page.evaluate(
            """() => {
                window.texts = window.told = 0
                const whole = {subtree: true, childList: true, characterData: true}
                new MutationObserver(() => window.texts++).observe(document.querySelector('pre.live'), whole)
                new MutationObserver(() => window.told++).observe(
                    document.querySelector('[role=status][aria-live]'), whole)
            }"""
        )
        page.wait_for_function("() => window.texts >= 12", timeout=60_000)
        told, moving = page.evaluate("[window.told, document.getAnimations().length]")
        print(f"12 changes of the text, {len(sizes)} answers, {told} announcements")
        assert len(sizes) <= 2, "what is said is no reason to load the run"
        assert told <= 1, "that the run runs, and nothing of what it says"
        assert moving == 0
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=60_000)
        expect(page.locator(".step-card")).to_contain_text(text, timeout=60_000)
        client = site.served.client()
        rows = client.get(f"/api/runs/{run}/journal?limit=5000").json()["events"]
        pieces = [row for row in rows if row["type"] == "model_spoke"]
        seconds = client.get(f"/api/runs/{run}").json()["duration_seconds"]
        print(f"{len(pieces)} pieces in {seconds} s")
        assert len(pieces) > 3 * seconds, "more often than twice a second"
        assert site.errors == []


def longer_than(page: Page, most: int) -> None:
    """Wait until a step has said so much."""
    page.wait_for_function(
        "most => (document.querySelector('pre.live')?.textContent.length ?? 0) > most",
        arg=most,
        timeout=60_000,
    )


def test_the_heir_of_a_leader_that_goes_in_the_middle_of_a_run_has_no_gap_and_no_repeat(
    browser: Browser, tmp_path: Path
) -> None:
    text = " ".join(f"word-{number}" for number in range(200))
    slow = Said(text, chunks=200, chunk_delay_seconds=0.08)
    with model_site(browser, tmp_path, [slow], one=ONE) as site:
        streams: list[str] = []
        site.session.on(
            "request", lambda r: streams.append(r.url) if "/api/events" in r.url else None
        )
        leader = site.page("/runs")
        expect(leader.locator(".freshness .state")).to_have_text("live")
        run = site.start("one")
        heir = site.page(f"/runs/{run}")
        live = heir.locator("pre.live")
        live.wait_for(timeout=60_000)
        longer_than(heir, 100)
        before = len(streams)
        leader.close()
        longer_than(heir, 600)
        said = live.inner_text()
        assert text.startswith(said), "nothing is missing, and nothing is there twice"
        assert len(streams) > before
        last = streams[-1]
        assert re.search(r"after=[1-9]", last), "from where the browser was told last"
        assert re.search(r"follow=\d{1,}%3A", last)
        expect(heir.locator("h1 .state")).to_have_text("complete", timeout=60_000)
        assert text in heir.locator(".step-card").inner_text()
        assert site.errors == []


def test_an_answer_of_the_lead_agent_is_read_while_it_is_written(
    browser: Browser, tmp_path: Path
) -> None:
    # On a machine that is very busy, a page may be shown when a quick model has said everything.
    delays = (0.1, 0.6)
    assert any(_is_read_in_parts(browser, tmp_path / str(delay), delay) for delay in delays)


def _is_read_in_parts(browser: Browser, folder: Path, delay: float) -> bool:
    folder.mkdir()
    text = " ".join(f"word-{number}" for number in range(150))
    slow = Said(text, chunks=150, chunk_delay_seconds=delay)
    with model_site(browser, folder, [slow], one=ONE) as site:
        page = site.page("/chat")
        page.get_by_label("Ask the lead agent").fill("Say something long.")
        page.get_by_role("button", name="Send").click()
        page.wait_for_url(re.compile(r"/chat/."), timeout=60_000)
        turn = page.locator(".turn .prose")
        expect(turn).to_contain_text("word-3 word-4", timeout=60_000)
        is_partial = "word-149" not in turn.inner_text()
        expect(turn).to_contain_text("word-149", timeout=180_000)
        expect(turn).to_have_count(1)
        # A turn is on record a moment before its run, and the browser logs the answer 404.
        assert [error for error in site.errors if "404 (Not Found)" not in error] == []
        return is_partial


def test_a_turn_whose_run_comes_late_is_read_while_it_is_written(
    browser: Browser, tmp_path: Path
) -> None:
    slow = Said("word " * 60, chunks=60, chunk_delay_seconds=0.2)
    with model_site(browser, tmp_path, [slow], one=ONE) as site:
        page = site.page("/chat")
        missing = {"ok": False, "error": {"kind": "not_found", "message": "no", "details": {}}}
        steps = "**/api/runs/*/steps/turn-1"
        page.route(steps, lambda route: route.fulfill(status=404, json=missing), times=1)
        page.get_by_label("Ask the lead agent").fill("Say something long.")
        page.get_by_role("button", name="Send").click()
        page.wait_for_url(re.compile(r"/chat/."), timeout=60_000)
        with page.expect_response(lambda r: "/steps/turn-1" in r.url and r.ok):
            pass
        expect(page.locator(".turn .prose")).to_contain_text("word word", timeout=60_000)


DELEGATING = """
default: {reply: An answer., tokens: 5}
replies:
  turn-1:
    calls: [{tool: run_workflow, arguments: {name: gated, inputs: {topic: tea}}}]
    reply: It is done.
"""


def test_a_turn_goes_on_in_its_chat_once_its_run_was_decided_about(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, DELEGATING) as site:
        client = site.served.client()
        begun = client.post("/api/chats", json={"text": "Go", "permission": "auto"}).json()
        page = site.page(f"/chat/{begun['chat']}")
        expect(page.get_by_role("link", name="Decide at its run")).to_be_visible(timeout=60_000)
        expect(page.get_by_role("button", name="End this turn")).to_be_visible()
        (awaited,) = begun["turn"]["awaits"]
        step = f"/api/runs/{awaited['run_id']}/steps/{awaited['step']}"
        assert client.post(f"{step}/approve", json={}).status_code == 200
        page.get_by_role("button", name="Go on").click(timeout=60_000)
        expect(page.locator(".turn .prose")).to_contain_text("It is done.", timeout=60_000)
        expect(page.get_by_role("button", name="End this turn")).to_have_count(0)
