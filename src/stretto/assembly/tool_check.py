"""Check before a run that the agents of its plan can use their tools on this machine.

The tools are opened as an attempt would open them. So an MCP server that crashes, never gets ready
or marks nothing as read-only is found before a model is paid.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stretto.adapters.tools.search_endpoint import hosts_search
from stretto.adapters.tools.toolbox import StandardToolbox
from stretto.assembly.subagents import tool_settings
from stretto.events.attempts import AttemptId
from stretto.plan.model import Plan, PlannedStep, briefs
from stretto.ports.runner import AttemptRequest
from stretto.ports.tool import Toolbox
from stretto.problems import Problem
from stretto.toolnames.filters import read_listed
from stretto.vocabulary.names import AgentId

if TYPE_CHECKING:
    from stretto.assembly.project import Project

_READ_ONLY_STEP = "this step is read_only"


@dataclass(frozen=True, slots=True)
class ToolCheck:
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()


async def check_tools(
    plan: Plan,
    models: Mapping[AgentId, str],
    project: "Project",
    tell: Callable[[str], None] | None = None,
) -> ToolCheck:
    """`models`: the model that each agent asks first. `tell` hears which MCP server is started."""
    problems, warnings = dict[Problem, None](), dict[str, None]()
    settings, environ = project.settings, project.environ
    toolbox = StandardToolbox(
        tool_settings(settings),
        environ,
        functions=project.functions.tools,
        on_server=lambda name: tell(f"starting the MCP server '{name}'") if tell else None,
    )
    try:
        for request in _requests(plan, models, str(settings.project)):
            faults = await _faults(toolbox, request, environ)
            listed = [each.name for each in read_listed(request.tools)]
            if listed and len(faults) == len(listed):
                problems[_problem(request.agent, request.step, faults)] = None
                continue
            for name, why in faults.items():
                # `readiness` reports WebSearch, and a reader goes without Write because its recipe says so.
                if name != "WebSearch" and why != _READ_ONLY_STEP:
                    warnings[f"agent '{request.agent}' goes without {name}: {why}"] = None
    finally:
        await toolbox.close()
    return ToolCheck(tuple(problems), tuple(warnings))


async def _faults(
    toolbox: Toolbox, request: AttemptRequest, environ: Mapping[str, str]
) -> dict[str, str]:
    """By name, for each listed tool that cannot be used: why."""
    async with toolbox.open(request) as tools:
        faults = {}
        for name in (each.name for each in read_listed(request.tools)):
            # `mcp__server` and `mcp__server__*` stand for all the tools of that server.
            stem = name.removesuffix("*").rstrip("_")
            made = [
                tool for own, tool in tools.items()
                if own in (name, stem) or own.startswith(f"{stem}__")
            ]  # fmt: skip
            if not made and name == "WebSearch" and hosts_search(request.model, environ):
                continue
            if not any(not tool.spec.fault for tool in made):
                faults[name] = made[0].spec.fault if made else _READ_ONLY_STEP
        return faults


def _problem(agent: AgentId, step: str, faults: Mapping[str, str]) -> Problem:
    reasons = "; ".join(f"{name}: {why}" for name, why in faults.items())
    hint = "fix the tool, give the agent another one, or none: without them it can only guess"
    if set(faults.values()) == {_READ_ONLY_STEP}:
        hint = "write posture: writer, or give the agent a tool that reads"
    message = f"step '{step}': agent '{agent}' can use none of its tools ({reasons})"
    return Problem("RUN007", message, hint=hint)


def _requests(
    plan: Plan, models: Mapping[AgentId, str], workspace: str
) -> Iterator[AttemptRequest]:
    seen = set[tuple[AgentId, bool]]()
    for step in plan.steps:
        asked = [agent for brief in briefs(step.work) for agent in (brief.agent, brief.fallback)]
        for agent in (each for each in asked if each is not None):
            place = (agent, step.posture == "writer")
            is_cli = models.get(agent, "").startswith("cli:")
            if place not in seen and plan.agents[agent].tools and not is_cli:
                seen.add(place)
                yield _request(plan, step, agent, models.get(agent), workspace)


def _request(
    plan: Plan, step: PlannedStep, agent: AgentId, model: str | None, workspace: str
) -> AttemptRequest:
    return AttemptRequest(
        run_id="",
        attempt=AttemptId(step.id, 0),
        agent=agent,
        instructions="",
        prompt="",
        model=model,
        tools=plan.agents[agent].tools,
        max_turns=None,
        format=None,
        schema=None,
        rules=(),
        workspace=workspace,
        may_write=step.posture == "writer",
        read_set=step.read_set,
        write_set=step.write_set,
    )
