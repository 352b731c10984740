"""Ask servers of the web over HTTP, by httpcore2; pages only at public addresses.

The name is resolved once, and the connection goes to an address that was checked. TLS and the Host
header still use the name.

Which URLs and addresses may be asked is decided here too: only public ones. A URL is taken apart once, and what is checked is what is connected to. An IPv6 address that carries
an IPv4 address is judged by what it carries.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias
from urllib.parse import quote, urljoin, urlsplit

import httpcore2

from stretto.adapters.tools.outcomes import CallFailed, CallRefused

_PORTS = {"http": 80, "https": 443}
_MOST_CHARACTERS = 4096
# A backslash is a slash to some parsers; a blank or control character is dropped by others.
_DOUBTFUL = re.compile(r"[\x00-\x20\x7f-\x9f\\]")
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,252})\.?\Z")
_SAFE = "/?&=%:@!$'()*+,;~-._[]|"


@dataclass(frozen=True, slots=True)
class Url:
    scheme: str
    host: str  # in ASCII, lower case; an IPv6 address without its brackets
    port: int
    target: str  # path and query

    @property
    def place(self) -> str:
        """host:port, as the setting `web.allow_private` writes it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        place = self.place.removesuffix(f":{_PORTS[self.scheme]}")
        return f"{self.scheme}://{place}{self.target}"


def read_url(text: str, allowed_places: Collection[str] = ()) -> Url:
    """Raises CallRefused. `allowed_places` are host:port pairs that need not use a port of the web."""
    text = text.strip()
    if len(text) > _MOST_CHARACTERS:
        raise CallRefused(
            f"this URL has {len(text):,} characters; {_MOST_CHARACTERS:,} is the most"
        )
    if _DOUBTFUL.search(text):
        raise CallRefused("this URL holds a blank, a backslash or a control character; encode it")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise CallRefused(f"this is not a URL: {error}") from None
    if parts.scheme not in _PORTS:
        raise CallRefused("only http:// and https:// URLs can be fetched")
    if "@" in parts.netloc:
        raise CallRefused("a URL with a user name or a password in it cannot be fetched")
    url = Url(
        scheme=parts.scheme,
        host=_read_host(parts.hostname or "", "[" in parts.netloc),
        port=port if port is not None else _PORTS[parts.scheme],
        target=_encode(parts.path or "/") + (f"?{_encode(parts.query)}" if parts.query else ""),
    )
    if url.port not in _PORTS.values() and url.place not in allowed_places:
        raise CallRefused(f"port {url.port} is not one of the web's: only 80 and 443 are")
    return url


def read_redirect(origin: Url, location: str, allowed_places: Collection[str]) -> Url:
    try:
        joined = urljoin(str(origin), location)
    except ValueError:
        raise CallRefused("it redirects to something that is not a URL") from None
    url = read_url(joined, allowed_places)
    if (origin.scheme, url.scheme) == ("https", "http"):
        raise CallRefused(f"it redirects from https to {url}, which is not encrypted")
    return url


def _read_host(host: str, is_bracketed: bool) -> str:
    if is_bracketed:
        # A zone (`%eth0`) names an interface of this machine.
        if not re.fullmatch(r"[0-9a-f:.]+", host):
            raise CallRefused("this URL's address is not an IPv6 address")
        return host
    try:
        # Also what makes ASCII of full-width digits and dots, before anyone resolves them.
        ascii_host = host.encode("idna").decode().lower()
    except UnicodeError:
        raise CallRefused("this URL's host is not a host name") from None
    if not _HOST.match(ascii_host):
        raise CallRefused("this URL has no host, or one that is not a host name")
    return ascii_host.removesuffix(".")


def _encode(text: str) -> str:
    return quote(text, safe=_SAFE, errors="replace")


Address: TypeAlias = IPv4Address | IPv6Address

# A list of our own, because the answers of `is_global` differ between releases of Python.
_CLOSED_V4 = {
    IPv4Network(network): what
    for network, what in {
        "0.0.0.0/8": "this network",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "shared by a carrier",
        "127.0.0.0/8": "loopback",
        "168.63.129.16/32": "a cloud's metadata",
        "169.254.0.0/16": "link-local",
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "reserved",
        "192.0.2.0/24": "for documentation",
        "192.88.99.0/24": "reserved",
        "192.168.0.0/16": "private",
        "198.18.0.0/15": "for benchmarks",
        "198.51.100.0/24": "for documentation",
        "203.0.113.0/24": "for documentation",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved",
    }.items()
}
_OPEN_V6 = IPv6Network("2000::/3")  # all that is given out for global use
_CLOSED_V6 = {
    IPv6Network(network): what
    for network, what in {
        "::/128": "this host",
        "::1/128": "loopback",
        "fc00::/7": "private",
        "fe80::/10": "link-local",
        "fec0::/10": "private",
        "ff00::/8": "multicast",
        "2001::/23": "reserved",
        "2001:db8::/32": "for documentation",
        "3fff::/20": "for documentation",
    }.items()
}
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")  # IPv4-compatible, long deprecated
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")


