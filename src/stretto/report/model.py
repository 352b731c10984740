"""What a report holds. Out of: report_of. In to: every renderer, and `difference`.

Report ── steps: StepReport ── attempts: AttemptReport
       ├─ critical_path: PathStep
       └─ issues: Issue
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, SupportsIndex, TypeAlias, overload

from stretto.problems import Problem
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json, Kept, Large, loaded
from stretto.vocabulary.statuses import RunStatus

IssueKind: TypeAlias = Literal[
    "failed",  # a step failed
    "not run",  # skipped, held or cancelled, and why
    "waiting",  # for a person
    "stopped",  # why a run has no end yet, or came to an early one
    "warning",  # fallbacks, undecided conditions, unmet rules: what the scheduler noted
    "retry",
    "interrupted",  # the run was resumed, and what was under way then
    "reused",  # an earlier run's output stands in
    "asked",  # what a person decided
    "changed",  # what an isolated writer changed, and whether that was merged
    "stderr",  # what a command said there
    "recipe",  # what was doubtful before the run began
]
# What a step's own entry says already, or what says nothing about this run.
_NO_WARNINGS: tuple[IssueKind, ...] = ("failed", "not run", "recipe", "changed", "stderr")
AttemptStatus: TypeAlias = Literal[
    "planned", "running", "interrupted", "succeeded", "failed", "cancelled", "in doubt", "reused"
]


@dataclass(frozen=True, slots=True)
class Issue:
    kind: IssueKind
    says: str
    step: str = ""  # empty: the run as a whole

    @property
    def text(self) -> str:
        return f"{self.step}: {self.says}" if self.step else self.says


@dataclass(frozen=True, slots=True)
class AttemptReport:
    part: str  # which delegation of the step; empty when it has only one
    number: int
    agent: str
    key: str  # equal keys, equal work
    status: AttemptStatus
    started_at: float | None
    ended_at: float | None
    failure: str  # its kind; empty when it did not fail
    error: str
    usage: Usage
    model: str
    reused_from: str | None
    provider_retries: tuple[str, ...] = ()  # why a request to its model was sent again
    playbooks: tuple[str, ...] = ()  # that it was given, and then those that it loaded
    exit_code: int | None = None  # of its command; None: there was none, or it did not end
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class Delegated:
    """What the plan has one agent told and held to. Compared, never shown in full."""

    agent: str
    prompt: str  # the step's template
    instructions: str  # the agent's own prompt
    reads: tuple[str, ...]  # references of both: `inputs.topic`, `steps.gather.output`
    tools: tuple[str, ...]
    model: str
    held_to: str  # format, schemas and rules, as canonical JSON


# How a writer's change stands: whether it is in the workspace, and what a person can do about it.
ChangeStanding: TypeAlias = Literal[
    "merged",
    "applied",  # merged by a person, after the step had ended
    "held",  # a person is asked whether it is merged
    "removals",  # to be applied by somebody who knows that it removes much
    "to apply",  # by a person
    "nothing to apply",  # no file of it is different
    "conflict",  # to be applied once the conflict is settled
    "unfinished",  # its step, or a part of it, failed: it may be half done
    "refused",  # it must not be merged
    "kept",  # never to be merged, as the recipe says
]


@dataclass(frozen=True, slots=True)
class ChangesReport:
    """What an isolated writer changed; `stretto diff RUN STEP` shows it in full."""

    files: int
    insertions: int
    deletions: int
    is_merged: bool
    conflicts: tuple[str, ...]
    artifact: str
    standing: ChangeStanding = "to apply"
    applied_by: str | None = None
    patch: str = ""  # as text for a person; empty: not looked up


@dataclass(frozen=True, slots=True)
class CallsReport:
    """How many tool calls; why some did not work is among the step's warnings."""

    made: int = 0
    refused: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class StepReport:
    id: str
    type: str
    depends_on: tuple[str, ...]
    agents: tuple[str, ...]  # who was asked; when nobody was, who would have been
    status: str
    kept_output: Kept
    kept_outputs: dict[str, Json | Large] | None
    validation: Json  # the last verdict of a loop
    reason: str  # why it was skipped, held or cancelled
    error: str | None
    warnings: tuple[str, ...]
    started_at: float | None
    ended_at: float | None
    attempts: tuple[AttemptReport, ...]
    usage: Usage
    delegations: tuple[Delegated, ...]
    calls: CallsReport = CallsReport()
    paused_seconds: float = 0.0  # between an interruption and its resumption
    changes: ChangesReport | None = None

    @property
    def output(self) -> Json:
        """Read when it is used: a report of thousands of steps holds none of the large ones."""
        return loaded(self.kept_output)

    @property
    def outputs(self) -> dict[str, Json] | None:
        kept = self.kept_outputs
        return None if kept is None else {key: loaded(each) for key, each in kept.items()}

    @property
    def playbooks(self) -> tuple[str, ...]:
        """The playbooks that the step was given, by name."""
        return tuple(dict.fromkeys(name for each in self.attempts for name in each.playbooks))

    @property
    def retried(self) -> tuple[AttemptReport, ...]:
        """Failures after which the same agent tried again.

        A fallback is another agent, and what an interruption cut short had not failed.
        """
        return tuple(
            was
            for was, now in pairwise(self.attempts)
            if was.failure
            and was.status != "in doubt"
            and (was.part, was.agent) == (now.part, now.agent)
        )

    @property
    def retries(self) -> int:
        """By an agent that tried again, and by the client that asked its model again."""
        return len(self.retried) + sum(len(each.provider_retries) for each in self.attempts)

    @property
    def duration_seconds(self) -> float | None:
        if self.started_at is None or self.ended_at is None:
            return None
        return max(0.0, self.ended_at - self.started_at - self.paused_seconds)


