"""One delegation of a step: attempt, retry, fall back, give up.

Every kind of work is made of parts, and this is the only place where an attempt begins or ends.
A part that has ended is left in `state.ended_parts`, where its step finds it.
"""

from collections import deque
from collections.abc import Mapping
from hashlib import sha256

from stretto.events.attempts import AttemptId, AttemptTimer, Part, RetryTimer
from stretto.events.model import NOT_RETRIED, AttemptStarted
from stretto.plan.model import Brief
from stretto.recipe.model import Backoff
from stretto.schedule.changes import collect
from stretto.schedule.commands import CancelAttempt
from stretto.schedule.prompt import command_for
from stretto.schedule.state import (
    NO_LOCAL,
    NO_USAGE,
    AttemptOutcome,
    AttemptState,
    FailureReason,
    PartState,
    RunState,
    StepState,
)
from stretto.schedule.transition import Transition, close_run
from stretto.templates.render import TooLong
from stretto.templates.scope import MISSING, Missing
from stretto.vocabulary.amounts import Usage, format_duration
from stretto.vocabulary.json_value import Json, Kept, Large
from stretto.vocabulary.models import is_function
from stretto.vocabulary.statuses import RunStatus, StepStatus


def start_part(
    transition: Transition,
    step: StepState,
    id: Part,
    brief: Brief,
    local: Mapping[str, Json] = NO_LOCAL,
    upstream: Kept | Missing = MISSING,
) -> None:
    part = step.parts[id] = PartState(id, brief, brief.agent, local, upstream)
    start_attempt(transition, step, part)


def start_attempt(
    transition: Transition, step: StepState, part: PartState, *, has_slot: bool = False
) -> None:
    """Start the next attempt of a part, or let it wait for a slot. If the budget is spent or the
    prompt is too long, the part fails instead."""
    state = transition.state
    is_starting = transition.starting is step
    if not has_slot and not state.ready.may_take(step.index, is_starting=is_starting):
        _queue(transition, step, part)
        return
    refused = _budget_refusal(state, part)
    if refused is not None:
        close_run(transition, RunStatus.FAILED, refused)
        give_up(transition, step, part, part.failure or FailureReason("budget", refused))
        return
    try:
        command = command_for(state, step, part)
    except TooLong as error:
        give_up(
            transition, step, part, FailureReason("refused", f"its prompt cannot be made: {error}")
        )
        return
    part.attempts += (AttemptState(command.attempt, part.agent, command.key, command),)
    part.status = "running"
    part.tries += 1
    _open(state, step)
    state.deployed += part.brief.command is None  # a command deploys no agent
    transition.emit(command)


def _open(state: RunState, step: StepState) -> None:
    step.open_attempts += 1
    state.open_attempts += 1
    state.ready.take(step.index)


def begin_attempt(
    transition: Transition,
    step: StepState,
    part: PartState,
    attempt: AttemptState,
    event: AttemptStarted,
) -> None:
    """The driver has started the attempt: set its timer."""
    if attempt.stage == "ended" and attempt.outcome == "cancelled" and attempt.started_at is None:
        _call_back(transition, step, attempt)
    if attempt.stage != "planned":
        return
    attempt.stage = "running"
    attempt.key = event.key
    attempt.playbooks = event.playbooks or ()
    attempt.command = None
    attempt.started_at = transition.at
    timeout_seconds = transition.state.plan.agents[attempt.agent].timeout_seconds
    if timeout_seconds is not None:
        transition.set_timer(AttemptTimer(attempt.id), transition.at + timeout_seconds)


def succeed_attempt(
    transition: Transition,
    step: StepState,
    part: PartState,
    attempt: AttemptState,
    output: Json | Large,
    usage: Usage,
) -> None:
    if close_attempt(transition, step, attempt, "succeeded", usage):
        part.status = "succeeded"
        part.kept_output = output
        part.failure = None
        transition.state.ended_parts.append((step, part))


def fail_attempt(
    transition: Transition,
    step: StepState,
    part: PartState,
    attempt: AttemptState,
    failure: FailureReason,
    usage: Usage,
    retry_after_seconds: float | None,
) -> None:
    if close_attempt(transition, step, attempt, "failed", usage):
        attempt.failure = failure
        fail_part(transition, step, part, failure, retry_after_seconds)


def cancel_attempt(
    transition: Transition, step: StepState, part: PartState, attempt: AttemptState, usage: Usage
) -> None:
    """The attempt has stopped. Unless the scheduler asked for that, it is a failure like any other."""
    if close_attempt(transition, step, attempt, "cancelled", usage):
        attempt.failure = FailureReason("error", "the attempt was cancelled")
        fail_part(transition, step, part, attempt.failure)


