"""The page of a run in a real browser: its steps, their cards, its journal."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, expect

from browser.conftest import Site, opened_site
from stretto.testing.openai_script import Asked, Said, ServerScript, Status, ToolCall
from stretto.testing.openai_server import serving

QUICK = "default: {reply: 'An answer.', tokens: 5}\n"
PATIENCE = 60_000


ONE = "name: one\nsteps:\n  - {id: look, subagent: researcher, prompt: Look.}\n"


@contextmanager
def model_site(
    browser: Browser, folder: Path, script: ServerScript, **recipes: str
) -> Iterator[Site]:
    """A site whose model streams, calls tools and fails as the script says."""
    with serving(script) as model:
        environ = {
            "STRETTO_MODEL": "openai:scripted",
            "OPENAI_BASE_URL": model.url,
            "OPENAI_API_KEY": "sk-loopback-0123456789",
        }
        with opened_site(browser, folder, QUICK, recipes, environ) as site:
            yield site


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
        page.get_by_label("them").fill("{not json")
        expect(page.get_by_role("dialog").get_by_text("This is no JSON")).to_be_visible()
        expect(page.get_by_role("button", name="Start the fork")).to_be_disabled()
        page.get_by_label("them").fill("[1, 2]")
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
    script = [Said("", tool_calls=calls), Said("Done.")]
    with model_site(browser, tmp_path, script, one=ONE) as site:
        page = site.page(f"/runs/{ended_run(site, 'one')}?step=look")
        said = page.get_by_role("region", name="Step look")
        expect(said.locator(".call", has_text="there.txt").locator(".state")).to_have_text("ok")
        expect(said.locator(".call", has_text="gone.txt").locator(".state")).to_have_text("error")
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


def test_words_are_shown_as_they_come(browser: Browser, tmp_path: Path) -> None:
    text = " ".join(f"word {number}" for number in range(200))
    slow = Said(text, chunks=8, chunk_delay_seconds=0.7)
    with model_site(browser, tmp_path, [slow], one=ONE) as site:
        page = site.page(f"/runs/{site.start('one')}")
        live = page.get_by_role("region", name="Step look").locator("pre.live")
        live.wait_for(timeout=PATIENCE)
        before = live.inner_text()
        assert before.startswith("word 0")
        assert len(before) < len(text)
        page.wait_for_function(
            "before => document.querySelector('pre.live')?.textContent.length > before.length",
            arg=before,
        )
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=PATIENCE)
        expect(page.locator("pre.live")).to_have_count(0)
        assert site.errors == []


def test_the_elements_of_a_map_are_cards_with_the_failed_ones_first_and_one_is_retried_alone(
    browser: Browser, tmp_path: Path
) -> None:
    prompts: list[str] = []
    recipe = """
name: each
inputs: [{name: them, type: json, required: true}]
steps:
  - id: each
    map: {over: "{{inputs.them}}", agent: researcher, prompt: "Say {{item}}.", on_item_failure: skip}
"""

    def answer(asked: Asked) -> Said | Status:
        prompts.append(asked.prompt)
        return Status(400, "no such word") if "three" in asked.prompt else Said(asked.prompt)

    with model_site(browser, tmp_path, answer, each=recipe) as site:
        run = ended_run(site, "each", them=["one", "two", "three"])
        page = site.page(f"/runs/{run}?step=each")
        cards = page.get_by_role("region", name="Step each").locator(".task")
        expect(cards).to_have_count(3)
        expect(cards.first).to_contain_text("no such word")
        page.get_by_role("button", name=re.compile("^2 .*succeeded")).click()
        expect(cards).to_have_count(2)
        cards.first.locator("summary").first.click()
        expect(cards.first.get_by_text("Prompt, as it was sent")).to_be_visible()
        prompts.clear()
        page.get_by_role("button", name="Retry item.0.stage.0 alone").click()
        page.wait_for_url(lambda url: run not in url)
        expect(page.get_by_role("heading", level=1)).to_contain_text("partial")
        # The one that failed has no answer to reuse.
        assert sorted(each.split()[1] for each in prompts) == ["one.", "three."]
        assert site.errors == []


def test_a_run_says_why_it_waits_and_that_its_recipe_was_edited(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page(f"/runs/{site.start('gated', topic='tea')}")
        why = page.locator(".standing")
        expect(why).to_contain_text("must approve or reject 'publish'", timeout=PATIENCE)
        expect(page).to_have_title(re.compile(r"^\(1\) "))
        expect(page.get_by_text("edited since")).to_have_count(0)
        file = tmp_path / "workflows" / "gated.yaml"
        file.write_text(file.read_text(encoding="utf-8") + "# more\n", encoding="utf-8")
        page.reload()
        expect(page.get_by_text("edited since")).to_be_visible()
        page.get_by_role("button", name="Cancel").click()
        page.get_by_label("Reason shown in the report").fill("not today")
        page.get_by_role("button", name="Cancel the run").click()
        expect(page.locator("h1 .state")).to_have_text("cancelled", timeout=PATIENCE)
        expect(page).to_have_title(re.compile(r"^cancelled"))
        assert site.errors == []


def test_the_slider_replays_the_journal(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page(f"/runs/{ended_run(site, 'slow')}?tab=events")
        chips = page.get_by_role("list", name="The steps at this event").locator("li")
        expect(chips).to_have_count(2)
        page.get_by_role("slider").fill("3")
        expect(chips).to_have_text(["first succeeded"])
        page.get_by_role("slider").fill("2")
        expect(chips).to_have_text(["first running"])
        assert site.errors == []


def test_two_runs_are_compared(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        for topic in ("tea", "coffee"):
            site.start("gated", topic=topic)
        page = site.page("/runs")
        boxes = page.get_by_role("checkbox")
        expect(boxes).to_have_count(2, timeout=PATIENCE)
        boxes.nth(0).check()
        boxes.nth(1).check()
        page.get_by_role("button", name="Compare the two chosen").click()
        expect(page.get_by_role("heading", name="Inputs")).to_contain_text("differs")
        assert site.errors == []


def test_a_change_is_read_merged_and_kept_as_a_playbook(browser: Browser, tmp_path: Path) -> None:
    recipe = """
name: one
agents: {scribe: {prompt: Write., tools: [Write]}}
steps:
  - {id: a, agent: scribe, prompt: go, write_set: [a.txt], merge_back: manual}
"""
    call = ToolCall("Write", {"file_path": "a.txt", "content": "one\n"})
    script = [Said("", tool_calls=(call,)), Said("Done.")]
    with model_site(browser, tmp_path, script, one=recipe) as site:
        page = site.page(f"/runs/{ended_run(site, 'one')}")
        step = page.get_by_role("region", name="Step a")
        expect(step.get_by_text("+one")).to_be_visible()
        expect(step).to_contain_text("not merged yet")
        step.get_by_role("button", name="Merge into the workspace").click()
        expect(step).to_contain_text("merged by a person", timeout=PATIENCE)
        assert (tmp_path / "a.txt").read_text() == "one\n"
        step.get_by_role("button", name="Keep as playbook").click()
        step.get_by_role("link", name="Kept as a playbook").click()
        expect(page.get_by_role("link", name="a step of a run")).to_be_visible()
        assert site.errors == []
