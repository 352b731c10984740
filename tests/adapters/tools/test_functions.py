"""A tool made of a typed Python function."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from adapters.tools.test_toolbox import request
from stretto.adapters.tools.functions import AnyFunctionTool, CallKey, FunctionTool, tool
from stretto.adapters.tools.toolbox import StandardToolbox, ToolSettings
from stretto.plan.build import build
from stretto.plan.catalog import Catalog
from stretto.plan.model import Plan
from stretto.ports.tool import Tool, ToolOutcome
from stretto.problems.errors import InvalidUsage
from stretto.recipe.read import read_recipe
from stretto.testing.openai_script import Said, ToolCall
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import CHANGING_TOOLS, KNOWN_TOOLS
from support.subagents import play, request as subagent_request


def call(made: Tool, _key: str = "run/step//1/1", **arguments: Json) -> ToolOutcome:
    return asyncio.run(made.call(arguments, _key))


@tool
def lookup(word: str, language: Literal["en", "de"] = "en", most: int = 3) -> str:
    """Look a word up in the dictionary of this company.

    Only words of one language at a time.

    Args:
        word: the word, in its basic form
        language (str): which dictionary,
            English or German
    """
    return f"{word} in {language}, {most}"


class Point(BaseModel):
    x: int
    y: int = 0


class Colour(Enum):
    RED = "red"


@dataclass
class Row:
    name: str
    day: date


def test_signature_and_docstring_become_what_the_model_is_shown() -> None:
    spec = lookup.spec
    assert spec.name == "lookup"
    assert spec.description == (
        "Look a word up in the dictionary of this company.\n\nOnly words of one language at a time."
    )
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "word": {"type": "string", "description": "the word, in its basic form"},
            "language": {
                "type": "string",
                "enum": ["en", "de"],
                "default": "en",
                "description": "which dictionary, English or German",
            },
            "most": {"type": "integer", "default": 3},
        },
        "required": ["word"],
        "additionalProperties": False,
    }


def test_by_default_a_call_may_write_files_and_is_in_doubt_after_a_crash() -> None:
    assert (lookup.spec.changes_files, lookup.spec.recovery) == (True, "in_doubt")

    @tool(effect="idempotent", name="find-it", read_only=True)
    def find(word: str) -> str:
        return word

    assert (find.spec.changes_files, find.spec.recovery) == (False, "idempotent")
    assert find.spec.name == "find-it"


def test_a_tool_can_still_be_called_as_the_function() -> None:
    assert lookup("tree", most=1) == "tree in en, 1"


def test_arguments_reach_the_function_and_defaults_are_its_own() -> None:
    assert call(lookup, word="tree", language=None).text == "tree in en, 3"
    assert call(lookup, word="tree", language="de", most="4").text == "tree in de, 4"


def test_wrong_arguments_are_told_and_the_function_is_not_called() -> None:
    told = call(lookup, wrod="tree", language="fr", most="many")
    assert told.verdict == "error"
    assert told.text == (
        "lookup was not called. What is wrong:\n"
        "- there is no argument 'wrod'; did you mean 'word'?\n"
        "- the argument 'word' is missing: the word, in its basic form\n"
        "- the argument 'language' should be 'en' or 'de', not 'fr'\n"
        "- the argument 'most' should be a valid integer, not text"
    )


def test_values_are_made_of_the_text_that_stands_for_them() -> None:
    @tool
    def plot(at: Point, colour: Colour, day: date, json: list[Point], _x: int = 1) -> list[Row]:
        assert (at, colour, day) == (Point(x=1, y=2), Colour.RED, date(2026, 11, 18))
        return [Row(f"{len(json)} {_x}", day)]

    told = call(plot, at={"x": 1, "y": 2}, colour="red", day="2026-11-18", json=[{"x": 3}], _x=5)
    assert (told.verdict, json.loads(told.text)) == ("ok", [{"name": "1 5", "day": "2026-11-18"}])
    wrong = call(plot, at={"x": "?"}, colour="red", day="2026-11-18", json=[{"y": 3}])
    assert "the argument 'at' ('x') should be a valid integer" in wrong.text
    assert "the argument 'json' (element 1, 'x') is missing" in wrong.text


def test_a_description_may_stand_in_the_annotation() -> None:
    @tool
    def area(side: Annotated[float, Field(gt=0, description="in metres")]) -> float:
        return side * side

    properties = area.spec.parameters["properties"]
    assert properties == {
        "side": {"type": "number", "exclusiveMinimum": 0, "description": "in metres"}
    }
    assert call(area, side=2).text == "4.0"
    assert "should be greater than 0, not 0" in call(area, side=0).text


def test_a_sync_function_runs_beside_the_event_loop() -> None:
    @tool
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert call(where).text == "false"


def test_an_async_function_is_awaited_and_can_be_cancelled() -> None:
    ended: list[str] = []

    @tool
    async def wait(seconds: float) -> str:
        try:
            await asyncio.sleep(seconds)
            return "slept"
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    assert call(wait, seconds=0).text == "slept"

    async def cancel() -> None:
        running = asyncio.create_task(wait.call({"seconds": 60}, "k"))
        await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancel())
    assert ended == ["cancelled"]


def test_methods_partials_and_objects_that_can_be_called_become_tools() -> None:
    class Shelf:
        def find(self, title: str) -> str:
            return f"found {title}"

        async def __call__(self, title: str) -> str:
            return f"asked for {title}"

    assert call(tool(Shelf().find), title="Emma").text == "found Emma"
    asked: AnyFunctionTool = tool(name="shelf")(Shelf())
    assert call(asked, title="Emma").text == "asked for Emma"
    short: AnyFunctionTool = tool(name="short")(partial(lookup.function, most=1))
    assert call(short, word="tree").text == "tree in en, 1"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such word"), "Error: ValueError: no such word"),
        (KeyError("tree"), "Error: KeyError: 'tree'"),
        (StopIteration(), "Error: RuntimeError: the function raised StopIteration"),
        (SystemExit(3), "Error: SystemExit: 3"),
    ],
)
def test_an_exception_is_told_without_a_traceback(error: BaseException, text: str) -> None:
    @tool
    def fail() -> str:
        raise error

    assert call(fail) == ToolOutcome(text, "error")


def test_what_a_function_returns_is_text_or_json() -> None:
    def returning(value: Any) -> ToolOutcome:
        @tool
        def answer() -> Any:
            return value

        return call(answer)

    assert returning("plain").text == "plain"
    assert returning(None).text == "(the tool returned nothing)"
    assert returning({"a": [1, True, None]}).text == '{"a":[1,true,null]}'
    assert returning(float("nan")).text == '"NaN"'
    assert returning("x" * 50_000).size == 50_000
    refused = returning(object())
    assert refused.verdict == "error"
    assert refused.text == "Error: answer returned an object, which cannot be written as JSON"


def test_the_key_of_the_call_is_passed_and_not_shown_to_the_model() -> None:
    @tool(effect="keyed")
    def pay(amount: int, key: CallKey) -> str:
        return f"{amount} by {key}"

    assert pay.spec.recovery == "keyed"
    assert list(pay.spec.parameters["properties"]) == ["amount"]  # type: ignore[arg-type]
    assert call(pay, "run/step//2/7", amount=5).text == "5 by run/step//2/7"
    assert "there is no argument 'key'" in call(pay, amount=5, key="mine").text


def _variadic(*words: str) -> str: ...  # type: ignore[empty-body]
def _keywords(**words: str) -> str: ...  # type: ignore[empty-body]
def _positional(word: str, /) -> str: ...  # type: ignore[empty-body]
def _bare(word) -> str: ...  # type: ignore[no-untyped-def, empty-body]
def _socket(line: socket.socket) -> str: ...  # type: ignore[empty-body]
def _callable(then: Callable[[], None]) -> str: ...  # type: ignore[empty-body]
def _returns_socket(word: str) -> socket.socket: ...  # type: ignore[empty-body]
def _unknown(word: "Nowhere") -> str: ...  # type: ignore[name-defined, empty-body]  # noqa: F821
def _generator(word: str) -> Iterator[str]:
    yield word


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (_variadic, "a model cannot name the parameter '*words: str'"),
        (_keywords, "a model cannot name the parameter '**words: str'"),
        (_positional, "a model cannot name the parameter 'word: str'"),
        (_bare, "its parameter 'word' has no annotation"),
        (_socket, "its types have no JSON schema: .*socket"),
        (_callable, "its types have no JSON schema: .*"),
        (_returns_socket, "its types have no JSON schema: .*socket"),
        (_unknown, "its signature cannot be read: name 'Nowhere' is not defined"),
        (_generator, "it is a generator; return a list instead"),
    ],
)
def test_a_function_that_cannot_be_a_tool_says_why(function: Any, why: str) -> None:
    pattern = why if "JSON schema" in why else why.replace("*", r"\*")
    with pytest.raises(
        InvalidUsage, match=f"'{function.__name__}' cannot be made into a tool: {pattern}"
    ):
        tool(function)


@pytest.mark.parametrize("name", ["Read", "task", "mcp__x__y", "two words", "", "ü"])
def test_a_name_that_is_taken_or_that_no_provider_accepts_is_refused(name: str) -> None:
    with pytest.raises(InvalidUsage, match="name"):
        FunctionTool(lambda: "", name=name)


def test_a_keyed_tool_must_take_the_key_and_effects_are_three() -> None:
    with pytest.raises(InvalidUsage, match="needs a parameter annotated with CallKey"):
        tool(effect="keyed")(lookup.function)
    with pytest.raises(InvalidUsage, match="there are idempotent, keyed, in_doubt"):
        tool(effect="maybe")(lookup.function)  # type: ignore[call-overload]


def test_the_identity_follows_the_code_of_the_function() -> None:
    def made(source: str) -> AnyFunctionTool:
        names: dict[str, Any] = {}
        exec(source, names)  # there is no file with this source
        return tool(names["answer"])

    one = made("def answer(word: str) -> bool:\n    return word in {'a', 'b'}")
    same = made("\n\ndef answer(word: str) -> bool:\n    return word in {'a', 'b'}")
    other = made("def answer(word: str) -> bool:\n    return word in {'a', 'c'}")
    assert one.identity == same.identity != other.identity
    assert lookup.identity.startswith("lookup ")


def test_the_identity_is_the_same_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from stretto.adapters.tools.functions import tool\n"
        "@tool\ndef answer(word: str) -> bool:\n    return word in {'a', 'b', 'c'}\n"
        'names = {}\nexec(\'def typed(w: str) -> bool: return w in {"a", "b", "c"}\', names)\n'
        "print(answer.identity, tool(names['typed']).identity)\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(said) == 1


def opened(
    asked: tuple[str, ...], tmp_path: Path, *functions: AnyFunctionTool, may_write: bool = False
) -> Mapping[str, Tool]:
    async def run() -> Mapping[str, Tool]:
        named = {each.name: each for each in functions}
        toolbox = StandardToolbox(ToolSettings(tmp_path), {}, functions=named)
        async with toolbox.open(request(asked, tmp_path, may_write)) as tools:
            return tools

    return asyncio.run(run())


def test_an_agent_has_the_functions_that_it_lists_and_no_others(tmp_path: Path) -> None:
    @tool(read_only=True)
    def other() -> str:
        return ""

    assert set(opened(("lookup", "Read"), tmp_path, lookup, other, may_write=True)) == {
        "lookup",
        "Read",
    }
    # A step that does not write has only those that are read-only.
    assert set(opened(("lookup", "other"), tmp_path, lookup, other)) == {"other"}


def test_a_function_has_no_filters(tmp_path: Path) -> None:
    tools = opened(("lookup(x)",), tmp_path, lookup, may_write=True)
    assert "lookup has no filters" in tools["lookup"].spec.fault


RECIPE = """
name: words
agents:
  reader:
    prompt: You read.
    tools: [lookup]
