"""Take pictures of every page of the console, with a scripted model. Out: docs/pictures/console/*.png

    .venv/bin/python scripts/console_pictures.py

It needs chromium. Look at the pictures before you commit them.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.request import Request, urlopen

from playwright.sync_api import Page, sync_playwright

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
SCRIPT = """\
default: {reply: "**Release 2.1** makes retries *visible*.\\n\\n- `retry` shows why\\n- waits are counted\\n", tokens: 180}
"""
PAGES = {
    "chat": "/chat",
    "workflows": "/workflows",
    "workflow": "/workflows/release-note",
    "edit": "/workflows/release-note?tab=edit",
    "single": "/single",
    "runs": "/runs",
    "run": "/runs/{run}",
    "timeline": "/runs/{run}?tab=timeline",
    "events": "/runs/{run}?tab=events",
    "approvals": "/approvals",
    "goals": "/goals",
    "playbooks": "/playbooks",
    "triggers": "/triggers",
    "agents": "/agents",
    "settings": "/settings",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "workflows").mkdir()
        (folder / "workflows" / "release-note.yaml").write_text(RECIPE)
        (folder / "script.yaml").write_text(SCRIPT)
        server = _serve(folder)
        try:
            assert server.stdout is not None
            url = re.search(r"http://\S+", server.stdout.readline())
            assert url is not None, "the server did not start"
            _take_all(url[0], [_start(url[0], version) for version in ("2.0", "2.1")])
        finally:
            server.terminate()
            server.wait()


def _serve(folder: Path) -> "subprocess.Popen[str]":
    environ = {
        **os.environ,
        "STRETTO_HOME": str(folder / "home"),
        "STRETTO_TOKEN": TOKEN,
        "STRETTO_MODEL": f"scripted:{folder / 'script.yaml'}",
    }
    command = [sys.executable, "-m", "stretto", "serve", "--port", "0"]
    return subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True)


def _start(url: str, version: str) -> str:
    body = json.dumps({"inputs": {"version": version}}).encode()
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    asked = Request(f"{url}/api/workflows/release-note/run", body, headers)
    with urlopen(asked) as answer:
        run_id: str = json.load(answer)["run_id"]
    return run_id


def _take_all(url: str, runs: list[str]) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
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
                for name, path in PAGES.items():
                    _take(page, url + path.format(run=runs[-1]), f"{name}-{scheme}-{width}.png")
                page.close()
        browser.close()


def _take(page: Page, url: str, name: str) -> None:
    page.goto(url)
    page.wait_for_selector("main h1")
    page.wait_for_timeout(700)  # what is loaded later, such as the editor
    # No picture shows where it was taken.
    page.evaluate(
        "document.querySelectorAll('td.small').forEach("
        "td => { td.textContent = td.textContent.replace(/\\/[\\w.\\/-]+/g, '…') })"
    )
    page.screenshot(path=OUT / name)
    print(name)


if __name__ == "__main__":
    main()
