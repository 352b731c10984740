"""Every JSON schema of a recipe can be used. What that means, `stretto.validation.schema` decides."""

from collections.abc import Mapping

from stretto.documents.node import Path
from stretto.plan.draft import Draft
from stretto.validation.schema import SCHEMA_EXAMPLE, schema_faults
from stretto.vocabulary.values import Json


def check(draft: Draft) -> None:
    for agent in draft.recipe.agents.values():
        if agent.validation.schema is not None:
            _check(draft, agent.validation.schema, (*agent.at, "validation", "schema"))
    for step in draft.recipe.steps:
        if step.output.schema is not None:
            _check(draft, step.output.schema, (*step.at, "output", "schema"))


def _check(draft: Draft, schema: Mapping[str, Json], at: Path) -> None:
    for fault in schema_faults(schema):
        draft.problem_at("RCP124", (*at, *fault.path), fault.message, SCHEMA_EXAMPLE)
