"""Gather a reply that streams in into a few ModelSpoke events a second.

A model sends a piece for every word; one journal row for each would cost more than the words.
"""

from stretto.events.model import ModelSpoke
from stretto.ports.runner import AttemptRequest, Witness
from stretto.text.redaction import NOTHING_SECRET, Redactor

EVERY_SECONDS = 0.5
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
        is_due = self._witness.now() - self._journaled_at >= self._every_seconds
        if is_due or self._length >= _AT_MOST_CHARACTERS:
            text = "".join(self._pieces)
            # A secret may be cut in two; what could be the first half of one waits.
            self._journal(text, self._redactor.safe_length(text))

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
