"""WebFetch: pages as text, from public addresses only, at every hop."""

import asyncio
import datetime
import ssl
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from stretto.adapters.tools.web_client import WebClient
from stretto.adapters.tools.web_fetch import MOST_BYTES, web_fetch
from stretto.ports.tool import ToolOutcome
from stretto.toolnames.filters import DomainFilter
from support.toolbench import call
from support.web_server import Answer, Asked, Site, names, page, redirect, serving


def fetched(
    answer: Answer,
    url: Callable[[Site], str],
    domains: tuple[str, ...] = (),
    timeout_seconds: float = 10.0,
    **addresses: str | list[str],
) -> tuple[ToolOutcome, Site]:
    """From a server that `page.test` and whatever else is named stands for."""
    resolve = names(page_test="127.0.0.1", **addresses)

    async def run() -> tuple[ToolOutcome, Site]:
        async with serving(answer) as site:
            dialer = WebClient(resolve, frozenset({site.place("page.test")}))
            tool = web_fetch(dialer, tuple(map(DomainFilter, domains)), timeout_seconds)
            return await tool.call({"url": url(site)}, "k"), site

    return asyncio.run(run())


def home(site: Site) -> str:
    return f"http://{site.place('page.test')}/"


def test_the_checked_address_is_dialled_and_the_host_keeps_its_name() -> None:
    told, site = fetched(lambda asked: page("hello"), home)
    assert told.verdict == "ok"
    assert told.text == f"http://page.test:{site.port}/ answered 200\n\nhello"
    assert site.asked[0].headers["host"] == f"page.test:{site.port}"


def test_html_is_made_readable() -> None:
    html = """<html><head><title>The  Title</title><style>p{}</style></head><body>
    <script>alert('<p>no</p>')</script><h1>Head</h1><p>One &amp; <b>two</b><br>three</p>
    <ul><li>first <a href="https://x.test/y">link</a></li><li>second</li></ul>
    <table><tr><td>a</td><td>b</td></tr></table><pre>  keep
  this</pre></body>"""
    told, _ = fetched(lambda asked: page(html, "text/html; charset=utf-8"), home)
    assert "alert" not in told.text
    for expected in ("The Title\n", "# Head", "One & two\nthree", "- first link (https://x.test/y)",
                     "- second", "| a | b", "keep\nthis"):  # fmt: skip
        assert expected in told.text


def test_json_and_other_charsets_come_as_they_are() -> None:
    told, _ = fetched(lambda asked: page('{"a": 1}', "application/json"), home)
    assert told.text.endswith('{"a": 1}')
    latin = "café".encode("latin-1")
    told, _ = fetched(lambda asked: page(latin, "text/plain; charset=ISO-8859-1"), home)
    assert told.text.endswith("café")
    told, _ = fetched(lambda asked: page(latin, "text/plain; charset=no-such"), home)
    assert told.text.endswith("caf\ufffd")


@pytest.mark.parametrize(
    "answer",
    [page(""), page(" \n"), page("<html><body><script>draw()</script></body>", "text/html")],
)
def test_a_page_without_a_text_is_an_error(answer: bytes) -> None:
    told, _ = fetched(lambda asked: answer, home)
    assert (told.verdict, "there is no text" in told.text) == ("error", True)


@pytest.mark.parametrize("kind", ["image/png", "application/pdf", "application/octet-stream"])
def test_other_kinds_are_named(kind: str) -> None:
    told, _ = fetched(lambda asked: page(b"\0" * 10, kind), home)
    assert told.text == f"Error: it is {kind}, 10 bytes; only text, HTML and JSON can be read"


def test_a_page_that_does_not_end_is_cut_at_its_limit() -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
        for _ in range(1000):
            yield b"x" * 65536

    told, _ = fetched(lambda asked: endless(), home)
    assert f"[only the first {MOST_BYTES:,} bytes were read]" in told.text
    assert "characters left out" in told.text
    assert len(told.text) < 31_000
    assert told.size > MOST_BYTES


def test_a_page_that_does_not_come_is_given_up() -> None:
    async def silent() -> AsyncIterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
        for _ in range(2_000):
            await asyncio.sleep(0.05)
            yield b"."

    begin = time.monotonic()
    told, _ = fetched(lambda asked: silent(), home, timeout_seconds=0.5)
    assert told.text == "Error: it took longer than 0.5 s"
    assert time.monotonic() - begin < 60


