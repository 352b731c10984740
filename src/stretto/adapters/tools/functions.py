'''Make a tool of a typed Python function.

    @tool(effect="idempotent", read_only=True)
    def lookup(word: str, language: Literal["en", "de"] = "en") -> str:
        """Look a word up in the dictionary of this company.

        Args:
            word: the word, in its basic form
            language: which dictionary
        """

`tool` returns a `FunctionTool`, which is a `Tool` of the port and can still be called like the
function. `StandardToolbox(..., functions={each.name: each})` offers it to the agents that list its
name, and `Catalog` is given `tools=KNOWN_TOOLS | names` and `changing_tools=CHANGING_TOOLS | those
that are not read-only`, so that plans know it. `identity` stands for it in the key of an answer that
is reused.

The function runs in this process and not in the sandbox: it may do whatever the process may do.
'''

import asyncio
import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from textwrap import dedent
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    ParamSpec,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
    overload,
)

from stretto.adapters.tools.outcomes import outcome
from stretto.agents.python_function import (
    call_in_thread,
    check_bound,
    describe_error,
    digest_of,
    is_async,
    parameter_types,
    plain_function,
)
from stretto.ports.tool import ToolOutcome, ToolRecovery, ToolSpec
from stretto.problems.errors import InvalidUsage
from stretto.text.short import kind_of, listed
from stretto.toolnames.filters import is_delegating
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import KNOWN_TOOLS

if TYPE_CHECKING:
    from stretto.adapters.tools.arguments import Arguments

P = ParamSpec("P")
R = TypeVar("R")

_EFFECTS: tuple[ToolRecovery, ...] = ("idempotent", "keyed", "in_doubt")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")  # what every provider accepts
_ARGS = re.compile(r"^(?:Args|Arguments|Parameters):[ \t]*$", re.MULTILINE)
_OTHER_SECTION = re.compile(r"^[A-Z]\w*:[ \t]*$", re.MULTILINE)
_ONE_ARGUMENT = re.compile(r"\*{0,2}(\w+)(?: ?\([^)]*\))?:\s*(.*)", re.DOTALL)


class CallKey(str):
    """The key of one call, `run/step/part/attempt/call`.

    A parameter annotated with it is filled by Stretto and not shown to the model. Pass it on as the
    idempotency key of whatever the function asks to do something: when an attempt is done again
    after a crash, its calls have the same keys as before, in the order in which they are made.
    """


class FunctionTool(Generic[P, R]):
    """A tool that calls a Python function. Made by `tool`."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str = "",
        effect: ToolRecovery = "in_doubt",
        read_only: bool = False,
    ) -> None:
        if not callable(function):
            hint = "@tool, or @tool(effect=..., name=..., read_only=...) above a function"
            raise InvalidUsage(f"a tool is made of a function, not of {function!r:.60}", hint=hint)
        if isinstance(function, FunctionTool):  # with other options
            function = cast(Callable[P, R], getattr(function, "function"))  # noqa: B009
        self.function = function
        self.name = name or getattr(function, "__name__", "")
        self.__doc__ = function.__doc__
        self._check_name(effect)
        if not isinstance(read_only, bool):  # a text such as "no" would count as yes
            raise InvalidUsage(f"read_only of tool '{self.name}' must be True or False")
        self._key_parameter, self._model = _read_signature(self.name, function, effect)
        self.spec = _spec(self.name, function, self._model, effect, read_only)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"

    @property
    def identity(self) -> str:
        """Changes whenever the function's own code does; what the function calls is not followed."""
        return f"{self.name} {digest_of(self.function)}"

    async def call(self, arguments: Mapping[str, Json], key: str) -> ToolOutcome:
        from stretto.adapters.tools.arguments import InvalidArguments, check_json

        try:
            valid = check_json(self._model, arguments)
        except InvalidArguments as wrong:
            return outcome(f"{self.name} was not called. What is wrong:\n{wrong}", "error")
        # What was left out is left to the function's own defaults.
        fields = type(valid).model_fields
        values: dict[str, Any] = {
            fields[name].alias or name: getattr(valid, name) for name in valid.model_fields_set
        }
        if self._key_parameter:
            values[self._key_parameter] = CallKey(key)
        return await self._run(values)

    async def _run(self, values: Mapping[str, Any]) -> ToolOutcome:
        call = partial(cast(Callable[..., Any], self.function), **values)
        try:
            result = call() if is_async(self.function) else await call_in_thread(call)
            if inspect.isawaitable(result):
                result = await result
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise
        except BaseException as error:  # whatever else it raises, the run goes on
            return outcome(f"Error: {describe_error(error)}", "error")
        return _outcome(self.name, result)

    def _check_name(self, effect: str) -> None:
        if effect not in _EFFECTS:
            raise InvalidUsage(
                f"effect='{effect}' of tool '{self.name}': there are {listed(_EFFECTS)}"
            )
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InvalidUsage(
                f"'{self.name}' cannot be the name of a tool: letters, digits, _ and - are allowed",
                hint="give it one: @tool(name=...)",
            )
        if self.name in KNOWN_TOOLS or is_delegating(self.name) or self.name.startswith("mcp__"):
            raise InvalidUsage(
                f"the name '{self.name}' belongs to another tool",
                hint="give it one: @tool(name=...)",
            )


