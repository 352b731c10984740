"""What holds on every page of the console: who can use it, on what, and how much it bears."""

import itertools
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.conftest import GATED, SLOW, Site, faults, opened_site
from stretto.server.process import ServeOptions
from support.hostile_markdown import hostile
from support.served import served

QUICK = "default: {reply: 'An answer.', tokens: 5}\n"
PATIENCE = 60_000
TASKS = [{"agent": "writer", "prompt": f"Task {n}", "description": f"task {n}"} for n in range(3)]
FAN = """
name: fan
steps:
  - id: views
    parallel:
      - {agent: writer, prompt: One., output_key: one}
      - {agent: researcher, prompt: Two., output_key: two}
  - {id: join, subagent: writer, depends_on: [views], prompt: "{{steps.views.output}}"}
"""
# More than one screen of text.
LONG = SLOW.replace("name: slow", "name: long") + "# A note.\n" * 200


def posted(site: Site, path: str, body: dict[str, object]) -> dict[str, object]:
    answer = site.served.client().post(path, json=body)
    assert answer.status_code < 300, answer.text
    found: dict[str, object] = answer.json()
    return found


def furnished(site: Site) -> tuple[str, ...]:
    """Something on every page; the pages."""
    gated, other = (site.start("gated", topic=topic) for topic in ("tea", "coffee"))
    fan = posted(site, "/api/workflows/fan/run", {})["run_id"]
    batch = posted(site, "/api/batches", {"tasks": TASKS})["run_id"]
    chat = posted(site, "/api/chats", {"text": "Which workflows are there?"})["chat"]
    goal: dict[str, object] = {"text": "It is green", "verify": "command:true", "wait": True}
    found = posted(site, "/api/goals", goal)["goal"]
    assert isinstance(found, dict)
    for path in ("save one", "save two"):
        text = {"recipe": f"{SLOW}# {path}\n"}
        assert site.served.client().put("/api/workflows/slow", json=text).status_code == 200
    playbooks = site.served.client().get("/api/playbooks").json()["playbooks"]
    return (
        *(f"/runs/{gated}{more}" for more in ("", "?step=", "?tab=timeline", "?tab=events")),
        *(f"/runs/{gated}?tab=report{form}" for form in ("", "&form=raw", "&form=json")),
        *(f"/runs/{fan}?step=views", f"/runs/{batch}", f"/compare?left={gated}&right={other}"),
        *("/compare", f"/chat/{chat}", f"/goals/{found['id']}"),
        *(f"/playbooks/{playbooks[0]['name']}", "/playbooks?q=zzz", "/runs?status=failed"),
        *("/runs", "/approvals", "/chat", "/single", "/goals", "/triggers", "/playbooks"),
        *("/agents", "/settings", "/workflows", "/workflows/gated", "/workflows/slow?tab=versions"),
        *("/workflows/long?tab=text", "/workflows/long?tab=edit", "/workflows/gated?tab=runs"),
        *("/workflows/fresh?tab=edit&from=flat", "/workflows?new", "/triggers?for=gated"),
    )


@contextmanager
def furnished_site(browser: Browser, folder: Path) -> Iterator[tuple[Site, tuple[str, ...]]]:
    with opened_site(browser, folder, QUICK, {"fan": FAN, "long": LONG}) as site:
        yield site, furnished(site)


def come_to(page: Page, site: Site, path: str) -> None:
    page.goto(site.served.url + path)
    page.wait_for_selector("main h1")
    expect(page.get_by_text("Loading …")).to_have_count(0)


def test_no_page_and_no_dialog_has_a_fault_of_accessibility(
    browser: Browser, tmp_path: Path
) -> None:
    with furnished_site(browser, tmp_path) as (site, pages):
        page = site.page("/workflows")
        found: list[tuple[str, ...]] = []
        for path in pages:
            come_to(page, site, path)
            found += [(path, *fault) for fault in faults(page)]
        for button in ("Fork …", "Cancel"):
            come_to(page, site, pages[0])
            page.get_by_role("button", name=button, exact=True).click()
            expect(page.get_by_role("dialog")).to_be_visible()
            found += [(button, *fault) for fault in faults(page)]
        come_to(page, site, pages[7])
        page.get_by_text("Retry ▾").click()
        found += [("menu", *fault) for fault in faults(page)]
        page.get_by_role("button", name="With other inputs").click()
        found += [("retry", *fault) for fault in faults(page)]
        assert found == []
        assert site.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_that_cannot_be_read_are_found_in_either_scheme(
    browser: Browser, tmp_path: Path, scheme: str
) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/workflows")
        come_to(page, site, "/workflows")
        dim = f"@media (prefers-color-scheme: {scheme}) {{ h1 {{ color: #777 !important; background: #888 }} }}"
        page.evaluate("rule => document.styleSheets[0].insertRule(rule)", dim)
        assert [fault[:2] for fault in faults(page)] == [(scheme, "color-contrast")]


