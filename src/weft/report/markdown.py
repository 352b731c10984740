"""The report as Markdown: seed 004's "Workflow Execution Report"."""

from weft.report.report import Report, StepReport
from weft.templates.render import as_text
from weft.vocabulary.durations import format_duration
from weft.vocabulary.statuses import StepStatus

_WORDS = {"succeeded": "SUCCESS"}


def as_markdown(report: Report) -> str:
    sections = [
        f"## Workflow Execution Report: {report.workflow}",
        "### Execution Summary\n" + "\n".join(_summary(report)),
        "### Step-by-Step Results\n" + "\n".join(_table(report)),
        "### Final Output\n" + (as_text(report.output) if report.output is not None else "(none)"),
        "### Issues and Warnings\n" + "\n".join(_issues(report)),
    ]
    return "\n\n".join(sections)


def _summary(report: Report) -> list[str]:
    return [
        f"- Status: {report.status.upper()}",
        f"- Total steps: {len(report.steps)}",
        f"- Steps completed: {report.count(StepStatus.SUCCEEDED)}",
        f"- Steps failed: {report.count(StepStatus.FAILED)}",
        f"- Steps skipped: {report.count(StepStatus.SKIPPED, StepStatus.HELD, StepStatus.CANCELLED)}",
        f"- Total agents deployed: {report.deployed}",
        f"- Total time: {format_duration(report.duration_seconds)}",
        f"- Retries used: {report.retries}",
        f"- Tokens: {report.usage.tokens:,}",
        f"- Run: {report.run_id}",
    ]


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
    duration = step.duration_seconds
    return [
        step.id,
        ", ".join(step.agents) or "-",
        _WORDS.get(step.status, step.status.upper()),
        "-" if duration is None else format_duration(duration),
        str(step.retries),
        _size(step),
    ]


def _size(step: StepReport) -> str:
    if step.output is None:
        return "-"
    size = len(as_text(step.output).encode())
    return f"{size}B" if size < 1000 else f"{size / 1000:.1f}KB"


def _issues(report: Report) -> list[str]:
    failed = [f"- {step.id}: {step.error}" for step in report.steps if step.error]
    return [*failed, *(f"- {warning}" for warning in report.warnings)] or ["- None"]
