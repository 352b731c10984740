"""The three ways to write a recipe (RECIPES §1). They differ in their defaults and in nothing else."""

from stretto.recipe.model import Dialect
from stretto.vocabulary.ids import AgentId

# Seeds 000 and 001: `name` and `steps` at the root, edges as written.
FLAT = Dialect(
    name="flat",
    agent_key="subagent",
    instruction_key="prompt",
    chains_steps=False,
    on_failure="inline",
    width=None,
    needs_name=True,
    needs_instruction=True,
    default_agent=None,
)


# Seed 004: everything under `workflow:`, steps follow one another.
WRAPPED = Dialect(
    name="wrapped",
    agent_key="agent",
    instruction_key="input",
    chains_steps=True,
    on_failure="abort",
    width=None,
    needs_name=True,
    needs_instruction=False,  # the agent's own prompt says what to do
    default_agent=None,
)


# Seed 002: steps carry `task` and are held apart by their sets.
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
