"""Read a streamed answer. In: server-sent events. Out: pydantic-ai's events, one by one."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpcore2
from pydantic_ai.messages import ModelResponseStreamEvent
from pydantic_ai.models import StreamedResponse

from stretto.adapters.models import openai_errors as errors
from stretto.adapters.models.openai_answers import (
    THINKING_FIELDS,
    Object,
    finish_reason_of,
    object_in,
    objects_in,
    parsed_object,
    text_in,
    usage_of,
)
from stretto.adapters.models.openai_calls import Calls
from stretto.adapters.models.openai_endpoint import Endpoint

MOST_BYTES = 64 * 1024 * 1024  # of one answer: nobody speaks so long
MOST_EVENT_BYTES = 8 * 1024 * 1024
# After [DONE] the body ends at once. Who does not end it loses the connection, not our time.
_DRAIN_SECONDS = 0.2
_DONE = b"[DONE]"


async def body_parts(response: httpcore2.Response, endpoint: Endpoint) -> AsyncGenerator[bytes]:
    """The body as it comes, up to a limit."""
    length = 0
    stream = response.stream
    assert isinstance(stream, AsyncIterable)
    async for part in stream:
        length += len(part)
        if length > MOST_BYTES:
            raise errors.unexpected(f"sent more than {MOST_BYTES} bytes", b"", endpoint)
        yield part


class Events:
    """Server-sent events out of bytes, wherever they are cut."""

    def __init__(self) -> None:
        self._rest = b""
        self._lines: list[bytes] = []
        self.held_bytes = 0  # of an event that is not whole yet

    def feed(self, part: bytes) -> Iterator[bytes]:
        *lines, self._rest = (self._rest + part).split(b"\n")
        self.held_bytes += len(part)
        for line in lines:
            line = line.rstrip(b"\r")
            if line.startswith(b"data:"):
                self._lines.append(line[5:].strip())
            elif not line:
                if self._lines:
                    yield b"\n".join(self._lines)
                    self._lines.clear()
                self.held_bytes = len(self._rest)

    def end(self) -> Iterator[bytes]:
        """What lacks its last blank line."""
        yield from self.feed(b"\n\n")


@dataclass
class OpenAIStream(StreamedResponse):
    response: httpcore2.Response
    endpoint: Endpoint
    asked_model: str
    thinking_tags: tuple[str, str]
    _usage_received: bool | None = field(default=False, init=False)
    _timestamp: datetime = field(default_factory=lambda: datetime.now(UTC), init=False)
    _said_model: str | None = field(default=None, init=False)
    _calls: Calls = field(default_factory=Calls, init=False)

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        parts = body_parts(self.response, self.endpoint)
        events = Events()
        try:
            async with errors.transport_errors(self.asked_model, self.endpoint):
                async for part in parts:
                    for text in events.feed(part):
                        if text == _DONE:
                            await self._drain(parts)
                            return
                        for event in self._of_chunk(text):
                            yield event
                    if events.held_bytes > MOST_EVENT_BYTES:
                        raise errors.unexpected("sent a chunk without end", b"", self.endpoint)
            for text in events.end():
                for event in self._of_chunk(text) if text != _DONE else ():
                    yield event
        finally:
            await parts.aclose()
        # Some servers send no [DONE]; a finish reason is as good.
        if self.finish_reason is None and not (self.provider_details or {}).get("finish_reason"):
            raise errors.cut(self.asked_model, self.endpoint)

    async def _drain(self, parts: AsyncGenerator[bytes]) -> None:
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for _ in parts:
                    pass
        except TimeoutError:
            pass
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException):
            pass  # all was said

    def _of_chunk(self, text: bytes) -> Iterator[ModelResponseStreamEvent]:
        chunk = parsed_object(text)
        if chunk is None:
            raise errors.unexpected("sent a chunk that is not JSON", text, self.endpoint)
        if error := chunk.get("error"):
            raise errors.stream_error(error, self.asked_model, self.endpoint)
        if (usage := usage_of(chunk)) is not None:
            # Who repeats it with each chunk counts from the start.
            self._add_usage(usage, reported=True, cumulative=True)
        self.provider_response_id = self.provider_response_id or text_in(chunk, "id") or None
        self._said_model = self._said_model or text_in(chunk, "model") or None
        for choice in objects_in(chunk, "choices")[:1]:
            yield from self._of_delta(object_in(choice, "delta"))
            if reason := choice.get("finish_reason"):
                details = self.provider_details = self.provider_details or {}
                details["finish_reason"] = reason
                refused = "refusal" in details
                self.finish_reason = "content_filter" if refused else finish_reason_of(reason)

    def _of_delta(self, delta: Object) -> Iterator[ModelResponseStreamEvent]:
        manager = self._parts_manager
        for name in THINKING_FIELDS:
            if thought := text_in(delta, name):
                yield from manager.handle_thinking_delta(
                    vendor_part_id=name, id=name, content=thought, provider_name=self.provider_name
                )
        if text := text_in(delta, "content"):
            yield from manager.handle_text_delta(
                vendor_part_id="content", content=text, thinking_tags=self.thinking_tags
            )
        if refusal := text_in(delta, "refusal"):
            details = self.provider_details = self.provider_details or {}
            details["refusal"] = details.get("refusal", "") + refusal
        for place, sent in enumerate(objects_in(delta, "tool_calls")):
            if (piece := self._calls.piece(sent, place)) is not None:
                yield from manager.handle_tool_call_delta_events(
                    vendor_part_id=piece.key,
                    tool_name=piece.name,
                    args=piece.arguments,
                    tool_call_id=piece.id,
                )

    async def close_stream(self) -> None:
        await self.response.aclose()

    def get_stream_cancel_errors(self) -> tuple[type[BaseException], ...]:
        return (httpcore2.NetworkError, httpcore2.ProtocolError)

    @property
    def model_name(self) -> str:
        return self._said_model or self.asked_model

    @property
    def provider_name(self) -> str:
        return self.endpoint.provider

    @property
    def provider_url(self) -> str:
        return self.endpoint.base_url

    @property
    def timestamp(self) -> datetime:
        return self._timestamp
