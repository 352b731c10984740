"""Agents are given tools that exist, and never those that delegate."""

from weft.documents.node import Path
from weft.plan.catalog import DELEGATING_ALIASES, DELEGATING_TOOLS, tool_name
from weft.plan.draft import Draft
from weft.vocabulary.names import did_you_mean, listed


def check(draft: Draft) -> None:
    for agent in draft.recipe.agents.values():
        for position, tool in enumerate(agent.tools):
            _tool(draft, (*agent.at, "tools", position), tool)
        for position, tool in enumerate(agent.disallowed_tools):
            # Forbidding what nobody has is harmless, unless the name is a slip.
            if tool_name(tool) not in draft.catalog.tools | DELEGATING_TOOLS | DELEGATING_ALIASES:
                _tool(draft, (*agent.at, "disallowed_tools", position), tool)


def _tool(draft: Draft, at: Path, written: str) -> None:
    name = tool_name(written)
    if name in DELEGATING_TOOLS or name in DELEGATING_ALIASES:
        draft.say(
            "RCP125",
            at,
            f"a subagent cannot be given '{name}'",
            "only the lead agent delegates; make it a step instead",
        )
    # What an MCP server offers is known only once it is asked.
    elif name not in draft.catalog.tools and not name.startswith("mcp__"):
        hint = did_you_mean(name, draft.catalog.tools)
        draft.say(
            "RCP126",
            at,
            f"there is no tool '{name}'",
            hint or f"tools: {listed(sorted(draft.catalog.tools), 12)}",
        )
