"""WebSearch: ask the endpoint that the user names for titles, addresses and snippets.

Where the provider of the model searches itself, that is used instead (search_endpoint.py).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from stretto.adapters.tools.arguments import Arguments, WholeNumber
from stretto.adapters.tools.outcomes import CallFailed
from stretto.adapters.tools.search_endpoint import SearchEndpoint, SearchKind
from stretto.adapters.tools.standard_tool import StandardTool, standard_tool
from stretto.vocabulary.values import Json

TIMEOUT_SECONDS = 20.0
_MOST_BYTES = 2_000_000
_MOST_SNIPPET = 500
_WEB_SEARCH = "Search the web. Returns titles, addresses and snippets; WebFetch reads a page."


class WebSearchArguments(Arguments):
    query: str = Field(min_length=1, max_length=400, description="what to search for")
    max_results: WholeNumber = Field(10, ge=1, le=20, description="how many results; 10 by default")


@dataclass(frozen=True, slots=True)
class _SearchApi:
    """How one kind of endpoint is asked, and where in its answer the results are."""

    method: Literal["GET", "POST"]
    query: Callable[[str, int], dict[str, str | int]]
    authorization: tuple[str, str]  # the header, and what stands before the key
    results: tuple[str, ...]
    snippet: str


_APIS: dict[SearchKind, _SearchApi] = {
    "searxng": _SearchApi(
        "GET",
        lambda words, most: {"q": words, "format": "json"},
        ("Authorization", "Bearer "),
        ("results",),
        "content",
    ),
    "brave": _SearchApi(
        "GET",
        lambda words, most: {"q": words, "count": most},
        ("X-Subscription-Token", ""),
        ("web", "results"),
        "description",
    ),
    "tavily": _SearchApi(
        "POST",
        lambda words, most: {"query": words, "max_results": most},
        ("Authorization", "Bearer "),
        ("results",),
        "content",
    ),
}


def web_search(
    endpoint: SearchEndpoint, environ: Mapping[str, str]
) -> StandardTool[WebSearchArguments]:
    async def work(given: WebSearchArguments) -> str:
        api = _APIS[endpoint.kind]
        answer = await _ask(endpoint, api, environ, given.query, given.max_results)
        return _list_results(answer, api, given.max_results)

    return standard_tool("WebSearch", _WEB_SEARCH, WebSearchArguments, work, needs_network=True)


async def _ask(
    endpoint: SearchEndpoint, api: _SearchApi, environ: Mapping[str, str], words: str, most: int
) -> Json:
    import httpx2  # slow to import, and only a call needs it

    query = api.query(words.encode("utf-8", "replace").decode(), most)
    try:
        # The environment's proxies and .netrc are not for this: the user named the endpoint.
        async with (
            httpx2.AsyncClient(timeout=TIMEOUT_SECONDS, trust_env=False) as client,
            client.stream(
                api.method,
                endpoint.url,
                params=query if api.method == "GET" else None,
                json=query if api.method == "POST" else None,
                headers=_headers(endpoint, api, environ),
            ) as response,
        ):
            body = bytearray()
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > _MOST_BYTES:
                    raise CallFailed(f"the search answered with more than {_MOST_BYTES:,} bytes")
        if response.status_code != 200:
            raise CallFailed(f"the search answered {response.status_code}: {bytes(body[:300])!r}")
        return _read_json(bytes(body))
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        said = str(error) or type(error).__name__
        raise CallFailed(f"the search could not be asked: {said}") from None


def _headers(
    endpoint: SearchEndpoint, api: _SearchApi, environ: Mapping[str, str]
) -> dict[str, str]:
    if not endpoint.key_variable:
        return {"Accept": "application/json"}
    key = environ.get(endpoint.key_variable)
    if not key:
        raise CallFailed(f"the search needs a key, and {endpoint.key_variable} is not set")
    name, before = api.authorization
    return {"Accept": "application/json", name: before + key}


def _read_json(body: bytes) -> Json:
    import json

    try:
        answer: Json = json.loads(body)
    except (ValueError, RecursionError):
        raise CallFailed("the search answered with something that is not JSON") from None
    return answer


def _list_results(answer: Json, api: _SearchApi, most: int) -> str:
    found = answer
    for name in api.results:
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, list):
        raise CallFailed("the search answered without a list of results")
    rows = [row for row in found if isinstance(row, dict)][:most]
    if not rows:
        return "Nothing was found."
    return "\n\n".join(
        f"{number}. {_line(row, 'title')}\n   {_line(row, 'url')}\n   {_line(row, api.snippet)}"
        for number, row in enumerate(rows, 1)
    )


def _line(row: Mapping[str, Json], name: str) -> str:
    value = row.get(name)
    line = " ".join(value.split()) if isinstance(value, str) else ""
    return line if len(line) <= _MOST_SNIPPET else line[:_MOST_SNIPPET] + "…"
