"""Waves against the plainest way to find them: look at every step that is left, every time."""

from hypothesis import given

from stretto.plan.model import Plan, PlannedStep
from stretto.plan.waves import are_rivals, choices_of, places_of, waves
from stretto.vocabulary.names import StepId
from support.random_plans import plans


def plainly(plan: Plan) -> tuple[tuple[StepId, ...], ...]:
    ended: set[StepId] = set()
    result: list[tuple[StepId, ...]] = []
    choices = choices_of(plan)
    while len(ended) < len(plan.steps):
        wave: list[PlannedStep] = []
        free = plan.width
        for step in plan.steps:
            rivals = [o for o in wave if are_rivals(choices[step.index], choices[o.index])]
            others = [other for other in wave if other not in rivals]
            is_ready = step.id not in ended and ended.issuperset(step.depends_on)
            is_free = not any(step.claims.conflicts(other.claims) for other in others)
            more = max(0, places_of(step) - max(map(places_of, rivals), default=0))
            if is_ready and is_free and (free > 0 or more == 0):
                wave.append(step)
                free -= more
        ended.update(step.id for step in wave)
        result.append(tuple(step.id for step in wave))
    return tuple(result)


@given(plans(most_steps=12))
def test_waves_are_those_that_plain_looking_finds(plan: Plan) -> None:
    assert waves(plan) == plainly(plan)
