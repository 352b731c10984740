"""Schemas that a small model can be held to, and tools as one of them."""

import jsonschema
import pytest
from pydantic_ai.messages import (
    BinaryContent,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition

from stretto.adapters.models.local.actions import (
    Answered,
    Called,
    action_schema,
    next_words,
    read_action,
    tool_words,
)
from stretto.adapters.models.local.catalog import QWEN_CODER, SMOLLM2
from stretto.adapters.models.local.prompting import chat
from stretto.adapters.models.local.schemas import any_object, ladder
from stretto.vocabulary.values import Json

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


READ = ToolDefinition(
    name="read",
    description="Read a file.",
    parameters_json_schema={
        **object_of(path={"$ref": "#/$defs/Path"}),
        "$defs": {"Path": TEXT},
    },
)
COUNT = ToolDefinition(
    name="count",
    parameters_json_schema={
        **object_of(of={"$ref": "#/$defs/Path"}),
        "$defs": {"Path": {"type": "integer"}},
    },
)


def test_tools_and_the_answer_are_one_schema() -> None:
    schema = action_schema([READ, COUNT], None, may_answer=True)
    check = jsonschema.Draft202012Validator(schema)
    assert check.is_valid({"tool": "read", "arguments": {"path": "a"}})
    assert check.is_valid({"tool": "count", "arguments": {"of": 1}})
    assert check.is_valid({"final_answer": "done"})
    assert not check.is_valid({"tool": "read", "arguments": {"path": 1}}), "definitions were mixed"
    assert not check.is_valid({"tool": "count", "arguments": {"of": "a"}})
    assert not check.is_valid({"tool": "delete", "arguments": {}})
    assert not check.is_valid({"final_answer": {"a": 1}})


def test_the_answer_may_have_a_schema_of_its_own_or_be_forbidden() -> None:
    wanted = object_of(score={"type": "integer"})
    check = jsonschema.Draft202012Validator(action_schema([READ], wanted, may_answer=True))
    assert check.is_valid({"final_answer": {"score": 1}})
    assert not check.is_valid({"final_answer": "1"})
    check = jsonschema.Draft202012Validator(action_schema([READ], None, may_answer=False))
    assert not check.is_valid({"final_answer": "x"})


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('{"tool": "read", "arguments": {"path": "a"}}', Called("read", {"path": "a"})),
        ('{"final_answer": "done"}', Answered("done")),
        ('{"final_answer": {"a": [1]}}', Answered('{"a": [1]}')),
        ('{"tool": "read", "argum', None),
        ('{"tool": "read", "arguments": "a"}', None),
        ("[]", None),
        ("[" * 100_000, None),
    ],
)
def test_what_was_written_is_read_back(text: str, meant: object) -> None:
    assert read_action(text) == meant


def test_a_conversation_is_written_down_by_turns() -> None:
    messages: list[ModelMessage] = [
        ModelRequest([SystemPromptPart("Be brief."), UserPromptPart(["What is", "in a?"])]),
        ModelResponse([ThinkingPart("hm"), ToolCallPart("read", {"path": "a"}, "1")]),
        ModelRequest([ToolReturnPart("read", "hello", tool_call_id="1")]),
        ModelRequest([UserPromptPart("Well?")]),
    ]
    words, again = tool_words([READ]), next_words("What is\nin a?")
    head, *turns = chat(messages, [InstructionPart("You read.")], words)
    assert head == {"role": "system", "content": f"You read.\n\nBe brief.\n\n{words}"}
    assert "read: Read a file." in words
    assert turns == [
        {"role": "user", "content": "What is\nin a?"},
        {"role": "assistant", "content": '{"tool": "read", "arguments": {"path": "a"}}'},
        {"role": "user", "content": f"read returned:\nhello\n\n{again}\n\nWell?"},
    ]


def test_a_picture_is_refused_in_words() -> None:
    picture = BinaryContent(b"x", media_type="image/png")
    with pytest.raises(Exception, match="reads text, not a BinaryContent"):
        chat([ModelRequest([UserPromptPart([picture])])], [])


def test_nothing_is_said_where_nothing_is() -> None:
    assert chat([ModelResponse([TextPart(" ")])], []) == []
