"""The machine's own clock."""

import asyncio
import time


class SystemClock:
    def now(self) -> float:
        return time.time()

    async def sleep_until(self, at: float) -> None:
        # The wall clock may be set back while we sleep, so look again.
        while (left := at - time.time()) > 0:
            await asyncio.sleep(left)
