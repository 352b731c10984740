"""One delegation of a step: attempt, retry, fall back, give up (RECIPES §6).

Every kind of work is made of parts, and this is the only place where an attempt begins or ends.
A part that has ended is left in `state.ended_parts`, where its step finds it.
"""

from collections.abc import Mapping

from stretto.events.model import NOT_RETRIED
from stretto.plan.model import Brief
from stretto.schedule.budget import refusal
from stretto.schedule.closing import close_run
from stretto.schedule.collecting import collect
from stretto.schedule.commands import CancelAttempt
from stretto.schedule.delays import (
    LONGEST_RETRY_AFTER_SECONDS,
    chance_of,
    retry_delay,
    wait_asked_for,
)
from stretto.schedule.prompt import command_for
from stretto.schedule.state import (
    NO_LOCAL,
    NO_USAGE,
    AttemptOutcome,
    AttemptState,
    Failure,
    PartState,
    StepState,
    Timer,
)
from stretto.schedule.turn import Turn
from stretto.templates.render import TooLong
from stretto.templates.value import MISSING, Missing
from stretto.vocabulary.durations import format_duration
from stretto.vocabulary.ids import StepId
from stretto.vocabulary.large import Kept, Large
from stretto.vocabulary.statuses import RunStatus, StepStatus
from stretto.vocabulary.usage import Usage
from stretto.vocabulary.values import Json


def start_part(
    turn: Turn,
    step: StepState,
    name: str,
    brief: Brief,
    local: Mapping[str, Json] = NO_LOCAL,
    handed: Kept | Missing = MISSING,
) -> None:
    part = step.parts[name] = PartState(name, brief, brief.agent, local, handed)
    start_attempt(turn, step, part)


def start_attempt(turn: Turn, step: StepState, part: PartState) -> None:
    """Or end the part, if the run cannot afford it, or nobody could read its prompt."""
    state = turn.state
    if step.is_resting:
        _queue(turn, step, part)
        return
    refused = refusal(state)
    if refused is not None:
        close_run(turn, RunStatus.FAILED, refused)
        give_up(turn, step, part, part.failure or Failure("budget", refused))
        return
    try:
        command = command_for(state, step, part)
    except TooLong as error:
        give_up(turn, step, part, Failure("refused", f"its prompt cannot be made: {error}"))
        return
    part.attempts.append(AttemptState(command.attempt, command.agent, command.key, command))
    part.status = "running"
    part.tries += 1
    step.open_attempts += 1
    state.open_attempts += 1
    state.deployed += 1
    turn.say(command)


def begin_attempt(
    turn: Turn, step: StepState, part: PartState, attempt: AttemptState, key: str
) -> None:
    """The driver says that it has started."""
    if attempt.stage == "ended" and attempt.outcome == "cancelled" and attempt.started_at is None:
        _call_back(turn, step, part, attempt)
    if attempt.stage != "planned":
        return
    attempt.stage = "running"
    attempt.key = key
    attempt.command = None
    attempt.started_at = turn.at
    timeout_seconds = turn.state.plan.agents[attempt.agent].timeout_seconds
    if timeout_seconds is not None:
        due_at = turn.at + timeout_seconds
        timer = Timer("attempt", due_at, step.id, part.name, attempt.number)
        turn.set_timer(attempt_timer(step.id, part.name, attempt.number), timer)


def succeed_attempt(
    turn: Turn,
    step: StepState,
    part: PartState,
    attempt: AttemptState,
    output: Json | Large,
    usage: Usage,
) -> None:
    if close_attempt(turn, step, part, attempt, "succeeded", usage):
        part.status = "succeeded"
        part.kept_output = output
        part.failure = None
        turn.state.ended_parts.append((step, part))


def fail_attempt(
    turn: Turn,
    step: StepState,
    part: PartState,
    attempt: AttemptState,
    failure: Failure,
    usage: Usage,
    retry_after_seconds: float | None,
) -> None:
    if close_attempt(turn, step, part, attempt, "failed", usage):
        attempt.failure = failure
        fail_part(turn, step, part, failure, retry_after_seconds)


def cancel_attempt(
    turn: Turn, step: StepState, part: PartState, attempt: AttemptState, usage: Usage
) -> None:
    """It stopped. If nobody told it to, that is a failure like any other."""
    if close_attempt(turn, step, part, attempt, "cancelled", usage):
        attempt.failure = Failure("error", "the attempt was cancelled")
        fail_part(turn, step, part, attempt.failure)


def time_out_attempt(turn: Turn, step: StepState, part: PartState, attempt: AttemptState) -> None:
    seconds = turn.state.plan.agents[attempt.agent].timeout_seconds or 0.0
    attempt.failure = Failure("timeout", f"timed out after {format_duration(seconds)}")
    _call_off(turn, step, part, attempt, "failed")
    fail_part(turn, step, part, attempt.failure)


def close_attempt(
    turn: Turn,
    step: StepState,
    part: PartState,
    attempt: AttemptState,
    outcome: AttemptOutcome,
    usage: Usage = NO_USAGE,
) -> bool:
    """Count what it cost. Whether the outcome matters: not once the attempt was told to stop."""
    state = turn.state
    was, attempt.stage = attempt.stage, "ended"
    attempt.command = None
    attempt.usage = usage
    state.usage += usage
    state.open_attempts -= 1
    step.open_attempts -= 1
    if step.open_attempts == 0:
        if step.status is not StepStatus.RUNNING:
            state.startable.let_go(step.index)
        elif step.pending is not None:
            collect(turn, step)
        elif state.retrying:
            turn.idle[step.id] = step
    if was == "stopping":
        return False
    attempt.outcome = outcome
    attempt.ended_at = turn.at
    if state.timers:
        turn.clear_timer(attempt_timer(step.id, part.name, attempt.number))
    return True


