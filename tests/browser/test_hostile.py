"""Fifty hostile texts through what people, files and models name: none of them runs, and nothing is asked of elsewhere."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browser.conftest import opened_site
from browser.test_quality import come_to, posted
from browser.test_run_page import ended_run, model_site
from stretto.problems.errors import InvalidUsage
from stretto.server.tokens import add_token
from stretto.testing.openai_script import Said, ToolCall
from support.hostile_markdown import hostile

TEXTS = [text for text in hostile("http://127.0.0.1:9") if text.isprintable()]
WHOLE = "\n".join(TEXTS)
WRITES = """
name: writes
agents: {scribe: {prompt: Write., tools: [Write, Read]}}
steps: [{id: a, agent: scribe, prompt: go, write_set: ["**"], merge_back: manual, workspace_mode: isolated}]
"""
FILED = "name: filed\ninputs: [{name: topic}]\nsteps: [{id: a, subagent: writer, prompt: '{{inputs.topic}}'}]\n"


def file_name(number: int, text: str) -> str:
    """A name that a file can have."""
    return f"{number}-{text.replace('/', '|')}"[:120].rstrip(". ")


def test_names_of_files_and_arguments_of_tools_stay_text(browser: Browser, tmp_path: Path) -> None:
    assert len(TEXTS) >= 50
    calls = tuple(
        ToolCall("Write", {"file_path": file_name(number, text), "content": f"{text}\n"})
        for number, text in enumerate(TEXTS)
    )
    odd = tuple(ToolCall("Read", {"file_path": text, text: "no such argument"}) for text in TEXTS)
    script = [Said(WHOLE, tool_calls=calls), Said("", tool_calls=odd), Said(WHOLE)]
    with model_site(browser, tmp_path, script, writes=WRITES) as site:
        run = ended_run(site, "writes")
        step = site.served.client().get(f"/api/runs/{run}/steps/a").json()
        assert step["report"]["changes"]["files"] >= 50
        page = site.page("/runs")
        for path in (f"/runs/{run}", f"/runs/{run}?tab=events", f"/runs/{run}?tab=report"):
            come_to(page, site, path)
            for _ in range(2):  # what was folded may hold more that is
                unfold = (
                    "document.querySelectorAll('main details').forEach(each => each.open = true)"
                )
                page.evaluate(unfold)
                page.wait_for_timeout(300)  # for what would run late
            assert not re.fullmatch(r"(\(\d+\) )?hit", page.title()), path
        come_to(page, site, f"/runs/{run}")
        diff = page.get_by_label("Changes")
        expect(diff).to_contain_text("<img src=x onerror")
        assert (site.errors, site.strangers) == ([], [])


def test_goals_triggers_playbooks_and_drafts_stay_text(browser: Browser, tmp_path: Path) -> None:
    for number, text in enumerate(TEXTS[:50]):
        place = tmp_path / "playbooks" / f"book-{number}"
        place.mkdir(parents=True)
        head = text.replace("'", "''")
        said = f"---\nname: book-{number}\ndescription: '{head}'\n---\n{text}\n"
        (place / "SKILL.md").write_text(said, encoding="utf-8")
    (tmp_path / "inbox <img src=x onerror=alert(1)>").mkdir()
    said = FILED.replace("name: filed", f"name: filed\ndescription: {TEXTS[4]!r}")
    drafted = f"```yaml\n{said}\n# {TEXTS[0]}\n```"
    with model_site(browser, tmp_path, lambda asked: Said(drafted), filed=FILED) as site:
        paths = ["/goals", "/triggers", "/playbooks", "/playbooks?q=script", "/workflows/filed"]
        for number, text in enumerate(TEXTS[:50]):
            goal = {"text": text, "verify": f"command:true # {text}", "workflow": "filed"}
            posted(site, "/api/goals", {**goal, "inputs": {"topic": text}, "max_iterations": 1})
            body = {"name": f"n{number}", "workflow": "filed", "cron": "0 6 * * *"}
            posted(site, "/api/schedules", {**body, "inputs": {"topic": text}})
            paths.append(f"/playbooks/book-{number}")
        body = {"name": "watched", "workflow": "filed", "input": "topic", "pattern": TEXTS[0]}
        posted(site, "/api/folders", {**body, "folder": "inbox <img src=x onerror=alert(1)>"})
        posted(
            site, "/api/hooks", {"name": "h", "workflow": "filed", "mapping": {"topic": TEXTS[4]}}
        )
        goals = site.served.client().get("/api/goals").json()["goals"]
        assert len(goals) == 50
        page = site.page("/runs")
        for path in (*paths, *(f"/goals/{goal['id']}" for goal in goals[:10]), "/runs", "/chat"):
            come_to(page, site, path)
            assert not re.fullmatch(r"(\(\d+\) )?hit", page.title()), path
        come_to(page, site, "/triggers")
        for button in page.get_by_role("button", name="Edit", exact=True).all()[-2:]:
            button.click()
            page.wait_for_timeout(200)
        come_to(page, site, "/workflows?new")
        page.get_by_label("What is to be done").fill(WHOLE[:15_000])
        page.get_by_role("button", name="Draft it").click()
        expect(page.get_by_label("Recipe", exact=True)).to_contain_text("filed", timeout=60_000)
        page.wait_for_timeout(300)
        assert page.title() != "hit"
        assert (site.errors, site.strangers) == ([], [])


@pytest.mark.parametrize("text", TEXTS[:50])
def test_a_name_that_could_be_markup_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidUsage):
        add_token(tmp_path, text, "viewer")


def test_triggers_with_such_names_are_refused(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, "default: ok\n", {"filed": FILED}) as site:
        client = site.served.client()
        for text in TEXTS[:50]:
            body = {"name": text, "workflow": "filed", "cron": "0 6 * * *"}
            assert client.post("/api/schedules", json=body).status_code == 422, text
