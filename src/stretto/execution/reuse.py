"""Reuse the answers of an earlier run where the work is the same.

Equal keys mean equal work: the same agent, rendered prompt, tools, sets, schema, and the same
model asked at the same place. But two places that do equal work (votes, equal elements of a map)
were asked apart on purpose, so a place takes its own answer. The answer of another place is taken
only where the recipe was edited so that this place is new and that one is gone, and only once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import msgspec
from msgspec import to_builtins

from stretto.events.attempts import AttemptId, Part, ReducePart
from stretto.events.model import Approved, AttemptSucceeded, CommandEnded, Event
from stretto.execution.leases import RunJournal
from stretto.plan.model import Plan
from stretto.plan.workflow_steps import inner_steps
from stretto.schedule.changes import is_isolated, writes_here
from stretto.schedule.commands import StartAttempt
from stretto.schedule.places import AnswerPlace, ElementPart, Places, PlannedPlaces
from stretto.schedule.state import AttemptState, RunState, StepState
from stretto.vocabulary.json_value import Json, Large, loaded
from stretto.vocabulary.names import COMMAND_AGENT, StepId


@dataclass(frozen=True, slots=True)
class EarlierAnswer:
    key: str
    output: Json | Large
    warnings: tuple[str, ...] = ()
    command: CommandEnded | None = None  # how its command ended, where it was one


@dataclass(frozen=True, slots=True)
class EarlierCommand:
    """The last time that a command ran, or that its answer was reused, at some place of a run."""

    run_id: str
    step: StepId
    part: Part
    later: tuple[StepId, ...]  # writers of the workspace that ended after it had begun


@dataclass(frozen=True, slots=True)
class Reusable:
    """The answers and approvals of an earlier run."""

    run_id: str = ""
    plan: Plan | None = None  # of that run
    answers: Mapping[AnswerPlace, EarlierAnswer] = field(default_factory=dict)
    anew: frozenset[StepId] = frozenset()  # steps that must run again, whatever their keys
    anew_part: AnswerPlace | None = None  # or of one step, only this branch or element
    approved: Mapping[StepId, Approved] = field(default_factory=dict)  # by a person, for its key
    commands: Mapping[AnswerPlace, EarlierCommand] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReusedOutput:
    output: Json | Large
    run_id: str
    warnings: tuple[str, ...] = ()
    command: CommandEnded | None = None
    earlier: EarlierCommand | None = None  # where a command has said it, in the run before


NOTHING = Reusable()


def reusable(
    state: RunState,
    anew: frozenset[StepId] = frozenset(),
    from_step: StepId | None = None,
    only: Part | None = None,
) -> Reusable:
    """`from_step`: that the user has named. Of it a person is asked again, whatever was approved: to do
    it once more is more than that. What follows from it counts by its content, like all else.
    `only`: the branch or element of it that is done anew, where the rest of the step is not."""
    places, answers = Places(state), dict[AnswerPlace, EarlierAnswer]()
    for step in state.order:
        for part in () if step.is_in_vain else step.parts.values():
            for attempt in part.attempts:
                if attempt.outcome == "succeeded":
                    answer = EarlierAnswer(
                        attempt.key, part.kept_output, attempt.warnings, attempt.ended_command
                    )
                    answers[places.of(step.id, part.id)] = answer
    approved = {
        step.id: step.approval
        for step in state.order
        if step.approval is not None and step.approval.key and not _is_named(step.id, from_step)
    }
    return Reusable(
        state.run_id,
        state.plan,
        answers,
        anew,
        None if from_step is None or only is None else places.of(from_step, only),
        approved,
        _find_commands(state, places),
    )


def _find_commands(state: RunState, places: Places) -> dict[AnswerPlace, EarlierCommand]:
    found = dict[AnswerPlace, EarlierCommand]()
    for step in state.order:
        for part in step.parts.values():
            last = part.attempts[-1] if part.attempts else None
            if last is not None and last.agent == COMMAND_AGENT and last.started_at is not None:
                later = _writers_since(state, last.started_at)
                command = EarlierCommand(state.run_id, step.id, part.id, later)
                found[places.of(step.id, part.id)] = command
    return found


def _writers_since(state: RunState, at: float) -> tuple[StepId, ...]:
    return tuple(
        step.id
        for step in state.order
        if _has_written(state, step)
        and step.started_at is not None
        and (step.ended_at is None or step.ended_at > at)
    )


def _has_written(state: RunState, step: StepState) -> bool:
    """Whether the workspace may have files of it: a change that was not merged is nobody's there."""
    if is_isolated(state, step):
        return step.changes is not None and step.changes.is_merged
    return writes_here(state, step)


def _is_named(id: StepId, step: StepId | None) -> bool:
    return step is not None and (id == step or id.startswith(f"{step}/"))


