"""The lean model against a real server: what it sends, and what it makes of the answer."""

import asyncio
import json
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    ImageUrl,
    InstructionPart,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from stretto.testing.openai_script import Asked, Said, Tokens, ToolCall, WrongType
from stretto.testing.openai_server import OpenAIServer
from stretto.testing.openai_wire import completion
from support.model_questions import BOTH, HELLO, KEY, ask, asked_once, model_at

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
LOOK = ToolDefinition(name="look", description="Looks.", parameters_json_schema=SCHEMA)
READ = ToolDefinition(name="read", parameters_json_schema=SCHEMA)


@pytest.mark.parametrize("stream", BOTH)
def test_it_asks_and_gets_a_text(stream: bool) -> None:
    response, asked = asked_once(
        Said("Hello to you.", usage=Tokens(70, 4, cached=64)), stream=stream
    )
    assert response.text == "Hello to you."
    assert response.finish_reason == "stop"
    assert response.state == "complete"
    assert (response.usage.input_tokens, response.usage.output_tokens) == (70, 4)
    assert response.usage.cache_read_tokens == 64
    assert asked.messages == [{"role": "user", "content": "Hello?"}]
    assert (asked.model, asked.is_stream) == ("m", stream)
    assert asked.authorization == f"Bearer {KEY}"


def test_a_stream_is_heard_as_it_comes() -> None:
    heard: list[Any] = []
    asked_once(Said("abcdefgh", chunks=4), hear=heard.append)
    pieces = [e.part.content for e in heard if isinstance(e, PartStartEvent)]
    pieces += [e.delta.content_delta for e in heard if isinstance(e, PartDeltaEvent)]
    assert pieces == ["ab", "cd", "ef", "gh"]


@pytest.mark.parametrize("stream", BOTH)
def test_tool_calls_are_offered_made_and_answered(stream: bool) -> None:
    def script(asked: Asked) -> Said:
        if asked.times == 1:
            calls = (
                ToolCall("look", {"city": "Paris"}, "a"),
                ToolCall("read", {"city": "Rome"}, "b"),
            )
            return Said("", tool_calls=calls, chunks=5)
        return Said("Done.")

    async def story() -> None:
        async with OpenAIServer(script) as server:
            model = model_at(server)
            offered = ModelRequestParameters(function_tools=[LOOK, READ])
            first = await ask(model, parameters=offered, stream=stream)
            calls = [part for part in first.parts if isinstance(part, ToolCallPart)]
            assert [(c.tool_name, c.args_as_dict(), c.tool_call_id) for c in calls] == [
                ("look", {"city": "Paris"}, "a"),
                ("read", {"city": "Rome"}, "b"),
            ]
            assert first.finish_reason == "tool_call"
            told = ModelRequest(
                [ToolReturnPart(c.tool_name, "seen", c.tool_call_id) for c in calls]
            )
            second = await ask(model, [*HELLO, first, told], parameters=offered, stream=stream)
            assert second.text == "Done."
            asked = server.requests[1]
            assert asked.tool_names == ["look", "read"]
            assert "tool_choice" not in asked.body
            _, said, *answers = asked.messages
            assert said["content"] is None
            call: Any = said["tool_calls"][1]  # type: ignore[index,call-overload]
            assert (call["id"], call["function"]["name"]) == ("b", "read")
            assert json.loads(call["function"]["arguments"]) == {"city": "Rome"}
            assert answers == [
                {"role": "tool", "tool_call_id": "a", "content": "seen"},
                {"role": "tool", "tool_call_id": "b", "content": "seen"},
            ]

    asyncio.run(story())


@pytest.mark.parametrize("stream", BOTH)
def test_a_call_without_a_name_is_nobodys(stream: bool) -> None:
    calls = (ToolCall("", {"a": 1}), ToolCall("look", {"city": "Rome"}), ToolCall("", "{"))
    parameters = ModelRequestParameters(function_tools=[LOOK])
    response, _ = asked_once(Said("", tool_calls=calls), parameters=parameters, stream=stream)
    (call,) = response.parts
    assert isinstance(call, ToolCallPart)
    assert (call.tool_name, call.args_as_dict()) == ("look", {"city": "Rome"})


