"""How a run came out, in a sentence, and what to do now. In: Report. Out: Conclusion."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stretto.report.model import Report, StepReport
from stretto.text.short import listed
from stretto.text.visible import one_line
from stretto.vocabulary.statuses import INTERRUPTED, RunStatus, StepStatus

_LONGEST_ERROR = 300
_MOST_NAMES = 6
_MOST_STEPS = 3
# What would make the next try end otherwise, by how the last one failed.
_ADVICE = {
    "timeout": "Give it more time (timeout) or less to do",
    "empty": "Ask for an answer more plainly in its prompt, or use another model",
    "truncated": "Raise max_output_tokens, or ask for a shorter answer",
    "validation": "Say in its prompt what its schema and rules ask for, or ask for less",
    "refused": "Change its prompt, or use another model",
    "unavailable": "Try again once the model answers, or name fallback_models",
    "permanent": "The same request would fail again: fix the cause first",
    "budget": "Raise the budget, or do less",
    "conflict": "Settle the conflict first",
}
_TURN = re.compile(r"chat: chat (?P<chat>\S+), turn (?P<number>\d+)")
_TO_BE_MERGED = ("removals", "to apply", "conflict", "unfinished")


@dataclass(frozen=True, slots=True)
class NextCommand:
    command: str
    does: str


@dataclass(frozen=True, slots=True)
class Conclusion:
    says: str
    advice: str  # what a person could change; empty: nothing, or it is not known
    commands: tuple[NextCommand, ...]


def conclusion_of(report: Report) -> Conclusion:
    failed = [step for step in report.steps if step.status == StepStatus.FAILED]
    return Conclusion(
        " ".join(_sentences(report, failed)),
        _advice(failed) if report.ended_at is not None else "",
        next_commands(report),
    )


def _sentences(report: Report, failed: Sequence[StepReport]) -> Iterator[str]:
    yield from _standing(report, failed)
    yield from _failures(failed)
    done, total = report.count(StepStatus.SUCCEEDED), len(report.steps)
    if done == total:
        yield "The only step succeeded." if total == 1 else f"All {total} steps succeeded."
    else:
        yield f"{done} of {total} steps succeeded."
    yield from _left_out(report)
    if done == total and report.status == RunStatus.PARTIAL:
        yield "A part of the work is missing: the warnings say which."
    if report.is_ok and (count := len(report.warnings)):
        yield f"There {'is 1 warning' if count == 1 else f'are {count:,} warnings'}."


def _standing(report: Report, failed: Sequence[StepReport]) -> Iterator[str]:
    """Why a run has no end yet, or came to an early one."""
    if report.status == RunStatus.WAITING:
        waiting = [step for step in report.steps if step.status == StepStatus.AWAITING_APPROVAL]
        # A turn of a chat waits for what its chat asks.
        yield f"A person must approve or reject {_name_steps(waiting) if waiting else 'what the chat asks'}."
    elif report.status == "overdue":
        yield "A deadline passed before a person decided."
    elif report.status == INTERRUPTED:
        yield "The process that drove the run ended before the run did."
    elif report.status == RunStatus.RUNNING:
        yield "The run is under way."
    elif not report.is_ok and not failed:
        stops = [issue.says for issue in report.issues if issue.kind == "stopped"]
        yield from (_sentence(says) for says in stops[:1])


def _failures(failed: Sequence[StepReport]) -> Iterator[str]:
    for step in failed[:1]:
        tries = len(step.attempts)
        often = f" after {tries} attempts" if tries > 1 else ""
        error = one_line(step.error or "no reason is recorded", _LONGEST_ERROR)
        yield _sentence(f"Step '{step.id}' failed{often}: {error}")
    if len(failed) > 1:
        yield f"So did {_name_steps(failed[1:])}."


def _left_out(report: Report) -> Iterator[str]:
    """Steps that did not run, by why."""
    words = {
        StepStatus.HELD: "held back, because what they need failed",
        StepStatus.SKIPPED: "left out by a condition",
        StepStatus.CANCELLED: "cancelled",
    }
    for status, why in words.items():
        steps = [step for step in report.steps if step.status == status]
        if len(steps) == 1:
            yield f"Step {_name_steps(steps)} was {why.replace('they need', 'it needs')}."
        elif steps:
            yield f"{len(steps)} were {why}: {_name_steps(steps)}."


def _name_steps(steps: Sequence[StepReport]) -> str:
    return listed((f"'{one_line(step.id)}'" for step in steps), _MOST_NAMES)


def _sentence(says: str) -> str:
    said = one_line(says)
    return f"{said[:1].upper()}{said[1:].rstrip('.')}."


def _advice(failed: Sequence[StepReport]) -> str:
    for step in failed:
        kinds = [attempt.failure for attempt in step.attempts if attempt.failure]
        if kinds and (advice := _ADVICE.get(kinds[-1])):
            return f"{advice}."
    return ""


def next_commands(report: Report) -> tuple[NextCommand, ...]:
    """What can be done about the run now, for whoever shows it."""
    return tuple(_commands(report))


def _commands(report: Report) -> Iterator[NextCommand]:
    run = report.run_id
    failed = [step for step in report.steps if step.status == StepStatus.FAILED]
    asked = [step for step in report.steps if step.status == StepStatus.AWAITING_APPROVAL]
    for step in asked[:_MOST_STEPS]:
        place = f"{run} {step.id}"
        yield NextCommand(f"stretto approve {place} --show", "shows what would run")
        yield NextCommand(f"stretto approve {place}", "allows it")
        yield NextCommand(f"stretto reject {place}", "refuses it")
    if len(asked) > _MOST_STEPS:
        yield NextCommand(
            f"stretto report {run}", f"shows {len(asked) - _MOST_STEPS} more that wait"
        )
    # Where a person has rejected a step, nothing was said in it.
    for step in [step for step in failed if step.attempts][:1]:
        yield NextCommand(f"stretto logs {run} {step.id}", "shows what it said and did")
    if chat := chat_of_turn(report.workflow, report.trigger, [step.id for step in report.steps]):
        if report.status != RunStatus.RUNNING and not report.is_ok:
            yield NextCommand(f"stretto chat --resume {chat}", "goes on with the chat")
    elif report.ended_at is not None and not report.is_ok:
        yield NextCommand(f"stretto retry {run}", "runs again what did not succeed")
    elif report.status in (INTERRUPTED, "overdue"):
        yield NextCommand(f"stretto resume {run}", "continues it")
    elif report.status == RunStatus.RUNNING:
        yield NextCommand(f"stretto watch {run}", "follows it")
    for step in [each for each in report.steps if _is_to_be_merged(each)][:_MOST_STEPS]:
        yield NextCommand(f"stretto diff {run} {step.id}", "shows its change, which is not merged")


def chat_of_turn(workflow: str, trigger: str, steps: Iterable[str]) -> str:
    """The chat that a run is a turn of: only there it has its tools and its memory. Empty: of none.

    Runs that a turn has started have the same trigger, and other steps.
    """
    found = _TURN.fullmatch(f"{workflow}: {trigger}")
    return found["chat"] if found and list(steps) == [f"turn-{found['number']}"] else ""


def _is_to_be_merged(step: StepReport) -> bool:
    return step.changes is not None and step.changes.standing in _TO_BE_MERGED
