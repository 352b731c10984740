"""WebFetch. In: a URL. Out: the page as text, or why not.

Public addresses only, checked again at every redirect (dialing.py, urls.py, addresses.py).
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

from stretto.adapters.tools import html_text
from stretto.adapters.tools.arguments import Given, Parameter, Parameters, Text
from stretto.adapters.tools.charsets import codec_of
from stretto.adapters.tools.checked import CheckedTool, Failed, Refused, checked
from stretto.adapters.tools.dialing import Dialer, Page
from stretto.adapters.tools.urls import Url, read_redirect, read_url
from stretto.processes.worker import WorkerTooSlow, run_worker
from stretto.toolnames.filters import DomainFilter

MOST_BYTES = 2_000_000
MOST_REDIRECTS = 5
TIMEOUT_SECONDS = 30.0
HTML_SECONDS = 10.0  # for decoding a page and making text of it
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_PAGES = ("text/html", "application/xhtml+xml")
_TEXTS = re.compile(r"text/|application/(?:[\w.-]+\+)?(?:json|xml|yaml|x-yaml|javascript)\Z")

_SAYS = (
    "Fetch a public web page over http or https and return it as text. HTML is made readable;"
    " other text and JSON come as they are."
)
_TAKES = Parameters(Parameter("url", Text(1, 4096), "the URL of the page", is_required=True))


def web_fetch(
    dialer: Dialer,
    domains: tuple[DomainFilter, ...] = (),
    timeout_seconds: float = TIMEOUT_SECONDS,
    html_seconds: float = HTML_SECONDS,
) -> CheckedTool:
    """`domains`: these and what is below them, and no others. Empty: all."""

    async def work(given: Given, key: str) -> str:
        try:
            async with asyncio.timeout(timeout_seconds):
                url, page = await _follow(dialer, domains, given.text("url"))
        except TimeoutError:
            raise Failed(f"it took longer than {timeout_seconds:g} s") from None
        text = await _readable(page, html_seconds)
        if page.status >= 400:
            raise Failed(f"{url} answered {page.status}\n\n{text[:2000]}")
        cut = "" if page.is_whole else f"\n\n[only the first {MOST_BYTES:,} bytes were read]"
        return f"{url} answered {page.status}\n\n{text}{cut}"

    return checked("WebFetch", _SAYS, _TAKES, work, needs_network=True)


async def _follow(dialer: Dialer, domains: tuple[DomainFilter, ...], text: str) -> tuple[Url, Page]:
    url = read_url(text, dialer.allow_private)
    for _ in range(MOST_REDIRECTS + 1):
        _check_domain(url, domains)
        page = await dialer.fetch(url, MOST_BYTES)
        location = page.headers.get("location")
        if page.status not in _REDIRECTS or location is None:
            return url, page
        url = read_redirect(url, location, dialer.allow_private)
    raise Failed(f"it redirects more than {MOST_REDIRECTS} times")


def _check_domain(url: Url, domains: tuple[DomainFilter, ...]) -> None:
    if domains and not any(each.allows(url.host) for each in domains):
        may = ", ".join(each.domain for each in domains)
        raise Refused(f"{url.host} is not one of the sites you may fetch: {may}")


async def _readable(page: Page, html_seconds: float) -> str:
    kind = page.headers.get("content-type", "text/plain").split(";")[0].strip().lower()
    if page.headers.get("content-encoding", "identity").lower() != "identity":
        raise Failed("it came packed although it was asked for unpacked")
    if kind not in _PAGES and not _TEXTS.match(kind):
        raise Failed(
            f"it is {kind}, {len(page.body):,} bytes; only text, HTML and JSON can be read"
        )
    return await _text_of(page, kind in _PAGES, html_seconds)


def _charset(page: Page) -> str:
    named = _CHARSET.search(page.headers.get("content-type", ""))
    # A page that does not say so in its header may in its first lines.
    named = named or _CHARSET.search(page.body[:1024].decode("latin-1"))
    return codec_of(named[1] if named else "", page.body[:4])


async def _text_of(page: Page, is_html: bool, html_seconds: float) -> str:
    async def feed() -> AsyncIterator[bytes]:
        yield json.dumps({"charset": _charset(page), "is_html": is_html}).encode() + b"\n"
        yield page.body

    program = Path(html_text.__file__)
    try:
        code, said = await run_worker(program, feed(), html_seconds, 4 * MOST_BYTES)
    except WorkerTooSlow:
        raise Failed("this page's text could not be read in time") from None
    if code != 0:
        raise Failed("this page's text could not be read")
    return said.decode("utf-8", "replace")
