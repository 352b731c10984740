"""Note what an attempt does while it is under way, for reports and for a later resume.

These events start and end no step.
"""

from stretto.events.model import (
    CommandEnded,
    Happening,
    ModelFailedOver,
    ModelRetried,
    ModelSpoke,
    PhaseLasted,
    ToolEnded,
    ToolStarted,
    UsageNoted,
)
from stretto.schedule.state import AttemptState, HeldUp, RunState, StepState
from stretto.schedule.tool_calls import MOST_FAULTS, ToolCallCounts, fault_of
from stretto.text.short import describe_call
from stretto.vocabulary.amounts import format_duration
from stretto.vocabulary.names import LOAD_PLAYBOOK

# Built-in tools that never remove a file. Any other call may have removed some.
_REMOVES_NOTHING = frozenset(
    (
        *("Read", "Glob", "Grep", "Write", "Edit", "MultiEdit", "NotebookEdit", "WebFetch"),
        *("WebSearch", LOAD_PLAYBOOK),
    )
)


_LAST_WORDS = 240  # as many as a wide terminal shows in a line


def observe(state: RunState, event: Happening) -> None:
    id = event.attempt
    step = state.steps.get(id.step)
    part = step.parts.get(id.part) if step else None
    if step is None or part is None or not 1 <= id.number <= len(part.attempts):
        return
    attempt = part.attempts[id.number - 1]
    if step.held_up is not None and step.held_up.attempt is attempt:
        step.held_up = None  # the attempt goes on, so it no longer waits for its provider
    match event:
        case ToolStarted():
            _note(step, f"calls {describe_call(event.tool, event.arguments)}")
            attempt.has_doubtful_calls |= event.recovery == "in_doubt"
            attempt.may_have_removed |= event.tool not in _REMOVES_NOTHING
        case ToolEnded():
            _end_call(step, attempt, event)
        case ModelFailedOver():
            said = f"{event.model} could not answer, {event.to} was asked: {event.error}"
            step.warn(said)
            warn(attempt, said)
        case ModelRetried():
            attempt.provider_retries += (event.error,)
            delay = format_duration(event.delay_seconds)
            says = f"{event.error}, retry {event.retry}/{event.most} in {delay}"
            step.held_up = HeldUp(attempt, says)
        case PhaseLasted():
            _note(step, event.phase)
        case UsageNoted():
            attempt.noted_usage = event.usage
        case CommandEnded():
            _end_command(step, attempt, event)
        case ModelSpoke():
            before = step.last_words if step.speaker is attempt else ""
            step.last_words = (before + event.text[-_LAST_WORDS:])[-_LAST_WORDS:]
            step.speaker, step.activity = attempt, ""


def _end_call(step: StepState, attempt: AttemptState, event: ToolEnded) -> None:
    _note(step, f"called {describe_call(event.tool, event.arguments)}")
    attempt.tool_calls += 1
    was_made = event.verdict != "refused"
    attempt.may_have_removed |= was_made and event.tool not in _REMOVES_NOTHING
    step.calls = step.calls or ToolCallCounts()
    step.calls.count(event)
    if event.tool == LOAD_PLAYBOOK and event.verdict == "ok":
        _note_loaded(attempt, event)
    if said := fault_of(event):
        warn(attempt, said)


def _end_command(step: StepState, attempt: AttemptState, event: CommandEnded) -> None:
    _note(step, f"exit code {event.exit_code}")
    attempt.ended_command = event
    attempt.may_have_removed = True


def _note(step: StepState, activity: str) -> None:
    step.activity, step.speaker, step.last_words = activity, None, ""


def _note_loaded(attempt: AttemptState, event: ToolEnded) -> None:
    name = event.arguments.get("name")
    if isinstance(name, str) and name not in attempt.playbooks:
        attempt.playbooks += (name,)


def warn(attempt: AttemptState, said: str) -> None:
    if said not in attempt.warnings and len(attempt.warnings) < MOST_FAULTS:
        attempt.warnings += (said,)
