"""Public fakes for tests: run a recipe in milliseconds, a virtual clock, a scripted OpenAI server."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stretto.adapters.models.scripted import Reply as Reply, Script as Script
    from stretto.testing.clock import VirtualClock as VirtualClock
    from stretto.testing.openai_script import (
        Asked as Asked,
        Hang as Hang,
        Said as Said,
        Status as Status,
        ToolCall as ToolCall,
        rate_limited as rate_limited,
    )
    from stretto.testing.openai_server import OpenAIServer as OpenAIServer, serving as serving
    from stretto.testing.recipes import run_recipe as run_recipe

_MODULES = {
    "Reply": "stretto.adapters.models.scripted",
    "Script": "stretto.adapters.models.scripted",
    "VirtualClock": "stretto.testing.clock",
    **dict.fromkeys(
        ("Asked", "Hang", "Said", "Status", "ToolCall", "rate_limited"),
        "stretto.testing.openai_script",
    ),
    "OpenAIServer": "stretto.testing.openai_server",
    "serving": "stretto.testing.openai_server",
    "run_recipe": "stretto.testing.recipes",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'stretto.testing' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)
