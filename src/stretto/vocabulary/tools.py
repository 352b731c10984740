"""The tools that every room knows by name, and how a name with its filter is written."""

# Tools that can change files make their agent a writer.
CHANGING_TOOLS = frozenset({"Write", "Edit", "Bash", "MultiEdit", "NotebookEdit"})
KNOWN_TOOLS = CHANGING_TOOLS | {"Read", "Glob", "Grep", "WebFetch", "WebSearch"}
# Every subagent that was told the names of playbooks has this one, whatever its agent lists.
LOAD_PLAYBOOK = "load_playbook"
# Only the lead agent delegates, so delegation is one level deep by construction.
DELEGATING_TOOLS = frozenset(
    {"task", "task_batch", "run_workflow", "save_workflow", "draft_workflow", "run_draft"}
)
# The same powers under the names that other tools give them.
DELEGATING_ALIASES = frozenset({"Task", "Agent"})


def tool_name(written: str) -> str:
    """`Bash(git diff:*)` is Bash with a filter."""
    return written.split("(", 1)[0].strip()