def test_a_made_up_name_does_not_spoil_the_history() -> None:
    said = ModelResponse([ToolCallPart("Read; rm -rf", "{}", "a"), ToolCallPart("", "{}", "b")])
    told = ModelRequest([ToolReturnPart("x", "no such tool", "a"), ToolReturnPart("y", "no", "b")])
    _, asked = asked_once(Said(), messages=[*HELLO, said, told])
    calls: Any = asked.messages[1]["tool_calls"]
    assert [call["function"]["name"] for call in calls] == ["Read__rm_-rf", "unnamed"]


def test_system_prompts_and_instructions_come_first() -> None:
    messages = [ModelRequest([SystemPromptPart("Be terse."), UserPromptPart("Hi.")])]
    parameters = ModelRequestParameters(instruction_parts=[InstructionPart("Be kind.")])
    _, asked = asked_once(Said(), messages=messages, parameters=parameters)
    assert [(m["role"], m["content"]) for m in asked.messages] == [
        ("system", "Be terse."),
        ("system", "Be kind."),
        ("user", "Hi."),
    ]


def test_instructions_of_a_bare_request_are_sent() -> None:
    messages = [ModelRequest([UserPromptPart("Hi.")], instructions="Be kind.")]
    _, asked = asked_once(Said(), messages=messages)
    assert asked.messages[0] == {"role": "system", "content": "Be kind."}


@pytest.mark.parametrize("stream", BOTH)
def test_a_schema_is_asked_for_natively(stream: bool) -> None:
    output = OutputObjectDefinition(
        json_schema=SCHEMA, name="place", description="A place.", strict=True
    )
    parameters = ModelRequestParameters(output_mode="native", output_object=output)
    response, asked = asked_once(Said('{"city": "Rome"}'), parameters=parameters, stream=stream)
    assert response.text == '{"city": "Rome"}'
    assert asked.response_format == {
        "type": "json_schema",
        "json_schema": {
            "name": "place", "schema": SCHEMA, "description": "A place.", "strict": True,
        },
    }  # fmt: skip


def test_settings_are_sent_by_their_own_names() -> None:
    settings = ModelSettings(
        max_tokens=9, temperature=0.5, top_p=0.9, seed=7, stop_sequences=["END"],
        parallel_tool_calls=False, extra_body={"think": False}, extra_headers={"X-Title": "stretto"},
    )  # fmt: skip
    parameters = ModelRequestParameters(function_tools=[LOOK])
    _, asked = asked_once(Said(), settings=settings, parameters=parameters)
    sent = {name: asked.body[name] for name in
            ("max_tokens", "temperature", "top_p", "seed", "stop", "parallel_tool_calls", "think")}  # fmt: skip
    assert sent == {
        "max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["END"],
        "parallel_tool_calls": False, "think": False,
    }  # fmt: skip
    assert asked.headers["x-title"] == "stretto"


@pytest.mark.parametrize(
    ("choice", "tools", "sent"),
    [
        (None, ["look", "read"], None),
        ("auto", ["look", "read"], None),
        ("none", ["look", "read"], "none"),
        ("required", ["look", "read"], "required"),
        (["read"], ["read"], {"type": "function", "function": {"name": "read"}}),
        (["read", "look"], ["look", "read"], "required"),
    ],
)
def test_a_tool_can_be_chosen(choice: Any, tools: list[str], sent: Any) -> None:
    settings = ModelSettings(tool_choice=choice)
    parameters = ModelRequestParameters(function_tools=[LOOK, READ])
    _, asked = asked_once(Said(), settings=settings, parameters=parameters)
    assert asked.tool_names == tools
    assert asked.body.get("tool_choice") == sent


def test_an_output_tool_must_be_called() -> None:
    parameters = ModelRequestParameters(
        function_tools=[LOOK], output_tools=[READ], output_mode="tool", allow_text_output=False
    )
    _, asked = asked_once(Said(), parameters=parameters)
    assert asked.body["tool_choice"] == "required"


@pytest.mark.parametrize("stream", BOTH)
def test_thoughts_are_not_part_of_the_text(stream: bool) -> None:
    response, _ = asked_once(Said("Four.", reasoning="Two and two"), stream=stream)
    assert response.text == "Four."
    (thought,) = [part for part in response.parts if isinstance(part, ThinkingPart)]
    assert thought.content == "Two and two"


