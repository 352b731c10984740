"""A tool of the package: a description, a model of its arguments, and the work it does.

A call always ends in a ToolOutcome: wrong arguments, a refusal and a failure are outcomes too.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from stretto.adapters.tools.arguments import Arguments, InvalidArguments, check, standard_schema
from stretto.adapters.tools.outcomes import CallFailed, CallRefused, outcome
from stretto.ports.tool import ToolOutcome, ToolRecovery, ToolSpec
from stretto.vocabulary.json_value import Json

ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


@dataclass(frozen=True, slots=True)
class StandardTool(Generic[ArgumentsT]):
    spec: ToolSpec
    model: type[ArgumentsT]
    # A text is cut where it is too long; an outcome is taken as it is.
    work: Callable[[ArgumentsT], Awaitable[str | ToolOutcome]]

    async def call(self, arguments: Mapping[str, Json], key: str) -> ToolOutcome:
        try:
            result = await self.work(check(self.model, arguments))
            return result if isinstance(result, ToolOutcome) else outcome(result)
        except InvalidArguments as wrong:
            text = f"{self.spec.name} was not called. What is wrong:\n{wrong}"
            return outcome(text, "error")
        except CallRefused as refused:
            return outcome(f"Refused: {refused}", "refused")
        except CallFailed as failed:
            return outcome(f"Error: {failed}", "error")
        except OSError as error:
            # Never the file name in the error: it may be an absolute path of the host.
            return outcome(f"Error: {error.strerror or type(error).__name__}", "error")


def standard_tool(
    name: str,
    description: str,
    model: type[ArgumentsT],
    work: Callable[[ArgumentsT], Awaitable[str | ToolOutcome]],
    *,
    changes_files: bool = False,
    recovery: ToolRecovery = "idempotent",
    needs_network: bool = False,
) -> StandardTool[ArgumentsT]:
    schema = standard_schema(model)
    spec = ToolSpec(name, description, schema, changes_files, recovery, needs_network)
    return StandardTool(spec, model, work)
