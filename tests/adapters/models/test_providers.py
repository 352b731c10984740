"""Models made by name, and where they are reached."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.test import TestModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from stretto.adapters.models.endpoints import endpoint_of
from stretto.adapters.models.named import NamedModels
from stretto.adapters.models.openai_compatible import OpenAICompatibleModel
from stretto.adapters.models.openai_messages import request_body
from stretto.adapters.models.provider_table import BY_NAME, PROVIDERS
from stretto.adapters.models.providers import make_model
from stretto.ports.model import Models
from stretto.problems.errors import InvalidConfig
from stretto.testing.openai_script import Said
from stretto.testing.openai_server import OpenAIServer
from support.model_questions import ask


def lean(name: str, environ: dict[str, str]) -> OpenAICompatibleModel:
    model = make_model(name, environ)
    assert isinstance(model, OpenAICompatibleModel)
    return model


def test_openai_is_spoken_to_directly() -> None:
    model = lean("openai:gpt-4o", {"OPENAI_API_KEY": "k"})
    assert (model.model_name, model.system) == ("gpt-4o", "openai")
    assert model.base_url == "https://api.openai.com/v1"
    assert model.profile.get("json_schema_transformer") is not None


def test_another_address_is_honoured_and_needs_no_key() -> None:
    async def story() -> None:
        async with OpenAIServer(Said("mine")) as server:
            model = lean("openai:mine", {"OPENAI_BASE_URL": server.url})
            response = await ask(model, settings=ModelSettings(max_tokens=5))
            assert response.text == "mine"
            (asked,) = server.requests
            assert asked.authorization is None
            assert asked.body["max_tokens"] == 5

    asyncio.run(story())


def test_openai_itself_calls_max_tokens_otherwise() -> None:
    endpoint = endpoint_of(BY_NAME["openai"], {"OPENAI_API_KEY": "k"})
    assert endpoint.max_tokens_key == "max_completion_tokens"


def test_a_reasoning_model_is_not_sent_what_it_refuses() -> None:
    def sent(is_reasoning: bool) -> bytes:
        return request_body(
            "m", [ModelRequest([UserPromptPart("Hi.")])], ModelSettings(temperature=0.5, seed=1),
            ModelRequestParameters(thinking="low"), is_stream=False, provider="openai",
            max_tokens_key="max_tokens", is_reasoning=is_reasoning,
        )  # fmt: skip

    assert b'"temperature":0.5' in sent(False)
    assert b"temperature" not in sent(True)
    assert b'"seed":1' in sent(True)
    assert b'"reasoning_effort":"low"' in sent(True)


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
            assert isinstance(make_model(f"{provider.name}:m", environ), OpenAICompatibleModel)


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
        return TestModel()

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
        return TestModel()

    async def story() -> None:
        models = NamedModels({}, {"local": maker})
        with pytest.raises(InvalidConfig):
            await models.model("local:qwen")
        assert isinstance(await models.model("local:qwen"), TestModel)

    asyncio.run(story())


def test_the_port_prices_and_explains() -> None:
    key = "sk-a-secret-of-some-length"
    models = NamedModels({"OPENAI_API_KEY": key})
    usage = RequestUsage(input_tokens=1_000_000, output_tokens=0)
    assert models.usd("openai:gpt-4o", usage) == pytest.approx(2.5)
    assert models.usd("openai:nobody-knows", usage) == 0.0
    fault = models.fault(ConnectionError(f"the key {key} was refused"))
    assert fault is not None
    assert key not in fault.message
    assert models.fault(KeyError("a bug")) is None


def test_pydantic_ai_makes_the_rest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # A package of that name and no more: it is found, and of no use.
    (tmp_path / "cohere").mkdir()
    (tmp_path / "cohere" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    environ: dict[str, Any] = {"CO_API_KEY": "c"}
    with pytest.raises(InvalidConfig) as caught:
        make_model("cohere:command-a", environ)
    assert caught.value.hint == "pip install 'pydantic-ai-slim[cohere]'"
