"""A conversation as a small model reads it, and tools for a model that only writes text.

With tools the model is held to one schema, `{"tool": …, "arguments": {…}}` or
`{"final_answer": …}`, and what it wrote is read back into a call or an answer.

Decoding is constrained by JSON schemas. llama.cpp turns a schema into a grammar and refuses what it does not know. So there is a ladder:
the schema as it is, but with bounds; its structure alone; any JSON object at all. Whoever asked
for the schema checks the answer against all of it.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stretto.adapters.models.local.catalog import Traits
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


_DEEPEST = 24
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS_OF_SCHEMAS = ("properties", "$defs", "definitions", "patternProperties")
_TYPES = ("string", "number", "integer", "boolean", "null", "object", "array")
_PLAIN_KEYS = ("required", "const", "minItems", "maxItems", "minLength", "maxLength")
_OPEN: dict[str, Json] = {"type": "object"}


def ladder(schema: Mapping[str, Json], traits: Traits) -> tuple[dict[str, Json], ...]:
    bare = _bare(schema, schema, 0)
    rungs = [_add_bounds(each, traits, 0) for each in (dict(schema), bare, _OPEN)]
    return tuple(rung for n, rung in enumerate(rungs) if rung not in rungs[:n])


def any_object(traits: Traits) -> dict[str, Json]:
    return _add_bounds(_OPEN, traits, 0)


def _add_bounds(schema: Mapping[str, Json], traits: Traits, depth: int) -> dict[str, Json]:
    """The same with an end to every list and text, so that a tiny model comes to one."""
    if depth > _DEEPEST:
        return {"type": "string", "maxLength": 1}
    made = _map_inner(schema, lambda each: _add_bounds(each, traits, depth + 1))
    kind = made.get("type")
    is_chosen = any(key in made for key in ("enum", "const", "$ref", *_LISTS_OF_SCHEMAS))
    if is_chosen:
        return made
    if kind == "string" and traits.longest_text and not {"pattern", "format"} & made.keys():
        made.setdefault("maxLength", max(traits.longest_text, _number(made, "minLength")))
    if kind == "array" and traits.most_items:
        made.setdefault("maxItems", max(traits.most_items, _number(made, "minItems")))
        made.setdefault("items", _anything(traits))
    is_open = "properties" not in made and made.get("additionalProperties", True) is True
    if kind == "object" and is_open and "patternProperties" not in made:
        made["additionalProperties"] = _anything(traits)
    return made or _anything(traits)


def _anything(traits: Traits) -> dict[str, Json]:
    """Flat: free nesting is where a tiny model loses itself."""
    text: dict[str, Json] = {"type": "string"}
    if traits.longest_text:
        text["maxLength"] = traits.longest_text
    plain: list[Json] = [text, {"type": "number"}, {"type": "boolean"}, {"type": "null"}]
    some: dict[str, Json] = {"type": "array", "items": {"anyOf": plain}}
    if traits.most_items:
        some["maxItems"] = traits.most_items
    return {"anyOf": [*plain, some]}


def _bare(schema: Mapping[str, Json], root: Mapping[str, Json], depth: int) -> dict[str, Json]:
    """Only what every grammar knows: no patterns, no formats, no conditions."""
    if depth > _DEEPEST:
        return {}
    ref = schema.get("$ref")
    if isinstance(ref, str):
        return {"$ref": ref} if _is_there(ref, root) else {}
    kept = {key: schema[key] for key in _PLAIN_KEYS if key in schema}
    kept |= {key: schema[key] for key in ("minimum", "maximum") if isinstance(schema.get(key), int)}
    if isinstance(choices := schema.get("enum"), list) and choices:
        kept["enum"] = choices
    if kind := _kind(schema.get("type")):
        kept["type"] = kind
    shapes = {k: schema[k] for k in ("properties", "items", "$defs", "definitions") if k in schema}
    kept |= _map_inner(shapes, lambda each: _bare(each, root, depth + 1))
    if "additionalProperties" in schema:
        extra = schema["additionalProperties"]
        bare = _bare(extra, root, depth + 1) if isinstance(extra, dict) else extra
        kept["additionalProperties"] = bare
    either = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(either, list) and either:
        kept["anyOf"] = [_bare(each, root, depth + 1) for each in either if isinstance(each, dict)]
    return kept


def _kind(written: Json) -> Json:
    if isinstance(written, list):
        return [kind for kind in written if kind in _TYPES] or None
    return written if written in _TYPES else None


def _is_there(ref: str, root: Mapping[str, Json]) -> bool:
    parts = ref.split("/")
    if len(parts) != 3 or parts[0] != "#" or parts[1] not in ("$defs", "definitions"):
        return False
    shapes = root.get(parts[1])
    return isinstance(shapes, dict) and parts[2] in shapes


def _map_inner(
    schema: Mapping[str, Json], change: Callable[[dict[str, Json]], dict[str, Json]]
) -> dict[str, Json]:
    """A copy in which every schema directly inside is changed."""
    made = dict(schema)
    for key, value in schema.items():
        if key in _MAPS_OF_SCHEMAS and isinstance(value, dict):
            # `false` means never: a grammar that does not have the name says the same.
            some = {name: each for name, each in value.items() if each is not False}
            made[key] = {name: _change(each, change) for name, each in some.items()}
        elif key in _LISTS_OF_SCHEMAS and isinstance(value, list):
            made[key] = [_change(each, change) for each in value]
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            made[key] = change(value)
    return made


def _change(each: Json, change: Callable[[dict[str, Json]], dict[str, Json]]) -> Json:
    if isinstance(each, dict):
        return change(each)
    return change({}) if each is True else each  # `true` means anything


def _number(schema: Mapping[str, Json], key: str) -> int:
    value = schema.get(key)
    return value if isinstance(value, int) else 0
