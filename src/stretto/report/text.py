"""Values as people read them. In: any text or figure. Out: text that is safe to show."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime

from stretto.report.model import CallsReport, Issue, Report, StepReport
from stretto.templates.render import as_text
from stretto.text.short import listed
from stretto.text.visible import visible
from stretto.vocabulary.amounts import Usage, format_duration
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import COMMAND_MODEL, SCRIPTED_MODEL, is_function, is_local

# The signs of the terminal, and some for words that only a report has.
MARKS: Mapping[str, str] = {
    "succeeded": "✓",
    "complete": "✓",
    "reused": "✓",
    "ok": "✓",
    "failed": "✗",
    "error": "✗",
    "refused": "⊘",
    "partial": "!",
    "awaiting approval": "?",
    "overdue": "?",
    "in doubt": "?",
    "retrying": "↻",
    "running": "▶",
    "merging": "▶",
    "interrupted": "-",
    "skipped": "-",
    "held": "-",
    "cancelled": "-",
    "waiting": "·",
    "planned": "·",
}


def show(value: Json) -> str:
    """Text as it is, everything else as JSON that can be read."""
    return visible(raw(value))


def raw(value: Json) -> str:
    """The same, before it is made safe to show."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def status_word(status: str) -> str:
    return status.upper()


def size(value: Json) -> str:
    if value is None:
        return "-"
    count = len(as_text(value).encode("utf-8", "surrogatepass"))
    for unit, scale in (("MB", 1_000_000), ("KB", 1_000)):
        if count >= scale:
            return f"{count / scale:.1f}{unit}"
    return f"{count}B"


def length(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return "0s" if seconds < 0.0005 else format_duration(seconds)


def run_time(report: Report) -> str:
    """Of an interrupted run only its last event is known; it may have worked on for a while."""
    bound = "at least " if report.status == "interrupted" else ""
    return bound + length(report.duration_seconds)


def took(began: float | None, ended: float | None) -> str:
    return "-" if began is None or ended is None else length(max(0.0, ended - began))


def since(start: float | None, at: float | None) -> str:
    return "-" if start is None or at is None else f"+{length(max(0.0, at - start))}"


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def tokens(usage: Usage) -> str:
    return f"{usage.tokens:,}"


def calls_of(calls: CallsReport) -> str:
    """`12`, or `12 (2 refused, 1 failed)`."""
    figures = ((calls.refused, "refused"), (calls.failed, "failed"))
    not_done = ", ".join(f"{count:,} {word}" for count, word in figures if count)
    return f"{calls.made:,} ({not_done})" if not_done else f"{calls.made:,}"


def issue_lines(issues: Iterable[Issue]) -> list[str]:
    """One line for what was said of several steps in the same words: `a, b and 3 more: …`."""
    steps: dict[tuple[str, str], list[str]] = {}
    for issue in issues:
        steps.setdefault((issue.kind, issue.says), []).append(issue.step)
    named = [
        (listed(dict.fromkeys(filter(None, each)), 5), says) for (_, says), each in steps.items()
    ]
    return [f"{names}: {says}" if names else says for names, says in named]


def cost(usage: Usage) -> str:
    """A dash when no price is known: that is not the same as free."""
    if usage.usd <= 0:
        return "-"
    digits: Callable[[float], str] = "${:.2f}".format if usage.usd >= 1 else "${:.4f}".format
    return digits(usage.usd)


def cost_of(usage: Usage, attempts: Iterable[tuple[str, Usage, bool]]) -> str:
    """What a run or a step cost, with "at least" where one price is known and another is not.

    `attempts`: the model that answered, its usage, and whether it may have used more than is known.
    """
    tried = list(attempts)
    asked = {model for model, _, _ in tried if model}
    if asked and usage.usd <= 0 and all(map(_is_free, asked)):
        return "free (local)" if any(map(is_local, asked)) else "free"
    paid = [each for each in tried if not (each[0] and _is_free(each[0]))]
    is_part = any(is_open or used.tokens for _, used, is_open in paid if used.usd <= 0 or is_open)
    if usage.usd > 0:
        return f"at least {cost(usage)}" if is_part else cost(usage)
    return "unknown" if is_part or usage.tokens else "none"


def uses_of(steps: Iterable[StepReport]) -> Iterator[tuple[str, Usage, bool]]:
    """For cost_of. What was cut short has not said what it used."""
    for each in (attempt for step in steps for attempt in step.attempts):
        is_told = each.status in ("planned", "failed", "reused") and each.failure != "timeout"
        is_priced = each.status == "succeeded" and each.usage.usd > 0
        yield each.model, each.usage, not (is_told or is_priced)


def _is_free(model: str) -> bool:
    is_no_model = f"{model}:".startswith((SCRIPTED_MODEL, COMMAND_MODEL)) or is_function(model)
    return is_no_model or is_local(model)
