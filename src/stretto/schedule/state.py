"""The state of a run: the fold of its events over its plan.

    RunState ── steps: StepState ── parts: PartState ── attempts: AttemptState

One driver owns a RunState, and `advance` changes it in place; whoever else wants one folds the
journal anew. Nothing outside this room may change it.
"""

from collections import ChainMap, deque
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct, field

from stretto.events.attempts import AttemptId, Part, Timer
from stretto.events.model import Approved, CommandEnded, FailureKind, Rejected
from stretto.plan.model import (
    Brief,
    DialectName,
    EdgeReason,
    Plan,
    PlannedCondition,
    PlannedStep,
    PlannedSwitch,
    PlannedWorkflow,
    Target,
)
from stretto.recipe.model import Policy
from stretto.schedule.commands import StartAttempt
from stretto.schedule.ready_queue import ReadyQueue
from stretto.schedule.tool_calls import ToolCallCounts
from stretto.templates.scope import MISSING, EndedStep, Missing, Scope, StepValue
from stretto.templates.template import Template
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json, Kept, Large, loaded
from stretto.vocabulary.models import Setup, works_unseen
from stretto.vocabulary.names import AgentId, StepId
from stretto.vocabulary.statuses import RunStatus, StepStatus

# planned: StartAttempt was emitted, and AttemptStarted has not come back yet
# stopping: it was told to stop, or took too long; only its cost is still awaited
AttemptStage: TypeAlias = Literal["planned", "running", "stopping", "ended"]
AttemptOutcome: TypeAlias = Literal["succeeded", "failed", "cancelled", "in_doubt"]
# queued: its next attempt, perhaps its first, waits for a slot
PartStatus: TypeAlias = Literal[
    "running", "retrying", "queued", "asking", "succeeded", "failed", "cancelled"
]

NO_USAGE = Usage()
NO_LOCAL: Mapping[str, Json] = MappingProxyType({})
_DECIDING = (PlannedCondition, PlannedSwitch)


class FailureReason(Struct, frozen=True, gc=False):
    kind: FailureKind
    error: str