def test_every_page_fits_a_phone_and_twice_the_size(browser: Browser, tmp_path: Path) -> None:
    """A window of 1,280 pixels shows 640 of them at 200 %."""
    with furnished_site(browser, tmp_path) as (site, pages):
        page = site.page("/workflows")
        for width, path in itertools.product((390, 640), pages):
            page.set_viewport_size({"width": width, "height": 800})
            come_to(page, site, path)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert (path, wide) == (path, width)
        page.emulate_media(reduced_motion="reduce")
        for path in pages[:3]:
            come_to(page, site, path)
            assert page.evaluate("document.getAnimations().length") == 0
        assert site.errors == []


def tab_to(page: Page, name: str) -> None:
    """With the keyboard alone, to what is called so; it must show that it has the focus."""
    said = """() => {
        const here = document.activeElement
        const words = here.getAttribute('aria-label') ?? here.labels?.[0]?.textContent ?? here.textContent
        return [words.trim(), getComputedStyle(here).outlineStyle]
    }"""
    for _ in range(80):
        page.keyboard.press("Tab")
        words, outline = page.evaluate(said)
        if words.startswith(name):
            assert outline != "none", f"{name} does not show that it has the focus"
            return
    raise AssertionError(f"no way by keyboard to {name}")


def test_from_run_to_approve_to_retry_by_keyboard_alone(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page("/workflows/gated")
        expect(page.get_by_label("topic")).to_be_visible()
        tab_to(page, "topic")
        page.keyboard.type("tea")
        tab_to(page, "Run")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(r"/runs/\d"))
        expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible(
            timeout=PATIENCE
        )
        tab_to(page, "Approve")
        page.keyboard.press("Enter")
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=PATIENCE)
        first = page.url
        page.locator("h1").focus()
        tab_to(page, "Retry")
        page.keyboard.press("Enter")
        tab_to(page, "With other inputs")
        page.keyboard.press("Enter")
        tab_to(page, "topic")
        page.keyboard.type(", green")
        tab_to(page, "Start the retry")
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: "/runs/" in url and url != first)
        expect(page.get_by_role("dialog")).to_have_count(0)
        # What was approved is the same to the letter, so that the retried run asks nobody again.
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=PATIENCE)
        expect(page.locator(".inputs").first).to_contain_text("tea, green")
        assert page.url != first
        assert site.errors == []


def layered(many: int, wide: int) -> str:
    rows = []
    for number in range(many):
        needs = f", depends_on: [s{number - wide}]" if number >= wide else ""
        rows.append(f"  - {{id: s{number}, subagent: researcher, prompt: x{needs}}}")
    return "name: layered\nsteps:\n" + "\n".join(rows) + "\n"


