"""Find the model for agents that name none, when the user has named none either.

A key in the environment → Ollama, if it answers → a pulled local model → the embedded one.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress

import httpcore2

from stretto.adapters.models.endpoint import Endpoint, endpoint_of
from stretto.adapters.models.http_client import client_of
from stretto.adapters.models.model_names import NameFault, base_url_set, check_provider, key_of
from stretto.adapters.models.provider_table import BY_NAME, PROVIDERS, Provider
from stretto.problems.errors import InvalidConfig
from stretto.text.short import did_you_mean
from stretto.vocabulary.models import ModelSelection

EMBEDDED = "embedded"
_OLLAMA_SECONDS = 0.3
_LISTING_SECONDS = 10.0
_ASKED_SECONDS = 2.0
_MOST_BYTES = 4 * 1024 * 1024
_CHANGE = "change it with --model, STRETTO_MODEL or `model:` in stretto.yaml"


async def find_default_model(
    environ: Mapping[str, str],
    *,
    pulled: Callable[[], str | None] = lambda: None,  # a local model that was pulled
    ollama_seconds: float = _OLLAMA_SECONDS,
) -> ModelSelection:
    """Raises InvalidConfig when OPENAI_BASE_URL is set and does not say what it serves."""
    if (found := await _by_environment(environ)) is not None:
        return found
    if (model := await _ollama_model(environ, ollama_seconds)) is not None:
        return _select(f"ollama:{model}", "Ollama answers, and no key is set")
    if (local := pulled()) is not None:
        return _select(local, "no key is set, and Ollama does not answer")
    why = "no key is set, Ollama does not answer, and no larger local model is here"
    return _select(EMBEDDED, why)


def _select(name: str, because: str) -> ModelSelection:
    return ModelSelection(name, notes=(f"using {name}: {because}; {_CHANGE}",))


async def _by_environment(environ: Mapping[str, str]) -> ModelSelection | None:
    named = [
        provider for provider in PROVIDERS if provider.default_model and _is_set(provider, environ)
    ]
    # One whose package is missing is taken only if there is no other: its error says what to do.
    usable = [provider for provider in named if check_provider(provider, environ) is None]
    for provider in usable or named:
        if base_url_set(provider, environ):
            return await _by_listing(provider, environ)
        key = next(key for key in provider.keys if environ.get(key))
        return _select(f"{provider.name}:{provider.default_model}", f"{key} is set")
    return None


def _is_set(provider: Provider, environ: Mapping[str, str]) -> bool:
    return bool(key_of(provider, environ) or base_url_set(provider, environ))


async def _by_listing(provider: Provider, environ: Mapping[str, str]) -> ModelSelection:
    variable = next(name for name in provider.url_variables if environ.get(name))
    endpoint = endpoint_of(provider, environ)
    try:
        models = await _list_names(
            endpoint, endpoint.target("models"), "data", "id", _LISTING_SECONDS
        )
    except (TimeoutError, OSError, ValueError, *_HTTP) as error:
        models, trouble = [], f": {endpoint.redact(str(error))}" if str(error) else ""
    else:
        trouble = ""
    if not models:
        says = f"{variable} is set, and {endpoint.origin} does not list its models{trouble}"
        raise InvalidConfig(says, hint=f"name one: --model {provider.name}:NAME")
    return _select(
        f"{provider.name}:{models[0]}",
        f"{variable} is set, and this is the first model listed there",
    )


async def ollama_fault(model: str, environ: Mapping[str, str]) -> NameFault | None:
    """Why Ollama cannot answer as this model. None as well where it is too slow to tell."""
    try:
        endpoint = endpoint_of(BY_NAME["ollama"], environ)
        target = endpoint.target("models").replace("/v1/models", "/api/tags")
        listed = await _list_names(endpoint, target, "models", "name", _ASKED_SECONDS)
    except (OSError, *_HTTP) as error:
        if isinstance(error, TimeoutError | httpcore2.TimeoutException):
            return None
        says = f"{model}: no server answers at {endpoint.origin}"
        return NameFault(says, "start it with: ollama serve; or set OLLAMA_HOST to where it runs")
    except ValueError:
        return None  # a server that speaks like Ollama and lists nothing
    name = model.partition(":")[2]
    if not listed or name in listed or f"{name}:latest" in listed:
        return None
    guess = did_you_mean(name, listed) or f"it has {', '.join(listed[:5])}"
    return NameFault(f"Ollama has no model '{name}'", f"ollama pull {name}; {guess}")


async def _ollama_model(environ: Mapping[str, str], seconds: float) -> str | None:
    with suppress(TimeoutError, OSError, ValueError, InvalidConfig, *_HTTP):
        endpoint = endpoint_of(BY_NAME["ollama"], environ)
        target = endpoint.target("models").replace("/v1/models", "/api/tags")
        models = await _list_names(endpoint, target, "models", "name", seconds)
        # Embedding models are listed too, and answer nothing.
        return next((model for model in models if "embed" not in model), None)
    return None


_HTTP = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.TimeoutException,
    httpcore2.ProxyError,
)


async def _list_names(
    endpoint: Endpoint, target: str, field: str, key: str, seconds: float
) -> list[str]:
    """Raises OSError, TimeoutError, ValueError or httpcore2's errors."""
    async with asyncio.timeout(seconds):
        client = await client_of(endpoint.base_url)
        async with client.send(
            "GET", target, endpoint.headers, idle_seconds=seconds, connect_seconds=seconds
        ) as response:
            body = b""
            async for part in response.aiter_stream():
                body += part
                if len(body) > _MOST_BYTES:
                    raise ValueError("the list is too long")
            if response.status != 200:
                raise ValueError(f"HTTP {response.status}")
    listing = json.loads(body)
    items = listing.get(field) if isinstance(listing, dict) else None
    listed = items if isinstance(items, list) else []
    found = [item.get(key) for item in listed if isinstance(item, dict)]
    return [name for name in found if isinstance(name, str) and name]
