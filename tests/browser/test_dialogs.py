"""Every dialog of the console: it is found in the source, opened by the keyboard, and has no fault of accessibility."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.conftest import SLOW, Site, opened_site
from browser.test_quality import come_to, faults, posted

PAGES = Path(__file__).parents[2] / "console" / "src"
PATIENCE = 60_000
SCRIPT = "default: {reply: 'An answer.', tokens: 5}\n"
SCHEDULE = {"name": "nightly", "workflow": "slow", "cron": "0 6 * * *"}


def _press(page: Page, *names: str) -> None:
    for name in names:
        page.get_by_role("button", name=name, exact=True).first.press("Enter")


def _run(site: Site, workflow: str, status: str) -> str:
    run = site.start(workflow, **({"topic": "tea"} if workflow == "gated" else {}))
    while site.served.client().get(f"/api/runs/{run}").json()["status"] != status:
        pass
    return run


def _retry(page: Page, site: Site) -> None:
    run = _run(site, "gated", "waiting")
    posted(site, f"/api/runs/{run}/cancel", {})
    come_to(page, site, f"/runs/{run}")
    page.get_by_text("Retry ▾").press("Enter")
    _press(page, "With other inputs …")


def _at(path: str, *names: str) -> Callable[[Page, Site], None]:
    def do(page: Page, site: Site) -> None:
        come_to(page, site, path)
        _press(page, *names)

    return do


def _cancel(page: Page, site: Site) -> None:
    come_to(page, site, f"/runs/{_run(site, 'gated', 'waiting')}")
    _press(page, "Cancel")


def _fork(page: Page, site: Site) -> None:
    come_to(page, site, f"/runs/{_run(site, 'gated', 'waiting')}")
    _press(page, "Fork …")


def _clear(page: Page, site: Site) -> None:
    goal = {"text": "It is green", "verify": "command:false", "workflow": "gated"}
    made = posted(site, "/api/goals", {**goal, "inputs": {"topic": "tea"}})["goal"]
    assert isinstance(made, dict)
    come_to(page, site, f"/goals/{made['id']}")
    _press(page, "Clear …")


def _edit(page: Page, site: Site) -> None:
    come_to(page, site, "/workflows/gated?tab=edit")
    page.get_by_label("Text of the workflow").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("# more")


def _save(page: Page, site: Site) -> None:
    _edit(page, site)
    _press(page, "Save …")


def _save_as(page: Page, site: Site) -> None:
    _edit(page, site)
    _press(page, "Save as …")


def _remove_step(page: Page, site: Site) -> None:
    come_to(page, site, "/workflows/gated?tab=edit")
    page.locator(".drawing .node").first.click()
    _press(page, "Remove")


def _try(page: Page, site: Site) -> None:
    come_to(page, site, "/workflows/gated?tab=edit")
    expect(page.get_by_role("button", name="Dry run …")).to_be_enabled(timeout=PATIENCE)
    _press(page, "Dry run …")


def _logged_out(page: Page, site: Site) -> None:
    come_to(page, site, "/single")
    refused = {"ok": False, "error": {"kind": "unauthenticated", "message": "no", "details": {}}}
    page.get_by_label("What to do").fill("Say hello.")
    # Nobody who is logged out is answered: what is answered tells that somebody has logged in again.
    page.route("**/api/**", lambda route: route.fulfill(status=401, json=refused))
    _press(page, "Run")


# Each dialog by its title, as the source has it.
DIALOGS: dict[str, Callable[[Page, Site], None]] = {
    "Clear this goal?": _clear,
    "Restore version ${asked.version}?": _at("/workflows/slow?tab=versions", "Restore …"),
    "Delete ${name}?": _at("/workflows/slow", "Delete …"),
    "Cancel this run?": _cancel,
    "Fork this run": _fork,
    "Retry with other inputs": _retry,
    "A new secret for ${trigger.name}?": _at("/triggers", "New secret …"),
    "Delete ${trigger.name}?": _at("/triggers", "Delete …"),
    "The secret of ${made.name}": _at("/triggers", "New secret …", "Make a new secret"),
    "Log out everywhere?": _at("/settings", "Log out everywhere …"),
    "Save these changes?": _save,
    "Save as another workflow": _save_as,
    "Remove ${step}?": _remove_step,
    "Insert a variable": _at("/workflows/gated?tab=edit", "Insert a variable"),
    "Dry run": _try,
    "You are logged out": _logged_out,
}


def titles() -> set[str]:
    found: set[str] = set()
    for file in PAGES.rglob("*.tsx"):
        for title in re.findall(r"<Dialog\s+title=(\{.*?\}|\".*?\")\s+close=", file.read_text()):
            found.update(re.findall(r"[\"'`]([^\"'`]{5,})[\"'`]", title))
    return found


def test_every_dialog_of_the_source_is_tried_here() -> None:
    uses = sum(file.read_text().count("<Dialog") for file in PAGES.rglob("*.tsx"))
    assert uses >= 12
    assert titles() == set(DIALOGS)
    raw = [
        file.name
        for file in PAGES.rglob("*.tsx")
        if re.search(r"<dialog|confirm\(|alert\(", file.read_text())
    ]
    assert raw == ["parts.tsx"], "a dialog is made by Dialog alone"


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    with opened_site(browser, tmp_path_factory.mktemp("dialogs"), SCRIPT) as made:
        for why in ("one", "two"):
            text = {"recipe": f"{SLOW}# {why}\n"}
            assert made.served.client().put("/api/workflows/slow", json=text).status_code == 200
        posted(made, "/api/hooks", {"name": "called", "workflow": "slow"})
        posted(made, "/api/schedules", SCHEDULE)
        yield made


@pytest.mark.parametrize("title", DIALOGS)
def test_a_dialog_has_no_fault_and_is_left_by_the_keyboard(site: Site, title: str) -> None:
    for scheme in ("light", "dark"):
        page = site.page("/settings")
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        DIALOGS[title](page, site)
        dialog = page.get_by_role("dialog")
        expect(dialog).to_be_visible(timeout=PATIENCE)
        start = re.split(r"\$\{.*?\}", title)[0].strip()
        expect(dialog).to_have_accessible_name(re.compile(re.escape(start)))
        expect(page.get_by_text("Loading …")).to_have_count(0)
        assert [(scheme, *fault) for fault in faults(page)] == []
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        box = dialog.bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= 390 - box["width"]
        page.set_viewport_size({"width": 1280, "height": 900})
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.close()
    # The editor asks by trying: that a step is in use is an answer, which the browser logs.
    asked = ("409 (Conflict)", "401 (Unauthorized)")
    assert [error for error in site.errors if not any(each in error for each in asked)] == []


def test_logging_out_everywhere_ends_the_sessions_of_other_browsers(
    browser: Browser, tmp_path: Path
) -> None:
    with opened_site(browser, tmp_path, SCRIPT) as made:
        other = browser.new_context()
        elsewhere = other.new_page()
        elsewhere.goto(f"{made.served.url}/runs")
        elsewhere.get_by_label("Token").fill(made.served.token)
        elsewhere.get_by_role("button", name="Log in").click()
        expect(elsewhere.locator("main h1")).to_be_visible(timeout=PATIENCE)
        page = made.page("/settings")
        _press(page, "Log out everywhere …")
        page.get_by_role("button", name="Stay logged in").press("Enter")
        assert page.evaluate("fetch('/api/session').then(r => r.status)") == 200
        _press(page, "Log out everywhere …")
        page.get_by_role("button", name="Log out everywhere", exact=True).press("Enter")
        expect(page.get_by_label("Token")).to_be_visible(timeout=PATIENCE)
        assert elsewhere.evaluate("fetch('/api/session').then(r => r.status)") == 401
        elsewhere.reload()
        expect(elsewhere.get_by_label("Token")).to_be_visible(timeout=PATIENCE)
        assert made.served.client().get("/api/session").status_code == 200, "the token stays"
        other.close()