def time_out_attempt(
    transition: Transition, step: StepState, part: PartState, attempt: AttemptState
) -> None:
    seconds = transition.state.plan.agents[attempt.agent].timeout_seconds or 0.0
    attempt.failure = FailureReason("timeout", f"timed out after {format_duration(seconds)}")
    _call_off(transition, step, attempt, "failed")
    fail_part(transition, step, part, attempt.failure)


def close_attempt(
    transition: Transition,
    step: StepState,
    attempt: AttemptState,
    outcome: AttemptOutcome,
    usage: Usage = NO_USAGE,
) -> bool:
    """Count what the attempt cost. Returns whether its outcome still matters: it does not once the
    attempt was told to stop."""
    state = transition.state
    was, attempt.stage = attempt.stage, "ended"
    attempt.command = None
    attempt.usage = usage
    state.usage += usage
    state.open_attempts -= 1
    step.open_attempts -= 1
    state.ready.release_slot(step.index)
    if step.open_attempts == 0:
        if step.status is not StepStatus.RUNNING:
            state.ready.release_files(step.index)
        elif step.pending is not None:
            collect(transition, step)
    if was == "stopping":
        return False
    attempt.outcome = outcome
    attempt.ended_at = transition.at
    if state.timers:
        transition.clear_timer(AttemptTimer(attempt.id))
    return True


def fail_part(
    transition: Transition,
    step: StepState,
    part: PartState,
    failure: FailureReason,
    retry_after_seconds: float | None = None,
) -> None:
    """An attempt failed: try again, let the fallback try, or give up."""
    part.failure = failure
    if failure.kind in ("validation", "truncated"):
        part.not_accepted = failure.error
    brief = part.brief
    retry = brief.fallback_retry if part.has_fallen_back else brief.retry
    asked = wait_asked_for(retry_after_seconds)
    is_retried = failure.kind not in NOT_RETRIED and asked <= LONGEST_RETRY_AFTER_SECONDS
    is_retried &= part.tries < retry.max_attempts
    if asked >= _WORTH_TELLING_SECONDS and not is_retried and failure.kind == "unavailable":
        failure = part.failure = _with_wait(failure, asked)
    if is_retried:
        chance = chance_of(transition.state.seed, part.attempts[-1].id)
        delay = retry_delay(retry.backoff, part.tries, chance, asked)
        _retry(transition, step, part, delay)
    elif brief.fallback and not part.has_fallen_back and failure.kind != "budget":
        step.warn(f"{brief.agent} failed, {brief.fallback} took over: {failure.error}")
        part.agent, part.has_fallen_back = brief.fallback, True
        part.not_accepted, part.tries = "", 0
        start_attempt(transition, step, part)
    else:
        give_up(transition, step, part, failure)


def _with_wait(failure: FailureReason, asked: float) -> FailureReason:
    waits = f"the provider asks to wait {format_duration(asked)}"
    if asked > LONGEST_RETRY_AFTER_SECONDS:
        waits += f", and {format_duration(LONGEST_RETRY_AFTER_SECONDS)} is the most"
    return FailureReason(failure.kind, f"{failure.error}; {waits}")


def give_up(
    transition: Transition, step: StepState, part: PartState, failure: FailureReason
) -> None:
    """The part has failed for good. What that means for the step is decided by its kind of work."""
    part.status = "failed"
    part.failure = failure
    transition.state.ended_parts.append((step, part))


def retry_now(transition: Transition, step: StepState, part: PartState) -> None:
    transition.state.retrying -= 1
    start_attempt(transition, step, part)


def use_slot(transition: Transition, step: StepState) -> None:
    """A slot is free for the step: start the part that has waited for it longest."""
    assert step.queued, "a step wants as many slots as parts of it wait"
    part = step.queued.popleft()
    transition.state.retrying -= 1
    closing = transition.state.closing_reason
    if closing:
        give_up(transition, step, part, part.failure or FailureReason("budget", closing))
    else:
        start_attempt(transition, step, part, has_slot=True)


def start_again(transition: Transition, step: StepState, part: PartState) -> None:
    """Start an attempt after an interruption, or after a person has allowed it. One that was
    interrupted does not count as one of the part's attempts."""
    if part.attempts and part.attempts[-1].outcome == "in_doubt":
        part.tries = max(0, part.tries - 1)
    start_attempt(transition, step, part)