class Digest(Protocol):
    """A hash under way, as hashlib has them."""

    def copy(self) -> "Digest": ...
    def update(self, more: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


# No reference leads from an attempt or a part back to its step, so neither is in a cycle: the
# garbage collector need not go through those of ten thousand steps.
class AttemptState(Struct, eq=False, gc=False):
    id: AttemptId
    agent: AgentId
    key: str
    command: StartAttempt | None  # kept while it is planned, to be given again after a crash
    stage: AttemptStage = "planned"
    outcome: AttemptOutcome | None = None
    started_at: float | None = None
    ended_at: float | None = None
    failure: FailureReason | None = None
    usage: Usage = NO_USAGE
    noted_usage: Usage = NO_USAGE  # while it is under way: it counts if a crash ends the attempt
    model: str = ""
    reused_from: str | None = None
    tool_calls: int = 0
    provider_retries: tuple[str, ...] = ()  # why a request was sent again
    playbooks: tuple[str, ...] = ()  # that it was given, and then those that it loaded
    warnings: tuple[str, ...] = ()  # kept with the answer, also when another run reuses it
    has_doubtful_calls: bool = False  # calls that must not be repeated unasked
    may_have_removed: bool = False  # a call that can remove files was made
    ended_command: CommandEnded | None = None

    @property
    def number(self) -> int:
        return self.id.number


class HeldUp(Struct, frozen=True, eq=False):
    attempt: AttemptState
    says: str


class PartState(Struct, eq=False, gc=False):
    """One delegation of a step, with all its attempts."""

    id: Part
    brief: Brief
    agent: AgentId  # the agent at work: the brief's, later perhaps its fallback
    local: Mapping[str, Json]  # item, index, candidate, feedback, iteration
    upstream: Kept | Missing = MISSING  # output of earlier parts, shown under its "Input" heading
    status: PartStatus = "running"
    attempts: tuple[AttemptState, ...] = ()
    tries: int = 0  # attempts that count against max_attempts: a crash costs none
    has_fallen_back: bool = False
    not_accepted: str = ""  # why the last answer failed validation
    kept_output: Json | Large = None
    failure: FailureReason | None = None  # the last one; None once it has succeeded

    @property
    def name(self) -> str:
        """As people know it."""
        return self.id.text

    @property
    def output(self) -> Json:
        return loaded(self.kept_output)


class MapItems(Struct, eq=False):
    """The elements of a map on their way."""

    values: list[Json]
    results: list[Json | Large]
    entered: int = 0
    ended: int = 0
    failures: dict[int, str] = field(default_factory=dict)  # by element
    excused: dict[int, Policy] = field(default_factory=dict)  # those of them that may fail
    last_failure: FailureReason | None = None
    repeats: int = 0  # how often the last failure came in a row


class Pending(Struct, frozen=True):
    """How a step will end, once its changes are collected."""

    output: Kept = None
    failure: FailureReason | None = None
    policy: Policy = "abort"
    is_cancelled: bool = False

    @property
    def is_success(self) -> bool:
        return self.failure is None and not self.is_cancelled


class Changes(Struct, frozen=True):
    """What a writer changed. Of a shared one only the number of files is known."""

    artifact: str  # empty: a shared writer, or nothing could be kept
    files: int
    insertions: int
    deletions: int
    is_merged: bool
    conflicts: tuple[str, ...] = ()
    is_whole: bool = True  # False: the step, or a part of it, failed: it may be half done
    is_refused: bool = False  # it must not be merged, whatever the workspace holds
    applied_by: str | None = None  # the person who merged it after the step had ended
    diff: str = ""
    changed: tuple[str, ...] = ()


class Decision(Struct, frozen=True):
    """What a person said about a step, and why it did not count; empty: it did."""

    event: Approved | Rejected
    void: str = ""


class RecipeState(Struct, eq=False):
    """The steps of one recipe: that of the run, or that of a workflow step."""

    output: Template | None
    dialect: DialectName
    scope: Scope  # what its templates see; its steps are those that have ended
    values: dict[str, EndedStep]  # the same steps, by the ids that the recipe gives them
    holder: "StepState | None" = None  # None: it is the run's own
    # In listing order, by the ids that the recipe gives them.
    steps: dict[StepId, "StepState"] = field(default_factory=dict)
    left: int = 0  # steps that have not ended


class StepState(Struct, eq=False):
    planned: PlannedStep
    id: StepId
    index: int
    recipe: RecipeState
    inner: RecipeState | None = None  # of a workflow step
    status: StepStatus = StepStatus.WAITING
    kept_output: Kept = None
    kept_outputs: dict[str, Json | Large] | None = None  # by branch key
    validation: Json = None
    error: str | None = None
    failure_kind: FailureKind | None = None
    reason: str = ""  # why it was skipped, held or cancelled
    crashes: int = 0  # how many processes died while it was running
    started_at: float | None = None
    ended_at: float | None = None
    parts: dict[Part, PartState] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)  # a set that keeps its order
    calls: ToolCallCounts | None = None  # None: no tool was called
    is_in_vain: bool = False  # it claims to have succeeded, but what it tried did not work
    activity: str = ""  # what an attempt under way was last seen to do, in words
    speaker: "AttemptState | None" = None  # the attempt that spoke last, and has done nothing since
    last_words: str = ""  # of the speaker
    iteration: int = 0
    items: MapItems | None = None
    awaits_approval: bool = False
    asked_key: str = ""  # of what a person is asked about; empty until that is on record
    is_approved: bool = False  # a person has let it start
    approval: Approved | None = None  # the approval that did
    edited_prompts: Mapping[str, str] | None = None  # by part: a person's words instead of ours
    decisions: tuple["Decision", ...] = ()
    held_up: "HeldUp | None" = None  # by a fault of a provider that an attempt waits out
    is_not_passed: bool = False  # the command that judges its loop never passed
    open_attempts: int = 0  # planned, running or stopping
    queued: deque[PartState] | None = None  # parts that wait for a slot, the first come first
    pending: Pending | None = None  # its work is done, and its changes are being collected
    changes: Changes | None = None
    question: str = ""  # about its change, which a person must allow before it is merged
    is_merge_allowed: bool = False  # by a person
    # Changes of others that are merged once this step has succeeded, and those under way.
    merges: tuple["StepState", ...] = ()
    merging: frozenset[StepId] = frozenset()
    merge_failure: FailureReason | None = None
    # How the edges stand, counted so that an event costs only what it changes.
    unmet: int = 0
    skipped: int = 0  # dependencies that were skipped, and took their need along
    dependents: "Sequence[StepState]" = ()
    is_target: bool = False  # runs only if a condition chooses it
    is_chosen: bool = False
    chosen: str | None = None  # of a condition: the step or the agent that it chose
    choice: StepId | None = None  # the same, if it is a step
    # Conditions that chose this step: its output is theirs.
    chosen_by: tuple["StepState", ...] = ()
    needs: int = 0  # edges along which a skip travels: the order of the list is none

    def __repr__(self) -> str:
        return f"<StepState {self.id}>"  # it knows its neighbours, and they know it

    @property
    def own_id(self) -> StepId:
        """As the templates of its recipe call it."""
        return self.planned.own_id

    def scope_with(
        self, local: Mapping[str, Json], candidate: tuple[StepId, Json] | None = None
    ) -> Scope:
        """What its templates see besides: loop variables, and what a loop has produced so far."""
        scope = self.recipe.scope
        if not local and candidate is None:
            return scope
        steps: Mapping[str, EndedStep] = scope.steps
        if candidate is not None:
            steps = ChainMap({candidate[0]: StepValue(candidate[1])}, self.recipe.values)
        return Scope(scope.inputs, steps, scope.stored, local, scope.run_id)

    @property
    def output(self) -> Json:
        return loaded(self.kept_output)

    @output.setter
    def output(self, output: Json) -> None:
        self.kept_output = output

    @property
    def outputs(self) -> dict[str, Json] | None:
        kept = self.kept_outputs
        return None if kept is None else {key: loaded(each) for key, each in kept.items()}

    def all_chosen_by(self) -> list["StepState"]:
        """The conditions that chose it, and those that chose them."""
        found = list(self.chosen_by)
        for condition in found:
            found += condition.chosen_by
        return found

    def warn(self, *texts: str) -> None:
        """Each is said once, in the order in which they came."""
        self.warnings.update(dict.fromkeys(texts))

    @property
    def is_merge_held(self) -> bool:
        """Whether the step's change is kept, and a person is asked whether it is merged."""
        return self.pending is not None and self.question != "" and not self.is_merge_allowed

    @property
    def may_have_removed(self) -> bool:
        """Whether a tool call of the step, or a program or function that is its agent, can have removed files."""
        return any(each.may_have_removed or works_unseen(each.model) for each in self.attempts)

    @property
    def diff(self) -> str:
        return self.changes.diff if self.changes else ""

    @property
    def files(self) -> list[Json]:
        return list(self.changes.changed) if self.changes else []

    @property
    def attempts(self) -> Iterator[AttemptState]:
        return (attempt for part in self.parts.values() for attempt in part.attempts)

    @property
    def usage(self) -> Usage:
        return sum((attempt.usage for attempt in self.attempts), NO_USAGE)

    @property
    def all_warnings(self) -> tuple[str, ...]:
        return (*self.warnings, *(self.calls.warnings if self.calls else ()))


