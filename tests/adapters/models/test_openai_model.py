"""The lean model against a real server: what it sends, and what it makes of the answer."""

import asyncio
import json
import time
from typing import Any

import pytest

from stretto.adapters.models.endpoint import Endpoint
from stretto.adapters.models.openai_wire import (
    EventLines,
    PartialCalls,
    ThoughtFilter,
    is_strict,
    request_body,
)
from stretto.ports.model import (
    ModelQuestion,
    ModelReply,
    RequestedCall,
    TokenCounts,
    ToolResult,
    UserMessage,
)
from stretto.ports.tool import ToolSpec
from stretto.testing.openai_script import Asked, Said, TokenUsage, ToolCall, WrongType
from stretto.testing.openai_server import OpenAIServer
from stretto.testing.openai_wire import completion
from stretto.vocabulary.json_value import Json
from support.model_questions import HELLO, KEY, ask, asked_once, model_at

SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
LOOK = ToolSpec("look", "Looks.", SCHEMA)
READ = ToolSpec("read", "", SCHEMA)


def test_it_asks_and_gets_a_text() -> None:
    reply, asked = asked_once(Said("Hello to you.", usage=TokenUsage(70, 4, cached=64)))
    assert reply.text == "Hello to you."
    assert reply.finish == "stop"
    assert reply.tokens == TokenCounts(70, 4, 64)
    assert asked.messages == [{"role": "user", "content": "Hello?"}]
    assert (asked.model, asked.is_stream) == ("m", True)
    assert asked.authorization == f"Bearer {KEY}"


def test_a_stream_is_heard_as_it_comes() -> None:
    heard: list[str] = []
    asked_once(Said("abcdefgh", chunks=4), hear=heard.append)
    assert list(filter(None, heard)) == ["ab", "cd", "ef", "gh"]


def test_tool_calls_are_offered_made_and_answered() -> None:
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
            first = await ask(model, tools=[LOOK, READ])
            assert [(c.tool, c.arguments, c.id) for c in first.calls] == [
                ("look", {"city": "Paris"}, "a"),
                ("read", {"city": "Rome"}, "b"),
            ]
            assert first.finish == "tool_call"
            told = [ToolResult(call.id, call.tool, "seen") for call in first.calls]
            second = await ask(model, [*HELLO, first, *told], tools=[LOOK, READ])
            assert second.text == "Done."
            asked = server.requests[1]
            assert asked.tool_names == ["look", "read"]
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


@pytest.mark.parametrize(
    "chunks",
    [
        ['{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "yes"}}'],
        ['{"index": 0, "delta": {"content": "y"}}', '{"index": 1, "delta": {"content": "no"}}',
         '{"index": 0, "delta": {"content": "es"}}'],
    ],
)  # fmt: skip
def test_of_several_choices_the_first_is_the_answer(chunks: list[str]) -> None:
    stop = '{"index": 0, "delta": {}, "finish_reason": "stop"}'
    told = "".join(f'data: {{"choices": [{each}]}}\n\n' for each in (*chunks, stop))
    reply, _ = asked_once(WrongType("text/event-stream", told))
    assert reply.text == "yes"


@pytest.mark.parametrize(
    "body",
    [
        '\ufeffdata: {"choices": [{"delta": {"content": "yes"}, "finish_reason": "stop"}]}\n\n',
        '{"choices": [{"message": {"content": "yes"},\n\n"finish_reason": "stop"}]}\n',
    ],
)
def test_a_stream_may_begin_with_a_mark_or_be_none(body: str) -> None:
    reply, _ = asked_once(WrongType("text/event-stream", body))
    assert reply.text == "yes"


def test_a_refusal_may_be_a_part_of_the_content() -> None:
    parts = '[{"type": "text", "text": "Sure."}, {"type": "refusal", "refusal": "No."}]'
    body = f'{{"choices": [{{"message": {{"content": {parts}}}, "finish_reason": "stop"}}]}}'
    reply, _ = asked_once(WrongType("application/json", body))
    assert reply.finish == "content_filter"


def test_a_call_without_a_name_is_nobodys() -> None:
    calls = (ToolCall("", {"a": 1}), ToolCall("look", {"city": "Rome"}), ToolCall("", "{"))
    reply, _ = asked_once(Said("", tool_calls=calls), tools=[LOOK])
    (call,) = reply.calls
    assert (call.tool, call.arguments) == ("look", {"city": "Rome"})


