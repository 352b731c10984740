"""What there is to draw. In: a Plan. Out: a Diagram of steps and links, the same for every format.

Diagram ── nodes: Box ── parts: InnerBox    a step, and the delegations inside it
  └───── links: Arrow                   without those that others imply
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Literal, TypeAlias

from stretto.plan.composed_prompt import command_line
from stretto.plan.model import (
    Brief,
    Plan,
    PlannedCondition,
    PlannedDelegation,
    PlannedLoop,
    PlannedMap,
    PlannedParallel,
    PlannedStep,
    PlannedSwitch,
    PlannedWork,
    PlannedWorkflow,
    StepType,
    Target,
    briefs,
)
from stretto.plan.workflow_steps import precedence
from stretto.report.diagrams.layout import Waits, ancestors_of, layers_of, without_implied
from stretto.text.short import fit_name, name_line
from stretto.vocabulary.names import StepId

Role: TypeAlias = Literal["branch", "choice", "producer", "judge", "test", "stage", "reducer"]

LONGEST_CONDITION = 40


@dataclass(frozen=True, slots=True)
class InnerBox:
    """A delegation inside a step, or the test that ends its loop."""

    role: Role
    name: str
    agent: str = ""  # where the name is another
    number: str = ""  # `2a`, for parts that stand side by side
    label: str = ""  # the condition that leads to it

    @property
    def title(self) -> str:
        return f"{self.number}. {self.name}" if self.number else self.name


@dataclass(frozen=True, slots=True)
class Box:
    index: int
    id: str
    kind: StepType
    agent: str  # where it is one, and not named like the step
    over: str  # what a map goes through
    notes: tuple[str, ...]
    is_gated: bool
    parts: tuple[InnerBox, ...]
    limit: int  # iterations of a loop
    status: str = ""  # of its step in a run
    link: str = ""  # where more is said about it, within the same page

    @property
    def number(self) -> str:
        return str(self.index + 1)

    @property
    def title(self) -> str:
        return f"{self.number}. {self.id}"

    def having(self, *roles: Role) -> tuple[InnerBox, ...]:
        return tuple(part for part in self.parts if part.role in roles)


@dataclass(frozen=True, slots=True)
class Arrow:
    before: int
    after: int
    label: str = ""  # the condition under which it is taken


@dataclass(frozen=True, slots=True)
class Diagram:
    name: str
    nodes: tuple[Box, ...]
    waits: Waits  # all that each node waits for
    links: tuple[Arrow, ...]
    layers: tuple[tuple[int, ...], ...]


def drawn_steps(plan: Plan, is_expanded: bool) -> tuple[PlannedStep, ...]:
    return tuple(step for step in plan.steps if is_expanded or step.inside is None)


def graph_of(plan: Plan, is_expanded: bool = False) -> Diagram:
    """`is_expanded`: with the steps of workflow steps; else each of these is one box."""
    steps = drawn_steps(plan, is_expanded)
    index_of = {step.id: index for index, step in enumerate(steps)}
    befores = precedence(plan) if is_expanded else {step.id: step.depends_on for step in steps}
    waits = tuple(tuple(sorted(index_of[id] for id in befores[step.id])) for step in steps)
    layers = layers_of(waits)
    routes = _routes(steps, index_of)
    # A routed step may never run, so it stands in for nothing that others wait for.
    sure = tuple(
        tuple(before for before in befores if (before, after) not in routes)
        for after, befores in enumerate(waits)
    )
    shown = without_implied(waits, ancestors_of(sure, layers))
    forks = dict(_forks(steps, index_of))
    links = (
        Arrow(before, after, routes.get((before, after), ""))
        for after, befores in enumerate(waits)
        for before in befores
        if (before, after) in routes
        or (before in shown[after] and not forks.get(before, _NEVER) <= set(befores))
    )
    sizes = Counter(step.inside for step in plan.steps)
    nodes = tuple(_node(index, step, sizes[step.id]) for index, step in enumerate(steps))
    return Diagram(name_line(plan.name), nodes, waits, tuple(links), layers)


def _routes(
    steps: Sequence[PlannedStep], index_of: Mapping[StepId, int]
) -> dict[tuple[int, int], str]:
    conditions: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for step in steps:
        for condition, target in _targets(step.work):
            if target.step is not None:
                conditions[index_of[step.id], index_of[target.step]].append(condition)
    return {link: _condition(" or ".join(cases)) for link, cases in conditions.items()}


# No step waits for this one, so no arrow is left out for it.
_NEVER = frozenset({-1})


def _forks(
    chosen_from: Sequence[PlannedStep], index_of: Mapping[StepId, int]
) -> Iterator[tuple[int, frozenset[int]]]:
    """Conditions that always lead to one of these steps: whoever waits for all of them is reached
    through them alone."""
    for step in chosen_from:
        match step.work:
            case PlannedCondition(if_true=one, if_false=other) if one and other:
                targets = [one, other]
            case PlannedSwitch(cases=cases, default=default) if default:
                targets = [*(target for _, target in cases), default]
            case _:
                continue
        steps = [index_of[target.step] for target in targets if target.step is not None]
        if len(steps) == len(targets):
            yield index_of[step.id], frozenset(steps)


def _targets(work: PlannedWork) -> Iterator[tuple[str, Target]]:
    """Where a conditional leads, and when."""
    pairs: list[tuple[str, Target | None]] = []
    if isinstance(work, PlannedCondition):
        pairs = [(_condition(work.condition.text), work.if_true), ("else", work.if_false)]
    elif isinstance(work, PlannedSwitch):
        value = _condition(work.value.text)
        pairs = [(f"{value} = {name_line(case)}", target) for case, target in work.cases]
        pairs.append(("else", work.default))
    return ((condition, target) for condition, target in pairs if target is not None)


def _node(index: int, step: PlannedStep, inner_steps: int) -> Box:
    number, work = index + 1, step.work
    agents = [_doer(brief) for brief in briefs(work)]
    agent = (
        agents[0]
        if isinstance(work, PlannedDelegation | PlannedLoop | PlannedMap) and agents
        else ""
    )
    return Box(
        index=index,
        id=name_line(step.id),
        kind=step.type,
        agent="" if agent == name_line(step.id) else agent,
        over=_over(work.over.text) if isinstance(work, PlannedMap) else "",
        notes=tuple(_notes(step, inner_steps)),
        is_gated=step.is_gated,
        parts=tuple(_parts(number, work)),
        limit=work.max_iterations if isinstance(work, PlannedLoop) else 0,
    )


def _doer(brief: Brief) -> str:
    if brief.command is not None:
        return fit_name(f"$ {command_line(brief.command.run)}", LONGEST_CONDITION)
    return name_line(brief.agent)


def _notes(step: PlannedStep, inner_steps: int) -> Iterator[str]:
    work = step.work
    if isinstance(work, PlannedWorkflow):
        name = fit_name(name_line(work.name), LONGEST_CONDITION)
        yield f"workflow {name}: {inner_steps} step{'' if inner_steps == 1 else 's'}"
    if step.is_gated:
        yield "human gate"
    if step.when is not None:
        yield f"when {_condition(step.when.text)}"
    if isinstance(work, PlannedParallel) and work.needed < len(work.branches):
        yield f"waits for {work.needed} of {len(work.branches)}"
    if isinstance(work, PlannedDelegation) and work.brief.fallback:
        yield f"fallback: {fit_name(name_line(work.brief.fallback), LONGEST_CONDITION)}"


def _parts(number: int, work: PlannedWork) -> Iterator[InnerBox]:
    match work:
        case PlannedParallel():
            for place, branch in enumerate(work.branches):
                name, agent = name_line(branch.key), name_line(branch.brief.agent)
                other = "" if agent == name else agent
                yield InnerBox("branch", name, other, f"{number}{_letter(place)}")
        case PlannedCondition() | PlannedSwitch():
            in_place = [(when, to.brief) for when, to in _targets(work) if to.brief is not None]
            for place, (when, brief) in enumerate(in_place):
                number_of = f"{number}{_letter(place)}"
                yield InnerBox("choice", name_line(brief.agent), number=number_of, label=when)
        case PlannedLoop():
            yield InnerBox("producer", name_line(work.producer.agent))
            if work.validator is not None:
                yield InnerBox("judge", _doer(work.validator))
            else:
                yield InnerBox("test", _condition(work.until.text) if work.until else "passed")
        case PlannedMap():
            for stage in work.stages:
                yield InnerBox("stage", name_line(stage.agent))
            if work.reducer is not None:
                yield InnerBox("reducer", name_line(work.reducer.agent))
        case PlannedDelegation() | PlannedWorkflow():
            pass


def _letter(place: int) -> str:
    """a … z, then aa: sixteen branches are the limit only until somebody raises it."""
    letters = ""
    while place >= 0:
        place, rest = divmod(place, 26)
        letters, place = ascii_lowercase[rest] + letters, place - 1
    return letters


def _condition(text: str) -> str:
    """`{{steps.score.output.points}} >= 80` → `points >= 80`."""
    text = re.sub(r"\{\{\s*|\s*\}\}", "", name_line(text))
    text = re.sub(r"\bsteps\.[\w-]+\.outputs?\.(?=\w)|\binputs\.", "", text)
    text = re.sub(r"\bsteps\.([\w-]+)(?:\.output\b)?", r"\1", text)
    return fit_name(text, LONGEST_CONDITION)


def _over(text: str) -> str:
    """`{{steps.split.output.chunks}}` → `split.output.chunks`."""
    return fit_name(re.sub(r"\{\{\s*(?:steps\.)?|\s*\}\}", "", name_line(text)), LONGEST_CONDITION)
