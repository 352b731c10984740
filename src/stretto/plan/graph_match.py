"""Whether two plans are the same graph: the same work in the same order, whatever their steps are called."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from stretto.plan.model import Plan, PlannedStep, briefs
from stretto.text.terms import likeness
from stretto.vocabulary.names import StepId

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


def step_that_does(
    one: Plan, among: Sequence[PlannedStep], other: Plan, wanted: Sequence[PlannedStep]
) -> StepId | None:
    """Whether the steps of the one do, together, all that the wanted ones of the other do, in whatever
    shape: alone, as branches, as elements. Out: the first of them that does a part of it."""
    asked = [each for step in wanted for each in _find_questions(other, step)]
    found: list[StepId] = []
    for part in asked:
        doing = (
            step.id for step in among if any(_is_alike(e, part) for e in _find_questions(one, step))
        )
        if (id := next(doing, None)) is None:
            return None
        found.append(id)
    return found[0] if found else None


def _likeness(one: Plan, step: PlannedStep, other: Plan, twin: PlannedStep) -> float:
    """How alike two steps are: as their least similar prompts; 0 where they ask other agents."""
    ours, theirs = _find_questions(one, step), _find_questions(other, twin)
    if step.type != twin.type or [each.agent for each in ours] != [each.agent for each in theirs]:
        return 0.0
    pairs = zip(ours, theirs, strict=True)
    return min((likeness(said.words, told.words) for said, told in pairs), default=1.0)


class _Asked(NamedTuple):
    """Who is asked, and in which words, without references: each plan has its own names."""

    agent: str
    prompt: str  # of the agent itself
    words: str


def _find_questions(plan: Plan, step: PlannedStep) -> list[_Asked]:
    found = []
    for brief in briefs(step.work):
        command = brief.command.run if brief.command else ""
        prompt = plan.agents[brief.agent].prompt.text
        told = brief.instruction.text if brief.instruction else prompt
        words = command or _BRACES.sub(" ", told)
        found.append(_Asked(str(brief.agent), prompt, words))
    return found


def _is_alike(one: _Asked, other: _Asked) -> bool:
    """Agents with different ids count as the same if their prompts are alike."""
    is_same = one.agent == other.agent or (
        bool(one.prompt.strip()) and likeness(one.prompt, other.prompt) >= LIKENESS
    )
    return is_same and likeness(one.words, other.words) >= LIKENESS


def _in_order(plan: Plan) -> list[PlannedStep]:
    """Each after all that go before it."""
    ordered: dict[StepId, PlannedStep] = {}
    left = list(plan.steps)
    while left:
        ready = [step for step in left if all(id in ordered for id in step.edges)]
        ordered.update((step.id, step) for step in ready)
        left = [step for step in left if step.id not in ordered]
    return list(ordered.values())
