"""Agents are given tools that exist, and never those that delegate."""

from stretto.documents.node import Path
from stretto.plan.draft import Draft
from stretto.vocabulary.tools import DELEGATING_ALIASES, DELEGATING_TOOLS, tool_fault, tool_name


def check(draft: Draft) -> None:
    for agent in draft.recipe.agents.values():
        for position, tool in enumerate(agent.tools):
            _tool(draft, (*agent.at, "tools"), position, tool)
        for position, tool in enumerate(agent.disallowed_tools):
            # Forbidding what nobody has is harmless, unless the name is a slip.
            if tool_name(tool) not in DELEGATING_TOOLS | DELEGATING_ALIASES:
                _tool(draft, (*agent.at, "disallowed_tools"), position, tool)


def _tool(draft: Draft, at: Path, position: int, tool: str) -> None:
    fault = tool_fault(tool, draft.catalog.tools)
    if fault is not None:
        draft.say_word(fault.code, at, position, tool, fault.message, fault.hint)
