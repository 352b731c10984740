"""Ask a model two small questions: does it answer, does it keep to a schema, and how fast is it?"""

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from stretto.assembly.project import Project
from stretto.assembly.subagents import Ask
from stretto.ports.model import Model, ModelFailed, ModelQuestion, ModelReply, UserMessage
from stretto.validation.schema import schema_errors
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import ModelSelection

_SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 40},
        "is_capital": {"type": "boolean"},
    },
    "required": ["city", "is_capital"],
    "additionalProperties": False,
}
_MOST_TOKENS = 60


@dataclass(frozen=True, slots=True)
class Trial:
    what: str
    is_ok: bool
    says: str
    tokens: int = 0
    first_seconds: float = 0.0  # until the first word: loading and reading the question
    seconds: float = 0.0  # in all

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / max(1e-3, self.seconds - self.first_seconds)


async def try_model(project: Project, name: str, ask: Ask | None) -> list[Trial]:
    """`ask`: whether weights that are missing may be fetched; None: there is nobody to ask."""
    from stretto.assembly.subagents import open_models

    chosen = ModelSelection(name, name)
    async with open_models(chosen, project, ask) as models:
        model = await models.model(name)
        return [await _words(model), await _json(model)]


async def _words(model: Model) -> Trial:
    prompt = "What is the capital of France? Answer in one sentence."
    return await _time("words", _ask_once(model, prompt, None), lambda text: bool(text.strip()))


async def _json(model: Model) -> Trial:
    prompt = f"Describe Paris. {json.dumps(_SCHEMA)}"
    return await _time("json", _ask_once(model, prompt, _SCHEMA), _fits)


def _fits(text: str) -> bool:
    try:
        return schema_errors(json.loads(text), _SCHEMA) == ()
    except ValueError:
        return False


async def _ask_once(
    model: Model, prompt: str, schema: dict[str, Json] | None
) -> tuple[ModelReply, float]:
    """The answer, and when its first word came."""
    first: float | None = None

    def hear(piece: str) -> None:
        nonlocal first
        if piece and first is None:
            first = time.monotonic()

    question = ModelQuestion(
        [UserMessage(prompt)],
        "You are a helpful assistant." + (" Answer with JSON alone." if schema else ""),
        schema=schema if model.traits.takes_schema else None,
        max_tokens=_MOST_TOKENS,
    )
    reply = await model.ask(question, hear)
    return reply, first or time.monotonic()


async def _time(
    what: str, answer: Awaitable[tuple[ModelReply, float]], is_right: Callable[[str], bool]
) -> Trial:
    began = time.monotonic()
    try:
        reply, first = await answer
    except ModelFailed as error:
        return Trial(what, False, error.fault.message)
    seconds = time.monotonic() - began
    tokens = reply.tokens.output_tokens if reply.tokens else 0
    return Trial(what, is_right(reply.text), reply.text, tokens, first - began, seconds)
