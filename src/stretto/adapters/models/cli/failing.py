"""Why an agent gave up, as one of our failures. In: its words, a status if it has one. Out: Failure.

A status is believed before words are. Words are all that most of them have.
"""

import re

from stretto.ports.runner import Failure

_LONGEST = 2_000
_BUSY = frozenset({408, 429, 502, 503, 504, 529})
_NOT_LOGGED_IN = frozenset({401, 403})
_STATUS = re.compile(r"\b(?:status|code|error)\b\D{0,12}\b([45]\d\d)\b|\((4\d\d|5\d\d)\)", re.I)
_BUSY_WORDS = re.compile(
    r"rate.?limit|too many requests|overloaded|quota|usage limit|RESOURCE_EXHAUSTED|UNAVAILABLE"
    r"|stream disconnected|failed to lookup address|connection (?:error|refused)|ECONNREFUSED",
    re.I,
)
_LOGIN_WORDS = re.compile(
    r"not logged in|please (?:run )?/?log ?in|log ?in again|unauthori[sz]ed|authenticat"
    r"|invalid (?:x-)?api.?key|api.?key (?:is |was )?(?:missing|not|required)|auth method"
    r"|specify the \w+_API_KEY|no provider configured",
    re.I,
)
_LATER = re.compile(
    r"(?:retry|again|reset)[^\d\n]{0,24}?(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|sec|seconds?"
    r"|m|min|minutes?|h|hours?)\b",
    re.I,
)


def failure(
    who: str,
    words: str,
    login: str,
    status: int | None = None,
    retry_after_seconds: float | None = None,
) -> Failure:
    words = words.strip()[-_LONGEST:] or "it did not say why"
    status = status or _status_in(words)
    later = retry_after_seconds if retry_after_seconds is not None else _later_in(words)
    if status in _NOT_LOGGED_IN or (status is None and _LOGIN_WORDS.search(words)):
        return Failure("permanent", f"{who} is not logged in: {words} ({login})")
    if status in _BUSY or (status is None and _BUSY_WORDS.search(words)):
        return Failure("unavailable", f"{who}: {words}", retry_after_seconds=later)
    return Failure("error", f"{who}: {words}")


def _status_in(words: str) -> int | None:
    found = _STATUS.search(words)
    return int(found[1] or found[2]) if found else None


def _later_in(words: str) -> float | None:
    found = _LATER.search(words)
    if found is None:
        return None
    unit = found[2].lower()
    factor = 0.001 if unit.startswith(("ms", "mil")) else {"s": 1, "m": 60, "h": 3600}[unit[0]]
    return float(found[1]) * factor
