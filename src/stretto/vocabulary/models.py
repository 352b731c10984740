"""The beginnings of model names that mean something else than a provider's model."""

from typing import TypeGuard

CLI_MODEL = "cli:"  # an agent program of another maker
FUNCTION_MODEL = "python:"  # a Python function that the calling program gave as an agent
SCRIPTED_MODEL = "scripted:"  # a file of replies


def is_function(model: str | None) -> TypeGuard[str]:
    return model is not None and model.startswith(FUNCTION_MODEL)