AnyFunctionTool: TypeAlias = FunctionTool[..., Any]


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *, effect: ToolRecovery = "in_doubt", name: str = "", read_only: bool = False
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    effect: ToolRecovery = "in_doubt",
    name: str = "",
    read_only: bool = False,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a function, as `@tool` or `@tool(effect=..., name=..., read_only=...)`.

    `effect` says what a repeated call does: `idempotent` no harm; `keyed` nothing more, because the
    function passes its `CallKey` on; `in_doubt` nobody knows, so after a crash it is not repeated
    without asking. `read_only=True` says that the function writes no files: only then may a step
    that does not write use it.

    Raises InvalidUsage when no schema can be made of the signature.
    """
    if function is not None:
        return FunctionTool(function)
    return lambda decorated: FunctionTool(decorated, name=name, effect=effect, read_only=read_only)


def _spec(
    name: str,
    function: Callable[..., Any],
    model: "type[Arguments]",
    effect: ToolRecovery,
    read_only: bool,
) -> ToolSpec:
    from stretto.adapters.tools.arguments import function_schema

    try:
        schema = function_schema(model)
        _check_result(function)
    except Exception as error:  # pydantic has several, and a type may raise its own
        raise _not_a_tool(name, f"its types have no JSON schema: {_first_line(error)}") from error
    description = _split_docstring(function)[0] or name.replace("_", " ")
    return ToolSpec(name, description, schema, changes_files=not read_only, recovery=effect)


def _check_result(function: Callable[..., Any]) -> None:
    from pydantic import TypeAdapter

    try:
        result = get_type_hints(plain_function(function), include_extras=True).get("return", Any)
    except NameError:
        return  # a class that is known only where the function was defined
    TypeAdapter(result).json_schema(mode="serialization")


def _read_signature(
    name: str, function: Callable[..., Any], effect: ToolRecovery
) -> "tuple[str, type[Arguments]]":
    """Which parameter takes the key ('' for none), and the model of all others."""
    from pydantic import Field, create_model

    from stretto.adapters.tools.arguments import Arguments

    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise _not_a_tool(name, "it is a generator; return a list instead")
    described = _split_docstring(function)[1]
    key_parameter, fields = "", dict[str, Any]()
    for parameter, annotation in _parameters(name, function):
        if annotation is CallKey or CallKey in get_args(annotation):
            if key_parameter:
                raise _not_a_tool(name, "it has two parameters annotated with CallKey")
            key_parameter = parameter.name
            continue
        details: dict[str, Any] = {"alias": parameter.name}
        if parameter.name in described:
            details["description"] = described[parameter.name]
        if parameter.default is not inspect.Parameter.empty:
            details["default"] = parameter.default
        # Fields have names of ours: a parameter may be called `json` or `_x`, a field may not.
        fields[f"field_{len(fields)}"] = (annotation, Field(**details))
    if effect == "keyed" and not key_parameter:
        raise _not_a_tool(name, "effect='keyed' needs a parameter annotated with CallKey")
    try:
        return key_parameter, create_model(name, __base__=Arguments, **fields)
    except Exception as error:
        raise _not_a_tool(name, f"its types have no JSON schema: {_first_line(error)}") from error


def _parameters(name: str, function: Callable[..., Any]) -> list[tuple[inspect.Parameter, Any]]:
    try:
        signature = inspect.signature(function)
        hints = parameter_types(function)
        check_bound(function, hints)
    except InvalidUsage as error:
        raise _not_a_tool(name, error.message) from None
    except (TypeError, ValueError, NameError) as error:
        raise _not_a_tool(name, f"its signature cannot be read: {error}") from error
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found: list[tuple[inspect.Parameter, Any]] = []
    for parameter in signature.parameters.values():
        if parameter.kind not in named:
            raise _not_a_tool(name, f"a model cannot name the parameter '{parameter}'")
        if parameter.name not in hints:
            raise _not_a_tool(name, f"its parameter '{parameter.name}' has no annotation")
        found.append((parameter, hints[parameter.name]))
    return found


def _not_a_tool(name: str, why: str) -> InvalidUsage:
    return InvalidUsage(f"'{name}' cannot be made into a tool: {why}")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


def _outcome(name: str, result: Any) -> ToolOutcome:
    from pydantic_core import PydanticSerializationError, to_json

    if result is None:
        return outcome("(the tool returned nothing)")
    if isinstance(result, str):
        return outcome(result)
    try:
        return outcome(to_json(result, inf_nan_mode="strings").decode())
    except (PydanticSerializationError, ValueError, RecursionError):
        said = f"Error: {name} returned {kind_of(result)}, which cannot be written as JSON"
        return outcome(said, "error")


def _split_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """What the function does, and what its `Args:` section says of each parameter."""
    text = inspect.getdoc(function) or ""
    section = _ARGS.search(text)
    if section is None:
        return text.strip(), {}
    inside = text[section.end() :]
    after = _OTHER_SECTION.search(inside)
    rest = inside[after.start() :] if after else ""
    lines = dedent(inside[: after.start()] if after else inside).strip("\n")
    # A line that is indented further goes on with the argument above it.
    found = map(_ONE_ARGUMENT.fullmatch, re.split(r"\n(?=\S)", lines))
    described = {each[1]: " ".join(each[2].split()) for each in found if each}
    return f"{text[: section.start()].strip()}\n\n{rest.strip()}".strip(), described
