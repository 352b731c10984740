"""Chat completions as they are written and read: the body of a request, the chunks of an answer.

An answer comes from outside and may be anything, so each field is looked at before it is believed.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast
from uuid import uuid4

from stretto.adapters.models import openai_faults as faults
from stretto.adapters.models.endpoint import Endpoint
from stretto.ports.model import (
    ChatMessage,
    FinishReason,
    ModelQuestion,
    ModelReply,
    RequestedCall,
    TokenCounts,
    ToolResult,
    UserMessage,
    finish_reason,
)
from stretto.ports.tool import ToolSpec
from stretto.vocabulary.json_value import Json

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
# Servers send the thoughts of a model under one of these names, or between these tags.
_THINKING_FIELDS = ("reasoning_content", "reasoning")
_OPENING, _CLOSING = "<think>", "</think>"
BOM = b"\xef\xbb\xbf"
# What the strict mode of OpenAI does not take.
_NOT_STRICT = frozenset({
    "minLength", "maxLength", "patternProperties", "unevaluatedProperties", "propertyNames",
    "minProperties", "maxProperties", "unevaluatedItems", "contains", "minContains",
    "maxContains", "uniqueItems", "oneOf", "allOf",
})  # fmt: skip


def request_body(model: str, question: ModelQuestion, endpoint: Endpoint) -> bytes:
    body: dict[str, Json] = {
        "model": model,
        "messages": _messages(question, endpoint.provider),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if question.tools:
        body["tools"] = [_tool(tool) for tool in question.tools]
    if question.schema is not None:
        schema: dict[str, Json] = {"name": "answer", "schema": dict(question.schema)}
        if endpoint.is_openai and is_strict(dict(question.schema)):
            schema["strict"] = True
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif question.is_json:
        body["response_format"] = {"type": "json_object"}
    if question.max_tokens is not None:
        # OpenAI has renamed it; servers that only speak like OpenAI know the old name.
        name = "max_completion_tokens" if endpoint.is_openai else "max_tokens"
        body[name] = question.max_tokens
    # A lone surrogate, which models do write now and then, has no UTF-8.
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def is_strict(schema: Json) -> bool:
    """Whether the strict mode of OpenAI takes it: every object closed, every property required."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, dict):
        return True
    if not _NOT_STRICT.isdisjoint(schema):
        return False
    if schema.get("type") == "object":
        properties, required = schema.get("properties"), schema.get("required")
        names = set(properties) if isinstance(properties, dict) else set()
        wanted = set(map(str, required)) if isinstance(required, list) else set()
        if schema.get("additionalProperties") is not False or names != wanted:
            return False
    return all(map(is_strict, schema.values()))


def _messages(question: ModelQuestion, provider: str) -> list[Json]:
    written = [_message(message, provider) for message in question.messages]
    if question.instructions:
        written.insert(0, {"role": "system", "content": question.instructions})
    return [message for message in written if message is not None]


def _message(message: ChatMessage, provider: str) -> Json:
    """None when nothing of it can be sent."""
    match message:
        case UserMessage(text):
            return {"role": "user", "content": text}
        case ToolResult():
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
        case ModelReply():
            return _assistant_message(message, provider)


def _assistant_message(reply: ModelReply, provider: str) -> Json:
    if not reply.text and not reply.calls:
        return None
    written: dict[str, Json] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        written["tool_calls"] = [_call(call) for call in reply.calls]
        # A model that thinks between tool calls wants to see its own thoughts again.
        if reply.provider == provider and isinstance(reply.own, dict):
            written.update(reply.own)
    return written


def _call(call: RequestedCall) -> Json:
    # Models make names up, and a provider refuses a history that has them as they were.
    name = _NOT_IN_NAMES.sub("_", call.tool)[:_LONGEST_NAME] or "unnamed"
    function: Json = {"name": name, "arguments": call.text or "{}"}
    return {"id": call.id, "type": "function", "function": function}


def _tool(tool: ToolSpec) -> Json:
    function: Json = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}


Object = Mapping[str, Any]
_NOTHING: Object = {}


def read_object(text: bytes) -> Object | None:
    """None when it is not a JSON object."""
    try:
        it = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return it if isinstance(it, dict) else None


def _object_in(it: Object, name: str) -> Object:
    found = it.get(name)
    return found if isinstance(found, dict) else _NOTHING


def _objects_in(it: Object, name: str) -> list[Object]:
    found = it.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _text_in(it: Object, name: str) -> str:
    """Some servers write a text as a list of parts."""
    found = it.get(name)
    if isinstance(found, str):
        return found
    return "".join(_text_in(part, "text") for part in _objects_in(it, name))