def test_a_thousand_steps_are_painted_within_a_second_of_work(
    browser: Browser, tmp_path: Path
) -> None:
    """Counted in the thread's own time, which other work on the machine does not stretch."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "stretto.yaml").write_text("limits: {steps: 1000}\n")
    with opened_site(browser, tmp_path, QUICK, {"layered": layered(1000, 25)}) as site:
        run = posted(site, "/api/workflows/layered/run", {})["run_id"]
        page = site.page("/runs")
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})

        def worked() -> float:
            found = session.send("Performance.getMetrics")["metrics"]
            return next(float(each["value"]) for each in found if each["name"] == "TaskDuration")

        before = worked()
        page.evaluate(
            f"history.pushState(null, '', '/runs/{run}'); dispatchEvent(new Event('popstate'))"
        )
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=PATIENCE)
        opened = worked()
        page.get_by_role("button", name="Show every step").click()
        expect(page.locator(".graph .node")).to_have_count(1000)
        page.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        whole = worked()
        print(f"opened {opened - before:.2f} s, every step {whole - opened:.2f} s of the thread")
        assert opened - before < 1
        assert whole - opened < 1
        assert site.errors == []


def test_ten_tabs_are_live_by_one_stream(browser: Browser, tmp_path: Path) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        streams: list[str] = []
        site.session.on(
            "request", lambda r: streams.append(r.url) if "/api/events" in r.url else None
        )
        run = site.start("gated", topic="tea")
        tabs = [site.page(f"/runs/{run}") for _ in range(10)]
        for tab in tabs:
            expect(tab.locator("h1 .state")).to_have_text("waiting", timeout=PATIENCE)
            expect(tab.locator(".freshness .state")).to_have_text("live")
        posted(site, f"/api/runs/{run}/steps/publish/approve", {})
        for tab in tabs:
            expect(tab.locator("h1 .state")).to_have_text("complete", timeout=PATIENCE)
            expect(tab.locator(".freshness")).to_contain_text(
                re.compile("last event (now|[0-9]+ s ago)")
            )
        # Whoever leads opens it anew when a page shows another step, and never a second one beside it.
        assert len(streams) <= 3
        for _ in range(100):  # the server notices a moment later that the one before was closed
            if open_streams(site) == 1:
                break
            tabs[0].wait_for_timeout(100)
        assert open_streams(site) == 1
        assert site.errors == []


def open_streams(site: Site) -> int:
    found = re.search(
        r"^stretto_event_streams (\d+)", site.served.client().get("/metrics").text, re.M
    )
    assert found
    return int(found[1])


def test_five_hundred_tasks_are_cards_that_are_found_and_retried(
    browser: Browser, tmp_path: Path
) -> None:
    tasks = [{"agent": "writer", "prompt": f"Task {n}"} for n in range(1, 501)]
    script = (
        "default: {reply: 'An answer.', tokens: 5}\nreplies: {task-321: {fail: 'no such word'}}\n"
    )
    with opened_site(browser, tmp_path, script, {"one": SLOW}) as site:
        run = posted(site, "/api/batches", {"tasks": tasks})["run_id"]
        page = site.page(f"/runs/{run}?step=")
        cards = page.locator(".task")
        expect(cards.first).to_contain_text("no such word", timeout=PATIENCE)
        assert cards.count() < 100
        page.get_by_label("Filter the steps").fill("task 49")
        expect(cards).to_have_count(11)
        page.get_by_label("Filter the steps").fill("")
        page.get_by_role("button", name="Retry Task 321").click()
        page.wait_for_url(lambda url: run not in url)
        assert site.errors == []


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_page_goes_on_after_a_reload_and_after_a_restart_of_the_server(
    browser: Browser, tmp_path: Path
) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("default: {reply: 'An answer.', delay: 3s}\n")
    env = {"STRETTO_MODEL": f"scripted:{script}"}
    options = ServeOptions("127.0.0.1", free_port())
    session = browser.new_context()
    page = session.new_page()
    with served(tmp_path, {"slow": SLOW}, env, options) as before:
        page.goto(before.login_url)
        page.wait_for_url(f"{before.url}/")
        asked = before.client().post("/api/workflows/slow/run", json={"wait": False})
        page.goto(f"{before.url}/runs/{asked.json()['run_id']}")
        expect(page.locator("h1 .state")).to_have_text("running", timeout=PATIENCE)
        page.reload()
        expect(page.locator("h1 .state")).to_have_text("running", timeout=PATIENCE)
    expect(page.get_by_text("connection lost")).to_be_visible(timeout=PATIENCE)
    expect(page.locator(".stale h1 .state")).to_have_text("running")
    with served(tmp_path, {"slow": SLOW}, env, options):
        expect(page.locator("h1 .state")).to_have_text("complete", timeout=PATIENCE)
        expect(page.locator(".stale")).to_have_count(0)
        expect(page.locator(".freshness .state")).to_have_text("live")
    session.close()


def test_nothing_hostile_runs_from_names_and_inputs(browser: Browser, tmp_path: Path) -> None:
    """Model output is tried elsewhere; here is what people and files say."""
    texts = [text for text in hostile("http://127.0.0.1:9") if text.isprintable()]
    assert len(texts) > 50
    whole = "\n".join(texts)
    named = GATED.replace(
        "A note that a person approves", texts[0].replace('"', "'").replace(":", "")
    )
    with opened_site(browser, tmp_path, QUICK, {"gated": named}) as site:
        (tmp_path / "agents").mkdir()
        agent = f"---\nname: hostile\ndescription: >-\n  {texts[4]}\n---\n{whole}\n"
        (tmp_path / "agents" / "hostile.md").write_text(agent)
        run = site.start("gated", topic=whole)
        tasks: list[object] = [
            {"agent": "writer", "prompt": text, "description": text} for text in texts
        ]
        batch = posted(site, "/api/batches", {"tasks": tasks})["run_id"]
        chat = posted(site, "/api/chats", {"text": whole})["chat"]
        goal = posted(
            site, "/api/goals", {"text": texts[1], "verify": "command:true", "wait": True}
        )
        assert isinstance(goal["goal"], dict)
        page = site.page("/runs")
        for path in (
            *(f"/runs/{run}{more}" for more in ("", "?step=", "?tab=events", "?tab=report")),
            *(f"/runs/{batch}", f"/chat/{chat}", f"/goals/{goal['goal']['id']}", "/approvals"),
            *("/chat", "/goals", "/agents", "/workflows", "/workflows/gated"),
            f"/compare?left={run}&right={batch}",
        ):
            come_to(page, site, path)
            page.wait_for_timeout(150)  # for what would run late
            assert not re.fullmatch(r"(\(\d+\) )?hit", page.title()), path
        for link in page.locator("main a[href]").all():
            assert not re.match(
                r"(?i)\s*(javascript|data|vbscript):", link.get_attribute("href") or ""
            )
        assert (site.errors, site.strangers) == ([], [])


@pytest.mark.parametrize("path", ["/runs/nobody", "/goals/nobody", "/chat/nobody", "/nowhere"])
def test_what_is_not_there_says_so(browser: Browser, tmp_path: Path, path: str) -> None:
    with opened_site(browser, tmp_path, QUICK) as site:
        page = site.page(path)
        expect(page.locator("main")).to_contain_text(re.compile("no |There is no"))