def stop_part(transition: Transition, step: StepState, part: PartState) -> None:
    """Stop a part that its step no longer needs."""
    if part.status == "retrying":
        transition.state.retrying -= 1
        transition.clear_timer(RetryTimer(part.attempts[-1].id))
    elif part.status == "queued" and step.queued is not None:
        transition.state.retrying -= 1
        step.queued.remove(part)
        transition.state.ready.forget(step.index)
    elif part.status == "running":
        _call_off(transition, step, part.attempts[-1], "cancelled")
    elif part.status != "asking":
        return
    part.status = "cancelled"


def stop_parts(transition: Transition, step: StepState) -> None:
    for part in step.parts.values():
        stop_part(transition, step, part)


def _retry(transition: Transition, step: StepState, part: PartState, delay_seconds: float) -> None:
    if delay_seconds <= 0:
        start_attempt(transition, step, part)
        return
    part.status = "retrying"
    transition.state.retrying += 1
    transition.set_timer(RetryTimer(part.attempts[-1].id), transition.at + delay_seconds)


def _queue(transition: Transition, step: StepState, part: PartState) -> None:
    part.status = "queued"
    transition.state.retrying += 1
    if step.queued is None:
        step.queued = deque()
    step.queued.append(part)
    transition.state.ready.want(step.index)


def _call_off(
    transition: Transition,
    step: StepState,
    attempt: AttemptState,
    outcome: AttemptOutcome,
) -> None:
    transition.emit(CancelAttempt(attempt.id))
    if attempt.stage == "planned":
        close_attempt(transition, step, attempt, outcome)
        return
    attempt.stage = "stopping"
    attempt.outcome = outcome
    attempt.ended_at = transition.at
    transition.clear_timer(AttemptTimer(attempt.id))


def _call_back(transition: Transition, step: StepState, attempt: AttemptState) -> None:
    """The attempt was cancelled while queued but had already started: cancel it again, and keep
    counting its usage."""
    transition.emit(CancelAttempt(attempt.id))
    attempt.started_at = transition.at
    if not transition.state.has_ended:
        attempt.stage = "stopping"
        _open(transition.state, step)


LONGEST_DELAY_SECONDS = 60.0
_WORTH_TELLING_SECONDS = 5.0  # a shorter wait that a provider asked for explains no failure
# If a provider asks for more, the attempt is not retried.
LONGEST_RETRY_AFTER_SECONDS = 300.0
_CENTURY_SECONDS = 100 * 365 * 86_400.0
_LINEAR_SECONDS = 5.0
# 2**6 is past the longest delay already, and 2**n of a large n is no float.
_LARGEST_POWER = 6


def retry_delay(
    backoff: Backoff, attempt: int, chance: float, retry_after_seconds: float | None
) -> float:
    """Full jitter: anywhere up to the delay, but never sooner than the provider asked for."""
    delay = min(_base_delay(backoff, attempt), LONGEST_DELAY_SECONDS) * chance
    return max(delay, retry_after_seconds or 0.0)


def wait_asked_for(retry_after_seconds: float | None) -> float:
    """The wait that a provider asked for, as a number that can be used: it may send anything."""
    if retry_after_seconds is None or not retry_after_seconds > 0:  # NaN is not greater either
        return 0.0
    return min(retry_after_seconds, _CENTURY_SECONDS)


def chance_of(seed: int, attempt: AttemptId) -> float:
    """From 0 up to 1, the same in every fold of the same journal."""
    text = f"{seed}\0{attempt.step}\0{attempt.part.text}\0{attempt.number}"
    digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:6], "big") / (1 << 48)


def _base_delay(backoff: Backoff, attempt: int) -> float:
    match backoff:
        case "none":
            return 0.0
        case "linear":
            return _LINEAR_SECONDS * attempt
        case "exponential":
            return float(2 ** min(attempt, _LARGEST_POWER))


def _budget_refusal(state: RunState, part: PartState) -> str | None:
    """Why the part cannot be paid for. A command deploys no agent, and neither it nor a Python function
    asks a model: they cost nothing, so they run whatever was spent."""
    budget = state.plan.budget
    if part.brief.command is not None:
        return None
    if budget.agents is not None and state.deployed >= budget.agents:
        return f"budget exhausted: {state.deployed} of {budget.agents} agents deployed"
    if is_function(state.plan.agents[part.agent].model):
        return None
    if budget.tokens is not None and state.usage.tokens >= budget.tokens:
        return f"budget exhausted: {state.usage.tokens:,} of {budget.tokens:,} tokens used"
    if budget.usd is not None and state.usage.usd >= budget.usd:
        return f"budget exhausted: ${state.usage.usd:.4f} of ${budget.usd:.4f} spent"
    return None