def test_a_made_up_name_does_not_spoil_the_history() -> None:
    said = ModelReply(
        calls=(RequestedCall("a", "Read; rm -rf", "{}"), RequestedCall("b", "", "{}"))
    )
    told = [ToolResult("a", "x", "no such tool"), ToolResult("b", "y", "no")]
    _, asked = asked_once(Said(), messages=[*HELLO, said, *told])
    calls: Any = asked.messages[1]["tool_calls"]
    assert [call["function"]["name"] for call in calls] == ["Read__rm_-rf", "unnamed"]


def test_instructions_come_first() -> None:
    _, asked = asked_once(Said(), instructions="Be kind.")
    assert [(m["role"], m["content"]) for m in asked.messages] == [
        ("system", "Be kind."),
        ("user", "Hello?"),
    ]


def test_a_schema_is_asked_for_natively() -> None:
    reply, asked = asked_once(Said('{"city": "Rome"}'), schema=SCHEMA)
    assert reply.text == '{"city": "Rome"}'
    assert asked.response_format == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": SCHEMA},
    }


def test_any_json_object_can_be_asked_for() -> None:
    _, asked = asked_once(Said("{}"), is_json=True)
    assert asked.response_format == {"type": "json_object"}


def test_openai_itself_is_asked_for_strictness_and_calls_max_tokens_otherwise() -> None:
    closed: dict[str, Json] = {**SCHEMA, "additionalProperties": False}
    question = ModelQuestion(HELLO, schema=closed, max_tokens=9)
    openai = Endpoint("openai", "https://api.openai.com/v1", "k", is_openai=True)
    body = json.loads(request_body("m", question, openai))
    assert body["max_completion_tokens"] == 9
    assert body["response_format"]["json_schema"]["strict"] is True
    body = json.loads(request_body("m", question, Endpoint("vllm", "http://127.0.0.1/v1")))
    assert body["max_tokens"] == 9
    assert "strict" not in body["response_format"]["json_schema"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"additionalProperties": False}, True),
        ({}, False),
        ({"additionalProperties": False, "required": []}, False),
        ({"additionalProperties": False, "minProperties": 1}, False),
    ],
)
def test_strict_is_a_schema_of_closed_objects(changes: dict[str, Json], expected: bool) -> None:
    assert is_strict({**SCHEMA, **changes}) is expected


def test_thoughts_are_not_part_of_the_text() -> None:
    reply, _ = asked_once(Said("Four.", reasoning="Two and two"))
    assert reply.text == "Four."
    assert isinstance(reply.own, dict)
    assert list(reply.own.values()) == ["Two and two"]


@pytest.mark.parametrize("chunks", [1, 3, 40])
def test_thoughts_in_tags_are_not_part_of_the_text_either(chunks: int) -> None:
    heard: list[str] = []
    said = Said("<think>\nTwo and two\n</think>\n\nFour.", chunks=chunks)
    reply, _ = asked_once(said, hear=heard.append)
    assert reply.text == "".join(heard) == "Four."


@pytest.mark.parametrize("text", ["<thin ice", "<", "a < b", "  <b>bold</b>", "<thi"])
def test_what_only_looks_like_a_thought_is_kept(text: str) -> None:
    thoughts = ThoughtFilter()
    assert "".join([thoughts.feed(letter) for letter in text] + [thoughts.end()]) == text


def test_who_thinks_between_tool_calls_sees_its_own_thoughts_again() -> None:
    call = (RequestedCall("a", "look", "{}"),)
    told = ToolResult("a", "look", "seen")
    for provider, expected in (("openai", "Hm."), ("anthropic", None)):
        said = ModelReply("", call, provider=provider, own={"reasoning_content": "Hm."})
        _, asked = asked_once(Said(), messages=[*HELLO, said, told])
        assert asked.messages[1].get("reasoning_content") == expected


def test_an_empty_answer_is_no_error_here() -> None:
    reply, _ = asked_once(Said(""))
    assert (reply.text, reply.calls, reply.finish) == ("", (), "stop")


def test_a_filtered_answer_says_so() -> None:
    reply, _ = asked_once(Said("", finish_reason="content_filter"))
    assert reply.finish == "content_filter"