def test_an_error_of_the_site_is_an_error_with_its_words() -> None:
    told, _ = fetched(lambda asked: page("not here", status=404), home)
    assert told.verdict == "error"
    assert "answered 404" in told.text
    assert "not here" in told.text


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Le"])
def test_a_server_that_speaks_no_http_is_an_error(answer: bytes) -> None:
    told, _ = fetched(lambda asked: answer, home)
    assert told.verdict == "error"
    assert "could not be fetched" in told.text


def test_what_comes_packed_unasked_is_an_error() -> None:
    told, site = fetched(lambda asked: page(b"\x1f\x8b", Content_Encoding="gzip"), home)
    assert told.text == "Error: it came compressed although it was asked for uncompressed"
    assert site.asked[0].headers["accept-encoding"] == "identity"


def test_redirects_are_followed_to_an_end() -> None:
    def answer(asked: Asked) -> bytes:
        at = int(asked.target.strip("/") or 0)
        return redirect(f"/{at + 1}") if at < 5 else page("there")

    told, site = fetched(answer, home)
    assert told.text.endswith("/5 answered 200\n\nthere")
    told, site = fetched(lambda asked: redirect("/again"), home)
    assert told.text == "Error: it redirects more than 5 times"
    assert len(site.asked) == 6


@pytest.mark.parametrize(
    "location",
    [
        "http://inner.test/",
        "//inner.test/x",
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://page.test:22/",
        "http://page.test/",
        "file:///etc/passwd",
        "gopher://page.test/",
        "http://user:word@page.test/",
        "http://mixed.test/",
    ],
)
def test_every_redirect_is_checked_again(location: str) -> None:
    addresses: dict[str, str | list[str]] = {
        "inner_test": "10.0.0.1", "127_0_0_1": "127.0.0.1", "::1": "::1",
        "mixed_test": ["8.8.8.8", "192.168.0.1"],
    }  # fmt: skip
    told, site = fetched(lambda asked: redirect(location), home, (), 10.0, **addresses)
    assert told.verdict == "refused", told.text
    assert len(site.asked) == 1


def test_a_name_that_changes_its_address_gains_nothing() -> None:
    """It is resolved once a hop: what was checked is what is dialled."""
    answers = iter([["127.0.0.2"], ["127.0.0.1"]])
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return next(answers)

    async def run() -> ToolOutcome:
        async with serving(lambda asked: page("inside")) as site:
            place = site.place("re.test")
            tool = web_fetch(WebClient(resolve, frozenset({place})))
            return await tool.call({"url": f"http://{place}/"}, "k")

    told = asyncio.run(run())
    assert told.verdict == "error"
    assert "inside" not in told.text
    assert asked == ["re.test"]


SPELLINGS = [
    "\nhttp://127.0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://0x7f000001/\nhttp://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://0/",
    "http://0.0.0.0/\nhttp://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://[::1]/",
    "http://[::]/\nhttp://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/\nhttp://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fd00:ec2::254]/\nhttp://169.254.169.254/latest/meta-data/",
    "http://0xa9fea9fe/",
    "http://2852039166/\nhttp://[::ffff:a9fe:a9fe]/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://192.168.1.1/\nhttp://10.0.0.1/",
    "http://172.16.0.1/",
    "http://100.64.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/\nhttp://１２７.０.０.１/",
    "http://127。0。0。1/",
    "http://①②⑦.0.0.1/",
    "https://127.0.0.1/",
    "http://127.0.0.1:443/\nhttp://[fe80::1%25eth0]/",
    "http://[::1%25lo]/",
    "http://127.0.0.1:8080/",
    "http://8.8.8.8:22/\nhttp://user@8.8.8.8/",
    "http://8.8.8.8@127.0.0.1/",
    "http://8.8.8.8\\@127.0.0.1/",
    "http://127.0.0.1\\.x.test/\nhttp://8.8.8.8%00.x.test/",
    "http://127.0.0.1%2f.x.test/",
    "http:///etc/passwd",
    "http:/x",
    "http://",
    "https:\nfile:///etc/passwd",
    "ftp://8.8.8.8/",
    "gopher://8.8.8.8/",
    "data:text/html,x",
    "javascript:1",
    "//8.8.8.8/\n8.8.8.8",
    "http://[::1",
    "http://[x]/",
    "http://8.8.8.8:99999/",
    "http://8.8.8.8:-1/",
    "http://8.8.8.8:x/\nhttp://-x.test/",
    "http://x..test/",
    "http://.x.test/",
    "http://x_�.test/\n",
]