steps:
  - id: look
    subagent: reader
    prompt: Look.
"""


def test_a_plan_knows_the_functions_and_which_of_them_write() -> None:
    def posture(changing: frozenset[str]) -> str:
        catalog = Catalog(tools=KNOWN_TOOLS | {"lookup"}, changing_tools=changing)
        plan = build(read_recipe(RECIPE), catalog)
        assert isinstance(plan, Plan), plan
        return plan.steps[0].posture

    assert posture(CHANGING_TOOLS | {"lookup"}) == "writer"
    assert posture(CHANGING_TOOLS) == "read_only"


def test_secrets_in_what_a_function_says_do_not_reach_the_model() -> None:
    @tool
    def leak() -> str:
        raise ValueError("the key is sk-test-0123456789")

    script = [Said("", tool_calls=(ToolCall("leak", {}),)), Said("Done.")]
    told = play(script, subagent_request(tools=("leak",), may_write=True), functions=(leak,))
    assert told.heard.calls[0].message == "Error: ValueError: the key is [redacted]"
    assert "sk-test-0123456789" not in str([each.body for each in told.server.requests[1:]])
    # On record before it was called, because nobody knows what calling it twice does.
    assert [type(event).__name__ for event in told.heard.durable] == ["ToolStarted"]


def test_importing_the_module_does_not_import_pydantic() -> None:
    code = "import sys, stretto.adapters.tools.functions; print('pydantic' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
