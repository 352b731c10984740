"""Choose the playbooks of each step before a run starts. In: a plan and its inputs. Out: the plan.

The choice is part of the plan, and so of the run's first event. So a run that is resumed tells its
models the same, a person approves what will be said, and an answer is reused only where the
same playbooks were given. What an agent is asked is known before the run except for the outputs of
earlier steps; the query is made of what is known.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from msgspec import structs

from stretto.plan.composed_prompt import LearnedSkill, learned_skills
from stretto.plan.model import (
    Brief,
    Plan,
    PlannedBranch,
    PlannedCondition,
    PlannedDelegation,
    PlannedLoop,
    PlannedMap,
    PlannedParallel,
    PlannedPlaybook,
    PlannedSwitch,
    PlannedWork,
    Target,
)
from stretto.playbooks.library import Library
from stretto.playbooks.playbook import Playbook
from stretto.templates.render import render_known
from stretto.templates.scope import Scope
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import is_asked

# How much of a playbook's name and description the work must speak of.
_GIVEN_COVERAGE = 0.27
_NAMED_COVERAGE = 0.2
_MOST_QUERY = 20_000  # characters


@dataclass(frozen=True, slots=True)
class ChoiceLimits:
    top: int = 3  # playbooks that one step is given in full
    named: int = 8  # more of them that it is only told the names of
    characters: int = 8_000  # of all that are given in full


@dataclass(frozen=True, slots=True)
class ChosenPlaybooks:
    given: tuple[Playbook, ...] = ()
    named: tuple[Playbook, ...] = ()

    @property
    def text(self) -> str:
        """The block for a prompt; the lead agent is told it as well."""
        return learned_skills(
            [LearnedSkill(each.name, each.description, each.body) for each in self.given],
            [LearnedSkill(each.name, each.description) for each in self.named],
        )


def choose(
    library: Library, query: str, limits: ChoiceLimits, is_for_step: bool = False
) -> ChosenPlaybooks:
    """`is_for_step`: bundled playbooks are for the lead agent, and no step is given one unasked."""
    given: list[Playbook] = []
    named: list[Playbook] = []
    room = limits.characters
    for found in library.search(query[:_MOST_QUERY], limits.top + limits.named + 10):
        playbook = found.playbook
        if is_for_step and playbook.layer == "bundled":
            continue
        is_near = found.coverage >= _GIVEN_COVERAGE and len(given) < limits.top
        if is_near and len(playbook.body) <= room:
            given.append(playbook)
            room -= len(playbook.body)
        elif found.coverage >= _NAMED_COVERAGE and len(named) < limits.named:
            named.append(playbook)
    return ChosenPlaybooks(tuple(given), tuple(named))


def without_playbooks(plan: Plan) -> Plan:
    """As it was before any were chosen: a recorded run that is run again gets those of today."""
    if not plan.playbooks:
        return plan

    def bare(brief: Brief) -> Brief:
        return structs.replace(brief, playbooks=(), loadable=())

    steps = (structs.replace(step, work=_with_briefs(step.work, bare)) for step in plan.steps)
    return structs.replace(plan, steps=tuple(steps), playbooks={})


def with_playbooks(
    plan: Plan, inputs: Mapping[str, Json], library: Library, limits: ChoiceLimits
) -> Plan:
    choice = _Choice(plan, inputs, library, limits)
    steps = tuple(
        structs.replace(step, work=_with_briefs(step.work, choice.equip)) for step in plan.steps
    )
    if not choice.found:
        return plan
    return structs.replace(plan, steps=steps, playbooks=choice.found)


@dataclass(slots=True)
class _Choice:
    plan: Plan
    inputs: Mapping[str, Json]
    library: Library
    limits: ChoiceLimits
    found: dict[str, PlannedPlaybook] = field(default_factory=dict)

    def equip(self, brief: Brief) -> Brief:
        agent = self.plan.agents[brief.agent]
        if not is_asked(agent.model):
            return brief
        chosen = choose(self.library, self._query(brief), self.limits, is_for_step=True)
        if not chosen.given and not chosen.named:
            return brief
        for each in (*chosen.given, *chosen.named):
            was = self.found.get(each.name)
            text = each.body if each in chosen.given else was.text if was else ""
            self.found[each.name] = PlannedPlaybook(each.description, each.digest, text)
        return structs.replace(
            brief,
            playbooks=tuple(each.name for each in chosen.given),
            loadable=tuple(each.name for each in chosen.named),
        )

    def _query(self, brief: Brief) -> str:
        agent = self.plan.agents[brief.agent]
        scope = Scope(inputs=dict(self.inputs), steps={}, stored=self.plan.stored, local={})
        told = [agent.role]
        if brief.instruction is not None:
            told.insert(0, render_known(brief.instruction, scope))
        if brief.instruction is None or brief.style == "input":
            told.append(render_known(agent.prompt, scope))
        return "\n".join(told)


def _with_briefs(work: PlannedWork, change: Callable[[Brief], Brief]) -> PlannedWork:
    """The same work, with every brief changed."""

    def target(old: Target | None) -> Target | None:
        if old is None or old.brief is None:
            return old
        return structs.replace(old, brief=change(old.brief))

    match work:
        case PlannedDelegation():
            return structs.replace(work, brief=change(work.brief))
        case PlannedParallel():
            branches = (PlannedBranch(each.key, change(each.brief)) for each in work.branches)
            return structs.replace(work, branches=tuple(branches))
        case PlannedCondition():
            return structs.replace(
                work, if_true=target(work.if_true), if_false=target(work.if_false)
            )
        case PlannedSwitch():
            cases = tuple((case, target(each) or each) for case, each in work.cases)
            return structs.replace(work, cases=cases, default=target(work.default))
        case PlannedLoop():
            validator = change(work.validator) if work.validator else None
            return structs.replace(work, producer=change(work.producer), validator=validator)
        case PlannedMap():
            reducer = change(work.reducer) if work.reducer else None
            return structs.replace(work, stages=tuple(map(change, work.stages)), reducer=reducer)
        case _:
            return work