def why_closed(text: str) -> str | None:
    """Why this address may not be dialled, or None when it is public."""
    try:
        address = ip_address(text)
    except ValueError:
        return "not an address"
    return next(filter(None, map(_why_closed, _unwrap(address))), None)


def _unwrap(address: Address) -> tuple[Address, ...]:
    """The addresses that must all be public: those inside, if it carries any."""
    if isinstance(address, IPv4Address):
        return (address,)
    number = int(address)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address in _NAT64:
        return (IPv4Address(number & 0xFFFFFFFF),)
    if address in _COMPATIBLE and number > 1:
        return (IPv4Address(number & 0xFFFFFFFF),)
    if address in _SIX_TO_FOUR:
        return (IPv4Address(number >> 80 & 0xFFFFFFFF),)
    if address in _TEREDO:
        server, client = number >> 64 & 0xFFFFFFFF, ~number & 0xFFFFFFFF
        return (IPv4Address(server), IPv4Address(client))
    return (address,)


def _why_closed(address: Address) -> str | None:
    if isinstance(address, IPv4Address):
        return next((what for net, what in _CLOSED_V4.items() if address in net), None)
    if address.scope_id is not None:
        return "link-local"
    closed = next((what for net, what in _CLOSED_V6.items() if address in net), None)
    return closed or (None if address in _OPEN_V6 else "reserved")


Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]

_HEADERS = [
    ("User-Agent", "stretto"),
    ("Accept", "text/html, text/plain, application/json, text/*;q=0.9, */*;q=0.1"),
    # A compressed body could be a thousand times as large as what was received.
    ("Accept-Encoding", "identity"),
]
_ONE_OF_MANY_SECONDS = 5.0  # for an address while there are more to try


@dataclass(frozen=True, slots=True)
class Page:
    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes
    is_whole: bool


class ExchangeFailed(Exception):
    """There was no answer. The text says why."""


async def exchange(
    pool: httpcore2.AsyncConnectionPool,
    method: str,
    url: httpcore2.URL,
    headers: list[tuple[str, str]],
    content: bytes | None = None,
    *,
    most_bytes: int,
) -> Page:
    """Ask once. Follows no redirect, and reads no more of the body than it may. Raises
    ExchangeFailed."""
    try:
        async with pool.stream(method, url, headers=headers, content=content) as response:
            body, is_whole = await _read(response, most_bytes)
    except (
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.TimeoutException,
        httpcore2.UnsupportedProtocol,
    ) as error:
        raise ExchangeFailed(str(error) or type(error).__name__) from None
    named = {name.decode().lower(): v.decode("latin-1") for name, v in response.headers}
    return Page(response.status, named, body, is_whole)


async def resolve(host: str, port: int) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(frozen=True, slots=True)
class WebClient:
    resolve: Resolve = resolve
    allow_private: frozenset[str] = frozenset()  # host:port
    trust: ssl.SSLContext | None = None  # None: the authorities that this machine trusts

    async def fetch(self, url: Url, most_bytes: int) -> Page:
        """Raises CallRefused, CallFailed. Follows no redirect."""
        backend = _PinnedBackend(await self._resolve_checked(url))
        target = httpcore2.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target)
        headers = [("Host", _host_header(url)), *_HEADERS]
        try:
            async with httpcore2.AsyncConnectionPool(self.trust, network_backend=backend) as pool:
                return await exchange(pool, "GET", target, headers, most_bytes=most_bytes)
        except ExchangeFailed as failed:
            raise CallFailed(f"{url} could not be fetched: {failed}") from None

    async def _resolve_checked(self, url: Url) -> Sequence[str]:
        try:
            addresses = await self.resolve(url.host, url.port)
        except (OSError, UnicodeError):
            raise CallFailed(f"the name {url.host} has no address") from None
        if not addresses:
            raise CallFailed(f"the name {url.host} has no address")
        if url.place not in self.allow_private:
            # All of them: a name that also has a private address is likely an attack.
            for address in addresses:
                if why := why_closed(address):
                    raise CallRefused(
                        f"{url.host} is {address}, which is {why}; only public addresses can be"
                        f" fetched (the user may list {url.place} under web.allow_private)"
                    )
        return addresses


class _PinnedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to the addresses that were checked, whatever name it is given."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses
        self._real = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        *first, last = self._addresses
        for address in first:
            with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return await self._real.connect_tcp(address, port, _ONE_OF_MANY_SECONDS)
        return await self._real.connect_tcp(last, port, timeout)


def _host_header(url: Url) -> str:
    default = {"http": 80, "https": 443}[url.scheme]
    return url.place.removesuffix(f":{default}")


async def _read(response: httpcore2.Response, most_bytes: int) -> tuple[bytes, bool]:
    body = bytearray()
    async for piece in response.aiter_stream():
        body += piece
        if len(body) > most_bytes:
            return bytes(body[:most_bytes]), False
    return bytes(body), True