class Resumption(Struct, frozen=True):
    """Another process took the run up. From its last event until then no process worked on it."""

    last_sign_at: float
    resumed_at: float
    had_work: bool  # attempts were under way: not a run that only waited for a person


class RunState(Struct, eq=False):
    """Owned by one driver, and changed in place by `advance` and nobody else."""

    plan: Plan
    steps: dict[StepId, StepState]  # in listing order
    order: list[StepState]  # the same, by index
    ready: ReadyQueue
    recipe: RecipeState  # the run's own
    values: dict[str, EndedStep]  # the steps that have ended, those of inner recipes too
    run_id: str = ""
    workspace: str = ""
    setup: Setup | None = None  # who answers; None: not recorded, and no answer is equal to another
    inputs: Mapping[str, Json] = field(default_factory=dict)
    seed: int = 0
    parent: str | None = None  # the run that this one repeats
    trigger: str = ""  # empty: a person started it
    status: RunStatus = RunStatus.RUNNING
    started_at: float | None = None
    ended_at: float | None = None
    now: float = 0.0  # when the last event happened
    usage: Usage = NO_USAGE
    deployed: int = 0  # subagents, counted when their command is given
    warnings: dict[str, None] = field(default_factory=dict)
    timers: dict[Timer, float] = field(default_factory=dict)  # when each is due
    arrived: list[int] = field(default_factory=list)  # a heap: their dependencies have ended
    # Parts that ended wait here for their step, so that no ending runs inside another. Between
    # events it is empty.
    ended_parts: deque[tuple[StepState, PartState]] = field(default_factory=deque)
    # Workflow steps whose inner steps have all ended, and that end now; between events empty.
    done_inside: deque[StepState] = field(default_factory=deque)
    running: dict[StepId, StepState] = field(default_factory=dict)
    awaiting_approval: dict[StepId, StepState] = field(default_factory=dict)
    asks_for_writers: bool = False  # the run was resumed with permission: ask
    open_attempts: int = 0
    retrying: int = 0  # parts that wait for their next attempt
    collecting: int = 0  # steps whose changes are being collected
    is_partial: bool = False  # a step succeeded, though part of its work failed or had no effect
    key_frames: dict[tuple[object, ...], tuple[Digest, str]] = field(default_factory=dict)
    closing_reason: str = ""  # why nothing new starts any more
    closed_as: RunStatus | None = None  # nothing new starts any more, and how the run will end
    has_ended: bool = False
    is_recorded: bool = False  # the driver wrote RunEnded
    resumptions: list[Resumption] = field(default_factory=list)

    # asyncio.run() makes one of whatever its coroutine returns (to name its signal handler), and one
    # with every field would be megabytes long.
    def __repr__(self) -> str:
        return f"<RunState {self.run_id}>"

    def warn(self, *texts: str) -> None:
        self.warnings.update(dict.fromkeys(texts))

    def paused_seconds(self, start: float, end: float) -> float:
        """How much of that time nobody drove the run."""
        overlaps = (
            min(end, each.resumed_at) - max(start, each.last_sign_at) for each in self.resumptions
        )
        return sum(overlap for overlap in overlaps if overlap > 0)

    @property
    def all_warnings(self) -> tuple[str, ...]:
        told = (f"{step.id}: {text}" for step in self.order for text in step.all_warnings)
        return (*self.warnings, *told)


