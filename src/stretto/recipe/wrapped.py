"""The wrapped dialect (seed 004): everything under `workflow:`, steps follow one another."""

from stretto.recipe.model import Dialect

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
