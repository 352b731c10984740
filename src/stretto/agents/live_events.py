"""What is told of an attempt while it works: words that stream in, and phases that last."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from stretto.events.attempts import AttemptId
from stretto.events.model import ModelSpoke, PhaseLasted
from stretto.ports.runner import AttemptRequest, Witness
from stretto.text.redaction import NOTHING_SECRET, Redactor

# A shorter phase is over before a reader could see it, and would cost a row of the journal.
MOMENT_SECONDS = 1.0


@contextmanager
def telling_phase(
    attempt: AttemptId, witness: Witness, phase: str
) -> Iterator[asyncio.TimerHandle]:
    """`phase` is said of the attempt: `starts the MCP server notes`. It is over when the block ends
    or the timer is cancelled."""

    def tell() -> None:
        witness.note(PhaseLasted(witness.now(), attempt, phase))

    timer = asyncio.get_running_loop().call_later(MOMENT_SECONDS, tell)
    try:
        yield timer
    finally:
        timer.cancel()


# A model sends a piece for every word; one journal row for each would cost more than the words.
EVERY_SECONDS = 0.5
READ_ALONG_SECONDS = 0.1  # while somebody follows the run
_AT_MOST_CHARACTERS = 4_000


class SpeechBuffer:
    def __init__(
        self,
        request: AttemptRequest,
        witness: Witness,
        redactor: Redactor = NOTHING_SECRET,
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        self._request = request
        self._witness = witness
        self._redactor = redactor
        self._every_seconds = every_seconds
        self._pieces: list[str] = []
        self._length = 0
        self._journaled_at = witness.now()

    def add(self, piece: str) -> None:
        self._pieces.append(piece)
        self._length += len(piece)
        is_due = self._witness.now() - self._journaled_at >= self._seconds()
        if is_due or self._length >= _AT_MOST_CHARACTERS:
            text = "".join(self._pieces)
            # A secret may be cut in two; what could be the first half of one waits.
            self._journal(text, self._redactor.safe_length(text))

    def _seconds(self) -> float:
        return READ_ALONG_SECONDS if self._witness.is_followed() else self._every_seconds

    def flush(self) -> None:
        """Journal all that was added."""
        text = "".join(self._pieces)
        self._journal(text, len(text))

    def _journal(self, text: str, length: int) -> None:
        if length:
            said, request = self._redactor.text(text[:length]), self._request
            at = self._witness.now()
            self._witness.note(ModelSpoke(at, request.attempt, said))
            self._journaled_at = at
        self._pieces, self._length = [text[length:]], len(text) - length
