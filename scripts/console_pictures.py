"""Take pictures of every page of the console, with a model that answers from a script. Out: docs/pictures/console/*.png

    .venv/bin/python scripts/console_pictures.py
    .venv/bin/python scripts/console_pictures.py --out /tmp/pictures --only run,batch --whole

It needs chromium. Look at the pictures before you commit them. `--whole`: each page down to its end.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from playwright.sync_api import Page, sync_playwright

from stretto.testing.openai_script import Asked, Said, Status, TokenUsage, ToolCall
from stretto.testing.openai_server import serving

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "pictures" / "console"
TOKEN = "a-token-for-pictures-alone"
RECIPE = """\
name: release-note
description: Draft a release note, check it from two sides, and publish it once a person agrees
inputs:
  - {name: version, required: true, description: which release}
  - {name: tone, enum: [plain, formal], default: plain}
steps:
  - {id: changes, subagent: explorer, prompt: "What changed in {{inputs.version}}?"}
  - {id: draft, subagent: writer, depends_on: [changes], prompt: "Write it, {{inputs.tone}}: {{steps.changes.output}}"}
  - {id: facts, subagent: reviewer, depends_on: [draft], prompt: "Check the facts: {{steps.draft.output}}"}
  - {id: style, subagent: editor, depends_on: [draft], prompt: "Check the style: {{steps.draft.output}}"}
  - {id: publish, subagent: writer, gate: human, depends_on: [facts, style], prompt: "Publish: {{steps.draft.output}}"}
"""
VIEWS = """\
name: two-views
description: Three views of one question, of which one is hard to get, and what follows from them
inputs:
  - {name: question, required: true}
steps:
  - id: views
    wait: any
    parallel:
      - {agent: analyst, prompt: "For: {{inputs.question}}", output_key: for}
      - {agent: antagonist, prompt: "Against: {{inputs.question}}", output_key: against}
      - {agent: researcher, prompt: "The record: {{inputs.question}}", output_key: record}
  - {id: weigh, subagent: analyst, depends_on: [views], prompt: "Weigh: {{steps.views.output}}", retry: {max_attempts: 3}}
  - {id: check, subagent: verifier, depends_on: [weigh], prompt: "Check: {{steps.weigh.output}}", on_failure: block}
  - {id: brief, subagent: writer, depends_on: [check], prompt: "Write: {{steps.check.output}}"}
"""
DIGEST = """\
name: digest
description: Read what came in this week, and say in a page what matters
inputs:
  - {name: week, required: true}
steps:
  - {id: collect, subagent: researcher, prompt: "Collect {{inputs.week}}."}
  - {id: rank, subagent: analyst, depends_on: [collect], prompt: "Rank: {{steps.collect.output}}"}
  - {id: page, subagent: writer, depends_on: [rank], prompt: "Tell it slowly: {{steps.rank.output}}"}
  - {id: title, subagent: editor, depends_on: [page], prompt: "Name it: {{steps.page.output}}"}
