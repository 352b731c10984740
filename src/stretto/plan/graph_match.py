"""Whether two plans are the same graph: the same work in the same order, whatever their steps are called."""

import re

from stretto.plan.model import Plan, PlannedStep, briefs
from stretto.text.terms import likeness
from stretto.vocabulary.ids import StepId

LIKENESS = 0.8  # from here on two prompts ask for the same
_BRACES = re.compile(r"\{\{[^{}]*\}\}")


def match_steps(one: Plan, other: Plan) -> dict[StepId, StepId] | None:
    """Each step of the one and its counterpart in the other; None: they are not the same graph."""
    if len(one.steps) != len(other.steps):
        return None
    found: dict[StepId, StepId] = {}
    left = list(_in_order(other))
    for step in _in_order(one):
        before = {found[id] for id in step.edges}
        twins = [each for each in left if set(each.edges) == before]
        twin = max(twins, key=lambda each: _likeness(one, step, other, each), default=None)
        if twin is None or _likeness(one, step, other, twin) < LIKENESS:
            return None
        left.remove(twin)
        found[step.id] = twin.id
    return found


def is_same_work(one: Plan, step: PlannedStep, other: Plan, twin: PlannedStep) -> bool:
    return _likeness(one, step, other, twin) >= LIKENESS


def _likeness(one: Plan, step: PlannedStep, other: Plan, twin: PlannedStep) -> float:
    """That of the least like of their prompts; 0 where others are asked."""
    ours, theirs = _asked(one, step), _asked(other, twin)
    if step.type != twin.type or [who for who, _ in ours] != [who for who, _ in theirs]:
        return 0.0
    pairs = zip(ours, theirs, strict=True)
    return min((likeness(said, told) for (_, said), (_, told) in pairs), default=1.0)


def _asked(plan: Plan, step: PlannedStep) -> list[tuple[str, str]]:
    """Who is asked, and in which words; what is filled in has other names elsewhere."""
    found = []
    for brief in briefs(step.work):
        command = brief.command.run if brief.command else ""
        told = brief.instruction.text if brief.instruction else plan.agents[brief.agent].prompt.text
        found.append((str(brief.agent), command or _BRACES.sub(" ", told)))
    return found


def _in_order(plan: Plan) -> list[PlannedStep]:
    """Each after all that go before it."""
    ordered: dict[StepId, PlannedStep] = {}
    left = list(plan.steps)
    while left:
        ready = [step for step in left if all(id in ordered for id in step.edges)]
        ordered.update((step.id, step) for step in ready)
        left = [step for step in left if step.id not in ordered]
    return list(ordered.values())
