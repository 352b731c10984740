"""What time it is. The only clock the driver knows, so tests may turn it by hand."""

from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch. It never jumps: setting the machine's clock does not move it."""
        ...

    async def sleep_until(self, at: float) -> None:
        """Returns once `now()` has reached `at`; at once if it is past."""
        ...
