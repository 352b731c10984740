"""Whether an agent writes. In: Agent. Out: by its tools, or because it says so."""

from collections.abc import Iterable, Iterator, Set

from stretto.plan.draft import Draft, DraftStep
from stretto.recipe.model import Agent, Posture
from stretto.vocabulary.tools import CHANGING_TOOLS, tool_name


def tools_of(agent: Agent) -> tuple[str, ...]:
    denied = {tool_name(tool) for tool in agent.disallowed_tools}
    return tuple(tool for tool in agent.tools if tool_name(tool) not in denied)


def posture_of(agents: Iterable[Agent], changing: Set[str] = CHANGING_TOOLS) -> Posture:
    """Of a step that says none, whose agents these are. `changing`: tools that change files."""
    return "writer" if any(_is_writer(agent, changing) for agent in agents) else "read_only"


def agents_of(draft: Draft, drafted: DraftStep) -> Iterator[Agent]:
    """Who does the work of a step, and who takes over."""
    step = drafted.step
    for use in drafted.uses:
        agent = draft.agent(use.agent)
        if agent is None:
            continue  # another rule says so
        yield agent
        nearest = step.on_failure or step.retry.on_failure or agent.retry.on_failure
        fallback = draft.agent(nearest.fallback) if nearest and nearest.fallback else None
        if fallback is not None:
            yield fallback


def has_means_to_write(agent: Agent, model: str | None, changing: Set[str]) -> bool:
    """A tool that changes files; one of an MCP server may; another program has tools of its own."""
    if (model or agent.model or "").startswith("cli:"):
        return True
    return any(tool_name(tool) in changing or tool.startswith("mcp__") for tool in tools_of(agent))


def _is_writer(agent: Agent, changing: Set[str]) -> bool:
    if agent.posture:
        return agent.posture == "writer"
    return any(tool_name(tool) in changing for tool in tools_of(agent))
