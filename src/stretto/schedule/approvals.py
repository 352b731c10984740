"""What a person decides: whether a gated step starts, whether work in doubt is done again, and
whether a change is merged that somebody should look at first.

A person decides about what they were shown, and nothing else: every question has a key, the digest
of what would run, and a decision counts only if it has the same one.
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import assert_never

from msgspec import Struct

from stretto.events.attempts import (
    WHOLE_STEP,
    BranchPart,
    CheckPart,
    ItemPart,
    Part,
    ReducePart,
    StepTimer,
    TryPart,
)
from stretto.events.model import Approved, MergeHeld, Rejected
from stretto.plan.model import (
    Brief,
    PlannedCondition,
    PlannedDelegation,
    PlannedLoop,
    PlannedMap,
    PlannedParallel,
    PlannedSwitch,
    PlannedWorkflow,
    briefs,
)
from stretto.schedule.attempts import give_up, start_again
from stretto.schedule.changes import collect_allowed, hold
from stretto.schedule.commands import ApprovalSubject, AskApproval, StartAttempt
from stretto.schedule.outcomes import changes_of, end_collected, end_merger, fail
from stretto.schedule.prompt import command_for
from stretto.schedule.state import (
    NO_LOCAL,
    Decision,
    FailureReason,
    PartState,
    RecipeState,
    RunState,
    StepState,
)
from stretto.schedule.transition import Transition, stop_asking
from stretto.schedule.work import FIRST_ROUND, given_inputs, target_of
from stretto.templates.render import TooLong, whole_json
from stretto.templates.scope import MISSING, Missing, resolve
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import StepStatus

_LENGTH = 32


class Question(Struct, frozen=True):
    """What a person is asked about."""

    about: ApprovalSubject
    key: str
    commands: tuple[StartAttempt, ...] = ()  # what starts once it is approved
    later: tuple[StartAttempt, ...] = ()  # what may follow in the step, as far as it is known
    fallbacks: tuple[StartAttempt, ...] = ()  # what starts if one of these fails


def needs_person(transition: Transition, step: StepState) -> bool:
    """Whether a person must let the step start, and has not yet."""
    if step.is_approved:
        return False
    is_asked_for = transition.state.asks_for_writers and step.planned.posture == "writer"
    return step.planned.is_gated or is_asked_for


def ask(transition: Transition, step: StepState) -> None:
    """Ask a person. The question is made at the end of the transition: more may be in doubt then."""
    step.awaits_approval = True
    transition.state.awaiting_approval[step.id] = step
    transition.asking[step.id] = None
    # A step whose change is held has done its work, so its timeout no longer runs.
    seconds = None if step.is_merge_held else step.planned.timeout_seconds
    if seconds is not None and StepTimer(step.id) not in transition.state.timers:
        transition.set_timer(StepTimer(step.id), transition.at + seconds)


def ask_people(transition: Transition) -> bool:
    """Whether a step failed instead, because one of its prompts cannot be made."""
    state, asking = transition.state, transition.asking
    transition.asking, has_failed = {}, False
    for step in sorted((state.steps[id] for id in asking), key=lambda step: step.index):
        if not step.awaits_approval:
            continue
        try:
            question = question_of(state, step)
        except TooLong as error:
            stop_asking(transition, step)
            reason = FailureReason("refused", f"its prompt cannot be made: {error}")
            _turn_down(transition, step, reason, reason)
            has_failed = True
        else:
            transition.emit(AskApproval(step.id, question.key, question.about))
    return has_failed


def question_of(state: RunState, step: StepState) -> Question:
    if step.is_merge_held:
        return Question("merge", _digest("merge", step.question, repr(step.changes)))
    if step.status is StepStatus.RUNNING:
        blank = blank_copy(step)
        asking = (part for part in step.parts.values() if part.status == "asking")
        commands = tuple(command_for(state, blank, part) for part in asking)
        return Question("again", _digest("again", *_keys(commands)), commands)
    blank = blank_copy(step)
    first, later = list(_first_parts(state, blank)), list(_later_parts(blank))
    commands, *others = (
        tuple(command_for(state, blank, part) for part in parts)
        for parts in (first, later, _fallbacks((*first, *later)))
    )
    return Question(
        "start", _digest("start", *_keys(commands), *_rest(state, step)), commands, *others
    )


def key_of_question(state: RunState, step: StepState) -> str:
    """Of what a person is asked; also where that is not on record yet, because a run was accepted and
    has not begun."""
    return step.asked_key or question_of(state, step).key


def hold_merge(transition: Transition, step: StepState, event: MergeHeld) -> None:
    if step.pending is None:
        end_merger(transition, step, event)
        return
    if step.is_merge_held:
        return
    step.changes = changes_of(step, event)
    step.warn(*event.warnings)
    hold(transition, step, event.question)
    ask(transition, step)


def decide(transition: Transition, step: StepState, event: Approved | Rejected) -> None:
    if event.decision and any(each.event.decision == event.decision for each in step.decisions):
        return  # it was sent twice, as after a crash of the process that read it
    void = _why_void(step, event)
    step.decisions += (Decision(event, void),)
    if void:
        return
    stop_asking(transition, step)
    if isinstance(event, Approved):
        _approve(transition, step, event)
    else:
        _reject(transition, step, event)


def withdraw_approvals(state: RunState) -> None:
    """Other models would answer now than a person has approved, so the person is asked again."""
    for step in state.order:
        if step.is_approved and step.ended_at is None:
            step.is_approved = False
            step.approval = None


def decision_in_force(step: StepState) -> Decision | None:
    """The decision that counts."""
    return next((each for each in reversed(step.decisions) if not each.void), None)


def _why_void(step: StepState, event: Approved | Rejected) -> str:
    if not step.awaits_approval:
        return "nothing was asked any more" if step.decisions else "nothing was asked"
    return "" if event.key == step.asked_key else "it was given for something else"


def _approve(transition: Transition, step: StepState, event: Approved) -> None:
    is_start = step.status is StepStatus.WAITING
    step.is_approved = True
    if event.prompts:
        edited = {part: str(text) for part, text in event.prompts.items()}
        step.edited_prompts = {**(step.edited_prompts or {}), **edited}
    if step.is_merge_held:
        collect_allowed(transition, step)
    if is_start:
        step.approval = event
        transition.state.ready.push(step.index)
    for part in list(step.parts.values()):
        if part.status == "asking":
            start_again(transition, step, part)


def _reject(transition: Transition, step: StepState, event: Rejected) -> None:
    reason = f": {event.reason}" if event.reason else ""
    said = f"rejected by {event.by or 'a person'}{reason}"
    if step.is_merge_held:
        end_collected(transition, step, FailureReason("refused", f"its change was {said}"))
        return
    _turn_down(transition, step, FailureReason("refused", said), FailureReason("in_doubt", said))


def _turn_down(
    transition: Transition, step: StepState, reason: FailureReason, doubt: FailureReason
) -> None:
    """`doubt`: of parts that were interrupted and do not go on."""
    if step.status is StepStatus.WAITING:
        fail(transition, step, reason, step.planned.on_failure)
    for part in list(step.parts.values()):
        if part.status == "asking":
            give_up(transition, step, part, doubt)


def _keys(commands: tuple[StartAttempt, ...]) -> list[str]:
    return [f"{command.attempt.part.text}={command.key}" for command in commands]


def _rest(state: RunState, step: StepState) -> list[str]:
    """What else an approval covers: the agents, how the change is merged, what conditions compare,
    and what may run later in the step, as far as it is known now."""
    planned = step.planned
    agents = dict.fromkeys(part.agent for part in _anyone(step))
    known = [repr(planned.work), *(repr(state.plan.agents[agent]) for agent in agents)]
    known += [planned.merge_back, planned.workspace_mode, planned.merge_after or ""]
    known += ["" if planned.merge_when is None else planned.merge_when.text]
    known += _conditions(step)
    blank = blank_copy(step)
    known += [command_for(state, blank, part).key for part in _anyone(step)]
    return known if step.inner is None else [*known, *_inside(state, step, step.inner)]


def _anyone(step: StepState) -> Iterator[PartState]:
    """Everyone who may be asked, told what is known now: not yet the element or the candidate."""
    for brief in briefs(step.planned.work):
        yield _blank_part(WHOLE_STEP, brief)
        if brief.fallback is not None:
            yield PartState(WHOLE_STEP, brief, brief.fallback, NO_LOCAL, MISSING)


def _conditions(step: StepState) -> Iterator[str]:
    """What its conditions compare with: inputs, and the outputs that the step has waited for."""
    work, recipe = step.planned.work, step.recipe
    until = work.until if isinstance(work, PlannedLoop) else None
    for condition in (until, step.planned.merge_when):
        for reference in condition.references if condition is not None else ():
            named = reference.step or recipe.scope.stored.get(str(reference.path[0]))
            before = recipe.steps.get(StepId(named)) if named is not None else None
            if named is None or (before is not None and before.id in step.planned.depends_on):
                yield repr(resolve(reference, recipe.scope))


def _inside(state: RunState, step: StepState, inner: RecipeState) -> Iterator[str]:
    """What a person lets start who approves a workflow step: its inputs, and all that is in it."""
    if isinstance(step.planned.work, PlannedWorkflow):
        yield repr(given_inputs(step, step.planned.work))
    for each in inner.steps.values():
        yield repr(each.planned)
        yield from _rest(state, each)


def _digest(*texts: str) -> str:
    return sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]


def blank_copy(step: StepState) -> StepState:
    """A copy to render prompts with: warnings about a mere preview are dropped."""
    copy = StepState(step.planned, step.id, step.index, step.recipe, step.inner)
    copy.edited_prompts = step.edited_prompts
    return copy


def _first_parts(state: RunState, step: StepState) -> Iterator[PartState]:
    work = step.planned.work
    match work:
        case PlannedDelegation():
            yield _blank_part(WHOLE_STEP, work.brief)
        case PlannedParallel():
            for branch in work.branches:
                yield _blank_part(BranchPart(branch.key), branch.brief)
        case PlannedCondition() | PlannedSwitch():
            target = target_of(step, work, step.recipe.scope)
            if target is not None and target.brief is not None:
                yield _blank_part(WHOLE_STEP, target.brief)
        case PlannedLoop():
            yield _blank_part(TryPart(1), work.producer, dict(FIRST_ROUND))
        case PlannedMap():
            values = whole_json(work.over, step.recipe.scope)
            for index, item in enumerate(values if isinstance(values, list) else ()):
                local = {"item": item, "index": index}
                yield _blank_part(ItemPart(index, 0), work.stages[0], local, item)
        case PlannedWorkflow():
            return  # its steps ask for themselves
        case _:
            assert_never(work)


def _later_parts(step: StepState) -> Iterator[PartState]:
    """What is not known yet stands in their prompts by its name: {{candidate}}, {{item}}."""
    work = step.planned.work
    if isinstance(work, PlannedLoop) and work.validator is not None:
        local: dict[str, Json] = {"iteration": 1, "candidate": "{{candidate}}", "feedback": None}
        yield _blank_part(CheckPart(1), work.validator, local, "{{candidate}}")
    if isinstance(work, PlannedMap):
        element = {"item": "{{item}}", "index": "{{index}}"}
        for stage, brief in enumerate(work.stages[1:], 1):
            yield _blank_part(ItemPart(0, stage), brief, element, "{{item}}")
        if work.reducer is not None:
            yield _blank_part(ReducePart(), work.reducer, upstream="(the list of the results)")


def _fallbacks(parts: Iterable[PartState]) -> Iterator[PartState]:
    """Of many elements the last one stands for all."""
    for part in {id(each.brief): each for each in parts}.values():
        if part.brief.fallback is not None:
            yield PartState(part.id, part.brief, part.brief.fallback, part.local, part.upstream)


def _blank_part(
    id: Part,
    brief: Brief,
    local: Mapping[str, Json] = NO_LOCAL,
    upstream: Json | Missing = MISSING,
) -> PartState:
    return PartState(id, brief, brief.agent, local, upstream)
