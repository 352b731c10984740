"""Typed ids of recipes, steps, agents, inputs and runs, and the tools that every room knows."""

import re
from typing import NewType

StepId = NewType("StepId", str)
AgentId = NewType("AgentId", str)
InputName = NewType("InputName", str)
RunId = NewType("RunId", str)

LEAD = AgentId("lead")  # the agent that talks in chats; only its turns may delegate
COMMAND_AGENT = AgentId("(command)")  # of steps that run a command; no author can write such an id

ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
# \Z, not $: in Python `$` also matches before a final newline.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\Z")


def is_id(text: str) -> bool:
    return _ID.match(text) is not None


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
