"""Which model is used when nobody has named one."""

import asyncio
import time
from typing import Any

import pytest

from stretto.adapters.models.default_model import ModelSelection, find_default_model
from stretto.problems.errors import InvalidConfig
from stretto.testing.openai_server import OpenAIServer

NOWHERE = {"OLLAMA_HOST": "127.0.0.1:1"}  # nothing listens there


def resolved(environ: dict[str, str], **how: Any) -> ModelSelection:
    return asyncio.run(find_default_model({**NOWHERE, **environ}, **how))


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"OPENAI_API_KEY": "k"}, "openai:gpt-5.4-mini"),
        ({"OPENROUTER_API_KEY": "k"}, "openrouter:anthropic/claude-sonnet-5"),
        ({"GROQ_API_KEY": "k", "DEEPSEEK_API_KEY": "k"}, "groq:openai/gpt-oss-120b"),
        ({"GROQ_API_KEY": "", "DEEPSEEK_API_KEY": "k"}, "deepseek:deepseek-chat"),
        ({"ANTHROPIC_API_KEY": "k"}, "anthropic:claude-sonnet-5"),
    ],
)
def test_a_key_decides(environ: dict[str, str], name: str) -> None:
    found = resolved(environ)
    assert found.default == name
    assert "is set" in found.notes[0]
    assert "--model" in found.notes[0]
    assert "\n" not in found.notes[0]


def test_a_provider_whose_package_is_missing_stands_back() -> None:
    from importlib.util import find_spec

    if find_spec("anthropic") is not None:
        pytest.skip("anthropic is installed here")
    assert resolved({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}).default.startswith("openai:")


def test_an_address_is_asked_what_it_serves() -> None:
    async def story() -> ModelSelection:
        async with OpenAIServer(models=("big", "small"), api_key="k") as server:
            environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
            return await find_default_model(environ)

    found = asyncio.run(story())
    assert found.default == "openai:big"
    assert "OPENAI_BASE_URL is set" in found.notes[0]


@pytest.mark.parametrize("api_key", ["another", None])
def test_an_address_that_does_not_say_is_an_error(api_key: str | None) -> None:
    async def story() -> None:
        async with OpenAIServer(models=(), api_key=api_key) as server:
            await find_default_model(
                {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-secret-key"}
            )

    with pytest.raises(InvalidConfig, match="does not list its models") as caught:
        asyncio.run(story())
    assert "--model openai:NAME" in caught.value.hint
    assert "sk-secret-key" not in str(caught.value)
    with pytest.raises(InvalidConfig, match="does not list its models"):
        resolved({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})


def test_ollama_is_next_and_its_embedding_models_are_passed_over() -> None:
    async def story() -> ModelSelection:
        async with OpenAIServer(models=("nomic-embed-text", "llama3.2:3b")) as server:
            return await find_default_model(
                {"OLLAMA_HOST": server.root}, pulled=lambda: "local:qwen", ollama_seconds=10
            )

    found = asyncio.run(story())
    assert found.default == "ollama:llama3.2:3b"
    assert "Ollama answers" in found.notes[0]


@pytest.mark.parametrize("listing", [b'{"models": 5}', b'{"models": [5, {"name": 5}]}', b"[]"])
def test_a_list_of_models_that_is_none_is_as_good_as_none(listing: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(listing)}\r\n\r\n"
        writer.write(head.encode() + listing)
        writer.close()

    async def found() -> ModelSelection:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            environ = {"OLLAMA_HOST": f"127.0.0.1:{port}"}
            return await find_default_model(environ, pulled=lambda: "local:qwen")

    assert asyncio.run(found()).default == "local:qwen"


def test_an_ollama_without_models_is_as_good_as_none() -> None:
    async def story() -> ModelSelection:
        async with OpenAIServer(models=()) as server:
            return await find_default_model({"OLLAMA_HOST": server.root})

    assert asyncio.run(story()).default == "embedded"


def test_who_does_not_answer_is_not_waited_for() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
        finally:
            writer.close()

    async def story() -> float:
        async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            began = time.monotonic()
            found = await find_default_model({"OLLAMA_HOST": f"127.0.0.1:{port}"})
            assert found.default == "embedded"
            return time.monotonic() - began

    assert asyncio.run(story()) < 5


def test_a_pulled_model_comes_before_the_embedded_one() -> None:
    assert resolved({}, pulled=lambda: "local:qwen").default == "local:qwen"
    found = resolved({})
    assert found.default == "embedded"
    assert found.notes[0].startswith("using embedded: no key is set")