def fail_part(
    turn: Turn,
    step: StepState,
    part: PartState,
    failure: Failure,
    retry_after_seconds: float | None = None,
) -> None:
    """An attempt failed: try again, let the fallback try, or give up."""
    part.failure = failure
    if failure.kind in ("validation", "truncated"):
        part.not_accepted = failure.error
    brief, number = part.brief, len(part.attempts)
    asked = wait_asked_for(retry_after_seconds)
    if asked > LONGEST_RETRY_AFTER_SECONDS:
        waits = f"the provider asks to wait {format_duration(asked)}"
        most = format_duration(LONGEST_RETRY_AFTER_SECONDS)
        failure = Failure(failure.kind, f"{failure.error}; {waits}, and {most} is the most")
        part.failure = failure
    is_retried = failure.kind not in NOT_RETRIED and asked <= LONGEST_RETRY_AFTER_SECONDS
    may_retry = is_retried and not part.has_fallen_back
    if may_retry and part.tries < brief.retry.max_attempts:
        chance = chance_of(turn.state.seed, step.id, part.name, number)
        delay = retry_delay(brief.retry.backoff, number, chance, asked)
        _retry(turn, step, part, delay)
    elif brief.fallback and not part.has_fallen_back and failure.kind != "budget":
        step.warnings[f"{brief.agent} failed, {brief.fallback} took over: {failure.error}"] = None
        part.agent, part.has_fallen_back = brief.fallback, True
        part.not_accepted = ""
        start_attempt(turn, step, part)
    else:
        give_up(turn, step, part, failure)


def give_up(turn: Turn, step: StepState, part: PartState, failure: Failure) -> None:
    """The part has failed, and nobody tries again: what that means is its step's affair."""
    part.status = "failed"
    part.failure = failure
    turn.state.ended_parts.append((step, part))


def retry_now(turn: Turn, step: StepState, part: PartState) -> None:
    turn.state.retrying -= 1
    start_attempt(turn, step, part)


def rest(turn: Turn, step: StepState) -> None:
    """Give the place away, if nothing of the step is under way and some of it waits to retry."""
    is_at_work = step.open_attempts or step.awaits_approval or step.pending is not None
    if is_at_work or step.is_resting or turn.state.plan.retry_keeps_place:
        return
    if any(part.status == "retrying" for part in step.parts.values()):
        step.is_resting = True
        turn.state.startable.leave()


def return_to_work(turn: Turn, step: StepState) -> None:
    """It has a place again."""
    step.is_resting = False
    queued, step.queued = step.queued, []
    for part in queued:
        if part.status == "retrying":  # nobody stopped it meanwhile
            retry_now(turn, step, part)
    turn.idle[step.id] = step


def start_again(turn: Turn, step: StepState, part: PartState) -> None:
    """After an interruption, which costs the part none of its attempts."""
    part.tries -= 1
    start_attempt(turn, step, part)


def stop_part(turn: Turn, step: StepState, part: PartState) -> None:
    """Whatever it is doing, its step does not want it any more."""
    if part.status == "retrying":
        turn.state.retrying -= 1
        turn.clear_timer(_retry_timer(step, part))
    elif part.status == "running":
        _call_off(turn, step, part, part.attempts[-1], "cancelled")
    elif part.status != "asking":
        return
    part.status = "cancelled"


def stop_parts(turn: Turn, step: StepState) -> None:
    for part in step.parts.values():
        stop_part(turn, step, part)


def _retry(turn: Turn, step: StepState, part: PartState, delay_seconds: float) -> None:
    if delay_seconds <= 0:
        start_attempt(turn, step, part)
        return
    part.status = "retrying"
    turn.state.retrying += 1
    turn.idle[step.id] = step
    timer = Timer("retry", turn.at + delay_seconds, step.id, part.name, len(part.attempts))
    turn.set_timer(_retry_timer(step, part), timer)


def _queue(turn: Turn, step: StepState, part: PartState) -> None:
    """Its time has come, and its step must get a place first."""
    part.status = "retrying"
    turn.state.retrying += 1
    if not step.queued:
        turn.state.startable.push_back(step.index)
    step.queued.append(part)


def _call_off(
    turn: Turn, step: StepState, part: PartState, attempt: AttemptState, outcome: AttemptOutcome
) -> None:
    turn.say(CancelAttempt(step.id, part.name, attempt.number))
    if attempt.stage == "planned":
        close_attempt(turn, step, part, attempt, outcome)
        return
    attempt.stage = "stopping"
    attempt.outcome = outcome
    attempt.ended_at = turn.at
    turn.clear_timer(attempt_timer(step.id, part.name, attempt.number))


def _call_back(turn: Turn, step: StepState, part: PartState, attempt: AttemptState) -> None:
    """It was called off before it began, and began all the same: its cost counts too."""
    turn.say(CancelAttempt(step.id, part.name, attempt.number))
    attempt.started_at = turn.at
    if not turn.state.has_ended:
        attempt.stage = "stopping"
        step.open_attempts += 1
        turn.state.open_attempts += 1


def attempt_timer(step: StepId, part: str, attempt: int) -> str:
    return f"attempt:{step}:{part}:{attempt}"


def _retry_timer(step: StepState, part: PartState) -> str:
    return f"retry:{step.id}:{part.name}:{len(part.attempts)}"