@dataclass(frozen=True, slots=True)
class PathStep:
    """A step that the end of the run waited for, and what it waited for itself."""

    step: str
    waited_seconds: float  # between the step before it on the path and its start
    waited_for: str  # besides its dependencies: a person, a free place, files; empty: nothing
    duration_seconds: float


class StepReports(tuple[StepReport, ...]):
    """In the order of the recipe; `steps["brief"]` is the one with that id, `"brief" in steps` says
    whether there is one."""

    __slots__ = ()

    @overload
    def __getitem__(self, which: SupportsIndex | str) -> StepReport: ...
    @overload
    def __getitem__(self, which: slice) -> tuple[StepReport, ...]: ...
    def __getitem__(
        self, which: SupportsIndex | str | slice
    ) -> StepReport | tuple[StepReport, ...]:
        if not isinstance(which, str):
            return super().__getitem__(which)
        for step in self:
            if step.id == which:
                return step
        raise KeyError(which)

    def __contains__(self, which: object) -> bool:
        if not isinstance(which, str):
            return super().__contains__(which)
        return any(step.id == which for step in self)


@dataclass(frozen=True, slots=True)
class Report:
    run_id: str
    workflow: str
    status: str
    output: Json
    inputs: Mapping[str, Json]
    steps: StepReports
    issues: tuple[Issue, ...]
    agents_deployed: int
    usage: Usage
    started_at: float | None
    ended_at: float | None
    as_of: float  # the last event: where a run that has not ended stands
    resumed_at: tuple[float, ...]
    parent: str | None  # the run this one was forked or retried from
    trigger: str  # what started it; empty: a person, by hand
    critical_path: tuple[PathStep, ...]
    recipe_warnings: tuple[Problem, ...] = ()
    paused_seconds: float = 0.0  # between interruptions and resumptions: nobody worked

    @property
    def duration_seconds(self) -> float:
        end = self.as_of if self.ended_at is None else self.ended_at
        if self.started_at is None:
            return 0.0
        return max(0.0, end - self.started_at - self.paused_seconds)

    @property
    def retries(self) -> int:
        return sum(step.retries for step in self.steps)

    @property
    def calls(self) -> CallsReport:
        each = [step.calls for step in self.steps]
        return CallsReport(
            sum(calls.made for calls in each),
            sum(calls.refused for calls in each),
            sum(calls.failed for calls in each),
        )

    @property
    def is_ok(self) -> bool:
        return self.status == RunStatus.COMPLETE

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(issue.text for issue in self.issues if issue.kind not in _NO_WARNINGS)

    def count(self, *statuses: str) -> int:
        return sum(step.status in statuses for step in self.steps)
