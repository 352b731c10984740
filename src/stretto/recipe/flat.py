"""The flat dialect (seeds 000, 001): `name` and `steps` at the root, edges as written."""

from stretto.recipe.model import Dialect

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
