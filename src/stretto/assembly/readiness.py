"""Whether agents and plans can work here. In: settings, an environment. Out: Problems, all at once.

A run, `stretto agents check` and `stretto doctor` ask the same questions here. A missing key,
package, search or price is reported before anything starts, not by the fifth step. Nothing is
asked over the network, and no provider is imported.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from stretto.adapters.models.local.catalog import (
    Shelf,
    is_local,
    is_own_file,
    is_tiny,
    models_folder,
    weights_named,
)
from stretto.adapters.models.model_names import ModelName, NameFault, check_name, resolve_name
from stretto.adapters.models.prices import is_priced
from stretto.adapters.models.provider_table import TIERS
from stretto.adapters.tools.search_endpoint import search_fault
from stretto.assembly.subagents import make_installed, may_run_command, search_endpoint
from stretto.config.settings import Settings
from stretto.plan.catalog import tools_of
from stretto.plan.model import Plan, PlannedAgent, briefs
from stretto.problems import Problem
from stretto.problems.errors import StrettoError
from stretto.recipe.model import Agent
from stretto.text.short import did_you_mean, listed
from stretto.toolnames.filters import tool_fault
from stretto.vocabulary.models import JUDGE_OFF, ModelSelection, is_asked
from stretto.vocabulary.names import CHANGING_TOOLS, COMMAND_AGENT, AgentId, tool_name

if TYPE_CHECKING:
    from stretto.assembly.project import Project

MISSING_WEIGHTS = "RUN006"
_FILE_TOOLS = frozenset(("Read", "Glob", "Grep", "Bash", *CHANGING_TOOLS))
_CONFIG = "the folder's stretto.yaml"
_SET_SEARCH = "set search: {url: …} in stretto.yaml, or STRETTO_SEARCH_URL"


class Machine:
    """What this machine and these settings let an agent use. `chosen`: the models of the run."""

    def __init__(self, project: "Project", chosen: ModelSelection) -> None:
        self._settings = project.settings
        self._environ = project.environ
        self._plugins = project.plugins
        self._tools = project.functions.tool_names
        self._chosen = chosen

    def agent_problems(self, agent: Agent) -> tuple[Problem, ...]:
        """What an agent would lack here. Its file may be sound and work on another machine."""
        tools = tools_of(agent)
        names = {tool_name(tool) for tool in tools}
        return (
            *self._named_model_problems(agent),
            # An agent file of another program may list tools that only that program has.
            *(
                Problem(fault.code, fault.message, hint=fault.hint)
                for tool in tools
                if (fault := tool_fault(tool, self._tools)) is not None
            ),
            *self.server_problems(tools),
            *self._package_problems(names),
            *(self._search_problems(agent) if "WebSearch" in names else ()),
            *(self._bash_problems if "Bash" in names else ()),
        )

    def model_problems(self, model: str) -> Iterator[Problem]:
        """Why a model of this name cannot be asked from here."""
        if model.startswith("cli:"):
            yield from self._command_problems(model)
        elif is_local(model):
            yield from self._weights_problems(model)
        elif fault := check_name(model, self._environ):
            if not self._plugins.adds("stretto.models", model.partition(":")[0]):
                yield Problem("RUN001", fault.says, hint=fault.hint)
                return
            try:  # only its package knows what it needs
                make_installed(model, self._plugins, self._environ)
            except StrettoError as error:
                yield Problem("RUN001", error.message, hint=error.hint)

    def server_problems(self, tools: Iterable[str]) -> Iterator[Problem]:
        """Of the MCP servers whose tools are listed."""
        known = self._settings.mcp_servers
        names = (tool_name(tool) for tool in tools)
        for server in dict.fromkeys(n.split("__")[1] for n in names if n.startswith("mcp__")):
            offered = self._settings.offered
            if server not in known and offered and server in offered.mcp_servers:
                said = f"the MCP server '{server}' is not used: its folder is not trusted"
                yield Problem("RUN003", said, hint=f"read {_CONFIG}, then: stretto trust")
                continue
            if server not in known:
                hint = did_you_mean(server, known) or "name it under mcp_servers: in stretto.yaml"
                yield Problem("RUN003", f"there is no MCP server '{server}'", hint=hint)
                continue
            from stretto.adapters.tools.mcp_config import read_servers

            for fault in read_servers({server: known[server]})[1]:
                said = f"mcp_servers.{server}: {fault.message}"
                yield Problem("RUN003", said, hint=fault.hint)

    def search_fault(self, model: str | None) -> str | None:
        """Why WebSearch cannot be used with this model. A CLI brings its own search."""
        if (model or "").startswith("cli:"):
            return None
        return search_fault(model, search_endpoint(self._settings), self._environ)

    def _named_model_problems(self, agent: Agent) -> Iterator[Problem]:
        for name in filter(None, (agent.model, *agent.fallback_models)):
            yield from self.model_problems(name)
            meant = resolve_name(name, self._environ)
            if isinstance(meant, ModelName) and meant.note:
                yield Problem("RUN001", meant.note)

    def _command_problems(self, model: str) -> Iterator[Problem]:
        # Imported on use, here and below: few plans ask another program.
        from stretto.adapters.models.cli.names import NamedCommand, cli_fault, read_name

        asked = read_name(model)
        if said := cli_fault(model, self._environ.get("PATH"), self._settings.steps_write):
            yield Problem("RUN001", said)
        elif isinstance(asked, NamedCommand) and not may_run_command(
            asked.words, self._chosen, self._settings, self._environ
        ):
            yield Problem(
                "RUN005",
                f"it would start the command '{asked.words[0]}', unconfined",
                hint="allow it: --trust for one run, or cli_commands: in your own stretto.yaml",
            )

    def _weights_problems(self, model: str) -> Iterator[Problem]:
        weights = None if is_own_file(model) else weights_named(model)
        if find_spec("xllamacpp") is None:
            said = f"{model} needs a package that is not installed, xllamacpp"
            path = weights.name if weights else ""
            yield Problem("RUN001", said, path=path, hint="pip install 'stretto[local]'")
        if weights is None:
            return
        if Shelf(models_folder(self._settings.home, self._environ)).state(weights) == "absent":
            yield Problem(
                MISSING_WEIGHTS,
                f"the weights of {weights.title} are not on this machine ({weights.megabytes} MB)",
                path=weights.name,
                hint=f"stretto models pull {weights.name} fetches them once; "
                "or set a key, or --model",
            )

    def _package_problems(self, tools: Iterable[str]) -> Iterator[Problem]:
        if any(name.startswith("mcp__") for name in tools) and find_spec("mcp") is None:
            said = "MCP needs a package that is not installed"
            yield Problem("RUN003", said, hint="pip install 'stretto[mcp]'")

    def _search_problems(self, agent: Agent) -> Iterator[Problem]:
        meant = resolve_name(agent.model, self._environ) if agent.model else ModelName(None)
        if isinstance(meant, NameFault):
            return  # that the model cannot be asked is reported already
        if said := self.search_fault(meant.name or self._chosen.default or None):
            yield Problem("RUN004", said, hint=_SET_SEARCH)

    @cached_property
    def _bash_problems(self) -> tuple[Problem, ...]:
        if self._settings.sandbox == "off":
            return (Problem("RUN007", "the sandbox is off: Bash has all the rights of this user"),)
        from stretto.workspaces.sandbox.sandbox import NoSandbox, Setting, find_sandbox

        found = find_sandbox(cast(Setting, self._settings.sandbox), self._settings.steps_write)
        if not isinstance(found, NoSandbox):
            return ()
        return (
            Problem("RUN007", str(found), hint="; or ".join(each.fix for each in found.missing)),
        )


@dataclass(frozen=True, slots=True)
class Readiness:
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]


def readiness(plan: Plan, default: str, override: str | None, project: "Project") -> Readiness:
    problems: list[Problem] = [*_choice_problems(override or default, project.environ)]
    if problems:
        return Readiness(tuple(problems), ())
    # What keeps several agents from working is said once, with the names of all of them.
    faults: dict[Problem, list[str]] = {}
    warnings: list[str] = []
    settings, environ = project.settings, project.environ
    machine = Machine(project, ModelSelection(default, override))
    for agent in plan.agents.values():
        if not is_asked(agent.model):
            continue
        models = tuple(models_of(plan, agent, default, override, environ))
        for model in models:
            found = [*machine.model_problems(model)] or [*_price_problems(model, plan)]
            # Weights and prices are missing for every agent alike, and so is the user's own choice.
            are_shared = is_local(model) or any(each.code == "RUN002" for each in found)
            _note(faults, found, "" if are_shared or override else agent.id)
        _note(faults, machine.server_problems(agent.tools), agent.id)
        problems += _home_problems(agent, models, settings)
        _look_for_search(agent, machine.search_fault(models[0]), problems, warnings)
        if agent.tools and is_tiny(models[0]):
            warnings.append(f"agent '{agent.id}' goes without tools: {models[0]} is too small")
    bash = [
        agent.name if agent.id == COMMAND_AGENT else agent.id
        for agent in plan.agents.values()
        if "Bash" in map(tool_name, agent.tools)
    ]
    if bash and settings.sandbox == "off":
        warnings.append(f"THE SANDBOX IS OFF: Bash of {listed(bash)} has all your rights")
    judge = None if settings.judge == JUDGE_OFF else settings.judge
    for problem in machine.model_problems(judge) if judge else ():
        problems.append(replace(problem, message=f"the judge cannot be asked: {problem.message}"))
    told = (_of_agents(problem, agents) for problem, agents in faults.items())
    return Readiness(tuple(dict.fromkeys([*told, *problems])), tuple(warnings))


def _choice_problems(model: str, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Of the model that the user, the settings or the search for one has chosen: an agent that asks
    for `sonnet` may get another model, but the user who does must get that one."""
    meant = resolve_name(model, environ)
    if isinstance(meant, ModelName) and meant.name is None:
        said = f"the model '{model}' needs a key, and ANTHROPIC_API_KEY is not set"
        hint = "export ANTHROPIC_API_KEY=…, or --model cli:claude if that program is installed"
        if model.lower() not in TIERS:
            said, hint = (
                f"'{model}' names no model",
                "write provider:name, as in openai:gpt-5.4-mini",
            )
        yield Problem("RUN001", said, hint=hint)


