"""Tell whoever watches what an attempt is busy with, where that takes longer than a moment."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from stretto.events.attempts import AttemptId
from stretto.events.model import PhaseLasted
from stretto.ports.runner import Witness

# A shorter phase is over before a reader could see it, and would cost a row of the journal.
MOMENT_SECONDS = 1.0


@contextmanager
def telling_phase(
    attempt: AttemptId, witness: Witness, phase: str
) -> Iterator[asyncio.TimerHandle]:
    """`phase` is said of the attempt: `starts the MCP server notes`. Whoever cancels what is given
    says that the phase is over before its block is."""

    def tell() -> None:
        witness.note(PhaseLasted(witness.now(), attempt, phase))

    timer = asyncio.get_running_loop().call_later(MOMENT_SECONDS, tell)
    try:
        yield timer
    finally:
        timer.cancel()
