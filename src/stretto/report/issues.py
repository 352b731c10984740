"""What a person must know about a run. In: RunState and its steps. Out: Issues, worst first."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import assert_never

from stretto.events.model import Approved
from stretto.report.model import ChangesReport, Issue, StepReport
from stretto.report.text import moment
from stretto.schedule.state import RunState
from stretto.schedule.status import why_waiting
from stretto.text.short import counted, listed, shorten
from stretto.text.visible import one_line
from stretto.vocabulary.amounts import format_duration
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.statuses import RunStatus, StepStatus

_LONGEST_EDIT = 300
_NOT_RUN = (StepStatus.SKIPPED, StepStatus.HELD, StepStatus.CANCELLED)

_MOST_STDERR = 300  # characters


def issues_of(state: RunState, steps: Sequence[StepReport]) -> Iterator[Issue]:
    yield from _failures(steps)
    yield from _standing(state, steps)
    yield from _run_warnings(state, steps)
    yield from _not_run(steps)
    yield from _interruptions(state, steps)
    for step in steps:
        yield from (Issue("warning", text, step.id) for text in step.warnings)
        yield from _retries(step)
        yield from _reuse(step)
        yield from _changes(state, step)
        yield from _stderr(step)
    yield from _decisions(state)
    for problem in state.plan.warnings:
        yield Issue("recipe", f"{problem.code} {problem.message}")


def _stderr(step: StepReport) -> Iterator[Issue]:
    """Of the last command that each part ran; of one that failed the error has it."""
    last = {attempt.part: attempt for attempt in step.attempts if attempt.exit_code is not None}
    for attempt in last.values():
        if attempt.stderr and not attempt.error:
            name = f"{attempt.part}: " if attempt.part else ""
            said = shorten(attempt.stderr, _MOST_STDERR)
            yield Issue(
                "stderr", f"{name}exit code {attempt.exit_code}, on stderr: {said}", step.id
            )


def _changes(state: RunState, step: StepReport) -> Iterator[Issue]:
    found = step.changes
    if found is None or not found.files:
        return
    count = counted(found.files, "file")
    lines = f"+{found.insertions} -{found.deletions} lines"
    place = f"{state.run_id} {step.id}"
    stands = _stands(found, place)
    yield Issue("changed", f"changed {count}, {lines}, {stands}: stretto diff {place}", step.id)


def _stands(found: ChangesReport, place: str) -> str:
    """Whether the change is merged; if not, only what would really merge it is proposed."""
    match found.standing:
        case "merged":
            return "merged"
        case "applied":
            return f"merged by {found.applied_by or 'a person'}"
        case "held":
            return f"not merged (stretto approve {place} merges it)"
        case "removals":
            return f"not merged (stretto apply {place} --allow-removals)"
        case "to apply":
            return f"not merged (stretto apply {place})"
        case "nothing to apply":
            return "nothing to apply"
        case "conflict":
            return f"not merged (settle the conflict, then stretto apply {place})"
        case "unfinished":
            return f"perhaps half done, not merged (stretto apply {place} --unfinished)"
        case "refused":
            return "refused, not merged"
        case "kept":
            return "kept, not merged"
        case _:
            assert_never(found.standing)


def _failures(steps: Sequence[StepReport]) -> Iterator[Issue]:
    for step in steps:
        if step.status == StepStatus.FAILED:
            yield Issue("failed", f"failed: {step.error}", step.id)


def _standing(state: RunState, steps: Sequence[StepReport]) -> Iterator[Issue]:
    """What a run that has not ended waits for."""
    if state.has_ended:
        return
    late = {step.id for step in steps if step.status == "overdue"}
    for step in sorted(state.awaiting_approval.values(), key=lambda step: step.index):
        place = f"{state.run_id} {step.id}"
        about = f" ({step.question})" if step.is_merge_held else ""
        said = f"awaits approval{about}: stretto approve {place}, or stretto reject {place}"
        if step.id in late:
            said = (
                f"its deadline has passed{about}: stretto resume {state.run_id} goes on without it"
            )
        yield Issue("waiting", said, step.id)
    if state.status is not RunStatus.RUNNING:
        return
    for step in state.running.values():
        if step.id not in state.awaiting_approval:
            yield Issue("stopped", why_waiting(state, step.id) or "has not ended", step.id)


def _run_warnings(state: RunState, steps: Sequence[StepReport]) -> Iterator[Issue]:
    # A run that one step's failure stopped says so in the words of that step.
    said = _find_failures(steps)
    causes = {text for step in steps for text in (step.reason, step.error)}
    for text in state.warnings:
        if text in said:
            yield Issue("stopped", f"the run stopped because step '{said[text]}' failed")
        else:
            yield Issue("stopped" if text in causes else "warning", text)


def _find_failures(steps: Sequence[StepReport]) -> dict[str, str]:
    """By what is said of a failed step elsewhere: its id. Its error stands in a line of its own."""
    return {f"step '{step.id}' failed: {step.error}": step.id for step in steps if step.error}


def _not_run(steps: Sequence[StepReport]) -> Iterator[Issue]:
    together: dict[tuple[str, str], list[str]] = {}
    failed = _find_failures(steps)
    for step in steps:
        if step.status in _NOT_RUN:
            why = step.reason or step.error or ""
            why = f"step '{failed[why]}' failed" if why in failed else why
            together.setdefault((step.status, why), []).append(step.id)
    for (status, reason), ids in together.items():
        yield Issue("not run", f"{status}: {listed(ids, 12)} ({reason or 'no reason is recorded'})")


def _interruptions(state: RunState, steps: Sequence[StepReport]) -> Iterator[Issue]:
    for each in state.resumptions:
        if not each.had_work:
            continue
        away = format_duration(max(0.0, each.resumed_at - each.last_sign_at))
        yield Issue(
            "interrupted",
            f"resumed at {moment(each.resumed_at)} after an interruption, {away} after its last event",
        )
    for step in steps:
        doubts = Counter(each.error for each in step.attempts if each.status == "in doubt")
        for why, count in doubts.items():
            tokens = sum(
                each.usage.tokens
                for each in step.attempts
                if (each.status, each.error) == ("in doubt", why)
            )
            known = f" ({tokens:,} tokens of it are counted)" if tokens else ""
            says = f"{counted(count, 'attempt')} in doubt: {why}{known}"
            yield Issue("interrupted", says, step.id)


def _retries(step: StepReport) -> Iterator[Issue]:
    # Equal causes are told once: a map may retry a thousand times.
    causes = Counter((each.agent, each.failure, each.error) for each in step.retried)
    for (agent, kind, error), count in causes.items():
        yield Issue(
            "retry", f"{counted(count, 'retry')} of {agent} after {_cause(kind, error)}", step.id
        )
    asked_again = Counter(error for each in step.attempts for error in each.provider_retries)
    for error, count in asked_again.items():
        yield Issue("retry", f"{counted(count, 'retry')} of the model after {error}", step.id)


def _cause(kind: str, error: str) -> str:
    names = {
        "error": "an error",
        "validation": "an answer that was not accepted",
        "truncated": "an answer that was cut off",
    }
    return f"{names.get(kind, kind)}: {error}"


def _reuse(step: StepReport) -> Iterator[Issue]:
    runs = Counter(attempt.reused_from for attempt in step.attempts if attempt.reused_from)
    for run, count in runs.items():
        yield Issue("reused", f"{counted(count, 'output')} reused from run {run}", step.id)


def _decisions(state: RunState) -> Iterator[Issue]:
    """All of them, also those that did not count."""
    made = [each for step in state.order for each in step.decisions]
    for each in sorted(made, key=lambda each: each.event.at):
        event = each.event
        verb = "approved" if isinstance(event, Approved) else "rejected"
        said = f"{verb} by {event.by or 'a person'} at {moment(event.at)}"
        said += f": {event.reason}" if event.reason else ""
        if isinstance(event, Approved):
            said += "".join(
                f"; {_edit(part, text)}" for part, text in (event.prompts or {}).items()
            )
        yield Issue(
            "asked", f"{said}; it did not count: {each.void}" if each.void else said, event.step
        )


def _edit(part: str, text: Json) -> str:
    of = f" of {part}" if part else ""
    return f"the prompt{of} that ran: {one_line(str(text), _LONGEST_EDIT)}"
