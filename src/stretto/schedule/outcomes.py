"""How a step ends, and what that means for those that depend on it."""

from heapq import heappush

from msgspec import Struct, structs

from stretto.events.attempts import RUN_TIMER, TryPart
from stretto.events.model import ChangesApplied, ChangesCollected, MergeFailed, MergeHeld
from stretto.recipe.model import Policy
from stretto.schedule.attempts import stop_parts
from stretto.schedule.changes import collect_before_ending, merge_others_before_ending, take_pending
from stretto.schedule.state import (
    Changes,
    FailureReason,
    PartState,
    Pending,
    RecipeState,
    RunState,
    StepState,
)
from stretto.schedule.tool_calls import ToolCallCounts
from stretto.schedule.transition import Transition, close_run, end_step, stop_asking
from stretto.text.short import listed
from stretto.vocabulary.json_value import Json, Kept
from stretto.vocabulary.models import CLI_MODEL
from stretto.vocabulary.names import CHANGING_TOOLS, COMMAND_AGENT, tool_name
from stretto.vocabulary.statuses import RunStatus, StepStatus


def succeed(transition: Transition, step: StepState, output: Kept) -> None:
    if len(step.parts) > 1:  # the only one has ended, or there were none
        stop_parts(transition, step)
    if not collect_before_ending(transition, step, Pending(output)):
        if step.planned.is_writer and not transition.state.workspace and step.parts:
            step.warn("it is a writer, but this run has no workspace: no file changed")
        _conclude(transition, step, output)


def fail(transition: Transition, step: StepState, failure: FailureReason, policy: Policy) -> None:
    stop_parts(transition, step)
    if step.inner is not None:
        _stop_inside(transition, step.inner, f"{step.id} failed: {failure.error}")
    if not collect_before_ending(transition, step, Pending(None, failure, policy)):
        _fail(transition, step, failure, policy)


def end_collected(
    transition: Transition, step: StepState, conflict: FailureReason | None = None
) -> None:
    """The changes of the step are collected, or could not be merged: the step ends as planned."""
    pending = take_pending(transition, step)
    if pending is None:
        return
    if pending.is_cancelled:
        end_step(transition, step, StepStatus.CANCELLED)
    elif pending.failure is not None:
        _fail(transition, step, pending.failure, pending.policy)
    elif conflict is not None:
        _fail(transition, step, conflict, step.planned.on_failure)
    elif step.merge_failure is not None:
        _fail(transition, step, step.merge_failure, step.planned.on_failure)
    else:
        _conclude(transition, step, pending.output)


def receive_changes(
    transition: Transition, step: StepState, event: ChangesCollected | MergeFailed
) -> None:
    kept = changes_of(step, event)
    step.warn(*event.warnings)
    if isinstance(event, ChangesCollected):
        step.changes = structs.replace(kept, is_merged=event.is_merged)
        if event.question:
            step.warn(event.question)
        if step.pending is not None and step.pending.is_success:
            doubt = doubt_writer if event.is_unchanged else doubt_parts
            doubt(transition.state, step)
        end_collected(transition, step)
        step.question = event.question  # afterwards: a change that waits for a person has one too
    else:
        step.changes = structs.replace(kept, conflicts=event.paths, is_refused=event.is_refused)
        if step.pending is not None and not step.pending.is_success and not event.artifact:
            step.warn(event.error)  # the step ends for another reason, which is its error
        end_collected(transition, step, FailureReason("conflict", event.error))
    end_merger(transition, step, event)


def _conclude(transition: Transition, step: StepState, output: Kept) -> None:
    """The step's own work and change are done: merge what waited for it, then end it."""
    if not merge_others_before_ending(transition, step, output):
        _succeed(transition, step, output)


def end_merger(
    transition: Transition, writer: StepState, event: ChangesCollected | MergeFailed | MergeHeld
) -> None:
    """The change of a writer was merged for the step that it waited for, or could not be.

    A change that a person must look at first is not merged: they may still apply it.
    """
    after = writer.planned.merge_after
    merger = transition.state.steps[after] if after is not None else None
    if merger is None or writer.id not in merger.merging:
        return
    merger.merging -= {writer.id}
    if not isinstance(event, ChangesCollected):
        why = event.error if isinstance(event, MergeFailed) else event.question
        said = f"the change of step '{writer.id}' was not merged: {why}"
        merger.merge_failure = FailureReason("conflict", said)
    if not merger.merging:
        end_collected(transition, merger)


