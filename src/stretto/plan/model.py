"""What a recipe means, checked and complete. A Plan is frozen: a run in flight never sees an edit.

Plan ── steps: PlannedStep ── work: PlannedDelegation | PlannedParallel | …
                                      └─ Brief: who is told what, and what if it fails

All of it is stored with the run as JSON (see the end of this module). A field at its default is not written, so
never change a default: stored plans mean the old one.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from stretto.plan.claims import Claims, claims_of
from stretto.problems import Problem
from stretto.problems.errors import StrettoError
from stretto.recipe.model import (
    NO_OUTPUT,
    Backoff,
    Budget,
    Effect,
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
from stretto.templates.expression import Expression, parse_expression
from stretto.templates.template import Fault, Reference, Template, parse_template
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import AgentId, StepId

StepType: TypeAlias = Literal[
    "sequential", "parallel", "conditional", "loop", "map", "command", "workflow"
]
DialectName: TypeAlias = Literal["flat", "wrapped", "structural"]
# How a subagent is told: by a prompt alone, by an "Input" heading after its agent's own prompt,
# or by a task followed by what its dependencies found.
BriefStyle: TypeAlias = Literal["prompt", "input", "task"]
EdgeReason: TypeAlias = Literal["written", "listed before", "reference", "routed", "context"]
EVERYTHING = ("**/*",)


class _Part(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A part of a plan. Unknown fields of a stored one are refused: they may say what must not
    happen."""


class RetryPolicy(_Part, frozen=True):
    max_attempts: int = 1
    backoff: Backoff = "none"


NO_RETRY = RetryPolicy()


class PlannedAgent(_Part, frozen=True):
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
    timeout_template: Template | None = None  # as in a step
    is_local: bool = False  # a recipe defines it


class PlannedCommand(_Part, frozen=True):
    """A shell command, which works as an agent that asks no model."""

    run: str
    env: Mapping[str, Template]
    stdin: Template | None = None  # None: nothing, or what a validator judges
    effect: Effect = "in_doubt"

    @property
    def templates(self) -> tuple[Template, ...]:
        return (*self.env.values(), *((self.stdin,) if self.stdin else ()))


class Brief(_Part, frozen=True):
    """One delegation: who is told what, and what happens when it fails."""

    agent: AgentId
    instruction: Template | None  # None: the agent's own prompt says it all
    style: BriefStyle = "prompt"
    gets_all_prior: bool = False  # `input: all prior context`
    model: str | None = None  # the step's, before the agent's
    retry: RetryPolicy = NO_RETRY
    on_failure: Policy | None = None  # the agent's own policy, None when it wrote none
    fallback: AgentId | None = None
    playbooks: tuple[str, ...] = ()  # that it is given in full
    loadable: tuple[str, ...] = ()  # playbooks that it is told the names of
    fallback_retry: RetryPolicy = NO_RETRY  # the fallback agent's own
    command: PlannedCommand | None = None  # what runs instead of a model


class PlannedPlaybook(_Part, frozen=True):
    """A method that some brief names, as it was when it was chosen."""

    description: str
    digest: str
    text: str = ""  # empty: nobody is given all of it


class PlannedDelegation(_Part, frozen=True, tag_field="kind", tag="delegation"):
    brief: Brief


class PlannedBranch(_Part, frozen=True):
    key: str  # its name in steps.ID.outputs
    brief: Brief


class PlannedParallel(_Part, frozen=True, tag_field="kind", tag="parallel"):
    branches: tuple[PlannedBranch, ...]
    wait: Wait

    @property
    def needed(self) -> int:
        """How many branches must succeed."""
        return {"all": len(self.branches), "any": 1}.get(str(self.wait)) or int(self.wait)


class Target(_Part, frozen=True):
    """Where a condition leads: to a step, or to an agent that runs in place."""

    step: StepId | None = None
    brief: Brief | None = None

    @property
    def name(self) -> str:
        return self.step or (self.brief.agent if self.brief else "")


class PlannedCondition(_Part, frozen=True, tag_field="kind", tag="condition"):
    condition: Expression
    if_true: Target | None
    if_false: Target | None


class PlannedSwitch(_Part, frozen=True, tag_field="kind", tag="switch"):
    value: Expression
    cases: tuple[tuple[str, Target], ...]
    default: Target | None


class PlannedLoop(_Part, frozen=True, tag_field="kind", tag="loop"):
    """Produce, validate, and produce again with the feedback."""

    producer: Brief
    validator: Brief | None
    until: Expression | None
    max_iterations: int
    # Where in the verdict the feedback stands; None: its `feedback` field, else all of it.
    feedback: Reference | None


class PlannedMap(_Part, frozen=True, tag_field="kind", tag="map"):
    """Send every element through the stages, then all results to the reducer."""

    over: Template
    stages: tuple[Brief, ...]
    reducer: Brief | None
    batch_size: int
    max_items: int
    on_item_failure: Literal["inline", "skip", "abort"] | None


class PlannedWorkflow(_Part, frozen=True, tag_field="kind", tag="workflow"):
    """Another recipe. Its steps follow in the plan, as `ID/inner`; its templates name them, and its
    inputs, as that recipe does."""

    given: Mapping[str, Template]  # by input
    constants: Mapping[str, Json]  # by input, values that are not text
    name: str = ""
    file: str = ""
    version: str = ""
    digest: str = ""
    dialect: DialectName = "flat"
    inputs: tuple[Input, ...] = ()  # that it declares
    output: Template | None = None  # as in a plan
    # The steps by their ids in that recipe.
    stored: Mapping[str, StepId] = msgspec.field(default_factory=dict)
    timeout_seconds: float | None = None  # of the recipe; the step may have another
    timeout_template: Template | None = None
    # The values that were known before the run. What an earlier step gives is known when it starts.
    known: Mapping[str, Json] = msgspec.field(default_factory=dict)


