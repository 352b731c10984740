"""What is known of a CLI. In: an Order, for one attempt. Out: Launch, or Refused with the reason."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from stretto.adapters.models.cli.said import Said, Spoke
from stretto.ports.runner import AttemptRequest, Failure
from stretto.vocabulary.tools import CHANGING_TOOLS, tool_name
from stretto.vocabulary.values import Json


@dataclass(frozen=True, slots=True)
class Order:
    request: AttemptRequest
    model: str  # the CLI's own name for it; "": the one it is set up with
    private: Path  # a folder of this attempt alone, outside the workspace
    max_usd: float | None = None
    # Whether the workspace's own settings for that CLI may count. They can name programs to run.
    trusts_project: bool = False
    speaks_acp: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)  # ours

    @property
    def told(self) -> str:
        """All that the agent is told, where it takes no instructions apart."""
        parts = (self.request.instructions.strip(), self.request.prompt)
        return as_words("\n\n".join(part for part in parts if part))

    @property
    def tools(self) -> frozenset[str]:
        """By name. Whoever may not write gets nothing to write with, whatever was listed."""
        names = {tool_name(written) for written in self.request.tools}
        return frozenset(names if self.request.may_write else names - CHANGING_TOOLS)

    @property
    def bash_filters(self) -> tuple[str, ...]:
        """`Bash(git diff:*)`: Bash, but not for everything."""
        written = [each.strip() for each in self.request.tools if tool_name(each) == "Bash"]
        return () if "Bash" in written else tuple(written)


@dataclass(frozen=True, slots=True)
class Launch:
    words: tuple[str, ...]  # what follows the program's name
    said: str  # what it reads on stdin; over ACP, what it is asked
    sets: Mapping[str, str] = field(default_factory=dict)  # environment variables
    files: Mapping[str, str] = field(default_factory=dict)  # to be written in the private folder
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    reason: str


Launching: TypeAlias = Callable[[Order], Launch | Refused]
Reading: TypeAlias = Callable[[Mapping[str, Json]], Iterable[Said]]


@dataclass(frozen=True, slots=True)
class Cli:
    name: str  # also its program's
    install: str
    login: str
    # The variables that its documentation names; `FOO_*` stands for all that begin so.
    passes: tuple[str, ...]
    launch: Launching
    read: Reading
    speaks_acp: bool = False
    # Over ACP: what it says itself, and not its model, looks like a piece of a reply.
    hears: Callable[[str], Said] = Spoke
    caps_turns: bool = False  # it counts turns itself; otherwise we do
    # What it only says by its exit code.
    exit_codes: Mapping[int, Failure] = field(default_factory=dict)


def as_words(prompt: str) -> str:
    """To some of them a message that begins with a sign is a command of their own."""
    return f"Task:\n\n{prompt}" if prompt.lstrip().startswith(("/", "!", "#", "@")) else prompt


def dropped_tools(order: Order, gives: Mapping[str, object]) -> tuple[str, ...]:
    """Said of tools that were listed and cannot be given."""
    asked = {tool_name(written) for written in order.request.tools}
    lost = sorted(asked - (order.tools & gives.keys()))
    return (f"it works without {', '.join(lost)}",) if lost else ()
