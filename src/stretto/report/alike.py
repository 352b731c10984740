"""Attempts that came out alike, told together. In: AttemptReports. Out: AlikeAttempts, in order."""

from collections.abc import Sequence
from dataclasses import dataclass

from stretto.report.model import AttemptReport
from stretto.vocabulary.usage import Usage

# A step with more parts than this is a map: one row an element would be too many.
_MOST_PARTS = 16


@dataclass(frozen=True, slots=True)
class AlikeAttempts:
    attempts: tuple[AttemptReport, ...]  # of one agent and model, with one outcome

    @property
    def name(self) -> str:
        """`2`, `1 to 3`, `pro 1`, or `1,000 of 250 parts`."""
        first, last, count = self.attempts[0], self.attempts[-1], len(self.attempts)
        parts = len({attempt.part for attempt in self.attempts})
        if parts > 1:
            return f"{count:,} of {parts:,} parts"
        numbers = f"{first.number} to {last.number}" if count > 1 else str(first.number)
        if count > 1 and last.number - first.number != count - 1:
            numbers = ", ".join(str(attempt.number) for attempt in self.attempts)
        return f"{first.part} {numbers}".strip()

    @property
    def seconds(self) -> float | None:
        """Of all together; None: none of them has ended."""
        ended = [
            each.ended_at - each.started_at
            for each in self.attempts
            if each.started_at is not None and each.ended_at is not None
        ]
        return max(0.0, sum(ended)) if ended else None

    @property
    def usage(self) -> Usage:
        total = Usage()
        for attempt in self.attempts:
            total = total + attempt.usage
        return total


def group_alike(attempts: Sequence[AttemptReport]) -> list[AlikeAttempts]:
    """By the first of each group. A map's parts are told together, other parts one by one."""
    is_map = len({attempt.part for attempt in attempts}) > _MOST_PARTS
    groups: dict[tuple[str | None, ...], list[AttemptReport]] = {}
    for each in attempts:
        outcome = (each.agent, each.model, each.status, each.failure, each.error, each.reused_from)
        groups.setdefault(("" if is_map else each.part, *outcome), []).append(each)
    return [AlikeAttempts(tuple(group)) for group in groups.values()]
