"""The list that a map runs over."""

from collections.abc import Mapping

from stretto.plan.model import Plan, PlannedMap
from stretto.plan.workflow_steps import known_scopes
from stretto.templates.json_text import find_json
from stretto.templates.render import whole_value
from stretto.templates.scope import MISSING, Missing, Scope
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import StepId


def elements_of(work: PlannedMap, scope: Scope) -> Json | Missing:
    """The list, or the value that is there instead."""
    found = whole_value(work.over, scope)
    held = find_json(found) if isinstance(found, str) else found
    return found if held is MISSING else held


def known_lengths(plan: Plan, inputs: Mapping[str, Json]) -> dict[StepId, int]:
    """How long the lists are that inputs or the recipe itself give."""
    lengths, scopes = dict[StepId, int](), known_scopes(plan, inputs)
    for step in plan.steps:
        if isinstance(step.work, PlannedMap):
            # `over` is one reference or a list as text: what a step gives is missing here.
            found = elements_of(step.work, scopes[step.inside])
            if isinstance(found, list):
                lengths[step.id] = len(found)
    return lengths