def begin(plan: Plan) -> RunState:
    values: dict[str, EndedStep] = {}
    own = RecipeState(plan.output, plan.dialect, Scope(steps=values, stored=plan.stored), values)
    order = _step_states(plan, own)
    steps = {step.id: step for step in order}
    for step in order:
        if step.planned.merge_after is not None:
            steps[step.planned.merge_after].merges += (step,)
        # Asked of the work, not of the edges: an edge that is also written says only "written".
        if isinstance(step.planned.work, _DECIDING):
            for target in _step_targets(step.planned.work):
                steps[target].is_target = True
    # The steps of a dense layer share their edges, and are entered as one.
    for edges, some in _by_edges(order):
        _enter(edges, some, steps)
    return RunState(
        plan=plan,
        steps=steps,
        order=order,
        ready=ReadyQueue([planned.claims for planned in plan.steps], plan.width),
        recipe=own,
        values=values,
        arrived=[step.index for step in order if step.unmet == 0],
    )


def _by_edges(
    order: list[StepState],
) -> Iterator[tuple[Mapping[StepId, EdgeReason], list[StepState]]]:
    """Neighbours that have one and the same value for their edges, together."""
    start, edges = 0, order[0].planned.edges if order else {}
    for at, step in enumerate(order):
        if step.planned.edges is not edges:
            yield edges, order[start:at]
            start, edges = at, step.planned.edges
    yield edges, order[start:]


def _enter(
    edges: Mapping[StepId, EdgeReason], sharing: list[StepState], steps: Mapping[StepId, StepState]
) -> None:
    """Add these steps, which share their edges, to the dependents of each step they wait for."""
    unmet = len(edges)
    needs = unmet - [*edges.values()].count("listed before")
    for step in sharing:
        # A step of an inner recipe waits for the workflow step to start as well.
        step.unmet = unmet if step.recipe.holder is None else unmet + 1
        step.needs = needs
    shared = tuple(sharing)
    for before in edges:
        # Most steps have the dependents of their neighbours. One tuple of them all, and no list for
        # each, is less for the garbage collector to go through.
        known = steps[before].dependents
        if isinstance(known, list):
            known.extend(sharing)
        else:
            steps[before].dependents = [*known, *sharing] if known else shared


def _step_states(plan: Plan, own: RecipeState) -> list[StepState]:
    """In listing order, in which a workflow step stands before those of its recipe."""
    recipes: dict[StepId | None, RecipeState] = {None: own}
    order = []
    for planned in plan.steps:
        step = StepState(planned, planned.id, planned.index, recipes[planned.inside])
        step.recipe.steps[step.own_id] = step
        step.recipe.left += 1
        order.append(step)
        if isinstance(work := planned.work, PlannedWorkflow):
            values: dict[str, EndedStep] = {}
            scope = Scope(steps=values, stored=work.stored)
            step.inner = RecipeState(work.output, work.dialect, scope, values, step)
            recipes[planned.id] = step.inner
    return order


def _step_targets(work: PlannedCondition | PlannedSwitch) -> list[StepId]:
    targets: tuple[Target | None, ...]
    if isinstance(work, PlannedCondition):
        targets = (work.if_true, work.if_false)
    else:
        targets = (*(target for _, target in work.cases), work.default)
    return [target.step for target in targets if target and target.step]