def _tokens(answer: Object) -> TokenCounts | None:
    usage = _object_in(answer, "usage")
    if not usage:
        return None
    cached = _count(_object_in(usage, "prompt_tokens_details"), "cached_tokens")
    return TokenCounts(
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        cached or _count(usage, "prompt_cache_hit_tokens"),
    )


def _count(it: Object, name: str) -> int:
    found = it.get(name)
    return found if type(found) is int and found >= 0 else 0


class EventLines:
    """Server-sent events out of bytes, wherever they are cut."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # of a line that is not whole yet
        self._lines: list[bytes] = []
        self._others: list[bytes] | None = []  # lines that are no event; None: there were events
        self._is_error = False
        self.held_bytes = 0  # of an event that is not whole yet

    def feed(self, part: bytes) -> Iterator[bytes]:
        self.held_bytes += len(part)
        first, *others = part.split(b"\n")
        self._rest.append(first)
        if not others:  # a long line comes in many parts: it is joined once
            return
        lines, self._rest = [b"".join(self._rest), *others[:-1]], [others[-1]]
        for line in lines:
            line = line.rstrip(b"\r").removeprefix(BOM)
            if line.startswith(b"data:"):
                self._lines.append(line[5:].strip())
            elif line.startswith(b"event:"):
                self._is_error = line[6:].strip() == b"error"
            elif line:
                # A comment says nothing: servers send them so that a connection stays open.
                if self._others is not None and not line.startswith(b":"):
                    self._others.append(line)
            else:
                yield from self._event()
                self.held_bytes = sum(map(len, self._rest))

    def _event(self) -> Iterator[bytes]:
        if self._lines:
            text = b"\n".join(self._lines)
            self._lines.clear()
            self._others = None
            # What some servers say by the name of an event, others say in what it holds.
            yield b'{"error": %b}' % text if self._is_error and read_object(text) else text
        self._is_error = False

    def end(self) -> Iterator[bytes]:
        """The last event, if the blank line after it is missing."""
        yield from self.feed(b"\n\n")

    @property
    def other(self) -> bytes:
        """The body, if no event was in it: some servers send an answer in one piece all the same."""
        return b"\n".join(self._others or ())


@dataclass(slots=True)
class _PartialCall:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class PartialCalls:
    """Tool calls that come in pieces. Servers repeat the name in every piece, number all calls 0,
    or, when a model writes nonsense, send no name at all: such a call is left out."""

    def __init__(self) -> None:
        self._by_index: dict[int, _PartialCall] = {}
        self._calls: list[_PartialCall] = []

    def add(self, sent: Object, place: int) -> None:
        """`place` stands in for an index that is missing."""
        index, function = sent.get("index"), _object_in(sent, "function")
        call_id, name = _text_in(sent, "id"), _text_in(function, "name")
        call = self._call(index if isinstance(index, int) else place, call_id, name)
        call.id = call.id or call_id
        call.name = call.name or name
        call.arguments.append(_text_in(function, "arguments"))

    def _call(self, index: int, call_id: str, name: str) -> _PartialCall:
        known = self._by_index.get(index)
        is_another = known is not None and name and call_id and known.id not in ("", call_id)
        if known is None or is_another:
            known = self._by_index[index] = _PartialCall()
            self._calls.append(known)
        return known

    def whole(self) -> tuple[RequestedCall, ...]:
        return tuple(
            RequestedCall(call.id or f"call_{uuid4().hex}", call.name, "".join(call.arguments))
            for call in self._calls
            if call.name
        )


class ThoughtFilter:
    """Leaves out what a model thinks aloud between tags before it answers. Some think for a million tokens:
    no part of them is looked at twice."""

    def __init__(self) -> None:
        self._state: Literal["before", "thinking", "after", "answering"] = "before"
        self._blanks: list[str] = []  # before the first letter
        self._begun = ""  # of what may become the opening tag
        self._end = ""  # of the thought so far: the closing tag may be cut

    def feed(self, text: str) -> str:
        match self._state:
            case "before":
                return self._begin(text)
            case "thinking":
                return self._think(text)
            case "after":
                return self._answer(text.lstrip())
            case "answering":
                return text

    def _begin(self, text: str) -> str:
        start = self._begun + text
        if not self._begun:
            start = text.lstrip()
            self._blanks.append(text[: len(text) - len(start)])
        if start.startswith(_OPENING):
            self._state = "thinking"
            return self._think(start[len(_OPENING) :])
        self._begun = start
        return "" if _OPENING.startswith(start) else self.end()

    def _think(self, text: str) -> str:
        thought, closing, answer = (self._end + text).partition(_CLOSING)
        if not closing:
            self._end = thought[1 - len(_CLOSING) :]
            return ""
        self._state = "after"
        return self._answer(answer.lstrip())

    def _answer(self, text: str) -> str:
        if text:
            self._state = "answering"
        return text

    def end(self) -> str:
        """What looked like the beginning of a thought and is none."""
        held = "".join((*self._blanks, self._begun)) if self._state == "before" else ""
        self._state = "answering"
        return held


@dataclass(slots=True)
class PartialReply:
    """An answer as its chunks come in."""

    endpoint: Endpoint
    finish: FinishReason | None = None
    odd_finish: str = ""
    has_ended: bool = False  # some servers send no [DONE]: a finish reason is as good
    _pieces: list[str] = field(default_factory=list)
    _filter: ThoughtFilter = field(default_factory=ThoughtFilter)
    _calls: PartialCalls = field(default_factory=PartialCalls)
    _thoughts: dict[str, list[str]] = field(default_factory=dict)
    _tokens: TokenCounts | None = None
    _is_refused: bool = False
    _index: int | None = None  # of the choice that is the answer: none of the others was asked for

    def add(self, text: bytes) -> str:
        """The visible text of one chunk."""
        chunk = read_object(text)
        if chunk is None:
            raise faults.garbled("sent a chunk that is not JSON", text, self.endpoint)
        return self._read(chunk, "delta")

    def add_whole(self, body: bytes) -> str:
        """The same for an answer in one piece, from a server that cannot stream."""
        answer = read_object(body)
        if answer is None:
            if _is_cut(body):
                raise faults.cut_off(self.endpoint)
            raise faults.unexpected("sent what is not JSON", body, self.endpoint)
        if not _objects_in(answer, "choices") and _error_in(answer) is None:
            # An empty list is what a server sends whose model did not come to speak.
            is_empty = "choices" in answer and not answer["choices"]
            why = faults.garbled if is_empty else faults.unexpected
            raise why("sent no choices", body, self.endpoint)
        self.has_ended = True
        return self._read(answer, "message") + self.end()

    def check_heard(self) -> None:
        """Raises ModelFailed where no chunk held a choice."""
        if self._index is None:
            raise faults.garbled("sent no choices", b"", self.endpoint)

    def end(self) -> str:
        rest = self._filter.end()
        self._pieces.append(rest)
        return rest

    def reply(self) -> ModelReply:
        return ModelReply(
            "".join(self._pieces),
            self._calls.whole(),
            self._tokens,
            "content_filter" if self._is_refused else self.finish,
            self.odd_finish,
            self.endpoint.provider,
            {name: "".join(said) for name, said in self._thoughts.items()} or None,
        )

    def _read(self, chunk: Object, key: str) -> str:
        if (error := _error_in(chunk)) is not None:
            raise faults.stream_failure(error, self.endpoint)
        # A server that repeats the usage in each chunk counts from the start.
        self._tokens = _tokens(chunk) or self._tokens
        visible = ""
        for choice in self._own_choices(chunk):
            message = _object_in(choice, key)
            if error := choice.get("error") or message.get("error"):
                raise faults.stream_failure(error, self.endpoint)
            visible = self._read_message(message)
            if reason := choice.get("finish_reason"):
                self.has_ended = True
                self.finish = finish_reason(str(reason))
                self.odd_finish = "" if self.finish else str(reason)
        return visible

    def _own_choices(self, chunk: Object) -> list[Object]:
        choices = _objects_in(chunk, "choices")
        if choices and self._index is None:
            self._index = min(map(_index_of, choices))
        return [choice for choice in choices if _index_of(choice) == self._index][:1]

    def _read_message(self, message: Object) -> str:
        for name in _THINKING_FIELDS:
            if thought := _text_in(message, name):
                self._thoughts.setdefault(name, []).append(thought)
        self._is_refused |= bool(_text_in(message, "refusal")) or any(
            part.get("type") == "refusal" for part in _objects_in(message, "content")
        )
        for place, sent in enumerate(_objects_in(message, "tool_calls")):
            self._calls.add(sent, place)
        visible = self._filter.feed(_text_in(message, "content"))
        self._pieces.append(visible)
        return visible


def _index_of(choice: Object) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _error_in(answer: Object) -> Json:
    """What an answer or a chunk tells of a failure; None: nothing. vLLM sends the error itself."""
    if error := answer.get("error"):
        return cast(Json, error)
    is_error = answer.get("object") == "error" or ("choices" not in answer and "detail" in answer)
    return dict(answer) if is_error else None


def _is_cut(body: bytes) -> bool:
    """Whether these may be the first bytes of an answer, and the rest has not come."""
    text = body.strip()
    return not text or (text.startswith(b"{") and not text.endswith(b"}"))
