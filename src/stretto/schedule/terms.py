"""What an attempt is held to, besides what it is told. In: a step and an agent. Out: Terms.

The request to the runner and the content key are both made from these, so nothing that a runner
obeys can be left out of what makes two attempts the same work.
"""

from collections.abc import Mapping

from msgspec import Struct

from stretto.plan.model import PlannedAgent, PlannedStep
from stretto.vocabulary.ids import AgentId
from stretto.vocabulary.values import Json


class Terms(Struct, frozen=True):
    agent: AgentId
    tools: tuple[str, ...]
    max_turns: int | None
    max_output_tokens: int | None
    format: str | None
    schema: Mapping[str, Json] | None
    rules: tuple[str, ...]
    fallback_models: tuple[str, ...]
    may_write: bool
    read_set: tuple[str, ...]
    write_set: tuple[str, ...]


def terms_of(step: PlannedStep, agent: PlannedAgent) -> Terms:
    output = step.output
    return Terms(
        agent=agent.id,
        tools=agent.tools,
        max_turns=agent.max_turns,
        max_output_tokens=step.max_output_tokens or agent.max_output_tokens,
        format=output.format,
        schema=output.schema or agent.validation.schema,
        rules=agent.validation.rules,
        fallback_models=agent.fallback_models,
        may_write=step.posture == "writer",
        read_set=step.read_set,
        write_set=step.write_set,
    )
