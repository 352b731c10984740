"""The report as Markdown. In: Report. Out: the "Workflow Execution Report", section by section."""

import re
from collections.abc import Iterator

from stretto.report.conclusion import conclusion_of
from stretto.report.model import PathStep, Report, StepReport
from stretto.report.text import (
    calls_of,
    cost_of,
    issue_lines,
    length,
    moment,
    run_time,
    show,
    size,
    status_word,
    tokens,
    uses_of,
)
from stretto.text.visible import one_line
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.statuses import UNFINISHED, StepStatus

# What a reader of the whole report would see as something else than text. Underscores within a
# word are none of it, so `identify_pains` stays as it is.
_SPECIAL = re.compile(r"[\\`*<\[\]|]|(?<!\w)_|_(?!\w)|^[>#+-]")
# Lines of an output that would be taken for part of the report, or hide what follows them.
_BREAKS_OUT = re.compile(
    r"^\s*(#{1,6}(\s|$)|=+\s*$|-+\s*$|```|~~~|\[[^\]]*\]:)|<[A-Za-z/!?]|!\[", re.MULTILINE
)
_MOST_CHARACTERS = 1000


def as_markdown(report: Report) -> str:
    sections = [
        f"## Workflow Execution Report: {_inline(report.workflow)}",
        "\n".join(_conclusion(report)),
        "### Execution Summary\n" + "\n".join(f"- {line}" for line in _summary(report)),
        "### Step-by-Step Results\n" + "\n".join(_table(report)),
        "### Final Output\n" + _block(report.output),
        "### Issues and Warnings\n" + "\n".join(_issues(report)),
    ]
    if len(report.critical_path) > 1:
        sections.insert(4, "### Critical Path\n" + "\n".join(_path(report)))
    if any(step.playbooks for step in report.steps):
        sections.insert(4, "### Playbooks\n" + "\n".join(_playbooks(report)))
    sections += _changes(report)
    return "\n\n".join(sections)


def _conclusion(report: Report) -> Iterator[str]:
    found = conclusion_of(report)
    yield f"{_inline(found.says)} {_inline(found.advice)}".rstrip()
    if found.commands:
        yield ""
    yield from (f"- {_code(each.command)} {each.does}" for each in found.commands)


def _changes(report: Report) -> Iterator[str]:
    patches = [(step.id, step.changes.patch) for step in report.steps if step.changes]
    for id, patch in patches:
        if patch:
            yield f"### Changes of {_inline(id)}\n{_fence(patch, 'diff')}"


def _summary(report: Report) -> Iterator[str]:
    yield f"Status: {report.status.upper()}"
    yield f"Total steps: {len(report.steps)}"
    yield f"Steps completed: {report.count(StepStatus.SUCCEEDED)}"
    yield f"Steps failed: {report.count(StepStatus.FAILED)}"
    yield f"Steps skipped: {_count_skipped(report)}"
    unfinished = report.count(*UNFINISHED)
    if unfinished:
        yield f"Steps not ended: {unfinished}"
    yield f"Total agents deployed: {report.agents_deployed}"
    yield f"Total time: {run_time(report)}"
    yield f"Retries used: {report.retries}"
    if report.calls.made:
        yield f"Tool calls: {calls_of(report.calls)}"
    yield f"Tokens: {tokens(report.usage)}"
    yield f"Cost: {cost_of(report.usage, uses_of(report.steps))}"
    yield f"Run: {_inline(report.run_id)}"
    if report.parent:
        yield f"Continues run: {_inline(report.parent)}"
    if report.trigger:
        yield f"Started by: {_inline(report.trigger)}"
    if report.started_at is not None:
        yield f"Started: {moment(report.started_at)}"


def _count_skipped(report: Report) -> str:
    held, cancelled = report.count(StepStatus.HELD), report.count(StepStatus.CANCELLED)
    of_these = [f"{count} {word}" for count, word in ((held, "held"), (cancelled, "cancelled"))]
    said = ", ".join(each for each in of_these if not each.startswith("0 "))
    total = report.count(StepStatus.SKIPPED) + held + cancelled
    return f"{total} ({said})" if said else str(total)


def _table(report: Report) -> list[str]:
    head = ["Step", "Agent", "Status", "Duration", "Retries", "Output Size"]
    rows = [head, *(_cells(step) for step in report.steps)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def _cells(step: StepReport) -> list[str]:
    return [
        _inline(step.id),
        _inline(", ".join(step.agents)) or "-",
        status_word(step.status),
        length(step.duration_seconds),
        str(step.retries),
        size(step.output),
    ]


def _playbooks(report: Report) -> Iterator[str]:
    for step in report.steps:
        if step.playbooks:
            yield f"- {_inline(step.id)}: {_inline(', '.join(step.playbooks))}"


def _path(report: Report) -> Iterator[str]:
    total = report.duration_seconds
    for number, step in enumerate(report.critical_path, 1):
        share = f" ({step.duration_seconds / total:.0%})" if total > 0 else ""
        yield f"{number}. {_inline(step.step)}: {length(step.duration_seconds)}{share}{_wait(step)}"


def _wait(step: PathStep) -> str:
    if not step.waited_for:
        return ""
    how_long = f"{length(step.waited_seconds)} of " if step.waited_seconds else ""
    return f", after {how_long}waiting for {_inline(step.waited_for)}"


def _block(output: Json) -> str:
    """As it is, if it is text that stays within its section; else between fences."""
    if output is None:
        return "(none)"
    text = show(output).strip("\n")
    if isinstance(output, str) and not _BREAKS_OUT.search(text):
        return text.strip() or "(empty)"
    return _fence(text, "text" if isinstance(output, str) else "json")


def _fence(text: str, kind: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{kind}\n{text}\n{fence}"


def _issues(report: Report) -> list[str]:
    return [f"- {_inline(text)}" for text in issue_lines(report.issues)] or ["- None"]


def _code(text: str) -> str:
    return f"`{one_line(text).replace('`', ' ')}`"


def _inline(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", one_line(text, _MOST_CHARACTERS))
