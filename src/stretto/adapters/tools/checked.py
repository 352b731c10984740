"""A tool made of three parts: what it is, what it takes, what it does.

In: a call. Out: a ToolOutcome, always: wrong arguments, a refusal and a failure are outcomes too.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from stretto.adapters.tools.arguments import Given, Parameters, all_faults
from stretto.adapters.tools.bounded import outcome
from stretto.ports.tool import ToolOutcome, ToolRecovery, ToolSpec
from stretto.vocabulary.values import Json

# A text is cut where it is too long; an outcome is taken as it is.
Work: TypeAlias = Callable[[Given, str], Awaitable[str | ToolOutcome]]


class Refused(Exception):
    """A rule forbids it. The text tells the model what it may do instead."""


class Failed(Exception):
    """It was tried, and did not work."""


@dataclass(frozen=True, slots=True)
class CheckedTool:
    spec: ToolSpec
    takes: Parameters
    work: Work

    async def call(self, arguments: Mapping[str, Json], key: str) -> ToolOutcome:
        faults = self.takes.faults(arguments)
        if faults:
            text = f"{self.spec.name} was not called. What is wrong:\n{all_faults(faults)}"
            return outcome(text, "error")
        try:
            done = await self.work(Given(arguments), key)
            return done if isinstance(done, ToolOutcome) else outcome(done)
        except Refused as refused:
            return outcome(f"Refused: {refused}", "refused")
        except Failed as failed:
            return outcome(f"Error: {failed}", "error")
        except OSError as error:
            return outcome(f"Error: {_in_words(error)}", "error")


def checked(
    name: str,
    says: str,
    takes: Parameters,
    work: Work,
    *,
    changes_files: bool = False,
    recovery: ToolRecovery = "idempotent",
    needs_network: bool = False,
) -> CheckedTool:
    """The schema that the model is shown is that of what is read."""
    spec = ToolSpec(name, says, takes.schema, changes_files, recovery, needs_network)
    return CheckedTool(spec, takes, work)


def _in_words(error: OSError) -> str:
    # Never the file name of the error itself: it may be an absolute path of the host.
    return error.strerror or type(error).__name__