def changes_of(step: StepState, event: ChangesCollected | MergeFailed | MergeHeld) -> Changes:
    """The changes as they are kept, before any merge."""
    is_success = step.pending is None or step.pending.is_success
    return Changes(
        event.artifact,
        event.files,
        event.insertions,
        event.deletions,
        is_merged=False,
        is_whole=event.is_whole and is_success,
        diff="" if isinstance(event, MergeHeld) else event.diff,
        changed=() if isinstance(event, MergeHeld) else event.changed,
    )


def receive_applied(step: StepState, event: ChangesApplied) -> None:
    if step.changes is not None:
        step.changes = structs.replace(step.changes, is_merged=True, applied_by=event.by)


def doubt_writer(state: RunState, step: StepState) -> None:
    """Warn about a writer that claims to have succeeded though no file has changed."""
    calls = step.calls or ToolCallCounts()
    said = "it is a writer, but changed no file"
    if step.planned.is_command:
        said = "it is a writer, but its command changed no file"
    elif not calls.made:
        said = "it is a writer, but made no tool call and changed no file"
    elif calls.not_done:
        said += f" ({calls.not_done} of its {calls.made} tool calls were refused or failed)"
    step.warn(said)
    # The step tried to write and could not, so its work is not done, whatever it claims.
    if calls.writes_not_done:
        step.is_in_vain = state.is_partial = True


def doubt_parts(state: RunState, step: StepState) -> None:
    """Warn about branches, elements and last tries that could write and did nothing at all, though
    the step as a whole has changed files."""
    last = max(
        (p.id.iteration for p in step.parts.values() if isinstance(p.id, TryPart)), default=0
    )
    idle = [
        part.name for part in step.parts.values()
        if part.name and _has_only_talked(state, part)
        and not (isinstance(part.id, TryPart) and part.id.iteration < last)
    ]  # fmt: skip
    if idle:
        step.warn(f"made no tool call, though it can write: {listed(idle)}")


def _has_only_talked(state: RunState, part: PartState) -> bool:
    ended = part.attempts[-1] if part.attempts else None
    if ended is None or ended.outcome != "succeeded" or ended.tool_calls or ended.reused_from:
        return False
    agent = state.plan.agents.get(part.agent)
    can_write = agent is not None and any(tool_name(t) in CHANGING_TOOLS for t in agent.tools)
    # The agents of other programs have tools of their own, which they need not tell of.
    return can_write and ended.agent != COMMAND_AGENT and not ended.model.startswith(CLI_MODEL)


def _succeed(transition: Transition, step: StepState, output: Kept) -> None:
    # A command with an exit code other than 0 may have done its work, which changed files show.
    has_changed_files = step.changes is not None and step.changes.files > 0
    if step.calls is not None and step.calls.all_in_vain and not has_changed_files:
        step.warn(f"none of its tool calls worked ({step.calls.made} made)")
        step.is_in_vain = transition.state.is_partial = True
    step.kept_output = output
    _hand_to_conditions(step)
    end_step(transition, step, StepStatus.SUCCEEDED)
    _free_dependents(transition, step, is_live=True)


def skip(transition: Transition, step: StepState, reason: str) -> None:
    step.reason = reason
    for writer in step.merges:
        if writer.changes is not None and writer.changes.files and not writer.changes.is_merged:
            writer.warn(f"its change was not merged: step '{step.id}', which decides, was skipped")
    end_step(transition, step, StepStatus.SKIPPED)
    _free_dependents(transition, step, is_live=False)


def _fail(transition: Transition, step: StepState, failure: FailureReason, policy: Policy) -> None:
    state = transition.state
    step.error = failure.error
    step.failure_kind = failure.kind
    step.output = inline_error(step, failure.error) if policy == "inline" else None
    _hand_to_conditions(step)
    if state.closed_as is not None:
        # In a run that is closing, no dependent starts any more; and a step that never began has
        # not failed, it was cancelled.
        has_begun = any(step.attempts)
        end_step(transition, step, StepStatus.FAILED if has_begun else StepStatus.CANCELLED)
        return
    end_step(transition, step, StepStatus.FAILED)
    match policy:
        case "inline" | "skip":
            _free_dependents(transition, step, is_live=True)
        case "block":
            _hold_dependents(transition, step)
        case "abort":
            _abort(transition, step, failure)


