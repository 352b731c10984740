"""Check what callers in Python give. In: values of any type. Out: those that Stretto takes.

Each function raises InvalidUsage, names the argument, and says what it must be.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TypeGuard, cast

from stretto.problems.errors import InvalidUsage, NotFound
from stretto.recipe.model import Budget
from stretto.text.short import kind_of, listed, shorten
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.statuses import RUN_WORDS

_PERMISSIONS = ("read_only", "ask", "auto")
_BUDGETS = ("tokens", "usd", "agents")
_LARGEST = 2**63 - 1  # of the numbers that a database keeps


def check_text(**given: object) -> None:
    """None is no text either: what may be left out is checked by `check_optional_text`."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise InvalidUsage(f"{name} must be text, not {kind_of(value)}")
        if not value.isascii() and any("\ud800" <= each <= "\udfff" for each in value):
            raise InvalidUsage(f"{name} holds half a character (a lone surrogate)")


def check_optional_text(**given: object) -> None:
    check_text(**{name: value for name, value in given.items() if value is not None})


def check_flags(**given: object) -> None:
    """A text such as "no" would count as yes."""
    for name, value in given.items():
        if not isinstance(value, bool):
            raise InvalidUsage(f"{name} must be True or False, not {kind_of(value)}")


def check_number(name: str, value: object, least: int = 0, most: int = _LARGEST) -> None:
    if type(value) is not int or not least <= value <= most:
        upto = "on" if most == _LARGEST else f"to {most:,}"
        raise InvalidUsage(f"{name} must be a whole number from {least} {upto}")


def is_number(value: object) -> TypeGuard[int | float]:
    """One that a clock and a database can hold: larger ones of Python are no such number."""
    is_any = isinstance(value, int | float) and not isinstance(value, bool)
    return is_any and abs(cast(float, value)) <= _LARGEST


def check_permission(permission: str | None) -> str | None:
    if permission is not None and permission not in _PERMISSIONS:
        raise InvalidUsage(f"permission is '{permission}'; it must be {', '.join(_PERMISSIONS)}")
    return permission


def check_inputs(inputs: object) -> Mapping[str, Json]:
    if inputs is None:
        return {}
    if not isinstance(inputs, Mapping) or not all(isinstance(name, str) for name in inputs):
        raise InvalidUsage("inputs must be a dict, with the names of inputs as keys")
    return inputs


def check_status(status: str | None) -> None:
    if status is not None and status not in RUN_WORDS:
        raise InvalidUsage(f"status is '{status}'; it must be {', '.join(RUN_WORDS)}")


def check_since(since: object) -> float:
    """Seconds since the epoch; None means since ever."""
    try:
        seconds = since.timestamp() if isinstance(since, datetime) else since
    except (ValueError, OverflowError):  # a year that no clock has shown
        seconds = math.nan
    if seconds is None:
        return -math.inf
    if not is_number(seconds) and seconds not in (math.inf, -math.inf):
        raise InvalidUsage("since must be a datetime, or seconds since the epoch")
    return float(cast(float, seconds))


def check_paths(name: str, paths: object) -> tuple[str, ...]:
    if isinstance(paths, str) or not isinstance(paths, Iterable):
        raise InvalidUsage(f"{name} must be a list of paths, not {kind_of(paths)}")
    found = tuple(paths)
    for path in found:
        check_text(**{name: path})
    return found


def check_place(**given: object) -> None:
    for name, value in given.items():
        if not isinstance(value, str | Path):
            raise InvalidUsage(f"{name} must be text or a Path, not {kind_of(value)}")
        if value == "":
            raise InvalidUsage(f"{name} must be a folder, not an empty text")


def check_folder(folder: object) -> Path | None:
    """Raises NotFound where there is none."""
    if folder is None or folder == "":
        return None
    check_place(folder=folder)
    path, why = Path(str(folder)), ""
    try:
        path.stat()
        if path.is_dir():
            return path
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        why = f": {getattr(error, 'strerror', '') or error}"
    raise NotFound(f"there is no folder {shorten(str(folder), 200)}{why}")


def check_environ(environ: object) -> None:
    if environ is not None:
        check_texts("environ", environ)


def check_texts(name: str, texts: object) -> Mapping[str, str]:
    if not isinstance(texts, Mapping):
        raise InvalidUsage(f"{name} must be a dict of texts, not {kind_of(texts)}")
    for key, value in texts.items():
        if not isinstance(key, str) or not isinstance(value, str):
            said = f"the value of {key!r} is {kind_of(value)}"
            raise InvalidUsage(f"{name} must be a dict of texts: {said}")
    return texts


def check_functions(tools: object, agents: object) -> None:
    """Whether each can be a tool or an agent is found out from its signature, later."""
    is_list = isinstance(tools, Iterable) and not isinstance(tools, str | bytes | Mapping)
    if not is_list or not isinstance(agents, Mapping | None):
        hint = "Stretto(tools=[lookup], agents={'score': score})"
        raise InvalidUsage("tools are a list of functions, and agents a dict of them", hint=hint)


def check_callable(what: str, value: object) -> Callable[..., object]:
    if not callable(value):
        raise InvalidUsage(f"{what} is {kind_of(value)}, not a function")
    return value


def check_budget(written: object) -> Budget:
    if written is not None and not isinstance(written, Mapping):
        raise InvalidUsage(f"budget must be a dict, with {', '.join(_BUDGETS)}")
    given = dict(written or {})
    for name, most in given.items():
        if name not in _BUDGETS:
            raise InvalidUsage(f"budget has no '{name}'", hint=f"it has {listed(_BUDGETS)}")
        if type(most) not in (int, float) or not 0 <= most <= _LARGEST:
            raise InvalidUsage(f"budget['{name}'] must be a number from 0 on")
        if name != "usd" and most != int(most):
            raise InvalidUsage(f"budget['{name}'] must be a whole number")
    tokens, usd, agents = map(given.get, _BUDGETS)
    return Budget(
        None if tokens is None else int(tokens), usd, None if agents is None else int(agents)
    )
