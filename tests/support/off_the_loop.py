"""A redactor that notices who would hold up the event loop."""

import threading

from stretto.text.redaction import Redactor

_LARGE = 100_000  # characters


class OffTheLoop(Redactor):
    def text(self, text: str) -> str:
        is_loop = threading.current_thread() is threading.main_thread()
        assert len(text) < _LARGE or not is_loop, "a large text was redacted on the event loop"
        return super().text(text)
