"""The changes of a writer: collected once its work is done, and before its dependents start.

A step that would end emits CollectChanges, and waits for the answer.

What an isolated writer changed is kept and merged; what a shared one wrote is compared with what
it declared.
"""

from stretto.events.attempts import StepTimer
from stretto.schedule.commands import CollectChanges
from stretto.schedule.state import NO_LOCAL, Pending, RunState, StepState
from stretto.schedule.transition import Transition
from stretto.templates.evaluate import Undecided, decide
from stretto.vocabulary.json_value import Kept, loaded
from stretto.vocabulary.statuses import StepStatus


def writes_here(state: RunState, step: StepState) -> bool:
    # A run without a workspace has nothing to write to: a scripted one, for instance.
    return bool(state.workspace) and step.planned.is_writer


def is_isolated(state: RunState, step: StepState) -> bool:
    return writes_here(state, step) and step.planned.is_isolated


def collect_before_ending(transition: Transition, step: StepState, pending: Pending) -> bool:
    """Have the changes of a step collected that is about to end, if it may have some.

    Returns whether the step must wait for that.
    """
    state = transition.state
    if step.pending is not None:
        return True
    if step.status is not StepStatus.RUNNING or not writes_here(state, step):
        return False
    if all(attempt.started_at is None for attempt in step.attempts):
        return False
    step.pending = pending
    state.collecting += 1
    transition.clear_timer(StepTimer(step.id))
    collect(transition, step)
    return True


def collect(transition: Transition, step: StepState) -> None:
    for command in owed_collections(step):
        transition.emit(command)


def owed_collections(step: StepState) -> list[CollectChanges]:
    """What must be collected before the step can end; nothing while a person is asked."""
    if step.merging:
        return [CollectChanges(id, is_merged=True, is_allowed=False) for id in sorted(step.merging)]
    # An attempt that was told to stop may write until it says that it did.
    if step.pending is None or step.open_attempts or step.is_merge_held:
        return []
    is_wanted = step.pending.is_success and not step.is_not_passed
    is_merged = is_wanted and step.planned.merge_back == "auto"
    return [CollectChanges(step.id, is_merged, step.is_merge_allowed)]


def merge_others_before_ending(transition: Transition, step: StepState, output: Kept) -> bool:
    """Have the changes merged that were kept until this step had succeeded.

    Returns whether the step must wait for that.
    """
    merges, step.merges = step.merges, ()  # once
    for writer in merges:
        changes = writer.changes
        is_kept = writer.status is StepStatus.SUCCEEDED and changes is not None and changes.files
        if (
            is_kept
            and not writer.is_not_passed
            and changes
            and not changes.is_merged
            and _is_wanted(transition, writer, step, output)
        ):
            step.merging |= {writer.id}
    if not step.merging:
        return False
    step.pending = Pending(output)
    transition.state.collecting += 1
    transition.clear_timer(StepTimer(step.id))
    collect(transition, step)
    return True


def _is_wanted(transition: Transition, writer: StepState, step: StepState, output: Kept) -> bool:
    condition = writer.planned.merge_when
    if condition is None:
        return True
    claim = decide(condition, step.scope_with(NO_LOCAL, (step.own_id, loaded(output))))
    if isinstance(claim, Undecided):
        said = f"'merge_when' is undecided and counts as false: {claim.reason}"
        writer.warn(said)
        return False
    if not claim:
        writer.warn(f"its change was not merged: {condition.text} is false")
    return claim


def hold(transition: Transition, step: StepState, question: str) -> None:
    """Nothing more happens to the change until a person has decided."""
    step.question = question
    transition.state.collecting -= 1


def collect_allowed(transition: Transition, step: StepState) -> None:
    step.is_merge_allowed = True
    transition.state.collecting += 1
    collect(transition, step)


def take_pending(transition: Transition, step: StepState) -> Pending | None:
    is_counted = step.pending is not None and not step.is_merge_held
    pending, step.pending = step.pending, None
    if is_counted:
        transition.state.collecting -= 1
    return pending
