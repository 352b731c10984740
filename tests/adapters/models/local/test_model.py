"""A real model on this machine: SmolLM2-135M. Its words are poor; its JSON is right."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from stretto.adapters.models.local import model as local_model, process as room
from stretto.adapters.models.local.catalog import TINY_NOTICE, Loadable, Traits
from stretto.adapters.models.local.model import LocalModel
from stretto.adapters.models.local.process import close_all, process_for
from stretto.ports.model import ModelFailed, ModelQuestion, ModelReply, UserMessage
from stretto.ports.tool import ToolSpec
from stretto.problems.errors import StrettoError
from stretto.vocabulary.json_value import Json
from support.weights import model, smollm2

ASSISTANT = "You are a helpful assistant."
LONG_STORY = "Write a very long story about a ship."


@pytest.fixture(scope="module", autouse=True)
def closed() -> Iterator[None]:
    smollm2()
    yield
    close_all()


async def ask(text: str, most: int = 40, **more: Any) -> ModelReply:
    question = ModelQuestion([UserMessage(text)], ASSISTANT, max_tokens=most, **more)
    return await model().ask(question)


def said(reply: ModelReply) -> str:
    assert not reply.calls
    return reply.text


def test_it_answers_with_no_key_and_counts_its_tokens() -> None:
    response = asyncio.run(ask("What is the capital of France?"))
    assert "Paris" in said(response)
    assert response.finish == "stop"
    assert response.tokens is not None
    assert response.tokens.input_tokens > 10
    assert 0 < response.tokens.output_tokens <= 40


def test_the_same_question_gets_the_same_answer() -> None:
    async def twice() -> tuple[str, str]:
        first = said(await ask(LONG_STORY))
        await ask("Something else.", 5)
        return first, said(await ask(LONG_STORY))

    first, second = asyncio.run(twice())
    assert first == second


def test_it_never_says_more_than_it_may() -> None:
    response = asyncio.run(ask(LONG_STORY, most=12))
    assert response.finish == "length"
    assert response.tokens is not None
    assert response.tokens.output_tokens == 12


SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 30},
        "points": {"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": 3},
        "score": {"type": "integer", "minimum": 0, "maximum": 10},
    },
    "required": ["title", "points", "score"],
}


def test_native_output_keeps_to_its_schema() -> None:
    response = asyncio.run(ask("Judge this: weaving is fun.", 200, schema=SCHEMA))
    jsonschema.validate(json.loads(said(response)), SCHEMA)


def test_a_list_at_the_top_is_possible_too() -> None:
    schema: dict[str, Json] = {"type": "array", "items": {"enum": ["red", "blue"]}, "maxItems": 3}
    jsonschema.validate(json.loads(said(asyncio.run(ask("Colours?", schema=schema)))), schema)


def test_a_schema_that_llama_cpp_refuses_is_relaxed() -> None:
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {"day": {"$ref": "#/nope"}, "name": {"type": "string", "maxLength": 20}},
        "required": ["name"],
        "additionalProperties": False,
    }
    answer = json.loads(said(asyncio.run(ask("Name a cat.", 300, schema=schema))))
    assert isinstance(answer["name"], str)
    assert set(answer) <= {"day", "name"}


def test_prompted_output_without_a_schema_is_some_json_object() -> None:
    response = asyncio.run(ask("Describe a cat.", 150, is_json=True))
    if response.finish == "stop":
        assert isinstance(json.loads(said(response)), dict)
    assert said(response).lstrip().startswith("{")


LOOK_UP = ToolSpec(
    "look_up",
    "Look up a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}},
        "required": ["city"],
        "additionalProperties": False,
    },
)


def handy() -> LocalModel:
    """The same weights, as if they were of some use with tools."""
    tiny = smollm2()
    return LocalModel(replace(tiny, traits=replace(tiny.traits, is_tiny=False)))


def test_with_tools_it_makes_a_call_or_gives_a_plain_answer() -> None:
    reply = asyncio.run(ask("Look up Paris.", 200, tools=[LOOK_UP]))
    if reply.calls:
        (call,) = reply.calls
        assert (call.tool, reply.text, reply.finish) == ("look_up", "", "tool_call")
        jsonschema.validate(call.arguments, LOOK_UP.parameters)
    else:
        assert "final_answer" not in reply.text
        assert reply.text


def test_it_streams_word_by_word() -> None:
    heard: list[str] = []
    question = ModelQuestion([UserMessage(LONG_STORY)], ASSISTANT, max_tokens=10)
    reply = asyncio.run(model().ask(question, heard.append))
    assert "".join(heard) == reply.text
    assert len(heard) > 5


def test_while_it_is_busy_it_gives_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_model, "_BEAT_SECONDS", 0.0)
    heard: list[str] = []
    question = ModelQuestion([UserMessage("Hello!")], tools=[LOOK_UP], max_tokens=200)
    asyncio.run(model().ask(question, heard.append))
    assert heard.count("") > 5, "a call is only known at its end"


def test_a_prompt_that_is_too_long_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(ModelFailed, match="too long for smollm2"):
        asyncio.run(ask("word " * 9_000))
    assert said(asyncio.run(ask("Hello!", 5)))


def test_who_asks_together_waits_in_one_line_and_is_answered_alike() -> None:
    questions = ["Count to three.", "Name a colour.", "Say hello."]

    async def together() -> list[str]:
        return [said(each) for each in await asyncio.gather(*(ask(q, 15) for q in questions))]

    async def alone() -> list[str]:
        return [said(await ask(question, 15)) for question in questions]

    assert asyncio.run(together()) == asyncio.run(alone())


def test_the_event_loop_is_never_blocked() -> None:
    async def longest_pause() -> tuple[float, float]:
        work = asyncio.create_task(ask("Say hello. " * 20, 20))
        begun = last = time.monotonic()
        longest = 0.0
        while not work.done():
            await asyncio.sleep(0.01)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        return longest, last - begun

    close_all()  # so that loading is seen too
    longest, in_all = asyncio.run(longest_pause())
    assert longest < max(1.0, in_all / 2)


def test_cancelling_stops_the_work_and_frees_the_line() -> None:
    async def cancelled() -> float:
        endless = asyncio.create_task(ask(LONG_STORY, 4_000))
        waiting = asyncio.create_task(ask(LONG_STORY, 4_000))
        await asyncio.sleep(1.0)
        for task in (waiting, endless):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        began = time.monotonic()
        await ask("Hello!", 3)
        return time.monotonic() - began

    # 8,000 tokens would take minutes.
    assert asyncio.run(cancelled()) < 20


def test_a_crash_is_one_failed_request_and_the_next_one_works() -> None:
    async def crash() -> None:
        work = asyncio.create_task(ask(LONG_STORY, 4_000))
        process = process_for(smollm2())
        while process.pid is None:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(ModelFailed, match="ended unexpectedly"):
            await work
        assert said(await ask("Hello!", 5))

    asyncio.run(crash())


def test_one_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_BEAT_SECONDS", 0.2)
    monkeypatch.setattr(room, "_SILENCE_SECONDS", 1.0)

    async def hang() -> None:
        work = asyncio.create_task(ask(LONG_STORY, 4_000))
        process = process_for(smollm2())
        while process.pid is None:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.5)
        os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(ModelFailed, match="ended unexpectedly"):
            await work

    asyncio.run(hang())


def test_it_is_given_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/proc/self/environ").exists():
        pytest.skip("another process's environment is seen in /proc alone")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    close_all()

    async def environment() -> bytes:
        await ask("Hello!", 2)
        return Path(f"/proc/{process_for(smollm2()).pid}/environ").read_bytes()

    assert b"sk-secret" not in asyncio.run(environment())


def test_a_file_that_cannot_be_loaded_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\xff" * 5_000)
    local = LocalModel(Loadable(f"local:{broken}", broken, Traits()))
    with pytest.raises(StrettoError, match=r"broken\.gguf cannot be loaded"):
        asyncio.run(local.ask(ModelQuestion([UserMessage("Hi")])))


def test_it_says_what_it_can_do_and_that_it_is_tiny() -> None:
    assert handy().traits.takes_tools
    assert not model().traits.takes_tools, "it would call one until its turns are up"
    assert model().traits.takes_schema
    assert model().traits.is_local
    assert model().notice == TINY_NOTICE
    assert handy().notice == ""
