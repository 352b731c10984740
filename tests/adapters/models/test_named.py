"""Models made by name, and where they are reached."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from stretto.adapters.models.endpoint import endpoint_of
from stretto.adapters.models.named import NamedModels, make_model
from stretto.adapters.models.openai_model import OpenAIModel
from stretto.adapters.models.provider_table import BY_NAME, PROVIDERS
from stretto.ports.model import Model, Models, TokenCounts
from stretto.problems.errors import InvalidConfig
from stretto.testing.openai_script import Said
from stretto.testing.openai_server import OpenAIServer
from support.model_questions import ask


def some_model() -> Model:
    return make_model("openai:m", {"OPENAI_API_KEY": "k"})


def lean(name: str, environ: dict[str, str]) -> OpenAIModel:
    model = make_model(name, environ)
    assert isinstance(model, OpenAIModel)
    return model


def test_openai_is_spoken_to_directly() -> None:
    model = lean("openai:gpt-4o", {"OPENAI_API_KEY": "k"})
    assert model.base_url == "https://api.openai.com/v1"


def test_another_address_is_honoured_and_needs_no_key() -> None:
    async def story() -> None:
        async with OpenAIServer(Said("mine")) as server:
            model = lean("openai:mine", {"OPENAI_BASE_URL": server.url})
            response = await ask(model, max_tokens=5)
            assert response.text == "mine"
            (asked,) = server.requests
            assert asked.authorization is None
            assert asked.body["max_tokens"] == 5

    asyncio.run(story())


def test_openai_itself_is_known_by_its_address() -> None:
    assert endpoint_of(BY_NAME["openai"], {"OPENAI_API_KEY": "k"}).is_openai
    assert not endpoint_of(BY_NAME["openai"], {"OPENAI_BASE_URL": "http://x/v1"}).is_openai
    assert not endpoint_of(BY_NAME["groq"], {"GROQ_API_KEY": "k"}).is_openai


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("box.local", "http://box.local:11434/v1"),
        ("127.0.0.1:9999", "http://127.0.0.1:9999/v1"),
        ("http://box.local:80", "http://box.local:80/v1"),
        ("https://ollama.example", "https://ollama.example/v1"),
        ("http://127.0.0.1:11434/v1/", "http://127.0.0.1:11434/v1"),
        ("[::1]:11434", "http://[::1]:11434/v1"),
    ],
)
def test_ollama_is_found_however_its_host_is_written(host: str, url: str) -> None:
    assert endpoint_of(BY_NAME["ollama"], {"OLLAMA_HOST": host}).base_url == url


def test_all_who_speak_like_openai_have_an_address_that_works() -> None:
    for provider in PROVIDERS:
        if provider.is_lean:
            environ = dict.fromkeys(provider.keys, "k")
            assert isinstance(make_model(f"{provider.name}:m", environ), OpenAIModel)


@pytest.mark.parametrize(
    ("name", "environ", "says"),
    [
        ("openai:gpt-4o", {}, "OPENAI_API_KEY is not set"),
        ("opnai:gpt-4o", {}, "no known provider"),
        ("inherit", {}, "not a model of a provider"),
        ("cli:claude", {}, "not a model of a provider"),
        ("openai:m", {"OPENAI_BASE_URL": "not a url"}, "must begin with http"),
        ("openai:m", {"OPENAI_BASE_URL": "http://[::1/v1"}, "no valid host or port"),
        ("ollama:m", {"OLLAMA_HOST": "127.0.0.1:port"}, "OLLAMA_HOST is not a host"),
    ],
)
def test_what_cannot_be_made_says_why(name: str, environ: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidConfig, match=says):
        make_model(name, environ)


def test_a_name_gives_the_same_model_each_time_and_others_make_theirs() -> None:
    made: list[str] = []

    async def slowly(name: str) -> Model:
        made.append(name)
        await asyncio.sleep(0.01)
        return some_model()

    async def story() -> None:
        models = NamedModels({"OPENAI_API_KEY": "k"}, {"embedded": slowly, "local": slowly})
        port: Models = models
        assert await port.model("openai:gpt-4o") is await port.model("openai:gpt-4o")
        one, another = await asyncio.gather(port.model("embedded"), port.model("embedded"))
        assert one is another
        await port.model("local:qwen")
        assert made == ["embedded", "local:qwen"]
        await models.close()
        assert await port.model("embedded") is not one

    asyncio.run(story())


def test_a_model_that_could_not_be_made_is_tried_again() -> None:
    times = 0

    async def maker(name: str) -> Model:
        nonlocal times
        times += 1
        if times == 1:
            raise InvalidConfig("no weights yet")
        return some_model()

    async def story() -> None:
        models = NamedModels({}, {"local": maker})
        with pytest.raises(InvalidConfig):
            await models.model("local:qwen")
        assert await models.model("local:qwen") is not None

    asyncio.run(story())


def test_the_port_knows_prices() -> None:
    models = NamedModels({"OPENAI_API_KEY": "k"})
    tokens = TokenCounts(input_tokens=1_000_000, output_tokens=0)
    assert models.usd("openai:gpt-4o", tokens) == pytest.approx(2.5)
    assert models.usd("openai:nobody-knows", tokens) == 0.0


def test_pydantic_ai_makes_the_rest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # A package of that name and no more: it is found, and of no use.
    (tmp_path / "cohere").mkdir()
    (tmp_path / "cohere" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    environ: dict[str, Any] = {"CO_API_KEY": "c"}
    with pytest.raises(InvalidConfig) as caught:
        make_model("cohere:command-a", environ)
    assert caught.value.hint == "pip install 'pydantic-ai-slim[cohere]'"
