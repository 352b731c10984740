"""Ask a model of a scripted server, as the subagents do."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from stretto.adapters.models.endpoint import Endpoint
from stretto.adapters.models.openai_model import OpenAIModel
from stretto.ports.model import ChatMessage, Model, ModelQuestion, ModelReply, UserMessage
from stretto.testing.openai_script import Asked, ServerScript
from stretto.testing.openai_server import OpenAIServer

KEY = "sk-not-a-real-key-0123456789"
HELLO: list[ChatMessage] = [UserMessage("Hello?")]


def model_at(server: OpenAIServer, **changes: Any) -> OpenAIModel:
    endpoint = Endpoint("openai", server.url, KEY, idle_seconds=5, connect_seconds=2)
    return OpenAIModel("m", replace(endpoint, **changes))


async def ask(
    model: Model,
    messages: list[ChatMessage] = HELLO,
    hear: Callable[[str], None] = lambda piece: None,
    **question: Any,
) -> ModelReply:
    return await model.ask(ModelQuestion(messages, **question), hear)


def asked_once(
    script: ServerScript, *, idle_seconds: float = 5, **how: Any
) -> tuple[ModelReply, Asked]:
    """The reply, and what the server was asked. Raises what the model raises."""

    async def story() -> tuple[ModelReply, Asked]:
        async with OpenAIServer(script) as server:
            reply = await ask(model_at(server, idle_seconds=idle_seconds), **how)
            return reply, server.requests[0]

    return asyncio.run(story())
