"""The plug point for tools: a model calls one, and gets text and a verdict.

What a tool may touch is decided when it is made for one attempt (Reach); a call that asks for
more is refused there, whatever the model says.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from stretto.ports.runner import AttemptRequest
from stretto.vocabulary.json_value import Json

# idempotent: a repeated call does no harm. keyed: calls with one key have one effect. in_doubt:
# neither.
ToolRecovery: TypeAlias = Literal["idempotent", "keyed", "in_doubt"]
# refused: a rule forbids the call or part of what it did. error: the call failed on its own.
Verdict: TypeAlias = Literal["ok", "error", "refused"]


class ToolSpec(Struct, frozen=True):
    name: str
    description: str  # for the model
    parameters: Mapping[str, Json]  # a JSON schema of an object
    changes_files: bool = False
    recovery: ToolRecovery = "idempotent"
    needs_network: bool = False
    fault: str = ""  # why it cannot be used at all; a call of it only says so
    # Whether a call with these arguments may be made while others are under way; None: yes, if
    # the tool is idempotent and changes no files.
    runs_beside: Callable[[Mapping[str, Json]], bool] | None = None


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    text: str  # bounded; where something was left out, the text says so
    verdict: Verdict = "ok"
    result_bytes: int | None = None  # before it was cut; None: nothing was

    @property
    def size(self) -> int:
        return len(self.text.encode()) if self.result_bytes is None else self.result_bytes


class Tool(Protocol):
    @property
    def spec(self) -> ToolSpec: ...

    async def call(self, arguments: Mapping[str, Json], key: str) -> ToolOutcome:
        """Never raises for what the model asked or the world refused. Cancelling it stops it.

        `key` is run/step/part/attempt/call: the same call after a crash has the same key.
        """
        ...


@dataclass(frozen=True, slots=True)
class Reach:
    """What one attempt may touch."""

    workspace: Path
    may_write: bool = False
    read_set: tuple[str, ...] = ("**/*",)
    write_set: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()  # paths that it may not change, whatever the write-set says
    origin: Path | None = None  # what the workspace is a copy of; None: it is none
    carried: tuple[str, ...] = ()  # folders of the origin that Bash sees in the copy, read-only
    hidden: tuple[str, ...] = ()  # paths that it may neither read nor change


class Toolbox(Protocol):
    """Makes the tools of one attempt: those its agent lists, and no others."""

    def open(self, request: AttemptRequest) -> AbstractAsyncContextManager[Mapping[str, Tool]]:
        """By name. What was opened for this attempt alone, such as files, is closed after it."""
        ...
