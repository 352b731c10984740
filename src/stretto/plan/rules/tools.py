"""Agents are given tools that exist, and never those that delegate."""

from stretto.documents.node import Path
from stretto.plan.draft import Draft
from stretto.toolnames.filters import ToolFault, is_delegating, tool_fault
from stretto.vocabulary.tools import tool_name


def check(draft: Draft) -> None:
    for agent in draft.recipe.agents.values():
        for position, tool in enumerate(agent.tools):
            fault = tool_fault(tool, draft.catalog.tools)
            _report(draft, (*agent.at, "tools"), position, tool, fault)
        for position, tool in enumerate(agent.disallowed_tools):
            # Forbidding what nobody has is harmless, unless the name is a slip. A filter is not read
            # here: whatever it says, the whole tool is forbidden.
            if not is_delegating(tool_name(tool)):
                fault = tool_fault(tool_name(tool), draft.catalog.tools)
                _report(draft, (*agent.at, "disallowed_tools"), position, tool, fault)


def _report(draft: Draft, at: Path, position: int, tool: str, fault: ToolFault | None) -> None:
    if fault is not None:
        draft.problem_at_word(fault.code, at, position, tool, fault.message, fault.hint)
