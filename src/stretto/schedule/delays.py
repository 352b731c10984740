"""How long to wait before the next attempt (RECIPES §6). Chance is a hash of the run's seed."""

from hashlib import sha256

from stretto.recipe.model import Backoff

LONGEST_DELAY_SECONDS = 60.0
# A provider that asks for more is not waited for: the attempt has failed.
LONGEST_RETRY_AFTER_SECONDS = 300.0
_CENTURY_SECONDS = 100 * 365 * 86_400.0
_LINEAR_SECONDS = 5.0
# 2**6 is past the longest delay already, and 2**n of a large n is no float.
_LARGEST_POWER = 6


def retry_delay(
    backoff: Backoff, attempt: int, chance: float, retry_after_seconds: float | None
) -> float:
    """Full jitter: anywhere up to the delay, but never sooner than the provider asked for."""
    delay = min(_base(backoff, attempt), LONGEST_DELAY_SECONDS) * chance
    return max(delay, retry_after_seconds or 0.0)


def wait_asked_for(retry_after_seconds: float | None) -> float:
    """What a provider asks for, as far as it makes sense: it may send any number."""
    if retry_after_seconds is None or not retry_after_seconds > 0:  # NaN is not greater either
        return 0.0
    return min(retry_after_seconds, _CENTURY_SECONDS)


def chance_of(seed: int, step: str, part: str, attempt: int) -> float:
    """From 0 up to 1, the same in every fold of the same journal."""
    digest = sha256(f"{seed}\0{step}\0{part}\0{attempt}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:6], "big") / (1 << 48)


def _base(backoff: Backoff, attempt: int) -> float:
    match backoff:
        case "none":
            return 0.0
        case "linear":
            return _LINEAR_SECONDS * attempt
        case "exponential":
            return float(2 ** min(attempt, _LARGEST_POWER))
