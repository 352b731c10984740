"""WebFetch: a page of the web as text.

Only public addresses are asked, and every redirect is checked again (web_client).
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

from pydantic import Field

from stretto.adapters.tools import html_text
from stretto.adapters.tools.arguments import Arguments
from stretto.adapters.tools.outcomes import CallFailed, CallRefused
from stretto.adapters.tools.standard_tool import StandardTool, standard_tool
from stretto.adapters.tools.web_client import Page, Url, WebClient, read_redirect, read_url
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

_WEB_FETCH = (
    "Fetch a public web page over http or https and return it as text. HTML is made readable;"
    " other text and JSON come as they are."
)


class WebFetchArguments(Arguments):
    url: str = Field(min_length=1, max_length=4096, description="the URL of the page")


def web_fetch(
    client: WebClient,
    domains: tuple[DomainFilter, ...] = (),
    timeout_seconds: float = TIMEOUT_SECONDS,
    html_seconds: float = HTML_SECONDS,
) -> StandardTool[WebFetchArguments]:
    """`domains`: these and what is below them, and no others. Empty: all."""

    async def work(given: WebFetchArguments) -> str:
        try:
            async with asyncio.timeout(timeout_seconds):
                url, page = await follow(client, domains, given.url)
        except TimeoutError:
            raise CallFailed(f"it took longer than {timeout_seconds:g} s") from None
        text = await _readable(page, html_seconds)
        if page.status >= 400:
            raise CallFailed(f"{url} answered {page.status}\n\n{text[:2000]}")
        if not text.strip():
            # An agent that is told nothing makes the page up.
            raise CallFailed(f"{url} answered {page.status}, and there is no text in the page")
        cut = "" if page.is_whole else f"\n\n[only the first {MOST_BYTES:,} bytes were read]"
        return f"{url} answered {page.status}\n\n{text}{cut}"

    return standard_tool("WebFetch", _WEB_FETCH, WebFetchArguments, work, needs_network=True)


async def follow(
    client: WebClient, domains: tuple[DomainFilter, ...], text: str
) -> tuple[Url, Page]:
    url = read_url(text, client.allow_private)
    for _ in range(MOST_REDIRECTS + 1):
        _check_domain(url, domains)
        page = await client.fetch(url, MOST_BYTES)
        location = page.headers.get("location")
        if page.status not in _REDIRECTS or location is None:
            return url, page
        url = read_redirect(url, location, client.allow_private)
    raise CallFailed(f"it redirects more than {MOST_REDIRECTS} times")


def _check_domain(url: Url, domains: tuple[DomainFilter, ...]) -> None:
    if domains and not any(each.allows(url.host) for each in domains):
        may = ", ".join(each.domain for each in domains)
        raise CallRefused(f"{url.host} is not one of the sites you may fetch: {may}")


async def _readable(page: Page, html_seconds: float) -> str:
    kind = page.headers.get("content-type", "text/plain").split(";")[0].strip().lower()
    if page.headers.get("content-encoding", "identity").lower() != "identity":
        raise CallFailed("it came compressed although it was asked for uncompressed")
    if kind not in _PAGES and not _TEXTS.match(kind):
        raise CallFailed(
            f"it is {kind}, {len(page.body):,} bytes; only text, HTML and JSON can be read"
        )
    return await _text_of(page, kind in _PAGES, html_seconds)


def _charset(page: Page) -> str:
    named = _CHARSET.search(page.headers.get("content-type", ""))
    # A page that does not name its charset in the header may do so in its first lines.
    named = named or _CHARSET.search(page.body[:1024].decode("latin-1"))
    return codec_of(named[1] if named else "", page.body[:4])


async def _text_of(page: Page, is_html: bool, html_seconds: float) -> str:
    async def feed() -> AsyncIterator[bytes]:
        yield json.dumps({"charset": _charset(page), "is_html": is_html}).encode() + b"\n"
        yield page.body

    program = Path(html_text.__file__)
    try:
        code, text = await run_worker(program, feed(), html_seconds, 4 * MOST_BYTES)
    except WorkerTooSlow:
        raise CallFailed("this page's text could not be read in time") from None
    if code != 0:
        raise CallFailed("this page's text could not be read")
    return text.decode("utf-8", "replace")


# Each line begins with a codec; the other words are the names that pages give it.
_TABLE = """
utf-8 utf8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8
cp866 866 csibm866 ibm866
iso8859-2 iso-8859-2 iso88592 iso_8859-2 latin2 l2 csisolatin2
iso8859-3 iso-8859-3 iso88593 iso_8859-3 latin3 l3 csisolatin3
iso8859-4 iso-8859-4 iso88594 iso_8859-4 latin4 l4 csisolatin4
iso8859-5 iso-8859-5 iso88595 iso_8859-5 cyrillic csisolatincyrillic
iso8859-6 iso-8859-6 iso88596 iso_8859-6 arabic asmo-708 ecma-114 iso-8859-6-e iso-8859-6-i
iso8859-7 iso-8859-7 iso88597 iso_8859-7 greek greek8 ecma-118 sun_eu_greek
iso8859-8 iso-8859-8 iso88598 iso_8859-8 hebrew iso-8859-8-e iso-8859-8-i logical visual
iso8859-10 iso-8859-10 iso885910 latin6 l6 csisolatin6
iso8859-13 iso-8859-13 iso885913
iso8859-14 iso-8859-14 iso885914
iso8859-15 iso-8859-15 iso885915 iso_8859-15 l9 csisolatin9
iso8859-16 iso-8859-16
koi8-r koi koi8 koi8_r cskoi8r
koi8-u koi8-ru
mac-roman macintosh mac x-mac-roman csmacintosh
mac-cyrillic x-mac-cyrillic x-mac-ukrainian
cp874 windows-874 dos-874 iso-8859-11 iso8859-11 iso885911 tis-620
cp1250 windows-1250 x-cp1250
cp1251 windows-1251 x-cp1251
cp1252 windows-1252 x-cp1252 ascii us-ascii ansi_x3.4-1968 iso-8859-1 iso8859-1 iso88591 \
 iso_8859-1 latin1 latin-1 l1 cp819 ibm819 csisolatin1 iso-ir-100
