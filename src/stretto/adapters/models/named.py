"""All models by name: the port that the subagents use. In: names. Out: models, prices, faults."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from stretto.adapters.models.prices import price
from stretto.ports.model import ModelFault
from stretto.text.redaction import Redactor

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.usage import RequestUsage

# Makes the model of a name that is no provider's: `embedded`, `local:…`, `scripted:…`.
Maker = Callable[[str], "Awaitable[Model]"]


class NamedModels:
    def __init__(
        self, environ: Mapping[str, str], others: Mapping[str, Maker] | None = None
    ) -> None:
        """`others`: who makes the models whose name begins so (up to the colon)."""
        self._environ = environ
        self._others = others or {}
        self._models: dict[str, Model] = {}
        self._making: dict[str, asyncio.Lock] = {}
        self._open = AsyncExitStack()
        self._redactor = Redactor(environ)

    async def model(self, name: str) -> "Model":
        if (found := self._models.get(name)) is not None:
            return found
        # A hundred steps that start together load the weights of a local model once.
        async with self._making.setdefault(name, asyncio.Lock()):
            if name not in self._models:
                model = await self._made(name)
                self._models[name] = await self._open.enter_async_context(model)
        return self._models[name]

    async def _made(self, name: str) -> "Model":
        if (maker := self._others.get(name.partition(":")[0])) is not None:
            return await maker(name)
        from stretto.adapters.models.providers import make_model

        return make_model(name, self._environ)

    async def close(self) -> None:
        """Ends the idle connections of this loop. A model that is asked for later is made anew."""
        from stretto.adapters.models.http_client import close_clients

        self._models.clear()
        await self._open.aclose()
        await close_clients()

    def usd(self, name: str, usage: "RequestUsage") -> float:
        return price(name, usage) or 0.0

    def fault(self, error: Exception) -> ModelFault | None:
        from stretto.adapters.models.failures import fault_of

        return fault_of(error, self._redactor)
