"""Durations as authors write them, moments as JSON has them, what a recipe may ask for at the most,
and what work cost.
"""

import re
from datetime import UTC, datetime

from msgspec import Struct

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_NUMBER = re.compile(r"\d+(?:\.\d+)?\Z")
# A year: nothing that a person meant is longer, and every sum stays an exact float.
LONGEST_SECONDS = 366 * 86400.0


def parse_duration(written: str | int | float) -> float | None:
    """Seconds; None for what is no duration, such as zero or a negative number."""
    if isinstance(written, bool):
        return None
    if not isinstance(written, str) and not 0 < written <= LONGEST_SECONDS:
        return None  # checked before `float`, which raises for a huge int
    seconds = _seconds(written.strip()) if isinstance(written, str) else float(written)
    if seconds is None or not 0 < seconds <= LONGEST_SECONDS:
        return None
    return seconds


def _seconds(text: str) -> float | None:
    if _NUMBER.match(text):
        return float(text)
    total, at, smallest = 0.0, 0, float("inf")
    while at < len(text):
        part = _PART.match(text, at)
        # Units must fall: `1h30m` is a duration, `30m1h` and `1s1s` are slips.
        if part is None or _SECONDS[part[2]] >= smallest:
            return None
        smallest = _SECONDS[part[2]]
        total += float(part[1]) * smallest
        at = part.end()
    return total if at else None


_WORDY = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")
_UNITS = {
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
}


def guess_duration(written: str) -> str | None:
    """What `5 minutes`, `PT5M` and `00:05:00` mean, as a duration is written here."""
    text = written.strip().lower()[:80]
    if clock := re.fullmatch(r"(\d{1,4}):(\d{2}):(\d{2})", text):
        text = f"{clock[1]}h{clock[2]}m{clock[3]}s"
    pieces = [(number, _UNITS.get(unit)) for number, unit in _WORDY.findall(text)]
    left = _WORDY.sub("", text).replace("and", "").strip(" ,pt")
    if left or not pieces or not all(unit for _, unit in pieces):
        return None
    said = "".join(
        f"{int(number) if number.isdigit() else number}{unit}"
        for number, unit in pieces
        if float(number)
    )
    return said if parse_duration(said) is not None else None


def format_duration(seconds: float) -> str:
    """The shortest way to write it: `1h30m`, `45s`, `250ms`."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    whole = round(seconds)
    if abs(seconds - whole) > 0.05 and seconds < 60:
        return f"{seconds:.1f}s"
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (left, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


def iso(at: float | None) -> str | None:
    """In UTC. None for None, and for a number that is no date, as a damaged row may hold."""
    try:
        if at is None:
            return None
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None


class Limits(Struct, frozen=True):
    """The user's own config may raise these; a recipe or an untrusted project may not."""

    text_bytes: int = 1024 * 1024
    depth: int = 64
    nodes: int = 50_000
    steps: int = 500
    map_items: int = 1_000
    map_items_ceiling: int = 10_000
    branches: int = 16


DEFAULT_LIMITS = Limits()
MOST_LEVELS = 8  # recipes that stand in one another, the outermost one included


class Retention(Struct, frozen=True):
    """What is kept of the runs that have ended. None: all of them."""

    runs: int | None = None  # the newest ones
    age_seconds: float | None = None  # since their end

    @property
    def is_limited(self) -> bool:
        return self.runs is not None or self.age_seconds is not None


KEEP_ALL = Retention()


class Usage(Struct, frozen=True, gc=False):
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    model_calls: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.usd + other.usd,
            self.model_calls + other.model_calls,
        )

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens - other.input_tokens,
            self.output_tokens - other.output_tokens,
            self.usd - other.usd,
            self.model_calls - other.model_calls,
        )

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


def usage_as_json(usage: Usage) -> dict[str, object]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "usd": usage.usd,
        "model_calls": usage.model_calls,
    }