class Reuse:
    """The answers of an earlier run, being given to a new one; each at most once."""

    def __init__(self, earlier: Reusable, state: RunState) -> None:
        self._earlier = earlier
        self._places = Places(state)
        self._left = dict(earlier.answers)
        self._planned_then = PlannedPlaces(earlier.plan or state.plan)
        # Answers of places that the new plan does not have any more, by key.
        self._homeless: dict[str, list[AnswerPlace]] = {}
        planned_now = PlannedPlaces(state.plan)
        for place, answer in earlier.answers.items():
            if place not in planned_now:
                self._homeless.setdefault(answer.key, []).append(place)

    def must_be_anew(self, command: StartAttempt) -> bool:
        """Whether somebody has asked for exactly this to be done again, so no older answer counts."""
        if command.step in self._earlier.anew:
            return True
        wanted, part = self._earlier.anew_part, command.attempt.part
        if wanted is None or command.step != wanted.step:
            return False
        found = self._places.of(command.step, part).part
        if isinstance(wanted.part, ElementPart) and isinstance(found, ElementPart):
            return found.element == wanted.part.element  # in all its stages
        return found == wanted.part or isinstance(part, ReducePart)

    def find(self, command: StartAttempt) -> ReusedOutput | None:
        if not self._left or self.must_be_anew(command):
            return None
        source = self._source(self._places.of(command.step, command.attempt.part), command.key)
        if source is None:
            return None
        answer = self._left.pop(source)
        then = self._earlier.commands.get(source)
        run_id = self._earlier.run_id
        return ReusedOutput(answer.output, run_id, answer.warnings, answer.command, then)

    def _source(self, place: AnswerPlace, key: str) -> AnswerPlace | None:
        own = self._left.get(place)
        if own is not None and own.key == key:
            return place
        if place in self._planned_then:
            return None
        homeless = (other for other in self._homeless.get(key, ()) if other in self._left)
        return next((other for other in homeless if self._may_move(other, place)), None)

    def _may_move(self, source: AnswerPlace, place: AnswerPlace) -> bool:
        """A step that was renamed keeps its parts: a branch takes the answer of its namesake."""
        namesake = AnswerPlace(source.step, place.part)
        return source == namesake or namesake not in self._planned_then


class AnswerCache:
    """The answers of steps with `cache: true`, for all runs of a recipe."""

    def __init__(self, state: RunState, journal: RunJournal) -> None:
        self._state = state
        self._journal = journal
        self._places = Places(state)
        self.is_used = any(step.is_cached for step in state.plan.steps)

    async def find(self, command: StartAttempt, files: str = "") -> ReusedOutput | None:
        """`files`: the digest of what a command would read."""
        if not self._state.steps[command.step].planned.is_cached:
            return None
        key = self._key(command.attempt, command.key, files)
        kept = await self._journal.get(key)
        if kept is None:
            return None
        ended = None
        if command.request.command is not None:
            said = await self._journal.get(_command_key(key))
            ended = msgspec.convert(said.output, CommandEnded) if said else None
        return ReusedOutput(kept.output, kept.run_id, command=ended)

    async def fill(self, rows: Sequence[Event], files: Callable[[AttemptId], str]) -> None:
        """`files`: the digest of what a command has read; empty where that is not certain."""
        for row in rows:
            if isinstance(row, AttemptSucceeded) and row.reused_from is None:
                id = row.attempt
                step = self._state.steps[id.step]
                if step.planned.is_cached:
                    await self._keep(row, step.parts[id.part].attempts[id.number - 1], files(id))

    async def _keep(self, row: AttemptSucceeded, attempt: AttemptState, files: str) -> None:
        if attempt.warnings:
            return  # whoever took it from the cache would not be warned
        if attempt.agent == COMMAND_AGENT and not files:
            return
        key = self._key(row.attempt, attempt.key, files)
        if attempt.ended_command is not None:
            # First: who finds the answer finds with it what else the command said.
            await self._journal.put(_command_key(key), to_builtins(attempt.ended_command))
        await self._journal.put(key, loaded(row.output))

    def _key(self, attempt: AttemptId, key: str, files: str) -> str:
        """A key of content and place: two votes with the same prompt are two answers."""
        place = self._places.of(attempt.step, attempt.part)
        names = (self._state.plan.name, place.step, place.part.text, *((files,) if files else ()))
        where = "\0".join(names)
        return f"{key}-{sha256(where.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _command_key(key: str) -> str:
    return f"{key}-command"


def downstream(plan: Plan, step: StepId) -> frozenset[StepId]:
    """The step and everything that waits for it, however far. A workflow step is not among them
    because of a step in it: it is not begun anew, and what a person has allowed stays allowed."""
    found = {step, *(each.id for each in inner_steps(plan, step))}
    around = set[StepId]()  # workflow steps that end later because of a step in them
    # Edges may point backwards in the listing, so go round until nothing is added.
    while True:
        ended = found | around
        waiting = [s.id for s in plan.steps if s.id not in found and ended & set(s.depends_on)]
        more = {each.id for id in waiting for each in inner_steps(plan, id)} | set(waiting)
        holders = {s.inside for s in plan.steps if s.id in ended and s.inside is not None}
        if more <= found and holders <= around:
            return frozenset(found)
        found |= more
        around |= holders
