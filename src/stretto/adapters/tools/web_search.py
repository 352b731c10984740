"""WebSearch: ask the endpoint that the user names for titles, addresses and snippets.

Where the provider of the model searches itself, that is used instead (search_endpoint.py).
"""

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlencode, urlsplit

import httpcore2
from pydantic import Field

from stretto.adapters.tools.arguments import Arguments, WholeNumber
from stretto.adapters.tools.outcomes import CallFailed
from stretto.adapters.tools.search_endpoint import SearchEndpoint, SearchKind
from stretto.adapters.tools.standard_tool import StandardTool, standard_tool
from stretto.adapters.tools.web_client import ExchangeFailed, exchange
from stretto.vocabulary.json_value import Json

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
    try:
        url, headers, content = _request(endpoint, api, environ, api.query(words, most))
        # The pool uses no proxies of the environment: the user named the endpoint.
        async with asyncio.timeout(TIMEOUT_SECONDS), httpcore2.AsyncConnectionPool() as pool:
            page = await exchange(pool, api.method, url, headers, content, most_bytes=_MOST_BYTES)
    except TimeoutError:
        raise CallFailed(f"the search did not answer in {TIMEOUT_SECONDS:g} s") from None
    except (ExchangeFailed, ValueError, TypeError) as failed:  # the last two: not a URL
        raise CallFailed(f"the search could not be asked: {failed}") from None
    if not page.is_whole:
        raise CallFailed(f"the search answered with more than {_MOST_BYTES:,} bytes")
    if page.status != 200:
        raise CallFailed(f"the search answered {page.status}: {page.body[:300]!r}")
    return _read_json(page.body)


def _request(
    endpoint: SearchEndpoint,
    api: _SearchApi,
    environ: Mapping[str, str],
    query: Mapping[str, str | int],
) -> tuple[httpcore2.URL, list[tuple[str, str]], bytes | None]:
    headers = _headers(endpoint, api, environ)
    if api.method == "POST":
        content = json.dumps(query).encode()
        return (
            httpcore2.URL(endpoint.url),
            [*headers, ("Content-Type", "application/json")],
            content,
        )
    joint = "&" if "?" in endpoint.url else "?"
    return httpcore2.URL(f"{endpoint.url}{joint}{urlencode(query)}"), headers, None


def _headers(
    endpoint: SearchEndpoint, api: _SearchApi, environ: Mapping[str, str]
) -> list[tuple[str, str]]:
    parts = urlsplit(endpoint.url)
    headers = [
        ("Host", parts.netloc.rpartition("@")[2]),
        ("User-Agent", "stretto"),
        ("Accept", "application/json"),
    ]
    if parts.username:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers.append(("Authorization", f"Basic {b64encode(login.encode()).decode()}"))
    if not endpoint.key_variable:
        return headers
    key = environ.get(endpoint.key_variable)
    if not key:
        raise CallFailed(f"the search needs a key, and {endpoint.key_variable} is not set")
    name, prefix = api.authorization
    return [*headers, (name, prefix + key)]


def _read_json(body: bytes) -> Json:
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
