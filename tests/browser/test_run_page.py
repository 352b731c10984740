"""The page of a run in a real browser: its steps, their cards, its journal."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from browser.conftest import Site, opened_site
from stretto.testing.openai_script import Said, ToolCall
from stretto.testing.openai_server import serving

QUICK = "default: {reply: 'An answer.', tokens: 5}\n"
PATIENCE = 60_000


def ended_run(site: Site, workflow: str, **inputs: object) -> str:
    answer = site.served.client().post(f"/api/workflows/{workflow}/run", json={"inputs": inputs})
    assert answer.status_code == 200, answer.text
    run_id: str = answer.json()["run_id"]
    return run_id


LISTED = """
name: listed
inputs: [{name: them, type: json, required: true}]
steps: [{id: one, subagent: researcher, prompt: "{{inputs.them}}"}]
"""


def test_inputs_that_are_no_json_are_told_where_they_are_typed(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK, {"listed": LISTED}) as site:
        page = site.page(f"/runs/{ended_run(site, 'listed', them=[1])}")
        page.get_by_role("button", name="Fork").click()
        page.get_by_label("them as JSON").fill("{not json")
        expect(page.get_by_role("dialog").get_by_text("This is no JSON")).to_be_visible()
        expect(page.get_by_role("button", name="Start the fork")).to_be_disabled()
        page.get_by_label("them as JSON").fill("[1, 2]")
        page.get_by_role("button", name="Start the fork").click()
        page.wait_for_url("**/runs/*")
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=PATIENCE)
        assert site.errors == []


def test_each_tool_call_shows_its_verdict(browser: Browser, tmp_path: Path) -> None:
    calls = (
        ToolCall("Read", {"file_path": "there.txt"}),
        ToolCall("Read", {"file_path": "gone.txt"}),
    )
    (tmp_path / "there.txt").write_text("Some words.")
    with serving([Said("", tool_calls=calls), Said("Done.")]) as model:
        environ = {
            "STRETTO_MODEL": "openai:scripted",
            "OPENAI_BASE_URL": model.url,
            "OPENAI_API_KEY": "sk-loopback-0123456789",
        }
        one = {"one": "name: one\nsteps:\n  - {id: look, subagent: researcher, prompt: Look.}\n"}
        with opened_site(browser, tmp_path, QUICK, one, environ) as site:
            page = site.page(f"/runs/{ended_run(site, 'one')}?step=look")
            said = page.get_by_role("region", name="Step look")
            expect(said.locator(".call", has_text="there.txt").locator(".state")).to_have_text("ok")
            expect(said.locator(".call", has_text="gone.txt").locator(".state")).to_have_text(
                "error"
            )
            expect(said.get_by_text("Some words.")).to_have_count(1)
            assert site.errors == []


def test_a_journal_of_more_than_a_page_is_shown_to_its_end(
    browser: Browser, tmp_path: Path
) -> None:
    steps = [f"  - {{id: s{n}, subagent: researcher, prompt: x}}" for n in range(500)]
    with opened_site(
        browser, tmp_path, QUICK, {"wide": "name: wide\nsteps:\n" + "\n".join(steps)}
    ) as site:
        page = site.page(f"/runs/{ended_run(site, 'wide')}?tab=events")
        expect(page.get_by_text("run ended")).to_be_visible(timeout=PATIENCE)
        many = int(page.get_by_role("slider").get_attribute("max") or 0)
        assert many > 1_000
        assert site.errors == []


def test_the_graph_is_no_wider_than_its_box(browser: Browser, tmp_path: Path) -> None:
    steps = [f"  - {{id: s{n}, subagent: researcher, prompt: x}}" for n in range(40)]
    steps.append("  - {id: join, subagent: writer, depends_on: [s0, s39], prompt: y}")
    with opened_site(
        browser, tmp_path, QUICK, {"wide": "name: wide\nsteps:\n" + "\n".join(steps)}
    ) as site:
        page = site.page(f"/runs/{ended_run(site, 'wide')}")
        for width in (1280, 700, 390):
            page.set_viewport_size({"width": width, "height": 800})
            expect(page.locator(".graph .node")).to_have_count(41)
            page.wait_for_function(
                "() => { const box = document.querySelector('.graph'); return box.scrollWidth <= box.clientWidth }"
            )
        assert site.errors == []
