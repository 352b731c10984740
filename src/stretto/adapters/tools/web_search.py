"""WebSearch at a configured endpoint. In: words. Out: titles, addresses and snippets.

Where a model's provider searches itself the runner passes that on instead (search_hosts.py).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from stretto.adapters.tools.arguments import Given, Parameter, Parameters, Text, Whole
from stretto.adapters.tools.checked import CheckedTool, Failed, checked
from stretto.vocabulary.values import Json

SearchKind: TypeAlias = Literal["searxng", "brave", "tavily"]

TIMEOUT_SECONDS = 20.0
_MOST_BYTES = 2_000_000
_MOST_SNIPPET = 500
_SAYS = "Search the web. Returns titles, addresses and snippets; WebFetch reads a page."
_TAKES = Parameters(
    Parameter("query", Text(1, 400), "what to search for", is_required=True),
    Parameter("max_results", Whole(1, 20), "how many results; 10 by default"),
)


@dataclass(frozen=True, slots=True)
class SearchEndpoint:
    url: str
    kind: SearchKind = "searxng"
    key_variable: str = ""  # the name of the environment variable with the key


@dataclass(frozen=True, slots=True)
class _Asking:
    """How one kind of endpoint is asked, and where in its answer the results are."""

    method: Literal["GET", "POST"]
    query: Callable[[str, int], dict[str, str | int]]
    authorization: tuple[str, str]  # the header, and what stands before the key
    results: tuple[str, ...]
    snippet: str


_ASKING: dict[SearchKind, _Asking] = {
    "searxng": _Asking(
        "GET",
        lambda words, most: {"q": words, "format": "json"},
        ("Authorization", "Bearer "),
        ("results",),
        "content",
    ),
    "brave": _Asking(
        "GET",
        lambda words, most: {"q": words, "count": most},
        ("X-Subscription-Token", ""),
        ("web", "results"),
        "description",
    ),
    "tavily": _Asking(
        "POST",
        lambda words, most: {"query": words, "max_results": most},
        ("Authorization", "Bearer "),
        ("results",),
        "content",
    ),
}


def web_search(endpoint: SearchEndpoint, environ: Mapping[str, str]) -> CheckedTool:
    async def work(given: Given, key: str) -> str:
        most = given.whole("max_results", 10)
        asking = _ASKING[endpoint.kind]
        answer = await _ask(endpoint, asking, environ, given.text("query"), most)
        return _listed(answer, asking, most)

    return checked("WebSearch", _SAYS, _TAKES, work, needs_network=True)


async def _ask(
    endpoint: SearchEndpoint, asking: _Asking, environ: Mapping[str, str], words: str, most: int
) -> Json:
    import httpx2  # slow to import, and only a call needs it

    query = asking.query(words.encode("utf-8", "replace").decode(), most)
    try:
        # The environment's proxies and .netrc are not for this: the user named the endpoint.
        async with (
            httpx2.AsyncClient(timeout=TIMEOUT_SECONDS, trust_env=False) as client,
            client.stream(
                asking.method,
                endpoint.url,
                params=query if asking.method == "GET" else None,
                json=query if asking.method == "POST" else None,
                headers=_headers(endpoint, asking, environ),
            ) as response,
        ):
            body = bytearray()
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > _MOST_BYTES:
                    raise Failed(f"the search answered with more than {_MOST_BYTES:,} bytes")
        if response.status_code != 200:
            raise Failed(f"the search answered {response.status_code}: {bytes(body[:300])!r}")
        return _read_json(bytes(body))
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        said = str(error) or type(error).__name__
        raise Failed(f"the search could not be asked: {said}") from None


def _headers(
    endpoint: SearchEndpoint, asking: _Asking, environ: Mapping[str, str]
) -> dict[str, str]:
    if not endpoint.key_variable:
        return {"Accept": "application/json"}
    key = environ.get(endpoint.key_variable)
    if not key:
        raise Failed(f"the search needs a key, and {endpoint.key_variable} is not set")
    name, before = asking.authorization
    return {"Accept": "application/json", name: before + key}


def _read_json(body: bytes) -> Json:
    import json

    try:
        answer: Json = json.loads(body)
    except (ValueError, RecursionError):
        raise Failed("the search answered with something that is no JSON") from None
    return answer


def _listed(answer: Json, asking: _Asking, most: int) -> str:
    found = answer
    for name in asking.results:
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, list):
        raise Failed("the search answered without a list of results")
    rows = [row for row in found if isinstance(row, dict)][:most]
    if not rows:
        return "Nothing was found."
    return "\n\n".join(
        f"{number}. {_line(row, 'title')}\n   {_line(row, 'url')}\n   {_line(row, asking.snippet)}"
        for number, row in enumerate(rows, 1)
    )


def _line(row: Mapping[str, Json], name: str) -> str:
    value = row.get(name)
    line = " ".join(value.split()) if isinstance(value, str) else ""
    return line if len(line) <= _MOST_SNIPPET else line[:_MOST_SNIPPET] + "…"
