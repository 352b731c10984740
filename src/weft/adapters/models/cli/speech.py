"""An agent's words as they come in. In: pieces of text. Out: ModelSpoke events, a few a second.

Cut only between words: a secret that is cut in two would not be recognised.
"""

from weft.agents.redaction import Redactor
from weft.events.model import ModelSpoke
from weft.ports.runner import AttemptRequest, Witness

_EVERY_SECONDS = 0.5
_AT_MOST_CHARACTERS = 4_096


class Speech:
    def __init__(self, request: AttemptRequest, witness: Witness, redactor: Redactor) -> None:
        self._request = request
        self._witness = witness
        self._redactor = redactor
        self._held = ""
        self._told_at = witness.now()

    def hear(self, piece: str) -> None:
        self._held += piece
        is_due = self._witness.now() - self._told_at >= _EVERY_SECONDS
        if is_due or len(self._held) >= _AT_MOST_CHARACTERS:
            cut = 1 + max(self._held.rfind(" "), self._held.rfind("\n"))
            is_one_word = cut == 0 and len(self._held) >= _AT_MOST_CHARACTERS
            self._tell(len(self._held) if is_one_word else cut)

    def end(self) -> None:
        self._tell(len(self._held))

    def _tell(self, length: int) -> None:
        if not length:
            return
        request, now = self._request, self._witness.now()
        text = self._redactor.text(self._held[:length])
        self._witness.note(ModelSpoke(now, request.step, request.part, request.attempt, text))
        self._held, self._told_at = self._held[length:], now
