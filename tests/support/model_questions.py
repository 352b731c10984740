"""Ask a model of a scripted server, as the subagents do."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from stretto.adapters.models.openai_compatible import OpenAICompatibleModel
from stretto.adapters.models.openai_endpoint import Endpoint
from stretto.testing.openai_script import Asked, Script
from stretto.testing.openai_server import OpenAIServer

KEY = "sk-not-a-real-key-0123456789"
HELLO: list[ModelMessage] = [ModelRequest([UserPromptPart("Hello?")])]
PLAIN = ModelRequestParameters()
BOTH = [False, True]


def model_at(server: OpenAIServer, **changes: Any) -> OpenAICompatibleModel:
    endpoint = Endpoint("openai", server.url, KEY, idle_seconds=5, connect_seconds=2)
    return OpenAICompatibleModel("m", replace(endpoint, **changes))


async def ask(
    model: OpenAICompatibleModel,
    messages: list[ModelMessage] = HELLO,
    settings: ModelSettings | None = None,
    parameters: ModelRequestParameters = PLAIN,
    *,
    stream: bool = True,
    hear: Callable[[Any], None] = lambda event: None,
) -> ModelResponse:
    if not stream:
        return await model.request(messages, settings, parameters)
    async with model.request_stream(messages, settings, parameters) as streamed:
        async for event in streamed:
            hear(event)
    return streamed.get()


def asked_once(script: Script, **how: Any) -> tuple[ModelResponse, Asked]:
    """The response, and what the server was asked. Raises what the model raises."""

    async def story() -> tuple[ModelResponse, Asked]:
        async with OpenAIServer(script) as server:
            response = await ask(model_at(server), **how)
            return response, server.requests[0]

    return asyncio.run(story())
