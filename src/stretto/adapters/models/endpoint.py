"""Where an OpenAI-compatible model is reached, and with which key."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import urlsplit

from stretto.adapters.models.model_names import base_url_set, key_of
from stretto.adapters.models.provider_table import Provider
from stretto.problems.errors import InvalidConfig

_IDLE_SECONDS = 180.0  # a reasoning model may think for minutes before its first byte
_CONNECT_SECONDS = 10.0
_OLLAMA_PORT = 11434


@dataclass(frozen=True)
class Endpoint:
    """Checked when it is made, so that no error later on needs to show a URL or a key."""

    provider: str  # as the table of providers calls it: openai, ollama, groq …
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    is_openai: bool = False  # OpenAI itself, and not a server that speaks like it
    idle_seconds: float = _IDLE_SECONDS  # if no byte comes for so long, the call is given up
    connect_seconds: float = _CONNECT_SECONDS

    def __post_init__(self) -> None:
        of = f"the base URL of {self.provider}"
        try:
            parts = urlsplit(self.base_url)
            _ = parts.port, (parts.hostname or "").encode("idna")
        except ValueError:  # a UnicodeError is one
            raise InvalidConfig(f"{of} has no valid host or port") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidConfig(f"{of} must begin with http:// or https://")
        if parts.username or parts.password:
            raise InvalidConfig(f"{of} holds a password", hint="give the key in the environment")
        if not _is_printable(parts.path + parts.query):
            raise InvalidConfig(f"{of} has characters that need escaping")
        # h11 would quote the key in its error.
        if self.api_key is not None and not _is_printable(self.api_key):
            raise InvalidConfig(f"the key of {self.provider} has characters that no key has")

    @cached_property
    def origin(self) -> str:
        """For messages: without path and query."""
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc}"

    def target(self, path: str) -> str:
        parts = urlsplit(self.base_url)
        query = f"?{parts.query}" if parts.query else ""  # Azure's api-version
        return f"{parts.path.rstrip('/')}/{path}{query}"

    @cached_property
    def headers(self) -> list[tuple[bytes, bytes]]:
        headers = [
            (b"Host", _host(self.base_url)),
            (b"User-Agent", b"stretto"),
            (b"Content-Type", b"application/json"),
        ]
        if self.api_key:
            headers.append((b"Authorization", b"Bearer " + self.api_key.encode()))
        return headers

    def redact(self, text: str) -> str:
        """A server may quote the key that it refuses."""
        return text.replace(self.api_key, "***") if self.api_key else text


def endpoint_of(provider: Provider, environ: Mapping[str, str]) -> Endpoint:
    assert provider.base_url is not None
    url = base_url_set(provider, environ) or provider.base_url
    if provider.name == "ollama":
        try:
            url = _ollama_url(url)
        except ValueError:
            raise InvalidConfig("OLLAMA_HOST is not a host, nor a URL") from None
    is_openai = provider.name == "openai" and url.startswith(provider.base_url)
    return Endpoint(provider.name, url, key_of(provider, environ), is_openai)


def _ollama_url(written: str) -> str:
    """OLLAMA_HOST may be a host, a host and a port, or a URL; and 0.0.0.0, where it listens."""
    url = written if "://" in written else f"http://{written}"
    parts = urlsplit(url)
    host = "127.0.0.1" if parts.hostname in (None, "0.0.0.0") else parts.hostname
    if ":" in host:
        host = f"[{host}]"
    port = f":{parts.port}" if parts.port else ("" if "://" in written else f":{_OLLAMA_PORT}")
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{host}{port}{path if path.endswith('/v1') else path + '/v1'}"


def _is_printable(text: str) -> bool:
    return all(" " < letter <= "~" for letter in text)


def _host(url: str) -> bytes:
    parts = urlsplit(url)
    if parts.netloc.isascii():
        return parts.netloc.encode()
    host = (parts.hostname or "").encode("idna")
    return b"%b:%d" % (host, parts.port) if parts.port else host
