"""The structural dialect (seed 002): steps carry `task` and are held apart by their sets."""

from stretto.recipe.model import Dialect
from stretto.vocabulary.ids import AgentId

STRUCTURAL = Dialect(
    name="structural",
    agent_key="agent",
    instruction_key="task",
    chains_steps=False,
    on_failure="block",
    width=6,
    needs_name=False,  # documents of this kind are often handed over unnamed
    needs_instruction=True,
    default_agent=AgentId("default"),
)
