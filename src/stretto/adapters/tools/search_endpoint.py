"""Who searches the web for a model: its provider, or an endpoint that the user names.

Asked when a recipe is checked, so nothing of a provider is imported here. The providers are those
whose model class in pydantic-ai takes its `WebSearchTool`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

SearchKind: TypeAlias = Literal["searxng", "brave", "tavily"]

_HOSTS = frozenset({
    "anthropic", "azure-responses", "google", "google-cloud", "meta", "openai-chatgpt",
    "openai-responses",
})  # fmt: skip
# Providers that search only with some of their models.
_SOME = {"openai-chat": "-search-preview"}


@dataclass(frozen=True, slots=True)
class SearchEndpoint:
    url: str
    kind: SearchKind = "searxng"
    key_variable: str = ""  # the name of the environment variable with the key


def hosts_search(model: str | None, environ: Mapping[str, str]) -> bool:
    """Whether the model's provider searches by itself, so that no endpoint is needed."""
    provider, _, name = (model or "").removeprefix("gateway/").partition(":")
    # A server that is only compatible with OpenAI does not search.
    if provider.startswith("openai") and environ.get("OPENAI_BASE_URL"):
        return False
    return provider in _HOSTS or _SOME.get(provider, "\0") in name


def search_fault(
    model: str | None, endpoint: SearchEndpoint | None, environ: Mapping[str, str]
) -> str | None:
    """Why an agent with this model cannot use WebSearch. Asked when the recipe is checked."""
    if hosts_search(model, environ):
        return None
    if endpoint is None:
        return (
            f"WebSearch has nothing to search with: the provider of {model or 'this model'} does"
            " not search by itself"
        )
    if endpoint.key_variable and not environ.get(endpoint.key_variable):
        return f"WebSearch needs a key: set the environment variable {endpoint.key_variable}"
    return None