def _note(faults: dict[Problem, list[str]], found: Iterable[Problem], agent: str) -> None:
    for problem in found:
        agents = faults.setdefault(problem, [])
        if agent and agent not in agents:
            agents.append(agent)


def first_models(
    plan: Plan, default: str, override: str | None, environ: Mapping[str, str]
) -> dict[AgentId, str]:
    """Whom each agent asks first."""
    return {
        id: next(models_of(plan, agent, default, override, environ), default)
        for id, agent in plan.agents.items()
    }


def needs_default(plan: Plan, environ: Mapping[str, str]) -> bool:
    """Whether some agent names no model of its own."""
    for agent in plan.agents.values():
        if not is_asked(agent.model):
            continue
        for name in (*named_models(plan, agent), *agent.fallback_models):
            meant = resolve_name(name, environ) if name else ModelName(None)
            if isinstance(meant, ModelName) and meant.name is None:
                return True
    return False


def named_models(plan: Plan, agent: PlannedAgent) -> Iterator[str | None]:
    """Whom this agent asks, as it is written; None: the run's own model."""
    for step in plan.steps:
        for brief in briefs(step.work):
            if brief.agent == agent.id:
                yield brief.model
            elif brief.fallback == agent.id:
                yield agent.model


def models_of(
    plan: Plan,
    agent: PlannedAgent,
    default: str,
    override: str | None,
    environ: Mapping[str, str],
) -> Iterator[str]:
    if override:
        yield override
        return
    for name in dict.fromkeys((*named_models(plan, agent), *agent.fallback_models)):
        meant = resolve_name(name, environ) if name else ModelName(None)
        yield (name or default) if isinstance(meant, NameFault) else (meant.name or default)


