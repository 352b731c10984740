"""Whether a plan can run here. In: a plan and the settings. Out: what would fail, all at once.

A missing key, package, search or price is told before anything starts, not by the fifth step.
Nothing is asked over the network, and no provider is imported.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from stretto.adapters.models.cli.names import AskedCli, AskedCommand, cli_fault, read_name
from stretto.adapters.models.local.catalog import is_local, is_own_file, is_tiny, weights_named
from stretto.adapters.models.local.shelf import Shelf, models_folder
from stretto.adapters.models.model_names import Fault, Meant, check_name, meaning
from stretto.adapters.models.prices import is_priced
from stretto.adapters.tools.search_hosts import search_fault
from stretto.assembly.chosen import Chosen
from stretto.assembly.subagents import may_run_command, search_endpoint
from stretto.config.settings import Settings
from stretto.plan.model import Plan, PlannedAgent, briefs
from stretto.problems import Problem
from stretto.vocabulary.ids import AgentId
from stretto.vocabulary.names import did_you_mean, listed
from stretto.vocabulary.tools import CHANGING_TOOLS, tool_name

MISSING_WEIGHTS = "RUN006"
_FILE_TOOLS = frozenset(("Read", "Glob", "Grep", "Bash", *CHANGING_TOOLS))


@dataclass(frozen=True, slots=True)
class Readiness:
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]


def readiness(
    plan: Plan, default: str, override: str | None, settings: Settings, environ: Mapping[str, str]
) -> Readiness:
    problems: list[Problem] = []
    warnings: list[str] = []
    for agent in plan.agents.values():
        models = tuple(models_of(plan, agent, default, override, environ))
        for model in models:
            problems += _model_problems(agent, model, plan, settings, environ)
            problems += _command_problems(
                agent, model, Chosen(default, override), settings, environ
            )
        problems += _server_problems(agent, settings)
        problems += _home_problems(agent, models, settings)
        _look_for_search(agent, models[0], settings, environ, problems, warnings)
        if agent.tools and is_tiny(models[0]):
            warnings.append(f"agent '{agent.id}' goes without tools: {models[0]} is too small")
    bash = [agent.id for agent in plan.agents.values() if "Bash" in map(tool_name, agent.tools)]
    if bash and settings.sandbox == "off":
        warnings.append(f"THE SANDBOX IS OFF: Bash of {listed(bash)} has all your rights")
    if settings.judge and (fault := check_name(settings.judge, environ)):
        problems.append(
            Problem("RUN001", f"the judge cannot be asked: {fault.says}", hint=fault.hint)
        )
    return Readiness(tuple(dict.fromkeys(problems)), tuple(warnings))


def first_models(
    plan: Plan, default: str, override: str | None, environ: Mapping[str, str]
) -> dict[AgentId, str]:
    """Whom each agent asks first."""
    return {
        id: next(models_of(plan, agent, default, override, environ), default)
        for id, agent in plan.agents.items()
    }


def needs_default(plan: Plan, environ: Mapping[str, str]) -> bool:
    """Whether somebody names no model of his own."""
    for agent in plan.agents.values():
        for name in (*named_models(plan, agent), *agent.fallback_models):
            meant = meaning(name, environ) if name else Meant(None)
            if isinstance(meant, Meant) and meant.name is None:
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
        meant = meaning(name, environ) if name else Meant(None)
        yield (name or default) if isinstance(meant, Fault) else (meant.name or default)


def _model_problems(
    agent: PlannedAgent,
    model: str,
    plan: Plan,
    settings: Settings,
    environ: Mapping[str, str],
) -> Iterator[Problem]:
    if model.startswith("cli:"):
        if said := cli_fault(model, environ.get("PATH"), settings.steps_write):
            yield Problem("RUN001", f"agent '{agent.id}': {said}")
        if plan.budget.usd is not None and not _says_its_cost(model):
            yield _unpriced(model)
        return
    if is_local(model):
        yield from _weights_problems(model, settings, environ)
    elif fault := check_name(model, environ):
        yield Problem("RUN001", f"agent '{agent.id}': {fault.says}", hint=fault.hint)
    elif plan.budget.usd is not None and not is_priced(model):
        yield _unpriced(model)


def _unpriced(model: str) -> Problem:
    return Problem(
        "RUN002",
        f"the budget is in usd, and nobody knows what {model} costs",
        hint="bound it by `budget: {tokens: …}` instead, or use a model with a known price",
    )


def _says_its_cost(model: str) -> bool:
    asked = read_name(model)
    return isinstance(asked, AskedCli) and asked.cli.name in ("claude", "opencode")


def _weights_problems(
    model: str, settings: Settings, environ: Mapping[str, str]
) -> Iterator[Problem]:
    if find_spec("xllamacpp") is None:
        hint = "pip install 'stretto[local]'"
        yield Problem("RUN001", f"{model} needs a package that is not installed", hint=hint)
    if is_own_file(model):
        return
    weights = weights_named(model)
    if Shelf(models_folder(settings.home, environ)).state(weights) == "absent":
        yield Problem(
            MISSING_WEIGHTS,
            f"the weights of {weights.title} are not on this machine ({weights.megabytes} MB)",
            path=weights.name,
            hint=f"stretto models pull {weights.name} fetches them once; or set a key, or --model",
        )


def _command_problems(
    agent: PlannedAgent,
    model: str,
    chosen: Chosen,
    settings: Settings,
    environ: Mapping[str, str],
) -> Iterator[Problem]:
    asked = read_name(model) if model.startswith("cli:") else None
    if isinstance(asked, AskedCommand) and not may_run_command(
        asked.words, chosen, settings, environ
    ):
        yield Problem(
            "RUN005",
            f"agent '{agent.id}' would start the command '{asked.words[0]}', unconfined",
            hint="allow it: --trust for this run, or cli_commands: in your own stretto.yaml",
        )


def _home_problems(
    agent: PlannedAgent, models: Sequence[str], settings: Settings
) -> Iterator[Problem]:
    """Whoever touches files must not be let loose on all that a user owns."""
    touches = _FILE_TOOLS.intersection(map(tool_name, agent.tools))
    if not touches and not any(model.startswith("cli:") for model in models):
        return
    if settings.is_in_home:
        yield Problem(
            "RUN008",
            f"agent '{agent.id}' would work on your home folder, with all that you own",
            hint="go to the folder that the run is about, or make one: mkdir work && cd work",
        )


def _server_problems(agent: PlannedAgent, settings: Settings) -> Iterator[Problem]:
    for written in agent.tools:
        name = tool_name(written)
        if not name.startswith("mcp__"):
            continue
        server = name.split("__")[1]
        if server not in settings.mcp_servers:
            hint = (
                did_you_mean(server, settings.mcp_servers)
                or "name it under mcp_servers: in stretto.yaml"
            )
            yield Problem(
                "RUN003", f"agent '{agent.id}': there is no MCP server '{server}'", hint=hint
            )


def _look_for_search(
    agent: PlannedAgent,
    model: str,
    settings: Settings,
    environ: Mapping[str, str],
    problems: list[Problem],
    warnings: list[str],
) -> None:
    """An agent that can do nothing else cannot work without; others are told that they have none."""
    if not any(tool_name(tool) == "WebSearch" for tool in agent.tools) or model.startswith("cli:"):
        return
    said = search_fault(model, search_endpoint(settings), environ)
    if said is None:
        return
    if len(agent.tools) == 1:
        hint = "set search: {url: …} in stretto.yaml, or STRETTO_SEARCH_URL"
        problems.append(
            Problem("RUN004", f"agent '{agent.id}' has only WebSearch, and {said}", hint=hint)
        )
    else:
        warnings.append(f"agent '{agent.id}' goes without WebSearch: {said}")
