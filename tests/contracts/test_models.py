"""What every model must do, wherever it runs."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, get_args

import pytest
from pydantic_ai import exceptions as theirs
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from stretto.adapters.models.pydantic_model import PydanticAIModel
from stretto.events.model import FailureKind
from stretto.ports.model import (
    FinishReason,
    Model,
    ModelFailed,
    ModelQuestion,
    ModelReply,
    ToolResult,
    UserMessage,
)
from stretto.ports.tool import ToolSpec
from stretto.testing.openai_script import Asked, Hang, Said, Status, ToolCall
from stretto.testing.openai_server import OpenAIServer
from support.model_questions import model_at
from support.weights import model as local_model

PORTS = (Model,)

HELLO = ModelQuestion([UserMessage("Say hello.")], "You are a helpful assistant.", max_tokens=20)
TOO_MUCH = ModelQuestion([UserMessage("word " * 9_000)])
LOOK = ToolSpec(
    "look",
    "Looks.",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
SLOW = "Write a very long story about a ship."
Opened = Callable[[], AbstractAsyncContextManager[Model]]


@asynccontextmanager
async def over_http() -> AsyncIterator[Model]:
    def answer(asked: Asked) -> Any:
        if len(asked.prompt) > 10_000:
            return Status(400, "too long")
        if asked.prompt == SLOW:
            return Hang()
        if asked.tools and len(asked.messages) == 1:
            return Said("", tool_calls=(ToolCall("look", {"city": "Rome"}, "a"),))
        return Said("Hello to you.", chunks=4)

    async with OpenAIServer(answer) as server:
        yield model_at(server)


@asynccontextmanager
async def of_pydantic_ai() -> AsyncIterator[Model]:
    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        prompt = str(messages[0].parts[0].content)  # type: ignore[union-attr]
        if len(prompt) > 10_000:
            raise theirs.ModelHTTPError(400, "m", "too long")
        if prompt == SLOW:
            await asyncio.sleep(60)
        if info.function_tools and len(messages) == 1:
            yield {0: DeltaToolCall("look", '{"city": "Rome"}', tool_call_id="a")}
            return
        for piece in ("Hello ", "to you."):
            yield piece

    yield PydanticAIModel(FunctionModel(stream_function=stream))


@asynccontextmanager
async def on_this_machine() -> AsyncIterator[Model]:
    yield local_model()


MODELS: dict[str, Opened] = {
    "openai": over_http,
    "pydantic-ai": of_pydantic_ai,
    "local": on_this_machine,
}


@pytest.fixture(params=MODELS)
def opened(request: pytest.FixtureRequest) -> Opened:
    return MODELS[request.param]


def ask(opened: Opened, question: ModelQuestion) -> tuple[ModelReply, list[str]]:
    heard: list[str] = []

    async def main() -> ModelReply:
        async with opened() as model, asyncio.timeout(60):
            return await model.ask(question, heard.append)

    return asyncio.run(main()), heard


def test_a_question_gets_a_text_that_was_heard_as_it_came(opened: Opened) -> None:
    reply, heard = ask(opened, HELLO)
    assert reply.text.strip()
    assert "".join(heard) == reply.text
    assert reply.calls == ()
    assert reply.finish is None or reply.finish in get_args(FinishReason)


def test_tokens_are_counted(opened: Opened) -> None:
    reply, _ = ask(opened, HELLO)
    assert reply.tokens is not None
    assert reply.tokens.input_tokens > 0
    assert reply.tokens.output_tokens > 0
    assert 0 <= reply.tokens.cache_read_tokens <= reply.tokens.input_tokens


def test_what_cannot_be_answered_is_a_fault_with_words(opened: Opened) -> None:
    with pytest.raises(ModelFailed) as caught:
        ask(opened, TOO_MUCH)
    assert caught.value.fault.kind in get_args(FailureKind)
    assert "too long" in caught.value.fault.message


def test_a_call_has_arguments_and_its_result_can_be_told(opened: Opened) -> None:
    asked = ModelQuestion([UserMessage("Look up Rome.")], tools=[LOOK], max_tokens=200)
    reply, _ = ask(opened, asked)
    if not reply.calls:  # a tiny model may answer at once
        assert reply.text
        return
    (call,) = reply.calls
    assert (call.tool, reply.finish) in (("look", "tool_call"), ("look", None), ("look", "stop"))
    assert call.arguments is not None
    assert isinstance(call.arguments["city"], str)
    told = ToolResult(call.id, call.tool, "sunny")
    messages = [*asked.messages, reply, told]
    again, _ = ask(opened, ModelQuestion(messages, tools=[LOOK], max_tokens=200))
    assert again.text or again.calls


def test_cancelling_ends_a_question_soon_and_the_next_one_is_answered(opened: Opened) -> None:
    async def main() -> None:
        async with opened() as model:
            asked = ModelQuestion([UserMessage(SLOW)], max_tokens=4_000)
            question = asyncio.create_task(model.ask(asked))
            await asyncio.sleep(0.3)
            question.cancel()
            with pytest.raises(asyncio.CancelledError):
                async with asyncio.timeout(10):
                    await question
            async with asyncio.timeout(30):
                assert (await model.ask(HELLO)).text

    asyncio.run(main())


def test_questions_may_be_asked_side_by_side(opened: Opened) -> None:
    async def main() -> None:
        async with opened() as model, asyncio.timeout(60):
            replies = await asyncio.gather(*(model.ask(HELLO) for _ in range(4)))
            assert all(reply.text for reply in replies)

    asyncio.run(main())


def test_closing_twice_does_no_harm(opened: Opened) -> None:
    async def main() -> None:
        async with opened() as model:
            await model.close()
            await model.close()

    asyncio.run(main())
