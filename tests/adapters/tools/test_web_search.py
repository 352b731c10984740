"""WebSearch: asked of whom the user has named; what is missing is said when a recipe is checked."""

import asyncio
import json
from collections.abc import Mapping

import pytest

from stretto.adapters.tools.search_endpoint import (
    SearchEndpoint,
    SearchKind,
    hosts_search,
    search_fault,
)
from stretto.adapters.tools.web_search import web_search
from stretto.ports.tool import ToolOutcome
from stretto.vocabulary.json_value import Json
from support.web_server import Answer, Site, page, serving


def searched(
    answer: Answer, kind: SearchKind = "searxng", key_variable: str = "",
    environ: Mapping[str, str] | None = None, **arguments: Json,
) -> tuple[ToolOutcome, Site]:  # fmt: skip
    async def run() -> tuple[ToolOutcome, Site]:
        async with serving(answer) as site:
            endpoint = SearchEndpoint(f"http://{site.place()}/search", kind, key_variable)
            tool = web_search(endpoint, environ or {})
            return await tool.call({"query": "stretto & loom", **arguments}, "k"), site

    return asyncio.run(run())


def results(count: int, snippet: str) -> list[dict[str, str]]:
    return [
        {"title": f"Title {n}", "url": f"https://x.test/{n}", snippet: "some\n text " * 100}
        for n in range(count)
    ]


def test_a_searxng_is_asked_and_its_results_are_listed() -> None:
    body = json.dumps({"results": results(30, "content")})
    told, site = searched(lambda asked: page(body, "application/json"), max_results=2)
    assert site.asked[0].target == "/search?q=stretto+%26+loom&format=json"
    first, second = told.text.split("\n\n")
    assert first.startswith("1. Title 0\n   https://x.test/0\n   some text some text")
    assert first.endswith("…")
    assert second.startswith("2. Title 1")


def test_a_login_in_the_address_and_a_query_of_its_own_are_kept() -> None:
    async def run() -> Site:
        async with serving(lambda asked: page(json.dumps({"results": []}))) as site:
            url = f"http://ann:p%40ss@{site.place()}/search?lang=en"
            told = await web_search(SearchEndpoint(url), {}).call({"query": "tea"}, "k")
            assert told.text == "Nothing was found."
            return site

    (asked,) = asyncio.run(run()).asked
    assert asked.target == "/search?lang=en&q=tea&format=json"
    assert asked.headers["authorization"] == "Basic YW5uOnBAc3M=".lower()


@pytest.mark.parametrize("url", ["ftp://x.test/", "http://", "no url", "http://[x/", "http://ü x/"])
def test_an_address_that_cannot_be_asked_is_an_outcome(url: str) -> None:
    told = asyncio.run(web_search(SearchEndpoint(url), {}).call({"query": "tea"}, "k"))
    assert (told.verdict, "the search could not be asked" in told.text) == ("error", True), (
        told.text
    )


def test_a_key_goes_where_the_kind_of_endpoint_wants_it() -> None:
    brave = json.dumps({"web": {"results": results(1, "description")}})
    told, site = searched(
        lambda asked: page(brave), "brave", "BRAVE_KEY", {"BRAVE_KEY": "s3cret"}, max_results=3
    )
    assert site.asked[0].target == "/search?q=stretto+%26+loom&count=3"
    assert site.asked[0].headers["x-subscription-token"] == "s3cret"
    assert "Title 0" in told.text
    tavily = json.dumps({"results": results(1, "content")})
    told, site = searched(lambda asked: page(tavily), "tavily", "K", {"K": "s3cret"})
    assert site.asked[0].headers["authorization"] == "bearer s3cret"
    assert json.loads(site.asked[0].body) == {"query": "stretto & loom", "max_results": 10}
    assert "s3cret" not in told.text


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (page("no", status=500), "the search answered 500"),
        (page("<html>"), "not JSON"),
        (page("[" * 200_000), "not JSON"),
        (page("{}"), "without a list of results"),
        (page('{"results": 3}'), "without a list of results"),
        (b"nonsense", "could not be asked"),
        (page("x" * 2_100_000), "more than 2,000,000 bytes"),
    ],
)
def test_an_endpoint_that_misbehaves_is_an_error(answer: bytes, said: str) -> None:
    told, _ = searched(lambda asked: answer)
    assert (told.verdict, said in told.text) == ("error", True), told.text


def test_strange_results_are_shown_as_far_as_they_go() -> None:
    body = json.dumps({"results": [1, None, {"title": 3}, {"title": "good", "url": ["x"]}]})
    told, _ = searched(lambda asked: page(body))
    assert "2. good" in told.text
    told, _ = searched(lambda asked: page('{"results": []}'))
    assert told.text == "Nothing was found."


def test_nobody_at_home_is_an_error() -> None:
    endpoint = SearchEndpoint("http://127.0.0.1:9/search")
    told = asyncio.run(web_search(endpoint, {}).call({"query": "x"}, "k"))
    assert (told.verdict, "could not be asked" in told.text) == ("error", True)


@pytest.mark.parametrize(
    ("model", "is_host"),
    [
        ("anthropic:claude-sonnet-5-5", True),
        ("openai:gpt-5", False),  # asked by chat completions, which do not search
        ("openai-responses:gpt-5", True),
        ("google:gemini-3-pro", True),
        ("openai-chat:gpt-5", False),
        ("openai-chat:gpt-4o-search-preview", True),
        ("groq:compound-beta", False),
        ("groq:llama-3.3-70b", False),
        ("ollama:qwen3", False),
        ("mistral:mistral-large", False),
        ("anthropic", True),
        ("", False),
        (None, False),
    ],
)
def test_some_providers_search_by_themselves(model: str | None, is_host: bool) -> None:
    assert hosts_search(model, {}) == is_host


def test_a_server_that_only_speaks_like_openai_does_not_search() -> None:
    assert not hosts_search("openai:gpt-5", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})


def test_what_is_missing_is_said_before_a_run() -> None:
    endpoint = SearchEndpoint("http://127.0.0.1:9/search", "brave", "BRAVE_KEY")
    assert search_fault("anthropic:claude", None, {}) is None
    assert search_fault("ollama:x", endpoint, {"BRAVE_KEY": "k"}) is None
    assert search_fault("ollama:x", endpoint, {}) == (
        "WebSearch needs a key: set the environment variable BRAVE_KEY"
    )
    fault = search_fault("ollama:x", None, {})
    assert fault is not None
    assert "the provider of ollama:x does not search by itself" in fault
