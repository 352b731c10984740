"""What is known of one CLI: how it is started for an attempt, how its lines are read, what it may see.

A CLI with a name gets the environment variables that programs need to run, find their settings and
reach the network, and those that its own documentation names, because it must be logged in. A
command gets PATH, HOME and LANG. Both get what the user lists, and nothing else.

Its lines are JSON that another program wrote. What is missing or of another type is read as empty: a new version of a CLI may say more or less.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from stretto.adapters.models.cli.transcript import AgentEvent, TextDelta
from stretto.ports.runner import AttemptRequest, Failure
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import CHANGING_TOOLS, tool_name

_FOR_COMMANDS = ("PATH", "HOME", "LANG")
_FOR_CLIS = (
    *_FOR_COMMANDS,
    "LC_*",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "TZ",
    "XDG_*",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
)


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    request: AttemptRequest
    model: str  # the CLI's own name for it; "": the one it is set up with
    private: Path  # a folder of this attempt alone, outside the workspace
    max_usd: float | None = None
    # Whether the workspace's own settings for that CLI may count. They can name programs to run.
    trusts_project: bool = False
    speaks_acp: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)  # of Stretto itself

    @property
    def whole_prompt(self) -> str:
        """Instructions and prompt in one text, for a CLI that takes no instructions apart."""
        parts = (self.request.instructions.strip(), self.request.prompt)
        return guard_prompt("\n\n".join(part for part in parts if part))

    @property
    def tools(self) -> frozenset[str]:
        """By name. A reader gets no tool that writes, whatever its agent lists."""
        names = {tool_name(written) for written in self.request.tools}
        return frozenset(names if self.request.may_write else names - CHANGING_TOOLS)

    @property
    def bash_filters(self) -> tuple[str, ...]:
        """`Bash(git diff:*)`: Bash, but not for everything."""
        written = [each.strip() for each in self.request.tools if tool_name(each) == "Bash"]
        return () if "Bash" in written else tuple(written)

    @property
    def tools_over_acp(self) -> frozenset[str]:
        """Without a Bash that is limited to some commands: an agent that asks over ACP need not say
        which command it would run."""
        return self.tools - {"Bash"} if self.bash_filters else self.tools


@dataclass(frozen=True, slots=True)
class CliLaunch:
    words: tuple[str, ...]  # what follows the program's name
    prompt: str  # read on stdin, or sent over ACP
    variables: Mapping[str, str] = field(default_factory=dict)  # of the environment
    files: Mapping[str, str] = field(default_factory=dict)  # to be written in the private folder
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchRefused:
    reason: str


PrepareLaunch: TypeAlias = Callable[[LaunchRequest], CliLaunch | LaunchRefused]
ReadLine: TypeAlias = Callable[[Mapping[str, Json]], Iterable[AgentEvent]]


@dataclass(frozen=True, slots=True)
class Cli:
    name: str  # also its program's
    install: str
    login: str
    # The variables that its documentation names; `FOO_*` stands for all that begin so.
    passes: tuple[str, ...]
    launch: PrepareLaunch
    read: ReadLine
    speaks_acp: bool = False
    # Over ACP, errors of the program itself look like pieces of a reply: this tells them apart.
    read_text: Callable[[str], AgentEvent] = TextDelta
    caps_turns: bool = False  # the CLI counts turns itself; otherwise we do
    # Failures that the CLI reports only by its exit code.
    exit_codes: Mapping[int, Failure] = field(default_factory=dict)


def guard_prompt(prompt: str) -> str:
    """Some CLIs take a message that begins with such a sign for a command of their own."""
    return f"Task:\n\n{prompt}" if prompt.lstrip().startswith(("/", "!", "#", "@")) else prompt


def dropped_tools(order: LaunchRequest, gives: Mapping[str, object]) -> tuple[str, ...]:
    """A warning that names the tools that were listed and cannot be given."""
    asked = {tool_name(written) for written in order.request.tools}
    lost = sorted(asked - (order.tools & gives.keys()))
    return (f"it works without {', '.join(lost)}",) if lost else ()


def for_command(ours: Mapping[str, str], listed: Iterable[str]) -> dict[str, str]:
    return _pass(ours, (*_FOR_COMMANDS, *listed))


def for_cli(cli: Cli, ours: Mapping[str, str], listed: Iterable[str]) -> dict[str, str]:
    passed = _pass(ours, (*_FOR_CLIS, *cli.passes, *listed))
    return {**passed, "TERM": "dumb", "NO_COLOR": "1"}


def _pass(ours: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    starts = tuple(name[:-1] for name in names if name.endswith("_*"))
    return {k: v for k, v in ours.items() if k in names or (starts and k.startswith(starts))}


_MOST = 10**12  # tokens or bytes; a larger number is an error
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def json_line(line: bytes) -> dict[str, Json] | None:
    """None for what is no JSON object: CLIs print words between their events."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        read = json.loads(line.decode(errors="replace"), parse_constant=_infinity)
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, dict):
        return None
    # Neither a file nor a database can hold a lone surrogate.
    clean = _without_surrogates(read) if b"\\ud" in line.lower() else read
    assert isinstance(clean, dict)
    return clean


def at(value: Json, *path: str) -> Json:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def text_at(value: Json, *path: str) -> str:
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def object_at(value: Json, *path: str) -> dict[str, Json]:
    found = at(value, *path)
    return found if isinstance(found, dict) else {}


def list_at(value: Json, *path: str) -> list[Json]:
    found = at(value, *path)
    return found if isinstance(found, list) else []


def number_at(value: Json, *path: str) -> float:
    """Never negative."""
    found = at(value, *path)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= _MOST:
        return 0.0
    return float(found)


def count_at(value: Json, *path: str) -> int:
    return int(number_at(value, *path))


def size_of(value: Json) -> int:
    """In bytes, as text."""
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value)
    return len(text.encode(errors="replace"))


def words_of(value: Json) -> str:
    """The text in a message's content, however it is wrapped."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(words_of, value)))
    return value if isinstance(value, str) else text_at(value, "text")


def _infinity(_: str) -> float:
    return math.inf  # larger than anything we count, so it is read as 0


def _without_surrogates(value: Json) -> Json:
    match value:
        case str():
            return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
        case list():
            return [_without_surrogates(each) for each in value]
        case dict():
            return {
                str(_without_surrogates(key)): _without_surrogates(each)
                for key, each in value.items()
            }
        case _:
            return value