PlannedWork: TypeAlias = (
    PlannedDelegation
    | PlannedParallel
    | PlannedCondition
    | PlannedSwitch
    | PlannedLoop
    | PlannedMap
    | PlannedWorkflow
)


class PlannedStep(_Part, frozen=True):
    id: StepId
    index: int  # its place in the listing, which breaks ties
    work: PlannedWork
    edges: Mapping[StepId, EdgeReason]  # the steps that end before it starts, and why
    when: Expression | None = None
    timeout_seconds: float | None = None
    on_failure: Policy = "inline"
    is_gated: bool = False
    posture: Posture = "read_only"
    read_set: tuple[str, ...] = EVERYTHING
    write_set: tuple[str, ...] = ()
    workspace_mode: WorkspaceMode = "shared"
    merge_back: MergeBack = "auto"
    recovery: Recovery = "rerun"
    output: Output = NO_OUTPUT
    is_cached: bool = False
    is_recovery_written: bool = False  # by the author, not guessed from the tools
    # Further globs that name the same files in the run's workspace, through links or another case.
    read_aliases: tuple[str, ...] = ()
    write_aliases: tuple[str, ...] = ()
    max_output_tokens: int | None = None  # before the agent's
    merge_after: StepId | None = None  # with merge_back: after
    merge_when: Expression | None = None
    is_gated_by_permission: bool = False  # for one run, not by the recipe
    # As written, where they name inputs: the sets and the timeout above are made from these.
    read_templates: tuple[Template, ...] = ()
    write_templates: tuple[Template, ...] = ()
    timeout_template: Template | None = None
    inside: StepId | None = None  # the workflow step whose recipe it belongs to

    def __post_init__(self) -> None:
        _ = self.claims  # a stored plan with a set that is no glob is refused when it is read

    @property
    def claims(self) -> Claims:
        return claims_of(
            (*self.read_set, *self.read_aliases),
            (*self.write_set, *self.write_aliases),
            self.is_writer,
            self.is_isolated,
        )

    @property
    def is_writer(self) -> bool:
        return self.posture == "writer"

    @property
    def is_isolated(self) -> bool:
        return self.workspace_mode == "isolated"

    @property
    def type(self) -> StepType:
        if isinstance(self.work, PlannedDelegation) and self.work.brief.command is not None:
            return "command"
        return _TYPES[type(self.work)]

    @property
    def own_id(self) -> StepId:
        """As its own recipe calls it."""
        return self.id if self.inside is None else StepId(self.id[len(self.inside) + 1 :])

    @property
    def is_command(self) -> bool:
        return self.type == "command"

    @property
    def runs_command(self) -> bool:
        """Also where a command only judges."""
        return any(brief.command is not None for brief in briefs(self.work))

    @property
    def depends_on(self) -> tuple[StepId, ...]:
        return tuple(self.edges)

    @property
    def is_routed(self) -> bool:
        """Runs only if a condition chooses it."""
        return "routed" in self.edges.values()


_TYPES: Mapping[type[PlannedWork], StepType] = {
    PlannedDelegation: "sequential",
    PlannedParallel: "parallel",
    PlannedCondition: "conditional",
    PlannedSwitch: "conditional",
    PlannedLoop: "loop",
    PlannedMap: "map",
    PlannedWorkflow: "workflow",
}


class Plan(_Part, frozen=True, dict=True):
    name: str
    description: str
    version: str
    dialect: DialectName
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
    title: str = ""
    playbooks: Mapping[str, PlannedPlaybook] = msgspec.field(default_factory=dict)  # by name
    timeout_template: Template | None = None  # as in a step

    def step(self, id: StepId) -> PlannedStep:
        return next(step for step in self.steps if step.id == id)

    @cached_property
    def as_stored(self) -> msgspec.Raw:
        """Made once: a saved recipe is started again and again."""
        return msgspec.Raw(msgspec.json.encode(self, enc_hook=_to_json))


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
        case PlannedWorkflow():
            return ()


def _in_place(*targets: Target | None) -> tuple[Brief, ...]:
    return tuple(target.brief for target in targets if target and target.brief)


def encode_plan(plan: Plan) -> msgspec.Raw:
    return plan.as_stored


def decode_plan(stored: msgspec.Raw) -> Plan:
    """Raises StrettoError."""
    try:
        return msgspec.json.decode(stored, type=Plan, dec_hook=_from_json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StrettoError(f"this stored plan cannot be read: {error}") from None


def _to_json(value: object) -> object:
    if isinstance(value, Expression):
        return value.text
    if isinstance(value, Template):
        # The prompt of a registered agent was never parsed, and must not be: `{{` is only text.
        is_verbatim = "{{" in value.text and value.parts == (value.text,)
        return {"verbatim": value.text} if is_verbatim else value.text
    raise TypeError(f"{type(value).__name__} is no part of a plan")


def _from_json(kind: type, value: Any) -> object:
    if kind is Template and isinstance(value, dict):
        return Template.verbatim(_text(value.get("verbatim")))
    text = _text(value)
    if kind is Template:
        template, faults = parse_template(text)
        if faults:
            raise ValueError(f"this is no template: {faults[0].message}")
        return template
    expression = parse_expression(text)
    if isinstance(expression, Fault):
        raise ValueError(f"this is no expression: {expression.message}")
    return expression


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("this must be text")
    return value