cp1253 windows-1253 x-cp1253
cp1254 windows-1254 x-cp1254 iso-8859-9 iso8859-9 iso88599 iso_8859-9 latin5 l5 csisolatin5
cp1255 windows-1255 x-cp1255
cp1256 windows-1256 x-cp1256
cp1257 windows-1257 x-cp1257
cp1258 windows-1258 x-cp1258
gb18030 gbk gb2312 gb_2312 gb_2312-80 x-gbk chinese csgb2312 csiso58gb231280
big5hkscs big5 big5-hkscs cn-big5 csbig5 x-x-big5
euc_jp euc-jp cseucpkdfmtjapanese x-euc-jp
iso2022_jp iso-2022-jp csiso2022jp
cp932 shift_jis shift-jis sjis ms932 ms_kanji windows-31j csshiftjis x-sjis
cp949 euc-kr euc_kr korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949 cseuckr
utf-16-be utf-16be unicodefffe
utf-16-le utf-16le utf-16 ucs-2 unicode iso-10646-ucs-2 csunicode unicodefeff
"""
_CODECS = {
    name: codec
    for codec, *names in map(str.split, _TABLE.strip().splitlines())
    for name in (codec, *names)
}
# A byte order mark at the beginning of a page overrules its header.
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xfe\xff", "utf-16"), (b"\xff\xfe", "utf-16"))


def codec_of(charset: str, beginning: bytes = b"") -> str:
    """The Python codec for a charset that a page names; UTF-8 for what is not a charset of the web.

    Python has more codecs than the web has charsets: `punycode` takes minutes for a page, others
    run code or unpack archives. So only those of the WHATWG's Encoding Standard are used.
    """
    marked = next((codec for mark, codec in _MARKS if beginning.startswith(mark)), None)
    return marked or _CODECS.get(charset.strip().lower(), "utf-8")
