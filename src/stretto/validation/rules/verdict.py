"""What code says of a rule: it holds, it does not and why, or code cannot tell."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Passed:
    pass


@dataclass(frozen=True, slots=True)
class Failed:
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unsure:
    """The rule is understood, but this answer leaves it open. A judge decides."""


Verdict: TypeAlias = Passed | Failed | Unsure

_MOST_REASONS = 5


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """One failure is a failure of the whole, even where other parts are open."""
    said = list(verdicts)
    reasons = [
        reason for verdict in said if isinstance(verdict, Failed) for reason in verdict.reasons
    ]
    if reasons:
        return Failed(tuple(dict.fromkeys(reasons))[:_MOST_REASONS])
    return Unsure() if any(isinstance(verdict, Unsure) for verdict in said) else Passed()


def either_reading(one: Verdict, other: Verdict) -> Verdict:
    """A rule with two meanings is decided only where both come to the same."""
    return one if type(one) is type(other) else Unsure()
