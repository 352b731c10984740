"""What many tabs are told of changes: one of them holds the stream, and none misses anything."""

from pathlib import Path

from playwright.sync_api import Browser, Route, expect

from browser.conftest import opened_site

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
