"""All models by name: the port that the subagents use."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from stretto.adapters.models.endpoint import endpoint_of
from stretto.adapters.models.model_names import NameFault, check_provider, resolve_name
from stretto.adapters.models.prices import PriceList
from stretto.adapters.models.provider_table import BY_NAME, OTHERS, Provider
from stretto.ports.model import Model, TokenCounts
from stretto.problems.errors import InvalidConfig

# Makes the model of a name that is no provider's: `embedded`, `local:…`.
Maker = Callable[[str], Awaitable[Model]]


class NamedModels:
    def __init__(
        self,
        environ: Mapping[str, str],
        others: Mapping[str, Maker] | None = None,
        prices: PriceList | None = None,
    ) -> None:
        """`others`: who makes the models whose name begins so (up to the colon)."""
        self._environ = environ
        self._others = others or {}
        self._prices = prices or PriceList()
        self._models: dict[str, Model] = {}
        self._making: dict[str, asyncio.Lock] = {}

    async def model(self, name: str) -> Model:
        if (found := self._models.get(name)) is not None:
            return found
        # A hundred steps that start together load the weights of a local model once.
        async with self._making.setdefault(name, asyncio.Lock()):
            if name not in self._models:
                maker = self._others.get(name.partition(":")[0])
                self._models[name] = await maker(name) if maker else make_model(name, self._environ)
        return self._models[name]

    async def close(self) -> None:
        """Ends the idle connections of this loop. A model that is asked for later is made anew."""
        from stretto.adapters.models.http_client import close_clients

        models, self._models = self._models, {}
        for model in models.values():
            await model.close()
        await close_clients()

    def usd(self, name: str, tokens: TokenCounts) -> float:
        return self._prices.usd(name, tokens) or 0.0


def make_model(name: str, environ: Mapping[str, str]) -> Model:
    """Raises InvalidConfig, with what to do about it."""
    meant = resolve_name(name, environ)
    if isinstance(meant, NameFault):
        raise InvalidConfig(meant.says, hint=meant.hint)
    head, _, model = (meant.name or "").partition(":")
    if not head or head in OTHERS:
        raise InvalidConfig(f"'{name}' is not a model of a provider")
    provider = BY_NAME[head]
    if (fault := check_provider(provider, environ)) is not None:
        raise InvalidConfig(fault.says, hint=fault.hint)
    if not provider.is_lean:
        return _pydantic_model(provider, model)
    # Imported here: names are checked without an HTTP client.
    from stretto.adapters.models.openai_model import OpenAIModel

    return OpenAIModel(model, endpoint_of(provider, environ))


def _pydantic_model(provider: Provider, model: str) -> Model:
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    from stretto.adapters.models.pydantic_model import PydanticAIModel

    try:
        return PydanticAIModel(infer_model(f"{provider.name}:{model}"))
    except ImportError as error:
        says = f"{provider.name} needs a package that is not installed"
        hint = f"pip install 'pydantic-ai-slim[{provider.extra}]'"
        raise InvalidConfig(says, hint=hint) from error
    except (UserError, ValueError) as error:
        raise InvalidConfig(f"{provider.name} cannot be used: {error}") from error