"""
STORY = (
    "Three things mattered this week. First, the waits of a run are told as they happen: a retry says why "
    "and when, and a step that is held names the one that holds it. Second, a run that was cut off goes on "
    "where it stood. Third, "
) + "what a step has said is read while it is said, and nothing of it is loaded twice. " * 40
RELEASE = "**Release 2.1** makes retries *visible*.\n\n- `retry` shows why\n- waits are counted\n"


def answer(asked: Asked) -> Said | Status:
    """What the model says, by what it is asked last."""
    last = asked.messages[-1].get("role")
    for words, reply in REPLIES.items():
        if words in asked.prompt and last != "tool":
            return reply
    return Said(RELEASE, usage=TokenUsage(140, 40))


REPLIES: dict[str, Said | Status] = {
    "What changed": Said("", tool_calls=(ToolCall("Read", {"file_path": "CHANGES.md"}),
                                         ToolCall("Read", {"file_path": "notes/draft.md"}))),
    "For: Should": Said("It saves a day in the week.", delay_seconds=0.3),
    "Against: Should": Said("It costs a server.", delay_seconds=0.7),
    "The record: Should": Status(400, "the archive does not answer"),
    "Weigh: ": Said("For, on balance.", delay_seconds=0.5),
    "Check: ": Status(400, "no source for 'a day in the week'"),
    "Tell it slowly": Said(STORY, chunks=900, chunk_delay_seconds=0.6),
    "What does it cost?": Status(400, "the price list is behind a login"),
    "Draft two lines": Said("", tool_calls=(ToolCall("task", {"agent": "writer", "prompt": "Write two lines on retries."}),)),
    "Write two lines": Said("Retries say why they retry.\nWaits are counted."),
}  # fmt: skip
PAGES = {
    "chat": "/chat",
    "workflows": "/workflows",
    "workflow": "/workflows/release-note",
    "text": "/workflows/release-note?tab=text",
    "edit": "/workflows/release-note?tab=edit",
    "versions": "/workflows/release-note?tab=versions",
    "new": "/workflows?new",
    "single": "/single",
    "talk": "/chat/{chat}",
    "runs": "/runs",
    "run": "/runs/{run}",
    "running": "/runs/{running}",
    "whole": "/runs/{run}?step=",
    "failed": "/runs/{failed}",
    "views": "/runs/{failed}?step=views",
    "batch": "/runs/{batch}",
    "timeline": "/runs/{failed}?tab=timeline",
    "events": "/runs/{failed}?tab=events",
    "report": "/runs/{failed}?tab=report",
    "compare": "/compare?left={run}&right={other}",
    "approvals": "/approvals",
    "goals": "/goals",
    "goal": "/goals/{goal}",
    "playbooks": "/playbooks",
    "playbook": "/playbooks/{playbook}",
    "triggers": "/triggers",
    "agents": "/agents",
    "settings": "/settings",
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--only", default=",".join(PAGES))
    parser.add_argument("--whole", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "workflows").mkdir()
        (folder / "workflows" / "release-note.yaml").write_text(RECIPE)
        (folder / "workflows" / "two-views.yaml").write_text(VIEWS)
        (folder / "workflows" / "digest.yaml").write_text(DIGEST)
        (folder / "CHANGES.md").write_text("2.1: retries say why\n")
        with serving(answer) as model:
            _photograph(folder, model.url, asked)


def _photograph(folder: Path, model: str, asked: argparse.Namespace) -> None:
    server = _serve(folder, model)
    try:
        assert server.stdout is not None
        url = re.search(r"http://\S+", server.stdout.readline())
        assert url is not None, "the server did not start"
        places = _prepare(url[0])
        pages = {name: PAGES[name].format(**places) for name in asked.only.split(",")}
        _take_all(url[0], pages, asked.out, asked.whole)
    finally:
        server.terminate()
        server.wait()


def _serve(folder: Path, model: str) -> "subprocess.Popen[str]":
    environ = {
        **os.environ,
        "STRETTO_HOME": str(folder / "home"),
        "STRETTO_TOKEN": TOKEN,
        "STRETTO_MODEL": "openai:scripted",
        "OPENAI_BASE_URL": model,
        "OPENAI_API_KEY": "sk-loopback-0123456789",
    }
    command = [sys.executable, "-m", "stretto", "serve", "--port", "0"]
    return subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True)


def _prepare(url: str) -> dict[str, str]:
    """Something on every page; by name, what its addresses need."""
    text = _get(url, "/api/workflows/release-note")["text"]
    for why in ("check it from two sides", "say which release"):
        text = f"{text.rstrip()}  # {why}\n"
        _post(url, "/api/workflows/release-note", {"recipe": text, "why": why}, "PUT")
    note = "/api/workflows/release-note/run"
    runs = [
        _post(url, note, {"inputs": {"version": version}})["run_id"] for version in ("2.0", "2.1")
    ]
    asked = {"inputs": {"question": "Should we host it ourselves?"}}
    failed = _post(url, "/api/workflows/two-views/run", asked)["run_id"]
    tasks = [
        {"agent": "researcher", "prompt": "What does Acme sell?", "description": "products"},
        {"agent": "researcher", "prompt": "What does it cost?", "description": "prices"},
        {"agent": "writer", "prompt": "Greet the team.", "description": "greeting"},
        {"agent": "reviewer", "prompt": "Read the greeting.", "description": "review"},
    ]
    batch = _post(url, "/api/batches", {"tasks": tasks})["run_id"]
    chat = _post(
        url, "/api/chats", {"text": "Draft two lines on release 2.1.", "permission": "auto"}
    )
    nightly = {"name": "nightly", "workflow": "release-note", "inputs": {"version": "next"}}
    _post(url, "/api/schedules", {**nightly, "cron": "30 2 * * 1-5", "zone": "Europe/Berlin"})
    _post(url, "/api/hooks", {"name": "tagged", "workflow": "release-note"})
    goal = {"text": "The note names every change", "verify": "command:false", "max_iterations": 2}
    found = _post(url, "/api/goals", {**goal, "wait": True})["goal"]["id"]
    playbooks = _get(url, "/api/playbooks")["playbooks"]
    week = {"inputs": {"week": "week 47"}, "wait": False}
    running = _post(url, "/api/workflows/digest/run", week)["run_id"]
    return {
        "running": running,
        "run": runs[1],
        "other": runs[0],
        "failed": failed,
        "batch": batch,
        "chat": chat["chat"],
        "goal": found,
        "playbook": playbooks[0]["name"] if playbooks else "",
    }


def _post(url: str, path: str, body: dict[str, object], method: str = "POST") -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    asked = Request(url + path, json.dumps(body).encode(), headers, method=method)
    try:
        with urlopen(asked) as answer:
            found: dict[str, Any] = json.load(answer)
    except HTTPError as error:
        raise SystemExit(f"{path}: {error.read().decode()}") from None
    return found


def _get(url: str, path: str) -> dict[str, Any]:
    with urlopen(Request(url + path, headers={"Authorization": f"Bearer {TOKEN}"})) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def _take_all(url: str, pages: dict[str, str], out: Path, is_whole: bool) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        for scheme in ("light", "dark"):
            for width in (1280, 390):
                page = browser.new_page(
                    viewport={"width": width, "height": 800},
                    color_scheme=scheme,  # type: ignore[arg-type]
                )
                page.goto(url)
                page.get_by_label("Token").fill(TOKEN)
                page.get_by_role("button", name="Log in").click()
                page.wait_for_selector("main h1")
                for name, path in pages.items():
                    _take(page, url + path, out / f"{name}-{scheme}-{width}.png", is_whole)
                page.close()
        browser.close()


def _take(page: Page, url: str, file: Path, is_whole: bool) -> None:
    page.goto(url)
    page.wait_for_selector("main h1")
    page.wait_for_timeout(700)  # what is loaded later, such as the editor
    # No picture shows where it was taken.
    page.evaluate(
        "document.querySelectorAll('td.small').forEach("
        "td => { const walk = document.createTreeWalker(td, NodeFilter.SHOW_TEXT);"
        " while (walk.nextNode()) walk.currentNode.data ="
        " walk.currentNode.data.replace(/\\/[\\w.\\/-]+/g, '…') })"
    )
    page.screenshot(path=file, full_page=is_whole)
    print(file.name)


if __name__ == "__main__":
    main()
