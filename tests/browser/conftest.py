"""A real browser on a real server. Skipped, with the reason, where there is no chromium."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from support.chromium import CHROMIUM
from support.served import Served, served

FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
GATED = """
# A comment that must survive.
name: gated
description: A note that a person approves
inputs:
  - {name: topic, required: true}
  - {name: tone, enum: [plain, formal], default: plain}
steps:
  - {id: draft, subagent: researcher, prompt: "Draft a note on {{inputs.topic}}, {{inputs.tone}}."}
  - {id: publish, subagent: writer, gate: human, depends_on: [draft], prompt: "{{steps.draft.output}}"}
"""
SLOW = """
name: slow
steps:
  - {id: first, subagent: researcher, prompt: a}
  - {id: second, subagent: researcher, depends_on: [first], prompt: "{{steps.first.output}}"}
"""


# A busy machine is slow, and no test is about how slow.
PATIENCE = 60_000
expect.set_options(timeout=PATIENCE)

# A page is the same document by day and by night; only these rules look at its colours.
COLOURS = {"resultTypes": ["violations"], "runOnly": ["color-contrast", "link-in-text-block"]}


@pytest.fixture(
    scope="module"
)  # no longer: while it is open, no other test could run an event loop
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@dataclass
class Site:
    """A server, and one browser session that is logged in to it."""

    served: Served
    session: BrowserContext
    errors: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)  # requests that left for elsewhere

    def page(self, path: str) -> Page:
        page = self.session.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        page.on("dialog", lambda dialog: (self.errors.append("a dialog"), dialog.dismiss()))
        page.goto(self.served.url + path)
        return page

    def start(self, workflow: str, **inputs: object) -> str:
        """A run of a saved workflow; its id."""
        body = {"inputs": inputs, "wait": False}
        answer = self.served.client().post(f"/api/workflows/{workflow}/run", json=body)
        assert answer.status_code == 202, answer.text
        run_id: str = answer.json()["run_id"]
        return run_id


@contextmanager
def opened_site(
    browser: Browser,
    folder: Path,
    script: str,
    recipes: dict[str, str] | None = None,
    environ: dict[str, str] | None = None,
) -> Iterator[Site]:
    """`environ`: of the server, as to name another model than the scripted one."""
    file = folder / "script.yaml"
    file.write_text(script, encoding="utf-8")
    saved = {"gated": GATED, "slow": SLOW, **(recipes or {})}
    with served(folder, saved, {"STRETTO_MODEL": f"scripted:{file}", **(environ or {})}) as at:
        session = browser.new_context(viewport={"width": 1280, "height": 900})
        session.set_default_timeout(PATIENCE)
        site = Site(at, session)
        session.on(
            "request",
            lambda r: None if r.url.startswith((at.url, "data:")) else site.strangers.append(r.url),
        )
        page = session.new_page()
        page.goto(at.login_url)
        page.wait_for_url(f"{at.url}/")
        page.close()
        try:
            yield site
        finally:
            session.close()


def faults(page: Page) -> list[tuple[str, str, str]]:
    """What is wrong with the accessibility of a page, light and dark: scheme, rule, where."""
    found = [("light", each) for each in Axe().run(page).response["violations"]]
    # Without motion, or the colours would be seen on their way from the one scheme to the other.
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    found += [("dark", each) for each in Axe().run(page, options=COLOURS).response["violations"]]
    page.emulate_media(color_scheme="light", reduced_motion="no-preference")
    return [(scheme, each["id"], each["nodes"][0]["html"]) for scheme, each in found]
