"""What many tabs are told of changes: one of them holds the stream, and none misses anything."""

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
    steps = [f"  - {{id: s{n}, subagent: researcher, prompt: x}}" for n in range(499)]
    wide = "name: wide\nsteps:\n" + "\n".join(steps) + "\n"
    wide += "  - {id: join, subagent: writer, depends_on: [s0, s498], prompt: y}\n"
    script = "default: {reply: 'An answer.', tokens: 5, delay: 80ms}\n"
    with opened_site(browser, tmp_path, script, {"wide": wide}) as site:
        run = site.start("wide")
        page = site.page("/runs")
        sizes = counted(page, run)
        page.evaluate(
            f"history.pushState(null, '', '/runs/{run}?step='); dispatchEvent(new Event('popstate'))"
        )
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=180_000)
        whole = len(site.served.client().get(f"/api/runs/{run}").content)
        print(f"{len(sizes)} answers, {sum(sizes):,} bytes; the whole run has {whole:,}")
        assert len(sizes) > 3, "it was seen as it went on"
        assert sum(sizes) < 3 * whole, "and not loaded whole each time"
        assert max(sizes[1:]) < whole
        assert site.errors == []


def test_words_come_ten_times_a_second_and_load_nothing(browser: Browser, tmp_path: Path) -> None:
    text = " ".join(f"word-{number}" for number in range(100))
    slow = Said(text, chunks=100, chunk_delay_seconds=0.06)
    with model_site(browser, tmp_path, [slow], one=ONE) as site:
        run = site.start("one")
        page = site.page(f"/runs/{run}")
        live = page.locator("pre.live")
        live.wait_for(timeout=60_000)
        sizes = counted(page, run)
        page.evaluate(
            """() => {
                window.texts = 0
                window.told = 0
                new MutationObserver(() => window.texts++).observe(
                    document.querySelector('pre.live'), {subtree: true, childList: true, characterData: true})
                new MutationObserver(() => window.told++).observe(
                    document.querySelector('[role=status][aria-live]'), {subtree: true, childList: true, characterData: true})
            }"""
        )
        begun = len(live.inner_text())
        page.wait_for_timeout(2_500)
        texts, told = page.evaluate("[window.texts, window.told]")
        print(f"{texts} changes of the text in 2.5 s, {len(sizes)} answers, {told} announcements")
        assert len(live.inner_text()) > begun
        assert texts >= 8, "more often than twice a second"
        assert len(sizes) <= 2, "what is said is no reason to load the run"
        assert told == 0
        assert page.evaluate("document.getAnimations().length") == 0
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=60_000)
        assert text in page.locator(".step-card").inner_text()
        assert site.errors == []