def _abort(transition: Transition, step: StepState, failure: FailureReason) -> None:
    """The recipe of the step fails: the run, or the workflow step that the recipe is."""
    holder, said = step.recipe.holder, f"step '{step.id}' failed: {failure.error}"
    if holder is None:
        stop_run(transition, RunStatus.FAILED, said)
    elif holder.status is StepStatus.RUNNING:
        # What no model and no retry can fix would meet the steps after it too.
        policy = "abort" if failure.kind == "permanent" else holder.planned.on_failure
        fail(transition, holder, FailureReason(failure.kind, said), policy)


def policy_for(step: StepState, part: PartState) -> Policy:
    """What the failure of a part means, where its step cannot go on without it."""
    if part.has_fallen_back:
        return "abort"
    return part.brief.on_failure or step.planned.on_failure


class StandIn(Struct, frozen=True):
    output: Json


def inline_error(step: StepState, error: str) -> str:
    """What later prompts read in place of an output. It must not look like an answer."""
    return f"Error: step '{step.id}' failed: {error}"


def stand_in(
    policy: Policy | None, step: StepState, who: str, failure: FailureReason
) -> StandIn | None:
    """What stands for the output of a branch or element that may fail, if it may."""
    match policy:
        case "inline":
            return StandIn(inline_error(step, f"{who}: {failure.error}"))
        case "skip":
            return StandIn(None)
        case _:
            return None


def stop_run(transition: Transition, status: RunStatus, reason: str) -> None:
    """Nothing new starts, and what runs is cancelled. What has ended stays."""
    close_run(transition, status, reason)
    transition.clear_timer(RUN_TIMER)
    for step in list(transition.state.running.values()):
        _stop(transition, step, reason)


def _stop_inside(transition: Transition, inner: RecipeState, reason: str) -> None:
    for step in inner.steps.values():
        if step.status is StepStatus.RUNNING:
            if step.inner is not None:
                _stop_inside(transition, step.inner, reason)
            _stop(transition, step, reason)


def _stop(transition: Transition, step: StepState, reason: str) -> None:
    if step.status is not StepStatus.RUNNING:
        return
    if step.pending is not None and not step.is_merge_held:
        return  # the work of this step is done, and a merge is not stopped halfway
    is_collected = step.is_merge_held
    take_pending(transition, step)
    step.reason = reason
    stop_parts(transition, step)
    stop_asking(transition, step)
    # What the writer has written so far is kept, or named where it stays in the workspace.
    if is_collected or not collect_before_ending(transition, step, Pending(is_cancelled=True)):
        end_step(transition, step, StepStatus.CANCELLED)


def _hand_to_conditions(step: StepState) -> None:
    """The output of a condition is that of the step it chose, which may be a condition too."""
    for condition in step.all_chosen_by():
        condition.kept_output = step.kept_output


def _free_dependents(transition: Transition, step: StepState, is_live: bool) -> None:
    if step.choice is not None:
        chosen = transition.state.steps[step.choice]
        chosen.is_chosen = True
        chosen.chosen_by += (step,)
    arrived = transition.state.arrived
    for dependent in step.dependents if not is_live else ():
        dependent.skipped += dependent.planned.edges[step.id] != "listed before"
    for dependent in step.dependents:
        unmet = dependent.unmet = dependent.unmet - 1
        # A target that was not chosen waits for its other dependencies too: whether it is skipped
        # or held must not depend on which of them ended first.
        if not unmet:
            heappush(arrived, dependent.index)


def _hold_dependents(transition: Transition, failed: StepState) -> None:
    held = [failed]
    while held:
        for step in held.pop().dependents:
            if step.status is StepStatus.WAITING:
                step.reason = f"{failed.id} failed"
                end_step(transition, step, StepStatus.HELD)
                held.append(step)
