"""A real browser opens the page: nothing in it runs, nothing is asked for, links open what they name."""

import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from stretto.report.html import as_html
from stretto.report.report import report_of
from stretto.report.transcript import transcripts
from stretto.testing.recipes import run_recipe
from support.chromium import CHROMIUM
from support.hostile_markdown import hostile
from support.reported_runs import Fail, driven

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


def opened(folder: Path, page: str, fragment: str = "", *flags: str) -> str:
    """The document as the browser has it once all is loaded."""
    assert CHROMIUM is not None
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    address = f"{file.as_uri()}{fragment}"
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run(
        [CHROMIUM, *FLAGS, *flags, profile, "--dump-dom", address],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=120,
        check=True,
    )
    return done.stdout.decode()


@contextmanager
def counted_site() -> Iterator[tuple[str, list[str]]]:
    """A server that notes what it is asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def hostile_page(site: str) -> str:
    """Every sample as an answer, as a step's output, as an error and in a prompt."""
    samples = hostile(site)
    ids = [f"s{number}" for number in range(len(samples))]
    steps = "".join(f"  - {{id: {id}, agent: worker, prompt: '{{{{inputs.x}}}}'}}\n" for id in ids)
    recipe = f"name: '<script>1</script>'\ninputs: {{x: {{type: string}}}}\nsteps:\n{steps}"
    script = {
        id: Fail(sample) if number % 3 == 0 else sample
        for number, (id, sample) in enumerate(zip(ids, samples, strict=True))
    }
    script[ids[-1]] = "\n\n".join(samples)
    run = driven(recipe, script, x="\n".join(samples))
    return as_html(report_of(run.state), run.plan, transcripts(run.plan, run.journal))


def test_nothing_in_a_hostile_page_runs_or_is_asked_for(tmp_path: Path) -> None:
    with counted_site() as (site, asked):
        page = hostile_page(site)
        dom = opened(tmp_path, page)
        # The policy alone would stop it; without the policy there is still nothing to stop.
        bare = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
        assert bare != page
        unguarded = opened(tmp_path, bare)
    assert asked == []
    for found in (dom, unguarded):
        assert "<title>&lt;script&gt;1&lt;/script&gt;: PARTIAL</title>" in found
        forbidden = (
            r"<(script|img|iframe|object|embed|link|base|form|input|video|audio|image|math)\b"
        )
        assert not re.search(forbidden, found, re.IGNORECASE)
        assert not re.search(r"<[^>]+\son[a-z]+=", re.sub(r'"[^"]*"', '""', found))
        assert not re.search(r'href="(?!#|https?://|mailto:)', found)


def test_the_site_would_notice(tmp_path: Path) -> None:
    with counted_site() as (site, asked):
        opened(tmp_path, f"<!doctype html><img src='{site}/hit'>")
    assert "/hit" in asked


def test_a_link_to_a_folded_step_opens_it(tmp_path: Path) -> None:
    recipe = "name: t\nsteps:\n  - {id: a, agent: worker, prompt: x}\n  - {id: b, agent: worker, prompt: x}\n"
    run = driven(recipe)
    page = as_html(report_of(run.state), run.plan)
    folded = re.findall(r'<details class="is-succeeded"([^>]*)>', opened(tmp_path, page))
    assert folded == ["", ""]
    unfolded = re.findall(
        r'<details class="is-succeeded"([^>]*)>', opened(tmp_path, page, "#step-1")
    )
    assert unfolded == ["", ' open=""']


def test_the_page_needs_no_more_width_than_a_phone_has(tmp_path: Path) -> None:
    page = hostile_page("http://site.test")
    # Only a frame can be narrower than the smallest window.
    probe = (
        "<script>onload = () => { const d = document.querySelector('iframe').contentDocument;"
        "document.title = d.documentElement.scrollWidth }</script>"
    )
    (tmp_path / "inner.html").write_text(page, encoding="utf-8")
    frame = f"<!doctype html><title>0</title><iframe width=375 height=800 src=inner.html></iframe>{probe}"
    dom = opened(tmp_path, frame, "", "--allow-file-access-from-files")
    title = re.search(r"<title>(\d+)</title>", dom)
    assert title is not None
    assert 0 < int(title[1]) <= 375


def test_links_in_a_notebook_stay_within_the_report(tmp_path: Path) -> None:
    recipe = "name: t\nsteps: [{id: a, subagent: writer, prompt: x}]\n"
    drawn = run_recipe(recipe)._repr_html_()
    assert drawn.startswith("<iframe sandbox ")
    # Only a frame of the same origin can be looked into.
    frame = drawn.replace("<iframe sandbox ", "<iframe sandbox=allow-same-origin ", 1)
    probe = (
        "<script>onload = () => { const f = document.querySelector('iframe');"
        "f.contentDocument.querySelector('svg a').dispatchEvent("
        "new MouseEvent('click', {bubbles: true, cancelable: true}));"
        "setTimeout(() => { document.body.className = f.contentWindow.location.href + ' '"
        " + f.contentDocument.querySelectorAll('.steps > details[open]').length }, 50) }</script>"
    )
    flags = ("--allow-file-access-from-files", "--virtual-time-budget=5000")
    dom = opened(tmp_path, f"<!doctype html><body>{frame}{probe}", "", *flags)
    assert '<body class="about:srcdoc#step-0 1">' in dom