@pytest.mark.parametrize("url", [one for line in SPELLINGS for one in line.split("\n") if one])
def test_no_spelling_of_an_inner_address_is_fetched(url: str) -> None:
    """With the machine's own resolver, which knows all of these without asking anybody."""
    told = call(web_fetch(WebClient(), (), 5.0), url=url)
    assert told.verdict == "refused", told.text


@pytest.mark.parametrize(
    "text", ["http://8.8.8.8/a b", "http://8.8.8.8/\r\nX: y", "http://8.8.8.8\t/"]
)
def test_no_header_can_be_smuggled_into_a_url(text: str) -> None:
    assert call(web_fetch(WebClient(), (), 5.0), url=text).verdict == "refused"


def test_a_name_without_an_address_is_an_error() -> None:
    told = call(web_fetch(WebClient(names())), url="http://none.test/")
    assert told.text == "Error: the name none.test has no address"


def test_only_the_listed_domains_are_fetched_also_after_a_redirect() -> None:
    told, site = fetched(lambda asked: page("x"), home, domains=("page.test",))
    assert told.verdict == "ok"
    told, site = fetched(lambda asked: page("x"), home, domains=("age.test", "other.test"))
    assert told.verdict == "refused"
    assert "age.test, other.test" in told.text
    assert site.asked == []
    told, site = fetched(
        lambda asked: redirect("http://evil.test/"), home, domains=("page.test",),
        evil_test="93.184.216.34",
    )  # fmt: skip
    assert (told.verdict, "evil.test" in told.text) == ("refused", True)


def test_a_page_that_keeps_the_parser_busy_is_given_up_and_the_loop_goes_on() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.05)
            ticks += 1

    async def run() -> ToolOutcome:
        ticking = asyncio.create_task(tick())
        async with serving(lambda asked: page("<" * 1_900_000, "text/html")) as site:
            dialer = WebClient(allow_private=frozenset({site.place()}))
            told = await web_fetch(dialer, html_seconds=1.0).call(
                {"url": f"http://{site.place()}/"}, "k"
            )
        ticking.cancel()
        return told

    assert asyncio.run(run()).text == "Error: this page's text could not be read in time"
    assert ticks > 5


def test_tls_goes_by_the_name_and_is_verified(tmp_path: Path) -> None:
    x509 = pytest.importorskip("cryptography.x509")
    server, client = _certified(x509, tmp_path, "page.test")

    async def ask(trust: ssl.SSLContext | None, host: str) -> ToolOutcome:
        async with serving(lambda asked: page("sealed"), server) as site:
            resolve = names(page_test="127.0.0.1", other_test="127.0.0.1")
            dialer = WebClient(resolve, frozenset({site.place(host)}), trust)
            return await web_fetch(dialer).call({"url": f"https://{site.place(host)}/"}, "k")

    assert asyncio.run(ask(client, "page.test")).text.endswith("sealed")
    for trust, host in [(client, "other.test"), (None, "page.test")]:
        told = asyncio.run(ask(trust, host))
        assert told.verdict == "error"
        assert "certificate verify failed" in told.text.lower()


def test_https_is_never_left_for_http(tmp_path: Path) -> None:
    x509 = pytest.importorskip("cryptography.x509")
    server, client = _certified(x509, tmp_path, "page.test")

    async def ask() -> ToolOutcome:
        async with serving(lambda asked: redirect("http://plain.test/"), server) as site:
            resolve = names(page_test="127.0.0.1", plain_test="93.184.216.34")
            dialer = WebClient(resolve, frozenset({site.place("page.test")}), client)
            return await web_fetch(dialer).call({"url": f"https://{site.place('page.test')}/"}, "k")

    told = asyncio.run(ask())
    assert (told.verdict, "not encrypted" in told.text) == ("refused", True)


def _certified(x509: object, folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    from cryptography import x509 as certificates
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = certificates.Name(
        [certificates.NameAttribute(certificates.NameOID.COMMON_NAME, name)]
    )
    now = datetime.datetime.now(datetime.UTC)
    made = (
        certificates.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(certificates.SubjectAlternativeName([certificates.DNSName(name)]), False)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    (folder / "cert.pem").write_bytes(pem)
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return server, ssl.create_default_context(cadata=pem.decode())
