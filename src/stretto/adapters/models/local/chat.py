"""A conversation as a small model reads it, and tools for a model that only writes text.

With tools the model is held to one schema, `{"tool": …, "arguments": {…}}` or
`{"final_answer": …}`, and what it wrote is read back into a call or an answer.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stretto.ports.model import ChatMessage, ModelReply, RequestedCall, ToolResult, UserMessage
from stretto.ports.tool import ToolSpec
from stretto.vocabulary.json_value import Json

FINAL = "final_answer"
_RULES = """\
You can use tools. Each of your replies is one JSON object:
{"tool": NAME, "arguments": {...}} uses a tool; its result is told to you next.
{"final_answer": ANSWER} ends the task; ANSWER says in full what the task asks for.
Use a tool for what you do not know. Do only what the task asks for, and nothing twice."""
_NEXT = (
    "If a part of the task is still to be done, use the tool for it. "
    'If all of it is done, reply with {"final_answer": ANSWER}.'
)
_LONGEST_TASK = 600


@dataclass(frozen=True, slots=True)
class CallAction:
    tool: str
    arguments: dict[str, Json]


@dataclass(frozen=True, slots=True)
class AnswerAction:
    text: str


Action: TypeAlias = CallAction | AnswerAction


def chat_messages(
    messages: Sequence[ChatMessage], instructions: str, words: str = ""
) -> list[Json]:
    """One system message at the head, then users and assistants by turns: templates want that.

    `words` say which tools there are.
    """
    turns: list[tuple[str, str]] = []
    task = ""
    for number, message in enumerate(messages):
        match message:
            case UserMessage(text):
                task = text
                turns.append(("user", text))
            case ModelReply():
                texts = [message.text, *(_call_text(call) for call in message.calls)]
                turns.append(("assistant", _join(texts)))
            case ToolResult():
                text = f"{message.tool} returned:\n{message.text}"
                turns.append(("user", text))
                if words and not _is_result(messages, number + 1):
                    turns.append(("user", next_words(task)))
    head = _join([instructions, words])
    return [*([_message("system", head)] if head else []), *_merge(turns)]


def _is_result(messages: Sequence[ChatMessage], place: int) -> bool:
    return place < len(messages) and isinstance(messages[place], ToolResult)


def _merge(turns: Iterable[tuple[str, str]]) -> list[Json]:
    merged: list[tuple[str, str]] = []
    for role, text in turns:
        if not text:
            continue
        if merged and merged[-1][0] == role:
            merged[-1] = (role, f"{merged[-1][1]}\n\n{text}")
        else:
            merged.append((role, text))
    return [_message(role, text) for role, text in merged]


def _message(role: str, text: str) -> Json:
    return {"role": role, "content": text}


def _join(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text.strip())


def _call_text(call: RequestedCall) -> str:
    """A call of the past is shown to the model as it wrote it."""
    return json.dumps({"tool": call.tool, "arguments": dict(call.arguments or {})})


def action_schema(tools: Sequence[ToolSpec], answer: Mapping[str, Json] | None) -> dict[str, Json]:
    shapes: dict[str, Json] = {}
    branches: list[Json] = []
    for n, tool in enumerate(tools):
        arguments = _own(tool.parameters, f"t{n}_", shapes)
        branches.append(_object({"tool": {"const": tool.name}, "arguments": arguments}))
    wanted = _own({"type": "string"} if answer is None else answer, "answer_", shapes)
    branches.append(_object({FINAL: wanted}))
    schema: dict[str, Json] = {"anyOf": branches}
    return {**schema, "$defs": shapes} if shapes else schema


def tool_words(tools: Sequence[ToolSpec]) -> str:
    lines = [_RULES, "Tools:"]
    for tool in tools:
        about = " ".join(tool.description.split())
        lines.append(f"- {tool.name}: {about} Arguments: {json.dumps(_parameters(tool))}")
    return "\n".join(lines)


def next_words(task: str) -> str:
    """Told after a tool's result: a small model has lost the task by then."""
    is_short = 0 < len(task) <= _LONGEST_TASK
    return f"The task is: {task}\n{_NEXT}" if is_short else _NEXT


def read_action(text: str) -> Action | None:
    """None: it is cut off, or no action at all."""
    try:
        written = json.loads(text)
    except (ValueError, RecursionError):
        return None
    match written:
        case {"tool": str(tool), "arguments": dict(arguments)}:
            return CallAction(tool, arguments)
        case {"final_answer": str(answer)}:
            return AnswerAction(answer)
        case {"final_answer": answer}:
            return AnswerAction(json.dumps(answer))
        case _:
            return None


def _object(properties: dict[str, Json]) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _parameters(tool: ToolSpec) -> Json:
    schema = tool.parameters
    return {key: value for key, value in schema.items() if key not in ("title", "$schema")}


def _own(schema: Mapping[str, Json], prefix: str, shapes: dict[str, Json]) -> dict[str, Json]:
    """Its definitions move to the top under names of their own: references start from there."""
    named: dict[str, Json] = {}
    for key in ("$defs", "definitions"):
        if isinstance(found := schema.get(key), dict):
            named |= found
    shapes |= {prefix + name: _rename(shape, prefix) for name, shape in named.items()}
    rest = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
    made = _rename(rest, prefix)
    assert isinstance(made, dict)
    return made


def _rename(value: Json, prefix: str) -> Json:
    match value:
        case dict():
            return {key: _rename_in(key, each, prefix) for key, each in value.items()}
        case list():
            return [_rename(each, prefix) for each in value]
        case _:
            return value


def _rename_in(key: str, value: Json, prefix: str) -> Json:
    if key == "$ref" and isinstance(value, str):
        start, _, name = value.rpartition("/")
        return f"#/$defs/{prefix}{name}" if start in ("#/$defs", "#/definitions") else value
    return _rename(value, prefix)
