"""Where a provider is reached from here. In: the table and the environment. Out: an Endpoint."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from stretto.adapters.models.model_names import base_url_set, key_of
from stretto.adapters.models.openai_endpoint import Endpoint
from stretto.adapters.models.provider_table import Provider
from stretto.problems.errors import InvalidConfig

_OLLAMA_PORT = 11434


def endpoint_of(provider: Provider, environ: Mapping[str, str]) -> Endpoint:
    assert provider.base_url is not None
    url = base_url_set(provider, environ) or provider.base_url
    if provider.name == "ollama":
        try:
            url = _ollama_url(url)
        except ValueError:
            raise InvalidConfig("OLLAMA_HOST is not a host, nor a URL") from None
    return Endpoint(
        provider.name,
        url,
        key_of(provider, environ),
        max_tokens_key=_max_tokens_key(provider, url),
    )


def _max_tokens_key(provider: Provider, url: str) -> str:
    # Servers that only speak like OpenAI know the old name.
    return provider.max_tokens_key if url.startswith(provider.base_url or "") else "max_tokens"


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