def _of_agents(problem: Problem, agents: Sequence[str]) -> Problem:
    if not agents:
        return problem
    named = f"agent '{agents[0]}'" if len(agents) == 1 else f"agents {listed(agents)}"
    return replace(problem, message=f"{named}: {problem.message}")


def _price_problems(model: str, plan: Plan) -> Iterator[Problem]:
    if plan.budget.usd is None or is_local(model) or _has_known_price(model):
        return
    yield Problem(
        "RUN002",
        f"the budget is in usd, and the price of {model} is not known",
        hint="bound it by `budget: {tokens: …}` instead, or use a model with a known price",
    )


def _has_known_price(model: str) -> bool:
    if not model.startswith("cli:"):
        return is_priced(model)
    from stretto.adapters.models.cli.names import NamedCli, read_name

    asked = read_name(model)  # these two report what a call has cost
    return isinstance(asked, NamedCli) and asked.cli.name in ("claude", "opencode")


def _home_problems(
    agent: PlannedAgent, models: Sequence[str], settings: Settings
) -> Iterator[Problem]:
    """An agent that touches files must not work on the whole home folder of the user."""
    touches = _FILE_TOOLS.intersection(map(tool_name, agent.tools))
    if not touches and not any(model.startswith("cli:") for model in models):
        return
    if settings.is_in_home:
        yield Problem(
            "RUN008",
            f"agent '{agent.id}' would work on your home folder, and so on all your files",
            hint="go to the folder that the run is about, or make one: mkdir work && cd work",
        )


def _look_for_search(
    agent: PlannedAgent, fault: str | None, problems: list[Problem], warnings: list[str]
) -> None:
    """An agent that has only WebSearch cannot work without it; others get a warning."""
    if fault is None or not any(tool_name(tool) == "WebSearch" for tool in agent.tools):
        return
    if len(agent.tools) == 1:
        said = f"agent '{agent.id}' has only WebSearch, and {fault}"
        problems.append(Problem("RUN004", said, hint=_SET_SEARCH))
    else:
        warnings.append(f"agent '{agent.id}' goes without WebSearch: {fault}")