def test_thoughts_in_tags_are_not_part_of_the_text_either() -> None:
    response, _ = asked_once(Said("<think>\nTwo and two\n</think>\n\nFour."), stream=False)
    assert response.text == "Four."


def test_who_thinks_between_tool_calls_sees_its_thoughts_again() -> None:
    thought = ThinkingPart("Hm.", id="reasoning_content", provider_name="openai")
    foreign = ThinkingPart("Oh.", id="reasoning_content", provider_name="anthropic")
    said = ModelResponse([thought, foreign, ToolCallPart("look", "{}", "a")])
    told = ModelRequest([ToolReturnPart("look", "seen", "a")])
    _, asked = asked_once(Said(), messages=[*HELLO, said, told])
    assert asked.messages[1]["reasoning_content"] == "Hm."


@pytest.mark.parametrize("stream", BOTH)
def test_an_empty_answer_is_no_error_here(stream: bool) -> None:
    response, _ = asked_once(Said(""), stream=stream)
    assert response.parts == []
    assert response.finish_reason == "stop"


@pytest.mark.parametrize("stream", BOTH)
def test_a_filtered_answer_says_so(stream: bool) -> None:
    response, _ = asked_once(Said("", finish_reason="content_filter"), stream=stream)
    assert response.finish_reason == "content_filter"


def test_images_are_sent_and_sounds_are_refused() -> None:
    image = BinaryContent(b"\x89PNG", media_type="image/png")
    prompt = UserPromptPart(["What is it?", image, ImageUrl("https://example.org/a.png")])
    _, asked = asked_once(Said(), messages=[ModelRequest([prompt])])
    assert asked.messages[0]["content"] == [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    ]
    with pytest.raises(UserError, match="AudioUrl cannot be sent"):
        asked_once(Said(), messages=[ModelRequest([UserPromptPart([AudioUrl("https://a/b.mp3")])])])


def test_half_a_character_does_not_stop_a_request() -> None:
    _, asked = asked_once(Said(), messages=[ModelRequest([UserPromptPart("a\ud83db")])])
    assert asked.prompt == "a?b"


def test_pydantic_ais_own_agents_can_use_it() -> None:
    class Place(BaseModel):
        city: str

    def script(asked: Asked) -> Said:
        if asked.tools and asked.times == 1:
            return Said("", tool_calls=(ToolCall("where", {}),))
        return Said('{"city": "Rome"}') if asked.response_format else Said("Rome.")

    async def story() -> None:
        async with OpenAIServer(script) as server:
            agent = Agent(model_at(server), instructions="Be terse.")

            @agent.tool_plain
            def where() -> str:
                return "Rome"

            assert (await agent.run("Where?")).output == "Rome."
            for wanted in (NativeOutput(Place), PromptedOutput(Place)):
                found = await Agent(model_at(server), output_type=wanted).run("Where?")
                assert found.output == Place(city="Rome")
            kinds = [
                asked.response_format["type"] for asked in server.requests if asked.response_format
            ]
            assert kinds == ["json_schema", "json_object"]

    asyncio.run(story())


def test_a_server_that_cannot_stream_is_understood() -> None:
    def script(asked: Asked) -> WrongType:
        return WrongType("application/json", completion(Said("Whole."), asked).decode())

    heard: list[Any] = []
    response, _ = asked_once(script, hear=heard.append)
    assert response.text == "Whole."
    assert any(isinstance(event, PartStartEvent) for event in heard)


def test_history_without_words_or_calls_is_left_out() -> None:
    empty = ModelResponse([ThinkingPart("Hm.")])
    again = ModelRequest([UserPromptPart("And?")])
    _, asked = asked_once(Said(), messages=[*HELLO, empty, again])
    assert [message["role"] for message in asked.messages] == ["user", "user"]
    spoken = ModelResponse([TextPart("Yes.")])
    _, asked = asked_once(Said(), messages=[*HELLO, spoken, again])
    assert asked.messages[1] == {"role": "assistant", "content": "Yes."}
