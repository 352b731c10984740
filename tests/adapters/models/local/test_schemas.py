"""Schemas that a small model can be held to, and tools as one of them."""

import jsonschema
import pytest

from stretto.adapters.models.local.catalog import QWEN_CODER, SMOLLM2
from stretto.adapters.models.local.chat import (
    AnswerAction,
    CallAction,
    action_schema,
    any_object,
    chat_messages,
    ladder,
    next_words,
    read_action,
    tool_words,
)
from stretto.ports.model import ChatMessage, ModelReply, RequestedCall, ToolResult, UserMessage
from stretto.ports.tool import ToolSpec
from stretto.vocabulary.json_value import Json

TINY = SMOLLM2.traits
TEXT: dict[str, Json] = {"type": "string"}


def object_of(**properties: Json) -> dict[str, Json]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def test_open_lists_and_texts_get_an_end_for_a_tiny_model() -> None:
    wanted = object_of(title=TEXT, points={"type": "array", "items": TEXT})
    first = ladder(wanted, TINY)[0]
    text = {"type": "string", "maxLength": TINY.longest_text}
    assert first["properties"] == {
        "title": text,
        "points": {"type": "array", "items": text, "maxItems": TINY.most_items},
    }


def test_bounds_that_are_written_stay_and_never_contradict() -> None:
    wanted = object_of(
        a={"type": "string", "maxLength": 5},
        b={"type": "array", "items": TEXT, "minItems": 30},
        c={"type": "string", "enum": ["x" * 999]},
    )
    made = ladder(wanted, TINY)[0]["properties"]
    assert isinstance(made, dict)
    assert made["a"] == {"type": "string", "maxLength": 5}
    assert made["b"]["maxItems"] == 30  # type: ignore[index,call-overload]
    assert made["c"] == {"type": "string", "enum": ["x" * 999]}


def test_a_larger_model_may_write_as_long_a_text_as_it_likes() -> None:
    assert ladder(object_of(text=TEXT), QWEN_CODER.traits)[0]["properties"] == {"text": TEXT}


def test_the_next_rung_has_the_structure_alone_and_the_last_is_any_object() -> None:
    wanted = object_of(
        when={"type": "string", "format": "date", "pattern": "^(?=x)"},
        gone={"$ref": "#/nope"},
        odd={"type": "bogus"},
        never=False,
        either={"oneOf": [TEXT, {"type": "null"}], "not": {"const": "x"}},
    )
    _, bare, last = ladder(wanted, QWEN_CODER.traits)
    properties = bare["properties"]
    assert isinstance(properties, dict)
    assert properties["when"] == TEXT
    assert properties["either"] == {"anyOf": [TEXT, {"type": "null"}]}
    assert "never" not in properties
    assert "$ref" not in str(bare)
    assert "bogus" not in str(bare)
    assert last == any_object(QWEN_CODER.traits)


def test_references_that_lead_somewhere_are_kept() -> None:
    wanted: dict[str, Json] = {"$ref": "#/$defs/a", "$defs": {"a": object_of(x=TEXT)}}
    assert all("$ref" in rung for rung in ladder(wanted, QWEN_CODER.traits)[:1])


def test_nesting_without_end_has_one() -> None:
    deep: dict[str, Json] = {}
    for _ in range(500):
        deep = {"type": "array", "items": deep}
    assert len(str(ladder(deep, TINY)[0])) < 5_000


READ = ToolSpec(
    "read",
    "Read a file.",
    {**object_of(path={"$ref": "#/$defs/Path"}), "$defs": {"Path": TEXT}},
)
COUNT = ToolSpec(
    "count",
    "",
    {**object_of(of={"$ref": "#/$defs/Path"}), "$defs": {"Path": {"type": "integer"}}},
)


def test_tools_and_the_answer_are_one_schema() -> None:
    schema = action_schema([READ, COUNT], None)
    check = jsonschema.Draft202012Validator(schema)
    assert check.is_valid({"tool": "read", "arguments": {"path": "a"}})
    assert check.is_valid({"tool": "count", "arguments": {"of": 1}})
    assert check.is_valid({"final_answer": "done"})
    assert not check.is_valid({"tool": "read", "arguments": {"path": 1}}), "definitions were mixed"
    assert not check.is_valid({"tool": "count", "arguments": {"of": "a"}})
    assert not check.is_valid({"tool": "delete", "arguments": {}})
    assert not check.is_valid({"final_answer": {"a": 1}})


def test_the_answer_may_have_a_schema_of_its_own() -> None:
    wanted = object_of(score={"type": "integer"})
    check = jsonschema.Draft202012Validator(action_schema([READ], wanted))
    assert check.is_valid({"final_answer": {"score": 1}})
    assert not check.is_valid({"final_answer": "1"})


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('{"tool": "read", "arguments": {"path": "a"}}', CallAction("read", {"path": "a"})),
        ('{"final_answer": "done"}', AnswerAction("done")),
        ('{"final_answer": {"a": [1]}}', AnswerAction('{"a": [1]}')),
        ('{"tool": "read", "argum', None),
        ('{"tool": "read", "arguments": "a"}', None),
        ("[]", None),
        ("[" * 100_000, None),
    ],
)
def test_what_was_written_is_read_back(text: str, meant: object) -> None:
    assert read_action(text) == meant


def test_a_conversation_is_written_down_by_turns() -> None:
    messages: list[ChatMessage] = [
        UserMessage("What is in a?"),
        ModelReply(calls=(RequestedCall("1", "read", '{"path": "a"}'),)),
        ToolResult("1", "read", "hello"),
        ToolResult("2", "read", "hello again"),
        UserMessage("Well?"),
    ]
    words, again = tool_words([READ]), next_words("What is in a?")
    head, *turns = chat_messages(messages, "You read.", words)
    assert head == {"role": "system", "content": f"You read.\n\n{words}"}
    assert "read: Read a file." in words
    returned = "read returned:\nhello\n\nread returned:\nhello again"
    assert turns == [
        {"role": "user", "content": "What is in a?"},
        {"role": "assistant", "content": '{"tool": "read", "arguments": {"path": "a"}}'},
        {"role": "user", "content": f"{returned}\n\n{again}\n\nWell?"},
    ]


def test_nothing_is_said_where_nothing_is() -> None:
    assert chat_messages([ModelReply(" ")], "") == []
