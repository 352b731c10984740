"""The machine's clocks. Time is counted by a clock that cannot be set; the wall clock gives the date only.

Somebody may set the wall clock while a run goes on, back by a day or forward: a timeout would never
fire, or at once. So the wall clock is looked at once, when the process starts; after that its time
goes on by the clock that counts from the boot, also while the machine sleeps.
"""

import asyncio
import os
import time

from stretto.processes.process_table import boot_id

_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
# asyncio's clock stands still while the machine sleeps, so ours is looked at this often.
_LONGEST_SLEEP_SECONDS = 30.0


def elapsed() -> float:
    """Seconds since the boot. All processes of one boot count alike."""
    return time.clock_gettime(_SINCE_BOOT)


def boot_name() -> str:
    """Names the clock: two processes with the same name have the same `elapsed`. Empty: it is not known."""
    try:
        # A container may have been given another time since the boot.
        return f"{boot_id()}:{os.stat('/proc/self/ns/time').st_ino}" if boot_id() else ""
    except OSError:
        return ""


_BOOTED_AT = time.time() - elapsed()


class SystemClock:
    def now(self) -> float:
        return _BOOTED_AT + elapsed()

    async def sleep_until(self, at: float) -> None:
        while (left := at - self.now()) > 0:
            await asyncio.sleep(min(left, _LONGEST_SLEEP_SECONDS))
