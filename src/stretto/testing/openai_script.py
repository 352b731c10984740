"""The script of an OpenAI server: for each request an answer, or a fault.

A script is one answer for all requests, a list that is used up in order, or a function:

    [Said("Three sources."), rate_limited(2), Said("", tool_calls=(ToolCall("read", {"n": 1}),))]
    lambda asked: Said("yes" if "?" in asked.prompt else "no")
    by_words({"weather": Said("Rain."), "price": Status(503)}, default=Said("What?"))
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from time import time
from typing import TypeAlias

from stretto.vocabulary.json_value import Json


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as it came. `server.requests` holds these."""

    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: Mapping[str, Json]  # empty when there was none
    times: int  # how many chat completions were asked for, this one included

    @property
    def messages(self) -> list[Mapping[str, Json]]:
        return _maps(self.body.get("messages"))

    @property
    def tools(self) -> list[Mapping[str, Json]]:
        return _maps(self.body.get("tools"))

    @property
    def tool_names(self) -> list[str]:
        functions = _maps([tool.get("function") for tool in self.tools])
        return [str(function.get("name")) for function in functions]

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def response_format(self) -> Mapping[str, Json] | None:
        wanted = self.body.get("response_format")
        return wanted if isinstance(wanted, dict) else None

    @property
    def is_stream(self) -> bool:
        return self.body.get("stream") is True

    @property
    def wants_usage(self) -> bool:
        options = self.body.get("stream_options")
        return isinstance(options, dict) and options.get("include_usage") is True

    @property
    def prompt(self) -> str:
        """The text of the last message, of whatever role."""
        return text_of(self.messages[-1].get("content")) if self.messages else ""

    @property
    def authorization(self) -> str | None:
        return self.headers.get("authorization")


@dataclass(frozen=True, slots=True)
class ToolCall:
    name: str
    arguments: Mapping[str, Json] | str = field(default_factory=dict)  # a str is sent as it is
    id: str | None = None

    @property
    def arguments_text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class TokenUsage:
    prompt: int
    completion: int
    cached: int = 0  # of the prompt


@dataclass(frozen=True, slots=True)
class Said:
    """An answer. Empty text is the empty answer; `content_filter` as finish_reason refuses."""

    text: str = "ok"
    tool_calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage | None = None  # None: guessed from the lengths
    delay_seconds: float = 0.0  # before the first byte
    chunks: int = 3  # how many pieces a stream cuts the text into, and arguments too
    chunk_delay_seconds: float = 0.0  # between them: a slow drip
    finish_reason: str | None = None  # None: stop, or tool_calls
    reasoning: str = ""  # sent as reasoning_content, before the text


OK = Said()


@dataclass(frozen=True, slots=True)
class Status:
    """An HTTP error, or a redirect by `headers`. `body` is sent as it is, if given."""

    code: int
    message: str = "scripted failure"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None


@dataclass(frozen=True, slots=True)
class Hang:
    """Never answers; with `said`, begins the answer and never ends it."""

    said: Said | None = None
    after_chunks: int = 1


@dataclass(frozen=True, slots=True)
class Cut:
    """Closes in the middle. `cleanly`: a stream is a complete HTTP answer, but its text is cut."""

    said: Said = Said("an answer that is cut")
    after_chunks: int = 1
    cleanly: bool = False


@dataclass(frozen=True, slots=True)
class Malformed:
    """Invalid JSON as the body, or as one event of a stream."""

    text: str = '{"choices": [{'


@dataclass(frozen=True, slots=True)
class ErrorInStream:
    """Status 200, and then an error among the events of the stream, as routers send it. Without a
    stream the error is the body."""

    message: str = "the provider failed"
    code: int = 502
    said: Said = Said("an answer that fails")
    after_chunks: int = 1


@dataclass(frozen=True, slots=True)
class WrongType:
    """Status 200 and something that is no JSON, such as the login page of a proxy."""

    content_type: str = "text/html"
    text: str = "<html><body>Sign in to the network</body></html>"


FaultyAnswer: TypeAlias = Status | Hang | Cut | Malformed | ErrorInStream | WrongType
ServerAnswer: TypeAlias = Said | FaultyAnswer
ServerScript: TypeAlias = ServerAnswer | Sequence[ServerAnswer] | Callable[[Asked], ServerAnswer]


def rate_limited(retry_after_seconds: int | None = None) -> Status:
    headers = {} if retry_after_seconds is None else {"Retry-After": str(retry_after_seconds)}
    return Status(429, "rate limited", headers)


def rate_limited_until(seconds_from_now: float) -> Status:
    """The same, with the moment as an HTTP date: whole seconds."""
    return Status(429, "rate limited", {"Retry-After": formatdate(time() + seconds_from_now, usegmt=True)})  # fmt: skip


def by_words(
    rules: Mapping[str, ServerAnswer], default: ServerAnswer = OK
) -> Callable[[Asked], ServerAnswer]:
    """The first rule whose words are in the last message."""

    def answer(asked: Asked) -> ServerAnswer:
        return next((it for words, it in rules.items() if words in asked.prompt), default)

    return answer


def answer_of(script: ServerScript, asked: Asked) -> ServerAnswer:
    if callable(script):
        return script(asked)
    if isinstance(script, Sequence):
        if asked.times <= len(script):
            return script[asked.times - 1]
        return Status(
            400, f"the script has {len(script)} answers and was asked {asked.times} times"
        )
    return script


def text_of(content: Json) -> str:
    """The text of a message, which is written as text or as a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text") or "") for part in _maps(content))


def _maps(items: Json) -> list[Mapping[str, Json]]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
