"""When a request is sent again to a provider that failed for a moment. In: the fault. Out: a delay.

Only the request to the model is repeated: what tools have done before it stands, and is not done
again (docs/decisions/0017).
"""

import random

from stretto.ports.model import ModelFault

DEFAULT_RETRIES = 3
# A provider that asks for more has no moment's trouble: the step's own `retry` may wait so long.
_LONGEST_SECONDS = 60.0
# Another model, where there is one, answers sooner than this one comes back.
_LONGEST_BEFORE_ANOTHER_SECONDS = 10.0
_FIRST_SECONDS = 1.0


def delay_before_retry(
    fault: ModelFault,
    retried: int,
    most: int,
    seconds_left: float | None,
    has_another: bool = False,
) -> float | None:
    """Seconds; None: it is not sent again. Doubles each time, with jitter, and is never shorter
    than the provider asked for."""
    if fault.kind != "unavailable" or retried >= most:
        return None
    own = _FIRST_SECONDS * 2.0**retried * random.uniform(0.5, 1.0)
    delay = max(own, fault.retry_after_seconds or 0.0)
    if delay > (_LONGEST_BEFORE_ANOTHER_SECONDS if has_another else _LONGEST_SECONDS):
        return None
    # Who would time out while it waits says now why.
    return delay if seconds_left is None or delay < seconds_left else None
