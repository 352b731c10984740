"""Waves against the plainest way to find them: look at every step that is left, every time."""

from hypothesis import given

from stretto.plan.dry_run import places_of, waves
from stretto.plan.model import Plan, PlannedStep
from stretto.vocabulary.ids import StepId
from support.random_plans import plans


def plainly(plan: Plan) -> tuple[tuple[StepId, ...], ...]:
    ended: set[StepId] = set()
    result: list[tuple[StepId, ...]] = []
    while len(ended) < len(plan.steps):
        wave: list[PlannedStep] = []
        for step in plan.steps:
            is_ready = step.id not in ended and ended.issuperset(step.depends_on)
            is_free = not any(step.claims.conflicts(other.claims) for other in wave)
            if is_ready and is_free and sum(map(places_of, wave)) < plan.width:
                wave.append(step)
        ended.update(step.id for step in wave)
        result.append(tuple(step.id for step in wave))
    return tuple(result)


@given(plans(most_steps=12))
def test_waves_are_those_that_plain_looking_finds(plan: Plan) -> None:
    assert waves(plan) == plainly(plan)
