"""Bash: run a command in a sandbox. Without a sandbox every call is refused."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from pydantic import Field

from stretto.adapters.tools.arguments import Arguments, WholeNumber
from stretto.adapters.tools.commands import why_forbidden
from stretto.adapters.tools.outcomes import CallRefused, outcome
from stretto.adapters.tools.standard_tool import StandardTool, standard_tool
from stretto.globs.glob import Glob, parse_glob
from stretto.ports.tool import Reach, ToolOutcome, Verdict
from stretto.processes.watchdog import ResourceLimits
from stretto.text.short import listed
from stretto.toolnames.filters import CommandFilter
from stretto.workspaces.isolated_copy import is_real_folder
from stretto.workspaces.protected import Protected, select_secret_globs
from stretto.workspaces.sandbox.confinement import (
    PLAIN_ENVIRONMENT,
    Carried,
    CommandRefused,
    Confinement,
    Ran,
)
from stretto.workspaces.sandbox.sandbox import NoSandbox

DEFAULT_SECONDS = 120
MOST_SECONDS = 600

_BASH = (
    "Run a shell command in the workspace, in a sandbox: {network}, and files change only where"
    " this step may write. Every call is a new shell."
)


class BashArguments(Arguments):
    command: str = Field(min_length=1, max_length=100_000, description="the command")
    timeout_seconds: WholeNumber = Field(
        DEFAULT_SECONDS,
        ge=1,
        le=MOST_SECONDS,
        description=f"after so long it is stopped; {DEFAULT_SECONDS} by default",
    )
    description: str = Field("", max_length=1_000, description="what it is for, in a few words")


class Shell(Protocol):
    async def run(self, command: str, confinement: Confinement) -> Ran | CommandRefused:
        """Cancelling it ends the command with all that it started."""
        ...


FindShell: TypeAlias = Callable[[], Shell | NoSandbox]


@dataclass(frozen=True, slots=True)
class ShellSettings:
    find_shell: FindShell
    environment: Mapping[str, str] = field(default_factory=dict)  # more than the plain one
    network: bool = False


def bash(
    reach: Reach, settings: ShellSettings, filters: Sequence[CommandFilter] = ()
) -> StandardTool[BashArguments]:
    """Without filters every command may run."""

    async def work(given: BashArguments) -> ToolOutcome:
        if filters and (why := why_forbidden(given.command, filters)):
            raise CallRefused(why)
        shell = await open_shell(settings)
        ran = await shell.run(given.command, confine(reach, settings, given.timeout_seconds))
        if isinstance(ran, CommandRefused):
            raise CallRefused(f"{ran.says}. {ran.fix}".strip())
        return _outcome(ran, reach)

    allowed = f" You may run: {listed((one.text for one in filters), 40)}." if filters else ""
    description = _BASH.format(network="with network" if settings.network else "no network")
    return standard_tool(
        "Bash", description + allowed, BashArguments, work, changes_files=True, recovery="in_doubt"
    )


async def open_shell(settings: ShellSettings) -> Shell:
    """Raises CallRefused where no sandbox works."""
    # In a thread: the first call tries a sandbox out, which takes a while.
    shell = await asyncio.to_thread(settings.find_shell)
    if isinstance(shell, NoSandbox):
        fixes = "; ".join(each.fix for each in shell.missing)
        raise CallRefused(f"{shell}. What the user can do: {fixes}")
    return shell


def confine(reach: Reach, settings: ShellSettings, seconds: float) -> Confinement:
    """What a command of this attempt may touch, whoever gives it: a model or the recipe."""
    globs = map(parse_glob, reach.write_set if reach.may_write else ())
    return Confinement(
        reach.workspace,
        writes=tuple(glob for glob in globs if isinstance(glob, Glob)),
        limits=ResourceLimits(wall_seconds=seconds, cpu_seconds=seconds),
        environment={**PLAIN_ENVIRONMENT, **settings.environment},
        network=settings.network,
        protected=Protected(reach.protected),
        carried=tuple(
            Carried(reach.origin / path, path)
            for path in reach.carried
            if reach.origin is not None and is_real_folder(reach.origin, path)
        ),
        hidden=reach.hidden,
        named_secrets=select_secret_globs(
            it for it in map(parse_glob, reach.read_set) if isinstance(it, Glob)
        ),
    )


def overreaches(ran: Ran, reach: Reach) -> Iterator[str]:
    """What the command did and may not, in words."""
    if ran.kept_out:
        may = listed(reach.write_set, 20) if reach.may_write else ""
        where = f"outside what this step may write ({may or 'nothing'})"
        yield f"not kept, for it is {where}: {listed(ran.kept_out, 20)}"
    if ran.new_repositories:
        made = listed(ran.new_repositories, 20)
        yield f"no step makes a repository; these were renamed to *.kept-out: {made}"


def _outcome(ran: Ran, reach: Reach) -> ToolOutcome:
    notes = list[str]()
    if ran.limit_hit is not None:
        notes.append(f"it was stopped at its limit: {ran.limit_hit}")
    if ran.exit_code != 0:
        notes.append(f"exit code {ran.exit_code}")
    notes += overreaches(ran, reach)
    output = ran.output if ran.output.strip() else "(no output)"
    text = "\n".join([output.rstrip("\n"), *(f"[{note}]" for note in notes)])
    verdict: Verdict = (
        "refused"
        if ran.kept_out or ran.new_repositories
        else "error"
        if ran.exit_code or ran.limit_hit
        else "ok"
    )
    bounded = outcome(text, verdict)
    if not ran.dropped_bytes:
        return bounded
    return ToolOutcome(bounded.text, verdict, bounded.size + ran.dropped_bytes)
