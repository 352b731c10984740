"""What whoever gives models by name must do, wherever they run."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import pytest

from stretto.adapters.clock import SystemClock
from stretto.adapters.models.named import NamedModels
from stretto.adapters.models.scripted import Reply, ScriptedModel, _ScriptedModels
from stretto.ports.model import Model, ModelQuestion, Models, TokenCounts, UserMessage
from stretto.problems.errors import StrettoError
from stretto.testing.openai_script import Said
from stretto.testing.openai_server import OpenAIServer

PORTS = (Models,)
ANSWER = "Hello to you."


@dataclass(frozen=True)
class Kind:
    open: Callable[[], AbstractAsyncContextManager[Models]]
    name: str
    other: str | None  # the name of another model; None: all names are one model's
    unusable: str | None  # None: every name can be used


@asynccontextmanager
async def of_a_provider() -> AsyncIterator[Models]:
    async with OpenAIServer(Said(ANSWER)) as server:
        models = NamedModels({"OPENAI_BASE_URL": server.url})
        try:
            yield models
        finally:
            await models.close()


@asynccontextmanager
async def made_elsewhere() -> AsyncIterator[Models]:
    async def make(name: str) -> Model:
        await asyncio.sleep(0.01)  # as weights that are loaded: others ask meanwhile
        if name == "own:none":
            raise StrettoError("there is no such model")
        return ScriptedModel(Reply(ANSWER), SystemClock())

    models = NamedModels({}, {"own": make})
    try:
        yield models
    finally:
        await models.close()


@asynccontextmanager
async def from_a_script() -> AsyncIterator[Models]:
    yield _ScriptedModels(ScriptedModel(Reply(ANSWER), SystemClock()))


KINDS = {
    "of a provider": Kind(of_a_provider, "openai:m", "openai:n", "nobody:m"),
    "made elsewhere": Kind(made_elsewhere, "own:m", "own:n", "own:none"),
    "scripted": Kind(from_a_script, "scripted", None, None),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def play(kind: Kind, story: Callable[[Models], Awaitable[None]]) -> None:
    async def main() -> None:
        async with kind.open() as models, asyncio.timeout(30):
            await story(models)

    asyncio.run(main())


def test_a_model_answers_what_it_is_asked(kind: Kind) -> None:
    async def story(models: Models) -> None:
        heard: list[str] = []
        model = await models.model(kind.name)
        reply = await model.ask(ModelQuestion([UserMessage("Say hello.")]), heard.append)
        assert reply.text == "".join(heard) == ANSWER

    play(kind, story)


def test_one_name_is_one_model_also_for_those_who_ask_at_once(kind: Kind) -> None:
    async def story(models: Models) -> None:
        found = await asyncio.gather(*(models.model(kind.name) for _ in range(20)))
        assert all(each is found[0] for each in found)
        assert await models.model(kind.name) is found[0]
        if kind.other is not None:
            assert await models.model(kind.other) is not found[0]

    play(kind, story)


def test_a_name_that_cannot_be_used_is_an_error_with_words_and_others_still_work(
    kind: Kind,
) -> None:
    async def story(models: Models) -> None:
        if kind.unusable is not None:
            with pytest.raises(StrettoError) as raised:
                await models.model(kind.unusable)
            assert str(raised.value).strip()
        assert await models.model(kind.name)

    play(kind, story)


def test_what_has_no_known_price_costs_nothing(kind: Kind) -> None:
    async def story(models: Models) -> None:
        assert models.usd(kind.name, TokenCounts()) == 0.0
        assert models.usd("nobody:knows-it", TokenCounts(1_000, 1_000)) == 0.0

    play(kind, story)


def test_no_answer_has_a_price_below_zero_and_more_tokens_never_cost_less(kind: Kind) -> None:
    async def story(models: Models) -> None:
        for name in (kind.name, "openai:gpt-4o", "anthropic:claude-sonnet-4-5"):
            few = models.usd(name, TokenCounts(100, 10, 50))
            many = models.usd(name, TokenCounts(10_000, 1_000, 5_000))
            assert 0.0 <= few <= many

    play(kind, story)
