"""Which addresses of the web may be asked. In: a URL as a model writes it. Out: Url, or a refusal.

Every part is taken apart here, once: what is checked is what is dialled.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit

from stretto.adapters.tools.checked import Refused

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
    """Raises Refused. `allowed_places` are host:port pairs that need not use a port of the web."""
    text = text.strip()
    if len(text) > _MOST_CHARACTERS:
        raise Refused(f"this URL has {len(text):,} characters; {_MOST_CHARACTERS:,} is the most")
    if _DOUBTFUL.search(text):
        raise Refused("this URL holds a blank, a backslash or a control character; encode it")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise Refused(f"this is no URL: {error}") from None
    if parts.scheme not in _PORTS:
        raise Refused("only http:// and https:// URLs can be fetched")
    if "@" in parts.netloc:
        raise Refused("a URL with a user name or a password in it cannot be fetched")
    url = Url(
        scheme=parts.scheme,
        host=_read_host(parts.hostname or "", "[" in parts.netloc),
        port=port if port is not None else _PORTS[parts.scheme],
        target=_encoded(parts.path or "/") + (f"?{_encoded(parts.query)}" if parts.query else ""),
    )
    if url.port not in _PORTS.values() and url.place not in allowed_places:
        raise Refused(f"port {url.port} is not one of the web's: only 80 and 443 are")
    return url


def read_redirect(origin: Url, location: str, allowed_places: Collection[str]) -> Url:
    try:
        joined = urljoin(str(origin), location)
    except ValueError:
        raise Refused("it redirects to something that is no URL") from None
    url = read_url(joined, allowed_places)
    if (origin.scheme, url.scheme) == ("https", "http"):
        raise Refused(f"it redirects from https to {url}, which is not encrypted")
    return url


def _read_host(host: str, is_bracketed: bool) -> str:
    if is_bracketed:
        # A zone (`%eth0`) names an interface of this machine.
        if not re.fullmatch(r"[0-9a-f:.]+", host):
            raise Refused("this URL's address is not an IPv6 address")
        return host
    try:
        # Also what makes ASCII of full-width digits and dots, before anyone resolves them.
        ascii_host = host.encode("idna").decode().lower()
    except UnicodeError:
        raise Refused("this URL's host is no host name") from None
    if not _HOST.match(ascii_host):
        raise Refused("this URL has no host, or one that is no host name")
    return ascii_host.removesuffix(".")


def _encoded(text: str) -> str:
    return quote(text, safe=_SAFE, errors="replace")
