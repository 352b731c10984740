"""The tools that every room knows by name, and how a name with its filter is written."""

from dataclasses import dataclass

from stretto.vocabulary.names import did_you_mean, listed

# Tools that can change files make their agent a writer (RECIPES §9).
CHANGING_TOOLS = frozenset({"Write", "Edit", "Bash", "MultiEdit", "NotebookEdit"})
KNOWN_TOOLS = CHANGING_TOOLS | {"Read", "Glob", "Grep", "WebFetch", "WebSearch"}
# Only the lead agent delegates, so delegation is one level deep by construction.
DELEGATING_TOOLS = frozenset({"task", "task_batch", "run_workflow", "save_workflow"})
# The same powers under the names that other tools give them.
DELEGATING_ALIASES = frozenset({"Task", "Agent"})


@dataclass(frozen=True, slots=True)
class ToolFault:
    code: str
    message: str
    hint: str


def tool_fault(written: str, known: frozenset[str]) -> ToolFault | None:
    """Why a subagent cannot have this tool."""
    name = tool_name(written)
    if name in DELEGATING_TOOLS or name in DELEGATING_ALIASES:
        hint = "only the lead agent delegates; make it a step instead"
        return ToolFault("RCP125", f"a subagent cannot be given '{name}'", hint)
    # What an MCP server offers is known only once it is asked.
    if name in known or name.startswith("mcp__"):
        return None
    hint = did_you_mean(name, known) or f"tools: {listed(sorted(known), 12)}"
    return ToolFault("RCP126", f"there is no tool '{name}'", hint)


def tool_name(written: str) -> str:
    """`Bash(git diff:*)` is Bash with a filter."""
    return written.split("(", 1)[0].strip()
