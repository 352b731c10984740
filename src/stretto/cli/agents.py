"""`stretto agents`: who may be named in a recipe, where from, and whether they could work here."""

from collections.abc import Iterable, Sequence, Set
from typing import TYPE_CHECKING

import click

from stretto.agents.agent_files import ListedAgent
from stretto.assembly.json_forms import agent_as_json
from stretto.assembly.project import Project
from stretto.cli.options import CommandGroup, json_option
from stretto.cli.project import open_project
from stretto.cli.terminal import columns, print_json, print_problems, say
from stretto.plan.catalog import posture_of, tools_of
from stretto.problems import Problem
from stretto.problems.errors import InvalidRecipe, NotFound, StrettoError
from stretto.problems.render import count, error_as_json
from stretto.recipe.model import Agent
from stretto.text.short import did_you_mean, listed
from stretto.vocabulary.amounts import format_duration

if TYPE_CHECKING:
    from stretto.assembly.readiness import Machine


_HEAD = ("NAME", "FROM", "POSTURE", "MODEL", "TURNS", "TIMEOUT", "TOOLS", "DESCRIPTION")


class FlagsAnywhere(CommandGroup):
    """`stretto agents --json show x` means `stretto agents show --json x`; bare, it lists."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = next((i for i, word in enumerate(args) if not word.startswith("-")), None)
        if at is not None:
            args = [args[at], *args[:at], *args[at + 1 :]]
        elif not {"--help", "-h"} & set(args):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group("agents", cls=FlagsAnywhere)
def command() -> None:
    """The agents that a recipe may name: bundled, your own, .claude/agents, the project's.

    A later layer shadows an earlier one. Without a command they are listed; every command
    takes --json.
    """


@command.command("list")
@json_option
def list_agents(as_json: bool) -> None:
    """List every agent, broken files too."""
    project = open_project()
    agents, changing = project.agents(), project.catalog().changing_tools
    counting = [each for each in agents if each.shadowed_by is None]
    if as_json:
        rows = [agent_as_json(each, agents, changing) for each in counting]
        print_json({"ok": True, "agents": rows})
        return
    cells = [_cells(each, changing) for each in counting]
    say("\n".join(columns([_HEAD, *cells], has_head=True)))
    _print_shadows(agents)
    if any(each.read.problems for each in counting):
        say("\nstretto agents check shows what is wrong.")


@command.command("show")
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> int:
    """Show one agent with its prompt."""
    project = open_project()
    agents, changing = project.agents(), project.catalog().changing_tools
    found = _find_files(agents, name)[-1]
    agent = found.read.agent
    if agent is None:
        said = f"{found.read.file} has {count(found.read.problems)}"
        raise InvalidRecipe(said, found.read.problems)
    if as_json:
        shown = {**agent_as_json(found, agents, changing), "prompt": agent.prompt}
        print_json({"ok": True, "agent": shown})
        return 0
    say("\n".join(columns(_lines(found, agent, changing))))
    _print_shadows(_find_files(agents, name))
    say(f"\n{agent.prompt}" if agent.prompt else "\nIt has no prompt.")
    return 0


@command.command("check")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@json_option
def check(names: tuple[str, ...], as_json: bool) -> int:
    """Check every file, and whether each agent could work here.

    A broken file is an error. What is missing here (a key, a package, a sandbox) is a warning.
    """
    import asyncio  # a list needs no loop, no models, no tools and no sandboxes

    project = open_project()
    agents = project.agents()
    chosen = [each for name in names for each in _find_files(agents, name)] if names else agents
    machine = asyncio.run(_machine(project))
    lacks = [
        machine.agent_problems(each.read.agent) if each.read.agent is not None else ()
        for each in chosen
    ]
    problems = [problem for each in chosen for problem in each.read.problems]
    if as_json:
        rows = [agent_as_json(each, agents, project.catalog().changing_tools) for each in chosen]
        _print_checks_json(chosen, rows, lacks)
    else:
        for each, missing in zip(chosen, lacks, strict=True):
            _print_check(each, missing)
        broken = sum(bool(each.read.problems) for each in chosen)
        files = "1 file" if len(chosen) == 1 else f"{len(chosen)} files"
        say(f"{files}; broken: {broken}; warnings: {sum(map(len, lacks))}")
    return InvalidRecipe.exit_code if problems else 0


async def _machine(project: Project) -> "Machine":
    from stretto.assembly.local_models import LocalModels
    from stretto.assembly.readiness import Machine
    from stretto.vocabulary.models import ModelSelection

    try:
        default = (await LocalModels(project).default_model()).default
    except StrettoError:  # stretto doctor says why
        default = ""
    return Machine(project, ModelSelection(default))


def _find_files(agents: Iterable[ListedAgent], name: str) -> list[ListedAgent]:
    """All files of that name; the last one counts."""
    found = [each for each in agents if each.name == name]
    if not found:
        known = list(dict.fromkeys(each.name for each in agents))
        hint = did_you_mean(name, known) or f"stretto agents list shows them: {listed(known)}"
        raise NotFound(f"there is no agent '{name}'", hint=hint)
    return found


def _print_shadows(agents: Iterable[ListedAgent]) -> None:
    said = [
        f"{each.shadowed_by} shadows {each.read.file} ({each.layer})"
        for each in agents
        if each.shadowed_by is not None
    ]
    if said:
        say("\n" + "\n".join(said))


def _print_check(each: ListedAgent, lacks: Sequence[Problem]) -> None:
    where = f"{each.name} ({each.layer}: {each.read.file})"
    if each.read.problems:
        say(where, mark="broken", colour="red")
        print_problems(each.read.problems)
        return
    ok = "warning" if lacks else "ok"
    colour = "yellow" if lacks else "green"
    shadowed = f", shadowed by {each.shadowed_by}" if each.shadowed_by else ""
    say(f"{where}{shadowed}", mark=ok, colour=colour)
    for lack in lacks:
        say(f"  {lack.message}")
        if lack.hint:
            say(f"    = {lack.hint}")


def _print_checks_json(
    chosen: Sequence[ListedAgent],
    shown: Sequence[dict[str, object]],
    lacks: Sequence[Sequence[Problem]],
) -> None:
    rows = [
        {
            **row,
            "shadowed_by": each.shadowed_by,
            "warnings": [{"message": lack.message, "hint": lack.hint} for lack in missing],
        }
        for each, row, missing in zip(chosen, shown, lacks, strict=True)
    ]
    problems = [problem for each in chosen for problem in each.read.problems]
    if problems:
        broken = [each.read.file for each in chosen if each.read.problems]
        said = error_as_json(InvalidRecipe(f"{', '.join(broken)}: {count(problems)}", problems))
        error = said["error"]
        assert isinstance(error, dict)
        error["details"] |= {"agents": rows}
        print_json(said)
    else:
        print_json({"ok": True, "agents": rows})


def _cells(each: ListedAgent, changing: Set[str]) -> tuple[str, ...]:
    agent = each.read.agent
    if agent is None:
        said = f"{count(each.read.problems)} in {each.read.file}"
        return (each.name, each.layer, "broken", "-", "-", "-", "-", said)
    return (
        each.name,
        each.layer,
        posture_of(agent, changing),
        agent.model or "-",
        str(agent.max_turns or "-"),
        format_duration(agent.timeout_seconds) if agent.timeout_seconds else "-",
        ",".join(tools_of(agent)) or "-",
        (agent.role.strip().splitlines() or [""])[0],
    )


def _lines(each: ListedAgent, agent: Agent, changing: Set[str]) -> list[tuple[str, ...]]:
    seconds = agent.timeout_seconds
    pairs = {
        "name": each.name,
        "from": f"{each.layer}: {each.read.file}",
        "description": agent.role.strip().replace("\n", " "),
        "posture": posture_of(agent, changing),
        "tools": ", ".join(tools_of(agent)) or "none",
        "model": agent.model or "the run's own",
        "fallbacks": ", ".join(agent.fallback_models),
        "max_turns": str(agent.max_turns or ""),
        "timeout": format_duration(seconds) if seconds else "",
    }
    return [(key, value) for key, value in pairs.items() if value]
