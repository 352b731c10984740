"""What a recipe means. Out of: build. A Plan is frozen: a run in flight never sees an edit.

Plan ── steps: PlannedStep ── work: PlannedDelegation | PlannedParallel | …
                                      └─ Brief: who is told what, and what if it fails
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from stretto.plan.claims import Claims
from stretto.problems import Problem
from stretto.recipe.model import (
    Backoff,
    Budget,
    Input,
    MergeBack,
    Output,
    Policy,
    Posture,
    Recovery,
    Validation,
    Wait,
    WorkspaceMode,
)
from stretto.templates.expression import Expression
from stretto.templates.reference import Reference
from stretto.templates.template import Template
from stretto.vocabulary.ids import AgentId, StepId

StepType: TypeAlias = Literal["sequential", "parallel", "conditional", "loop", "map"]
# How a subagent is told: by a prompt alone, by an "Input" heading after its agent's own prompt,
# or by a task followed by what its dependencies found.
BriefStyle: TypeAlias = Literal["prompt", "input", "task"]
EdgeReason: TypeAlias = Literal["written", "listed before", "reference", "routed", "context"]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    max_attempts: int = 1
    backoff: Backoff = "none"


@dataclass(frozen=True, slots=True)
class PlannedAgent:
    id: AgentId
    name: str
    role: str
    prompt: Template
    tools: tuple[str, ...]  # the allow-list less the deny-list
    model: str | None
    fallback_models: tuple[str, ...]
    max_turns: int | None
    timeout_seconds: float | None
    validation: Validation
    max_output_tokens: int | None = None  # of one answer; None: the model's own limit


@dataclass(frozen=True, slots=True)
class Brief:
    """One delegation: who is told what, and what happens when it fails."""

    agent: AgentId
    told: Template | None  # None: the agent's own prompt says it all
    style: BriefStyle
    gets_all_prior: bool = False  # `input: all prior context`
    model: str | None = None  # the step's, before the agent's
    retry: RetryPolicy = RetryPolicy()
    on_failure: Policy | None = None  # the agent's own policy, None when it wrote none
    fallback: AgentId | None = None


@dataclass(frozen=True, slots=True)
class PlannedDelegation:
    brief: Brief


@dataclass(frozen=True, slots=True)
class PlannedBranch:
    key: str  # its name in steps.ID.outputs
    brief: Brief


@dataclass(frozen=True, slots=True)
class PlannedParallel:
    branches: tuple[PlannedBranch, ...]
    wait: Wait

    @property
    def needed(self) -> int:
        """How many branches must succeed."""
        return {"all": len(self.branches), "any": 1}.get(str(self.wait)) or int(self.wait)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a condition leads: to a step, or to an agent that runs in place."""

    step: StepId | None = None
    brief: Brief | None = None

    @property
    def name(self) -> str:
        return self.step or (self.brief.agent if self.brief else "")


@dataclass(frozen=True, slots=True)
class PlannedCondition:
    condition: Expression
    if_true: Target | None
    if_false: Target | None


@dataclass(frozen=True, slots=True)
class PlannedSwitch:
    value: Expression
    cases: tuple[tuple[str, Target], ...]
    default: Target | None


@dataclass(frozen=True, slots=True)
class PlannedLoop:
    """A loop: produce, judge, produce again with the feedback."""

    producer: Brief
    validator: Brief | None
    until: Expression | None
    max_iterations: int
    # Where in the verdict the feedback stands; None: its `feedback` field, else all of it.
    feedback: Reference | None


@dataclass(frozen=True, slots=True)
class PlannedMap:
    """A map: every element through the stages, then the reducer."""

    over: Template
    stages: tuple[Brief, ...]
    reducer: Brief | None
    batch_size: int
    max_items: int
    on_item_failure: Literal["inline", "skip", "abort"] | None


PlannedWork: TypeAlias = (
    PlannedDelegation
    | PlannedParallel
    | PlannedCondition
    | PlannedSwitch
    | PlannedLoop
    | PlannedMap
)


@dataclass(frozen=True, slots=True)
class Edge:
    """`before` ends before the step starts, and why."""

    before: StepId
    reason: EdgeReason


@dataclass(frozen=True, slots=True)
class PlannedStep:
    id: StepId
    index: int  # its place in the listing, which breaks ties
    type: StepType
    work: PlannedWork
    edges: tuple[Edge, ...]
    when: Expression | None
    timeout_seconds: float | None
    on_failure: Policy
    is_gated: bool
    posture: Posture
    read_set: tuple[str, ...]
    write_set: tuple[str, ...]
    workspace_mode: WorkspaceMode
    merge_back: MergeBack
    recovery: Recovery
    claims: Claims
    output: Output
    is_cached: bool
    is_recovery_written: bool = False  # by the author, not guessed from the tools
    # Further globs that name the same files in the run's workspace, through links or another case.
    read_aliases: tuple[str, ...] = ()
    write_aliases: tuple[str, ...] = ()
    max_output_tokens: int | None = None  # before the agent's
    merge_after: StepId | None = None  # with merge_back: after
    merge_when: Expression | None = None
    is_gated_by_permission: bool = False  # for one run, not by the recipe

    @property
    def depends_on(self) -> tuple[StepId, ...]:
        return tuple(edge.before for edge in self.edges)

    @property
    def is_routed(self) -> bool:
        """Runs only if a condition chooses it."""
        return any(edge.reason == "routed" for edge in self.edges)


@dataclass(frozen=True, slots=True)
class Plan:
    name: str
    description: str
    version: str
    dialect: Literal["flat", "wrapped", "structural"]
    digest: str
    file: str
    inputs: tuple[Input, ...]
    agents: Mapping[AgentId, PlannedAgent]  # those that some step uses
    steps: tuple[PlannedStep, ...]
    output: Template | None  # None: of the last listed step that has one; structural: of all
    stored: Mapping[str, StepId]  # store_as name → the step whose output it is
    width: int
    timeout_seconds: float | None
    budget: Budget
    warnings: tuple[Problem, ...]
    # Whether a step that waits to retry counts against the width. Runs that an older Stretto began
    # were driven so, and their events make sense in that order only.
    retry_keeps_place: bool = True

    def step(self, id: StepId) -> PlannedStep:
        return next(step for step in self.steps if step.id == id)


def briefs(work: PlannedWork) -> tuple[Brief, ...]:
    """Everyone who may be asked, in the order of asking."""
    match work:
        case PlannedDelegation():
            return (work.brief,)
        case PlannedParallel():
            return tuple(branch.brief for branch in work.branches)
        case PlannedCondition():
            return _in_place(work.if_true, work.if_false)
        case PlannedSwitch():
            return _in_place(*(target for _, target in work.cases), work.default)
        case PlannedLoop():
            return (work.producer, *((work.validator,) if work.validator else ()))
        case PlannedMap():
            return (*work.stages, *((work.reducer,) if work.reducer else ()))


def _in_place(*targets: Target | None) -> tuple[Brief, ...]:
    return tuple(target.brief for target in targets if target and target.brief)
