"""A model that runs on this machine, in a llama.cpp process of its own.

Schemas and tools are enforced by a grammar while the model writes, so that what comes is JSON even
from a tiny model. Nothing here uses a network.
"""

import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from uuid import uuid4

from stretto.adapters.models.local.catalog import PREFIX, TINY_NOTICE, Loadable
from stretto.adapters.models.local.chat import (
    AnswerAction,
    CallAction,
    action_schema,
    any_object,
    chat_messages,
    ladder,
    read_action,
    tool_words,
)
from stretto.adapters.models.local.process import (
    LlamaDied,
    LlamaEnded,
    LlamaEvent,
    LlamaRefused,
    LlamaText,
    process_for,
)
from stretto.ports.model import (
    ModelFailed,
    ModelFault,
    ModelQuestion,
    ModelReply,
    ModelTraits,
    RequestedCall,
    TokenCounts,
)
from stretto.vocabulary.json_value import Json

_BEAT_SECONDS = 5.0
# Low, and with a fixed seed: the same question to the same weights gets the same answer.
_TEMPERATURE = 0.2
_TOP_P = 0.9
_SEED = 7
# A tiny model repeats one phrase endlessly. This makes the next word of a phrase that was
# said before less likely; a penalty on single words would hit the signs that JSON repeats.
_AGAINST_LOOPS: dict[str, Json] = {
    "dry_multiplier": 0.8,
    "dry_base": 1.75,
    "dry_allowed_length": 3,
    "dry_penalty_last_n": 512,
    # By default a new line ends a sequence, and so a line could be said over and over.
    "dry_sequence_breakers": ['"', ":"],
}
# In plain text a colon ends nothing either: lines that end with one were said over and over.
_AGAINST_LOOPS_OF_TEXT: dict[str, Json] = {**_AGAINST_LOOPS, "dry_sequence_breakers": ['"']}


class LocalModel:
    def __init__(self, loadable: Loadable) -> None:
        self._loadable = loadable
        # A tiny model takes a tool for the answer, and calls it until its turns are up.
        self.traits = ModelTraits(is_local=True, takes_tools=not loadable.traits.is_tiny)

    @property
    def name(self) -> str:
        return self._loadable.model.removeprefix(PREFIX)

    @property
    def notice(self) -> str:
        """What a user should know before reading its answers; empty for a model of some use."""
        return TINY_NOTICE if self._loadable.traits.is_tiny else ""

    async def ask(
        self, question: ModelQuestion, hear: Callable[[str], None] = lambda piece: None
    ) -> ModelReply:
        written, ended = "", LlamaEnded("stop", 0, 0)
        beat_at = time.monotonic()
        async with aclosing(self._stream(question)) as heard:
            async for each in heard:
                if isinstance(each, LlamaEnded):
                    ended = each
                if isinstance(each, LlamaText):
                    written += each.text
                if isinstance(each, LlamaText) and not question.tools:
                    hear(each.text)
                elif time.monotonic() - beat_at >= _BEAT_SECONDS:
                    # Silence would be taken for a hang: say now and then that it is at work.
                    beat_at = time.monotonic()
                    hear("")
        reply = ModelReply(
            written,
            tokens=TokenCounts(ended.input_tokens, ended.output_tokens),
            finish="length" if ended.reason == "length" else "stop",
            provider="local",
        )
        return self._act(reply, hear) if question.tools else reply

    async def close(self) -> None:
        """The process is shared, and ends when it is idle or when we end."""

    def _act(self, reply: ModelReply, hear: Callable[[str], None]) -> ModelReply:
        match read_action(reply.text):
            case CallAction(tool, arguments):
                call = RequestedCall(f"call_{uuid4().hex}", tool, json.dumps(arguments))
                return replace(reply, text="", calls=(call,), finish="tool_call")
            case AnswerAction(text):
                hear(text)
                return replace(reply, text=text)
            case None:
                # Half an object is neither a call nor an answer.
                tokens = reply.tokens.output_tokens if reply.tokens else 0
                says = f"{self.name} did not finish its reply within {tokens} tokens"
                raise ModelFailed(ModelFault("error", f"{says}: {reply.text[:500]}"))

    async def _stream(self, question: ModelQuestion) -> AsyncGenerator[LlamaEvent]:
        """Tries one schema after the other until llama.cpp takes one: it refuses before a word."""
        schemas = self._schemas(question)
        words = tool_words(question.tools) if question.tools else ""
        body = {
            **self._sampling(question.max_tokens, is_text=not schemas),
            "messages": chat_messages(question.messages, question.instructions, words),
        }
        bodies = [{**body, "response_format": _format(schema)} for schema in schemas] or [body]
        for left, asked in zip(range(len(bodies) - 1, -1, -1), bodies, strict=True):
            try:
                async with aclosing(process_for(self._loadable).ask(asked)) as heard:
                    async for each in heard:
                        yield each
                return
            except LlamaRefused as refused:
                if refused.is_too_long:
                    says = f"the prompt is too long for {self.name}: {refused.message}"
                    raise ModelFailed(ModelFault("refused", says)) from refused
                if not left:
                    says = f"llama.cpp refuses the request: {refused.message}"
                    raise ModelFailed(ModelFault("refused", says)) from refused
            except LlamaDied as died:
                raise ModelFailed(ModelFault("unavailable", str(died))) from died

    def _schemas(self, question: ModelQuestion) -> tuple[dict[str, Json], ...]:
        """What the answer is held to, best first; none for plain text."""
        traits = self._loadable.traits
        if question.tools:
            return ladder(action_schema(question.tools, question.schema), traits)
        if question.schema is not None:
            return ladder(question.schema, traits)
        return (any_object(traits),) if question.is_json else ()

    def _sampling(self, max_tokens: int | None, is_text: bool) -> dict[str, Json]:
        traits = self._loadable.traits
        against_loops = _AGAINST_LOOPS_OF_TEXT if is_text else _AGAINST_LOOPS
        most = max_tokens or traits.output_tokens
        return {
            "max_tokens": min(most, traits.context_tokens),
            "temperature": _TEMPERATURE,
            "top_p": _TOP_P,
            "seed": _SEED,
            "stop": [],
            "cache_prompt": True,
            **(against_loops if traits.is_tiny else {}),
        }


def _format(schema: dict[str, Json]) -> Json:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
