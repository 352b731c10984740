"""Tools for a model that only writes text. In: tools and the wanted answer. Out: one schema.

The model is held to `{"tool": …, "arguments": {…}}` or `{"final_answer": …}`; what it wrote is
read back into a call or an answer.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pydantic_ai.tools import ToolDefinition

from stretto.vocabulary.values import Json

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
class Called:
    tool: str
    arguments: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Answered:
    text: str


Action: TypeAlias = Called | Answered


def action_schema(
    tools: Sequence[ToolDefinition], answer: Mapping[str, Json] | None, may_answer: bool
) -> dict[str, Json]:
    shapes: dict[str, Json] = {}
    branches: list[Json] = []
    for n, tool in enumerate(tools):
        arguments = _own(tool.parameters_json_schema, f"t{n}_", shapes)
        branches.append(_object({"tool": {"const": tool.name}, "arguments": arguments}))
    if may_answer:
        wanted = _own({"type": "string"} if answer is None else answer, "answer_", shapes)
        branches.append(_object({FINAL: wanted}))
    schema: dict[str, Json] = {"anyOf": branches}
    return {**schema, "$defs": shapes} if shapes else schema


def tool_words(tools: Sequence[ToolDefinition]) -> str:
    lines = [_RULES, "Tools:"]
    for tool in tools:
        about = " ".join((tool.description or "").split())
        lines.append(f"- {tool.name}: {about} Arguments: {json.dumps(_shown(tool))}")
    return "\n".join(lines)


def next_words(task: str) -> str:
    """Told after a tool's result: a small model has lost the task by then."""
    is_short = 0 < len(task) <= _LONGEST_TASK
    return f"The task is: {task}\n{_NEXT}" if is_short else _NEXT


def as_text(call: Called) -> str:
    """How a call of the past is shown to the model: as it wrote it."""
    return json.dumps({"tool": call.tool, "arguments": call.arguments})


def read_action(text: str) -> Action | None:
    """None: it is cut off, or no action at all."""
    try:
        written = json.loads(text)
    except (ValueError, RecursionError):
        return None
    match written:
        case {"tool": str(tool), "arguments": dict(arguments)}:
            return Called(tool, arguments)
        case {"final_answer": str(answer)}:
            return Answered(answer)
        case {"final_answer": answer}:
            return Answered(json.dumps(answer))
        case _:
            return None


def _object(properties: dict[str, Json]) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _shown(tool: ToolDefinition) -> Json:
    schema = tool.parameters_json_schema
    return {key: value for key, value in schema.items() if key not in ("title", "$schema")}


def _own(schema: Mapping[str, Json], prefix: str, shapes: dict[str, Json]) -> dict[str, Json]:
    """Its definitions move to the top under names of their own: references start from there."""
    named: dict[str, Json] = {}
    for key in ("$defs", "definitions"):
        if isinstance(found := schema.get(key), dict):
            named |= found
    shapes |= {prefix + name: _renamed(shape, prefix) for name, shape in named.items()}
    rest = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
    made = _renamed(rest, prefix)
    assert isinstance(made, dict)
    return made


def _renamed(value: Json, prefix: str) -> Json:
    match value:
        case dict():
            return {key: _renamed_in(key, each, prefix) for key, each in value.items()}
        case list():
            return [_renamed(each, prefix) for each in value]
        case _:
            return value


def _renamed_in(key: str, value: Json, prefix: str) -> Json:
    if key == "$ref" and isinstance(value, str):
        start, _, name = value.rpartition("/")
        return f"#/$defs/{prefix}{name}" if start in ("#/$defs", "#/definitions") else value
    return _renamed(value, prefix)
