"""Values as people read them. In: any text or figure. Out: text that is safe to show."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from stretto.report.model import CallsReport
from stretto.templates.render import as_text
from stretto.text.visible import visible
from stretto.vocabulary.durations import format_duration
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import COMMAND_MODEL, SCRIPTED_MODEL, is_function, is_local
from stretto.vocabulary.usage import Usage

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


def cost(usage: Usage) -> str:
    """A dash when nobody said: no price is not the same as free."""
    if usage.usd <= 0:
        return "-"
    digits: Callable[[float], str] = "${:.2f}".format if usage.usd >= 1 else "${:.4f}".format
    return digits(usage.usd)


def cost_of_models(usage: Usage, models: Iterable[str]) -> str:
    """`models`: those that answered."""
    asked = set(filter(None, models))
    if usage.usd > 0 or not asked:
        return cost(usage) if usage.usd > 0 else "unknown"
    if not all(map(_is_free, asked)):
        return "unknown"
    return "free (local)" if any(map(is_local, asked)) else "free"


def _is_free(model: str) -> bool:
    is_no_model = f"{model}:".startswith((SCRIPTED_MODEL, COMMAND_MODEL)) or is_function(model)
    return is_no_model or is_local(model)
