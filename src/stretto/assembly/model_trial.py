"""Ask a model two small questions: does it answer, does it keep to a schema, and how fast is it?"""

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stretto.assembly.chosen import Ask, Chosen
from stretto.assembly.project import Project
from stretto.problems.errors import StrettoError
from stretto.vocabulary.values import Json

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model

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

    chosen = Chosen(name, name)
    async with open_models(chosen, project.settings, project.environ, ask) as models:
        model = await models.model(name)
        return [await _words(model), await _json(model)]


async def _words(model: "Model") -> Trial:
    prompt = "What is the capital of France? Answer in one sentence."
    return await _time("words", _ask_once(model, prompt, None), lambda text: bool(text.strip()))


async def _json(model: "Model") -> Trial:
    prompt = f"Describe Paris. {json.dumps(_SCHEMA)}"
    return await _time("json", _ask_once(model, prompt, _SCHEMA), _fits)


def _fits(text: str) -> bool:
    from jsonschema import Draft202012Validator

    try:
        return Draft202012Validator(_SCHEMA).is_valid(json.loads(text))
    except ValueError:
        return False


async def _ask_once(
    model: "Model", prompt: str, schema: dict[str, Json] | None
) -> "tuple[ModelResponse, float]":
    """The answer, and when its first word came."""
    from pydantic_ai.messages import (
        InstructionPart,
        ModelMessage,
        ModelRequest,
        PartStartEvent,
        TextPart,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.settings import ModelSettings

    is_native = schema is not None and bool(model.profile.get("supports_json_schema_output"))
    told = "You are a helpful assistant." + (" Answer with JSON alone." if schema else "")
    parameters = ModelRequestParameters(
        output_mode="native" if is_native else "text",
        output_object=OutputObjectDefinition(json_schema=schema, name="answer")
        if is_native and schema is not None
        else None,
        instruction_parts=[InstructionPart(told)],
    )
    settings = ModelSettings(max_tokens=_MOST_TOKENS)
    messages: list[ModelMessage] = [ModelRequest([UserPromptPart(prompt)])]
    first: float | None = None
    async with model.request_stream(messages, settings, parameters) as stream:
        async for event in stream:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                first = time.monotonic()
        return stream.get(), first or time.monotonic()


async def _time(
    what: str, answer: "Awaitable[tuple[ModelResponse, float]]", is_right: Callable[[str], bool]
) -> Trial:
    from stretto.adapters.models.failures import fault_of

    began = time.monotonic()
    try:
        response, first = await answer
    except StrettoError:
        raise  # it says what to do
    except Exception as error:
        fault = fault_of(error)
        if fault is None:
            raise
        return Trial(what, False, fault.message)
    text = "".join(getattr(part, "content", "") for part in response.parts)
    seconds = time.monotonic() - began
    return Trial(what, is_right(text), text, response.usage.output_tokens, first - began, seconds)
