"""Typed ids of recipes, steps, agents, inputs and runs."""

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