def test_half_a_character_does_not_stop_a_request() -> None:
    _, asked = asked_once(Said(), messages=[UserMessage("a\ud83db")])
    assert asked.prompt == "a?b"


def test_a_server_that_cannot_stream_is_understood() -> None:
    def script(asked: Asked) -> WrongType:
        return WrongType("application/json", completion(Said("Whole."), asked).decode())

    heard: list[str] = []
    reply, _ = asked_once(script, hear=heard.append)
    assert reply.text == "".join(heard) == "Whole."


def test_history_without_words_or_calls_is_left_out() -> None:
    again = UserMessage("And?")
    _, asked = asked_once(Said(), messages=[*HELLO, ModelReply(), again])
    assert [message["role"] for message in asked.messages] == ["user", "user"]
    _, asked = asked_once(Said(), messages=[*HELLO, ModelReply("Yes."), again])
    assert asked.messages[1] == {"role": "assistant", "content": "Yes."}


def whole(*pieces: tuple[int | None, str, str, str]) -> list[tuple[str, str, str]]:
    calls = PartialCalls()
    for place, (index, id, name, arguments) in enumerate(pieces):
        function = {"name": name, "arguments": arguments}
        calls.add({"index": index, "id": id, "function": function}, place % 2)
    return [(call.id, call.tool, call.text) for call in calls.whole()]


def test_pieces_of_calls_are_put_together_by_their_index() -> None:
    assert whole(
        (0, "a", "look", ""), (1, "b", "read", ""), (0, "", "", "{}"), (1, "", "", "[]")
    ) == [("a", "look", "{}"), ("b", "read", "[]")]


def test_arguments_may_come_before_the_name_and_the_name_more_than_once() -> None:
    assert whole((0, "a", "", "{"), (0, "", "look", "}")) == [("a", "look", "{}")]
    assert whole((0, "a", "look", "{"), (0, "a", "look", "}")) == [("a", "look", "{}")]


def test_calls_that_are_all_numbered_alike_are_told_apart_by_their_ids() -> None:
    assert whole((0, "a", "look", "{}"), (0, "b", "look", "[]")) == [
        ("a", "look", "{}"),
        ("b", "look", "[]"),
    ]


def test_calls_without_a_number_are_told_apart_by_their_place() -> None:
    assert whole((None, "a", "look", "{}"), (None, "b", "read", "{}")) == [
        ("a", "look", "{}"),
        ("b", "read", "{}"),
    ]


def test_a_call_without_an_id_gets_one() -> None:
    ((id, tool, _),) = whole((0, "", "look", "{}"))
    assert (id.startswith("call_"), tool) == (True, "look")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_events_are_found_wherever_the_bytes_are_cut(size: int) -> None:
    lines = EventLines()
    sent = b"data: one\r\n\r\n: a comment\n\ndata: two\ndata: three\n\ndata: four"
    parts = [sent[at : at + size] for at in range(0, len(sent), size)]
    found = [event for part in parts for event in lines.feed(part)]
    assert [*found, *lines.end()] == [b"one", b"two\nthree", b"four"]


def test_a_long_event_in_small_parts_is_read_once() -> None:
    """What a server sends must not cost the square of its length: the process drives other runs, too."""
    body = b"data: " + b"x" * 4_000_000 + b"\r\n\r\n"
    lines, found = EventLines(), list[bytes]()
    began = time.process_time()
    for at in range(0, len(body), 1_000):
        found += lines.feed(body[at : at + 1_000])
    assert time.process_time() - began < 1.0
    assert found == [b"x" * 4_000_000]
    assert lines.held_bytes == 0


def test_what_comes_in_many_small_pieces_is_looked_at_once() -> None:
    blanks, thoughts, calls, pieces = ThoughtFilter(), ThoughtFilter(), PartialCalls(), 50_000
    thoughts.feed(" <think>")
    began = time.process_time()
    for _ in range(pieces):
        assert blanks.feed("  \n   ") == thoughts.feed("think ") == ""
        calls.add({"index": 0, "id": "a", "function": {"name": "w", "arguments": "12345 "}}, 0)
    assert time.process_time() - began < 1.5
    assert blanks.feed("yes") == "  \n   " * pieces + "yes"
    assert thoughts.feed("</think> yes") == "yes"
    assert calls.whole()[0].text == "12345 " * pieces
