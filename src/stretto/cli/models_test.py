"""`stretto models test`: does a model answer, does it keep to a schema, and how fast is it?"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from stretto.assembly.project import Project
from stretto.cli.options import json_option
from stretto.cli.progress.rows import one_line
from stretto.cli.terminal import columns, confirm, print_json, say
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
class Tried:
    what: str
    is_ok: bool
    says: str
    tokens: int = 0
    first_seconds: float = 0.0  # until the first word: loading and reading the question
    seconds: float = 0.0  # in all

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / max(1e-3, self.seconds - self.first_seconds)


@click.command("test")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> int:
    """Ask a model two small questions: one in words, one that wants JSON."""
    project = Project()
    named, tried = asyncio.run(_try(project, name))
    is_ok = all(each.is_ok for each in tried)
    if as_json:
        print_json({"ok": is_ok, "model": named, "tried": [_row(each) for each in tried]})
        return 0 if is_ok else 1
    say(f"{named}\n")
    say("\n".join(columns([_cells(each) for each in tried])))
    return 0 if is_ok else 1


async def _try(project: Project, name: str | None) -> tuple[str, list[Tried]]:
    # Imported on use: pydantic-ai takes a second.
    from stretto.assembly.chosen import Chosen
    from stretto.assembly.subagents import open_models
    from stretto.cli.models import model_in_use

    named = name or await model_in_use(project) or "embedded"
    async with open_models(
        Chosen(named, named), project.settings, project.environ, _ask()
    ) as models:
        model = await models.model(named)
        return named, [await _words(model), await _json(model)]


def _ask() -> Callable[[str], bool] | None:
    is_watched = sys.stdin.isatty() and sys.stderr.isatty()
    return (lambda question: confirm(question, default=True, err=True)) if is_watched else None


async def _words(model: "Model") -> Tried:
    prompt = "What is the capital of France? Answer in one sentence."
    return await _timed("words", _asked(model, prompt, None), lambda text: bool(text.strip()))


async def _json(model: "Model") -> Tried:
    prompt = f"Describe Paris. {json.dumps(_SCHEMA)}"
    return await _timed("json", _asked(model, prompt, _SCHEMA), _fits)


def _fits(text: str) -> bool:
    from jsonschema import Draft202012Validator

    try:
        return Draft202012Validator(_SCHEMA).is_valid(json.loads(text))
    except ValueError:
        return False


async def _asked(
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


async def _timed(
    what: str, answer: "Awaitable[tuple[ModelResponse, float]]", is_right: Callable[[str], bool]
) -> Tried:
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
        return Tried(what, False, fault.message)
    text = "".join(getattr(part, "content", "") for part in response.parts)
    seconds = time.monotonic() - began
    return Tried(what, is_right(text), text, response.usage.output_tokens, first - began, seconds)


def _row(tried: Tried) -> dict[str, object]:
    return {
        "what": tried.what,
        "ok": tried.is_ok,
        "says": tried.says,
        "output_tokens": tried.tokens,
        "first_seconds": round(tried.first_seconds, 3),
        "seconds": round(tried.seconds, 3),
        "tokens_per_second": round(tried.tokens_per_second, 1),
    }


def _cells(tried: Tried) -> tuple[str, ...]:
    speed = f"{tried.tokens_per_second:.1f} tokens/s" if tried.tokens else "-"
    return (
        tried.what,
        "ok" if tried.is_ok else "failed",
        speed,
        one_line(tried.says)[:200],
    )
