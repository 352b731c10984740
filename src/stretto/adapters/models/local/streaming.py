"""What a local model says, as pydantic-ai's events. In: Heard. Out: text, or calls of tools."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelResponse,
    ModelResponseStreamEvent,
    TextPart,
    ThinkingPart,
)
from pydantic_ai.models import StreamedResponse
from pydantic_ai.usage import RequestUsage

from stretto.adapters.models.local.actions import Answered, Called, read_action
from stretto.adapters.models.local.process import Busy, Ended, Heard, Said

_BEAT_SECONDS = 5.0


@dataclass
class LocalStream(StreamedResponse):
    name: str
    heard: AsyncGenerator[Heard]
    has_actions: bool
    _began: datetime = field(default_factory=lambda: datetime.now(UTC))
    _beat_at: float = field(default_factory=time.monotonic)

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        written = ""
        async for each in self.heard:
            match each:
                case Said(text) if not self.has_actions:
                    for event in self._text(text):
                        yield event
                case Said(text):
                    written += text
                case Ended(reason, input_tokens, output_tokens):
                    self._usage = RequestUsage(
                        input_tokens=input_tokens, output_tokens=output_tokens
                    )
                    self.finish_reason = "length" if reason == "length" else "stop"
                case Busy():
                    pass
            for event in self._beat():
                yield event
        if self.has_actions:
            for event in self._act(written):
                yield event

    def _text(self, text: str) -> Iterator[ModelResponseStreamEvent]:
        yield from self._parts_manager.handle_text_delta(vendor_part_id="text", content=text)

    def _beat(self) -> Iterator[ModelResponseStreamEvent]:
        """Somebody may take silence for a hang: say now and then that it is being worked on.

        An empty thought is what pydantic-ai's events have for that. None is in the response.
        """
        now = time.monotonic()
        is_talking = any(isinstance(part, TextPart) for part in self._parts_manager.get_parts())
        if not is_talking and now - self._beat_at >= _BEAT_SECONDS:
            self._beat_at = now
            yield from self._parts_manager.handle_thinking_delta(vendor_part_id="beat", content="")

    def get(self) -> ModelResponse:
        response = super().get()
        parts = [part for part in response.parts if not isinstance(part, ThinkingPart)]
        return replace(response, parts=parts)

    def _act(self, written: str) -> Iterator[ModelResponseStreamEvent]:
        match read_action(written):
            case Called(tool, arguments):
                self.finish_reason = "tool_call"
                yield self._parts_manager.handle_tool_call_part(
                    vendor_part_id="call", tool_name=tool, args=arguments
                )
            case Answered(text):
                yield from self._text(text)
            case None:
                # Half an object is neither a call nor an answer: better said than passed on.
                says = f"{self.name} did not finish its reply within {self._usage.output_tokens} tokens"
                raise UnexpectedModelBehavior(says, written[:500])

    async def close_stream(self) -> None:
        await self.heard.aclose()

    @property
    def model_name(self) -> str:
        return self.name

    @property
    def provider_name(self) -> str:
        return "local"

    @property
    def provider_url(self) -> None:
        return None

    @property
    def timestamp(self) -> datetime:
        return self._began
