"""What agents and tools that are Python functions share: find the plain function, run it in a thread,
and tell whether it is still the same."""

import asyncio
import inspect
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from hashlib import sha256
from pathlib import PurePath
from types import CodeType, ModuleType
from typing import Any, get_type_hints
from uuid import UUID

from stretto.problems.errors import InvalidUsage
from stretto.text.short import shorten

_LONGEST_ERROR = 4_000  # characters
_DEEPEST = 50  # levels of values within values
# What such a value holds is all in its repr.
_PLAIN = (
    *(str, bytes, bool, int, float, complex, type(None), range, Decimal, Fraction, Enum, UUID),
    *(date, time, timedelta, PurePath),
)


def plain_function(function: Callable[..., object]) -> Any:
    """The plain function inside a partial, a method or an object with __call__."""
    while isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function)
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return type(function).__call__


def parameter_types(function: Callable[..., object]) -> dict[str, Any]:
    """The annotations of its parameters. That of its result is not looked up: it may name a class
    that is known only where the function was defined. Raises NameError for such a parameter."""
    plain = plain_function(function)
    if inspect.isclass(plain):
        return get_type_hints(plain, include_extras=True)  # as of a dataclass

    def same() -> None: ...

    written = getattr(plain, "__annotations__", {})
    same.__annotations__ = {name: kind for name, kind in written.items() if name != "return"}
    known = getattr(getattr(plain, "__func__", plain), "__globals__", {})
    return get_type_hints(same, known, include_extras=True)


def check_bound(function: Callable[..., object], kinds: Mapping[str, object]) -> None:
    """Raises InvalidUsage for a method that was taken from its class: nobody would give it `self`."""
    first = next(iter(inspect.signature(function).parameters), "")
    if first == "self" and first not in kinds:
        raise InvalidUsage("it is a method without its object; give thing.method")


def is_async(function: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(plain_function(function))


async def call_in_thread(call: Callable[[], object]) -> object:
    """In a thread of its own, and not of the loop's pool: a function that never returns would hold
    a thread of the pool, and keep the process from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()

    def tell(result: object, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((result, error))

    def work() -> None:
        result, error = None, None
        try:
            result = copied.run(call)
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the run is over and its loop closed: no attempt waits
            loop.call_soon_threadsafe(tell, result, error)

    copied = copy_context()
    threading.Thread(target=work, name="stretto function", daemon=True).start()
    result, error = await done
    # No coroutine can raise StopIteration, and KeyboardInterrupt would end the loop with all its runs.
    # Ctrl-C reaches the main thread alone: here it is an error of the function like any other.
    if isinstance(error, StopIteration | KeyboardInterrupt):
        raise RuntimeError(f"the function raised {describe_error(error)}") from error
    if error is not None:
        raise error
    return result


def describe_error(error: BaseException) -> str:
    """The error's type and what it says, cut: it is journaled, and some errors quote all that they were given."""
    name = type(error).__name__
    try:
        said = str(error)
    except Exception:  # its own __str__ fails
        return name
    return f"{name}: {shorten(said, _LONGEST_ERROR)}" if said else name


def digest_of(function: Callable[..., object]) -> str:
    """Changes with the code of the function and with the values that it carries with it. What the
    function calls in turn is not followed."""
    digest = sha256()
    for text in (*_carried_values(function), *_code(plain_function(function))):
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:32]


def _code(function: Any) -> Iterator[str]:
    """Its source, which has the annotations, and what it was compiled to: two lambdas of one line have one
    source, and that of a file which was edited after its import is not what runs."""
    with suppress(OSError, TypeError):  # as of what was typed at a prompt
        yield inspect.getsource(function)
    if isinstance(code := getattr(function, "__code__", None), CodeType):
        yield from _code_parts(code)


def _code_parts(code: CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_parts(constant)
        elif isinstance(constant, frozenset):  # whose order differs between processes
            yield repr(sorted(map(repr, constant)))
        else:
            yield repr(constant)


def _carried_values(function: Any) -> Iterator[str]:
    """The values that a function carries with it: defaults, closures, arguments of a partial."""
    while isinstance(function, partial):
        yield from map(_text, (*function.args, *function.keywords.items()))
        function = function.func
    function = inspect.unwrap(function)
    if (owner := getattr(function, "__self__", None)) is not None:
        yield _text(owner)
    elif not inspect.isroutine(function):
        yield _text(function)
    cells = getattr(function, "__closure__", None) or ()
    values = [cell.cell_contents for cell in cells if _is_set(cell)]
    defaults = getattr(function, "__defaults__", None) or ()
    keywords = getattr(function, "__kwdefaults__", None) or {}
    yield from map(_text, (*values, *defaults, *keywords.items()))


def _is_set(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _text(value: object, around: tuple[int, ...] = (), *, is_field: bool = False) -> str:
    """The same in every process, so never the repr of an unknown object, which may hold an address: of a
    function its code, of another object its type and its fields, of an object in such a field its type.

    `around`: the values that hold this one, by id; one that holds itself ends there.
    """
    if isinstance(value, _PLAIN):
        return repr(value)
    if id(value) in around or len(around) > _DEEPEST:
        return "…"
    within = (*around, id(value))
    if isinstance(value, tuple | list):
        return f"[{','.join([_text(each, within, is_field=is_field) for each in value])}]"
    if isinstance(value, set | frozenset):
        return f"{{{','.join(sorted(_text(each, within, is_field=is_field) for each in value))}}}"
    if isinstance(value, dict):
        items = [_text(each, within, is_field=is_field) for each in value.items()]
        return f"{{{','.join(items)}}}"
    if inspect.isroutine(value):
        return "".join((_name_of(value), *_code(value)))
    if isinstance(value, type | ModuleType):
        return _name_of(value)
    carried = _fields(value, is_field)
    return f"{_name_of(type(value))}{_text(carried, within, is_field=True) if carried else ''}"


def _name_of(value: Any) -> str:
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", "")
    return f"{getattr(value, '__module__', '')}.{name}"


def _fields(value: Any, is_field: bool) -> list[object]:
    if is_dataclass(value):
        return [getattr(value, each.name, None) for each in fields(value)]
    if isinstance(value, re.Pattern):
        return [value.pattern, value.flags]
    # The fields of a client or a lock that an object keeps are nobody's settings, and they change.
    return [] if is_field else [object.__getstate__(value)]
