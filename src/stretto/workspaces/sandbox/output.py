"""Keep the head and the tail of a command's output. In: chunks of bytes. Out: bounded text."""

from collections import deque


class Output:
    def __init__(self, most_bytes: int) -> None:
        self._head = bytearray()
        self._head_room = most_bytes - most_bytes // 2
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._tail_room = most_bytes // 2
        self._seen_bytes = 0

    def add(self, chunk: bytes) -> None:
        self._seen_bytes += len(chunk)
        room = self._head_room - len(self._head)
        self._head += chunk[:room]
        if len(chunk) <= room:
            return
        self._tail.append(chunk[room:])
        self._tail_bytes += len(chunk) - room
        # Whole chunks go; what is left over is cut once, at the end.
        while self._tail and self._tail_bytes - len(self._tail[0]) >= self._tail_room:
            self._tail_bytes -= len(self._tail.popleft())

    def end(self) -> tuple[str, int]:
        """The text, and how many bytes it lacks."""
        whole = b"".join(self._tail)
        tail = whole[max(0, len(whole) - self._tail_room) :]
        dropped = self._seen_bytes - len(self._head) - len(tail)
        if not dropped:
            return _decoded(self._head + tail), 0
        gap = f"\n[… {dropped} bytes of output were dropped here …]\n"
        return _decoded(self._head) + gap + _decoded(tail), dropped


def _decoded(text: bytes | bytearray) -> str:
    return text.decode("utf-8", errors="replace")
