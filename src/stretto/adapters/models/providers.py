"""Make the model that a name means. In: a name and the environment. Out: a pydantic-ai Model.

pydantic-ai takes a second to import, and does so here only once a model is made.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stretto.adapters.models.endpoints import endpoint_of
from stretto.adapters.models.model_names import Fault, Meant, check_name, check_provider, meaning
from stretto.adapters.models.provider_table import BY_NAME, OTHERS, Provider
from stretto.problems.errors import InvalidConfig

if TYPE_CHECKING:
    from pydantic_ai.models import Model

__all__ = ["Fault", "Meant", "check_name", "make_model", "meaning"]


def make_model(name: str, environ: Mapping[str, str]) -> "Model":
    """Raises InvalidConfig, with what to do about it."""
    meant = meaning(name, environ)
    if isinstance(meant, Fault):
        raise InvalidConfig(meant.says, hint=meant.hint)
    head, _, model = (meant.name or "").partition(":")
    if not head or head in OTHERS:
        raise InvalidConfig(f"'{name}' is not a model of a provider")
    provider = BY_NAME[head]
    if (fault := check_provider(provider, environ)) is not None:
        raise InvalidConfig(fault.says, hint=fault.hint)
    if provider.is_lean:
        return _lean_model(provider, model, environ)
    return _their_model(provider, model)


def _lean_model(provider: Provider, model: str, environ: Mapping[str, str]) -> "Model":
    from pydantic_ai.profiles import merge_profile
    from pydantic_ai.profiles.openai import openai_model_profile

    from stretto.adapters.models.openai_compatible import PROFILE, OpenAICompatibleModel

    endpoint = endpoint_of(provider, environ)
    profile = PROFILE
    if endpoint.base_url == BY_NAME["openai"].base_url:
        profile = merge_profile(openai_model_profile(model), PROFILE)
    return OpenAICompatibleModel(model, endpoint, profile=profile)


def _their_model(provider: Provider, model: str) -> "Model":
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    try:
        return infer_model(f"{provider.name}:{model}")
    except ImportError as error:
        says = f"{provider.name} needs a package that is not installed"
        hint = f"pip install 'pydantic-ai-slim[{provider.extra}]'"
        raise InvalidConfig(says, hint=hint) from error
    except (UserError, ValueError) as error:
        raise InvalidConfig(f"{provider.name} cannot be used: {error}") from error
