"""Choose the playbooks of each step before a run starts. In: a plan and its inputs. Out: the plan.

The choice is part of the plan, and so of the run's first event. So a run that is resumed tells its
models the same, a person approves what will be said, and an answer is reused only where the
same playbooks were given. What an agent is asked is known before the run except for the outputs of
earlier steps; the query is made of what is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from msgspec import structs

from stretto.plan.composed_prompt import LearnedSkill, learned_skills
from stretto.plan.model import Brief, Plan, PlannedPlaybook
from stretto.plan.workflow_steps import known_scopes, with_briefs
from stretto.playbooks.library import Library
from stretto.playbooks.playbook import Playbook
from stretto.templates.render import known_pieces
from stretto.templates.scope import Scope
from stretto.templates.template import Template
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import is_asked
from stretto.vocabulary.names import LEAD

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
    """The plan before any were chosen: a recorded run that is run again is given those of today."""
    if not plan.playbooks:
        return plan

    def bare(brief: Brief) -> Brief:
        return structs.replace(brief, playbooks=(), loadable=())

    steps = (structs.replace(step, work=with_briefs(step.work, bare)) for step in plan.steps)
    return structs.replace(plan, steps=tuple(steps), playbooks={})


def with_playbooks(
    plan: Plan, inputs: Mapping[str, Json], library: Library, limits: ChoiceLimits
) -> Plan:
    choice, scopes = _Choice(plan, library, limits), known_scopes(plan, inputs)
    steps = tuple(
        structs.replace(
            step, work=with_briefs(step.work, partial(choice.equip, scopes[step.inside]))
        )
        for step in plan.steps
    )
    if not choice.found:
        return plan
    return structs.replace(plan, steps=steps, playbooks=choice.found)


@dataclass(slots=True)
class _Choice:
    plan: Plan
    library: Library
    limits: ChoiceLimits
    found: dict[str, PlannedPlaybook] = field(default_factory=dict)

    def equip(self, scope: Scope, brief: Brief) -> Brief:
        agent = self.plan.agents[brief.agent]
        if not is_asked(agent.model):
            return brief
        is_for_step = brief.agent != LEAD
        chosen = choose(self.library, self._query(brief, scope), self.limits, is_for_step)
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

    def _query(self, brief: Brief, scope: Scope) -> str:
        agent = self.plan.agents[brief.agent]
        told = [agent.role]
        if brief.instruction is not None:
            told.insert(0, _begin(brief.instruction, scope))
        if brief.instruction is None or brief.style == "input":
            told.append(_begin(agent.prompt, scope))
        return "\n".join(told)


def _begin(template: Template, scope: Scope) -> str:
    """As much as a query takes: an input may be large, and be named many times."""
    told = ""
    for piece in known_pieces(template, scope):
        told += piece[:_MOST_QUERY]
        if len(told) >= _MOST_QUERY:
            break
    return told
