"""The clock of one run that goes on. In: the clock of this process, the last time in the journal.

The wall clock may have been set back since that time, while nobody drove the run. Then its timers
would wait for as long again, and what ended would have ended before it began. So a run's time goes on
from where its journal ends.
"""

from stretto.ports.clock import Clock


class RunClock:
    def __init__(self, clock: Clock, not_before: float) -> None:
        self._clock = clock
        self._ahead_seconds = max(0.0, not_before - clock.now())

    def now(self) -> float:
        return self._clock.now() + self._ahead_seconds

    async def sleep_until(self, at: float) -> None:
        await self._clock.sleep_until(at - self._ahead_seconds)
