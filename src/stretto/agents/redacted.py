"""Keep secrets on this machine and out of the journal.

The events and the result of every runner pass here, so that the journal, the report and the live view
never see a secret. The descriptions of tools pass here too, before a provider sees them.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec import Struct, structs

from stretto.events.model import Happening
from stretto.ports.runner import (
    AttemptRequest,
    AttemptResult,
    Runner,
    Success,
    Witness,
    is_identified,
)
from stretto.ports.tool import Tool, ToolOutcome, ToolSpec
from stretto.problems.errors import StrettoError
from stretto.text.redaction import MASK, Redactor
from stretto.text.short import listed
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import Setup

# Names of steps, runs and files, which the engine needs as they are.
_STRUCTURE = frozenset({"run_id", "attempt", "agent", "workspace", "at", "kind"})
_LARGE = 100_000  # characters and parts of a value

_T = TypeVar("_T", bound=Struct)
_V = TypeVar("_V")


class RedactedRunner:
    def __init__(self, runner: Runner, redactor: Redactor) -> None:
        self._runner = runner
        self._redactor = redactor

    def identify(self, models: Collection[str], tools: Collection[str]) -> Setup:
        if not is_identified(self._runner):
            raise TypeError(f"{type(self._runner).__name__} cannot say who answers")
        return self._runner.identify(models, tools)

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        try:
            result = await self._runner.run(request, _RedactedWitness(witness, self._redactor))
        except StrettoError as error:
            raise _redact_error(error.with_hint, error, self._redactor) from None
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise _redact_error(said, error, self._redactor) from None
        output = getattr(result, "output", "")
        return await redact_apart(lambda: _redact_result(result, self._redactor), output)


async def redact_apart(redact: Callable[[], _V], *values: Json) -> _V:
    """In a thread where the values are large: other attempts wait for the loop."""
    return await asyncio.to_thread(redact) if any(map(_is_large, values)) else redact()


def _is_large(value: Json) -> bool:
    left, unseen = _LARGE, [value]
    while unseen and left > 0:
        match unseen.pop():
            case str() as text:
                left -= len(text)
            case list() as items:
                left -= len(items)
                unseen += items
            case dict() as fields:
                left -= len(fields)
                unseen += (*fields, *fields.values())
    return left <= 0


class _RedactedWitness:
    def __init__(self, witness: Witness, redactor: Redactor) -> None:
        self._witness = witness
        self._redactor = redactor

    def now(self) -> float:
        return self._witness.now()

    def is_followed(self) -> bool:
        return self._witness.is_followed()

    def note(self, event: Happening) -> None:
        self._witness.note(without_secrets(event, self._redactor))

    async def record(self, event: Happening) -> None:
        await self._witness.record(without_secrets(event, self._redactor))

    async def confirm(self) -> None:
        await self._witness.confirm()

    def spend(self, usage: Usage) -> None:
        self._witness.spend(usage)


def _redact_result(result: AttemptResult, redactor: Redactor) -> AttemptResult:
    """With a word about what was taken out of an output: whoever reads it gets something else."""
    hidden = without_secrets(result, redactor)
    if not isinstance(result, Success) or not isinstance(hidden, Success):
        return hidden
    if hidden.output == result.output or not (names := redactor.named(str(result.output))):
        return hidden
    said = f"its output held the value of {listed(names)}: {MASK} stands in its place"
    return structs.replace(hidden, warnings=(*hidden.warnings, said))


def without_secrets(value: _T, redactor: Redactor) -> _T:
    """The value with every text in it redacted, except for names that the engine needs."""
    changed: dict[str, Any] = {}
    for name in value.__struct_fields__:
        if name in _STRUCTURE:
            continue
        was = getattr(value, name)
        now = _redact(was, redactor)
        if now is not was and now != was:
            changed[name] = now
    return structs.replace(value, **changed) if changed else value


def _redact(value: Any, redactor: Redactor) -> Any:
    match value:
        case str():
            return redactor.text(value)
        case dict() | list():
            return redactor.json(value)
        case tuple():
            return tuple(_redact(each, redactor) for each in value)
        case _:
            return value


def _redact_error(said: str, error: Exception, redactor: Redactor) -> Exception:
    return StrettoError(redactor.text(said)) if redactor.named(said) else error


@dataclass(frozen=True, slots=True)
class _RedactedTool:
    spec: ToolSpec
    tool: Tool

    async def call(self, arguments: Mapping[str, Json], key: str) -> ToolOutcome:
        return await self.tool.call(arguments, key)


def redacted_tools(tools: Mapping[str, Tool], redactor: Redactor) -> dict[str, Tool]:
    """The tools as a provider may see them: MCP servers write names, descriptions and schemas."""
    return {
        hidden.spec.name: hidden for hidden in (_redact_tool(t, redactor) for t in tools.values())
    }


def _redact_tool(tool: Tool, redactor: Redactor) -> Tool:
    spec = without_secrets(tool.spec, redactor)
    if spec is tool.spec:
        return tool
    # Providers take letters, digits, '-' and '_' in a name.
    return _RedactedTool(structs.replace(spec, name=spec.name.replace(MASK, "redacted")), tool)
