"""Do everything that has become possible, until nothing is left to do.

One flat loop: parts that ended first, then steps whose dependencies have ended, then whoever gets
the next slot. A plan of ten thousand steps that skip each other needs no stack.
"""

from heapq import heappop

from stretto.events.attempts import StepTimer
from stretto.schedule.approvals import ask, needs_person
from stretto.schedule.attempts import use_slot
from stretto.schedule.commands import EndRun
from stretto.schedule.outcomes import skip
from stretto.schedule.outputs import doubts_about_output, has_answered, lack_of_output
from stretto.schedule.state import RunState, StepState
from stretto.schedule.transition import Transition
from stretto.schedule.work import begin_work, end_part, end_workflow
from stretto.templates.evaluate import Undecided, decide
from stretto.vocabulary.statuses import RunStatus, StepStatus


def progress(transition: Transition) -> None:
    state = transition.state
    ended_parts = state.ended_parts
    while True:
        if ended_parts:
            step, part = ended_parts.popleft()
            if step.status is StepStatus.RUNNING and step.pending is None:
                end_part(transition, step, part)
        elif state.done_inside:
            end_workflow(transition, state.done_inside.popleft())
        elif state.arrived:
            _arrive(transition, state.order[heappop(state.arrived)])
        elif (index := state.ready.pop()) is not None:
            _start(transition, state.order[index])
        else:
            return


def _arrive(transition: Transition, step: StepState) -> None:
    """All dependencies have ended: decide whether the step runs at all, and whether a person must
    approve it first."""
    if step.status is not StepStatus.WAITING:
        return
    planned = step.planned
    if step.is_target and not step.is_chosen:
        skip(transition, step, "no condition chose it")
    elif step.skipped and step.skipped == step.needs:
        skip(transition, step, "all steps that it needs were skipped")
    elif planned.when is not None and not _is_wanted(transition, step):
        skip(transition, step, f"its condition is not met: {planned.when.text}")
    elif needs_person(transition, step):
        ask(transition, step)
    else:
        transition.state.ready.push(step.index)


def _is_wanted(transition: Transition, step: StepState) -> bool:
    assert step.planned.when is not None
    claim = decide(step.planned.when, step.recipe.scope)
    if isinstance(claim, Undecided):
        step.warn(f"'when' is undecided and counts as false: {claim.reason}")
        return False
    return claim


def _start(transition: Transition, step: StepState) -> None:
    if step.status is StepStatus.RUNNING:
        use_slot(transition, step)
        return
    if not _may_start(transition, step):
        transition.state.ready.release_files(step.index)
        return
    step.status = StepStatus.RUNNING
    step.started_at = transition.at
    transition.state.running[step.id] = step
    # The timeout of a step that awaited approval runs already.
    if (
        step.planned.timeout_seconds is not None
        and StepTimer(step.id) not in transition.state.timers
    ):
        transition.set_timer(StepTimer(step.id), transition.at + step.planned.timeout_seconds)
    transition.starting = step
    begin_work(transition, step)
    transition.starting = None


def _may_start(transition: Transition, step: StepState) -> bool:
    """Not if the step timed out in the queue, nor if a person must be asked again because the run
    was resumed with a narrower permission or with other models than were approved."""
    if step.status is not StepStatus.WAITING:
        return False
    if needs_person(transition, step):
        ask(transition, step)
        return False
    return True


_AS_WANTED = (StepStatus.SUCCEEDED, StepStatus.SKIPPED)


def finish(transition: Transition) -> None:
    """A run ends when nothing is under way: whatever could start was started before this."""
    state = transition.state
    if state.open_attempts or state.retrying or state.collecting:
        state.status = RunStatus.RUNNING
    elif state.awaiting_approval:
        state.status = RunStatus.WAITING
    else:
        state.status = state.closed_as or _final_status(state)
        if said := _budget_excess(state):
            state.warn(said)
        state.has_ended = True
        state.ended_at = transition.at
        for timer in list(state.timers):
            transition.clear_timer(timer)
        transition.emit(EndRun(state.status))


def _final_status(state: RunState) -> RunStatus:
    # A step that failed, was held or cancelled is never as wanted, so a run whose output needs
    # what that step did not give is never complete. Nor is one whose output was routed away.
    is_complete = all(step.status in _AS_WANTED for step in state.order) and not state.is_partial
    if not is_complete:
        return RunStatus.PARTIAL if _has_success(state) else RunStatus.FAILED
    if lack := lack_of_output(state.recipe):
        state.warn(lack)
        return RunStatus.PARTIAL
    for doubt in doubts_about_output(state.recipe, "the run's output"):
        state.warn(doubt)
    if not _has_success(state):
        state.warn("no agent was asked anything in this run")
    return RunStatus.COMPLETE


def _has_success(state: RunState) -> bool:
    """Whether a step succeeded in which somebody who was asked has answered: a condition that was
    decided is no answer, and an answer inside a step that failed is no success."""
    return any(has_answered(step) for step in state.order)


def _budget_excess(state: RunState) -> str | None:
    """By how much the budget was exceeded. Every call was reserved before it was made, so somebody
    has taken more than was reserved for it."""
    budget, used = state.plan.budget, state.usage
    over = []
    if budget.tokens is not None and used.tokens > budget.tokens:
        more = used.tokens - budget.tokens
        over.append(f"by {more:,} tokens ({used.tokens:,} of {budget.tokens:,})")
    if budget.usd is not None and used.usd > budget.usd:
        over.append(f"by ${used.usd - budget.usd:.4f} (${used.usd:.4f} of ${budget.usd:.4f})")
    if not over:
        return None
    why = "a model took more than was reserved for its call"
    return f"the budget was exceeded {' and '.join(over)}: {why}"
