"""The keys that a person presses while the live view stands, and the step that they choose.

The terminal gives each key at once and echoes none, but keeps Ctrl-C and Ctrl-Z as signals. It is put
back as it was by `close`, also at the end of the process, and before Ctrl-Z stops it. A process in the
background touches nothing: the terminal would stop it.
"""

import atexit
import os
import select
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

from stretto.vocabulary.names import StepId

_LFLAG, _CC = 3, 6  # places in what termios gives
_ESCAPE = "\x1b"
_NAMES = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "k": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "j": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    " ": "page down",
    "\x1b[C": "open",
    "\x1bOC": "open",
    "\r": "open",
    "\n": "open",
    "\x1b[D": "back",
    "\x1bOD": "back",
    _ESCAPE: "back",
    "q": "back",
    "\t": "next",
    "n": "next",
    "\x1b[Z": "previous",
    "p": "previous",
}


class Keyboard:
    def __init__(
        self, on_stop: Callable[[], None], on_continue: Callable[[], None], number: int = 0
    ) -> None:
        """`on_stop`, `on_continue`: called around a stop by Ctrl-Z, in the main thread."""
        self._on_stop = on_stop
        self._on_continue = on_continue
        self._number = number
        self._before: list[object] | None = None  # how the terminal was; None: it is untouched
        self._lock = threading.Lock()
        self._is_closed = False
        self._wake_out, self._wake_in = os.pipe()
        self._stop_handler: object = None

    @staticmethod
    def is_there(number: int = 0) -> bool:
        with suppress(OSError, ValueError):
            return os.isatty(number)
        return False

    def open(self) -> None:
        self._take()
        atexit.register(self.close)
        if threading.current_thread() is threading.main_thread():
            self._stop_handler = signal.signal(signal.SIGTSTP, self._stop)

    def close(self) -> None:
        """Closing it again does nothing."""
        with self._lock:
            self._is_closed = True
        self._give_back()
        atexit.unregister(self.close)
        if self._stop_handler is not None:
            signal.signal(signal.SIGTSTP, self._stop_handler)  # type: ignore[arg-type]
            self._stop_handler = None
        with suppress(OSError):
            os.write(self._wake_in, b"x")

    def release(self) -> None:
        """Close the pipe by which `close` wakes `wait`. Nobody may be waiting, or wait again."""
        os.close(self._wake_out)
        os.close(self._wake_in)
        self._wake_out = (
            self._wake_in
        ) = -1  # other files get the numbers, and `close` may be called again

    def wait(self, seconds: float) -> list[str]:
        """The keys that are pressed within so many seconds. Returns as soon as there are any."""
        self._take()
        heard = [self._wake_out, *([self._number] if self._before is not None else [])]
        try:
            ready, _, _ = select.select(heard, [], [], seconds)
            if self._number in ready and self._is_ours():
                return list(read_keys(self._read()))
        except OSError:  # the terminal is gone
            self._before = None
        return []

    def _read(self) -> str:
        typed = os.read(self._number, 1024)
        if typed.endswith(b"\x1b") and select.select([self._number], [], [], 0.03)[0]:
            typed += os.read(self._number, 1024)  # the rest of an arrow
        if not typed:
            self._before = None  # the terminal is gone
        return typed.decode("utf-8", "replace")

    def _is_ours(self) -> bool:
        with suppress(OSError):
            return os.tcgetpgrp(self._number) == os.getpgrp()
        return False

    def _take(self) -> None:
        """Make the terminal give keys at once, also after a shell has reset it meanwhile."""
        with self._lock, suppress(OSError, termios.error):
            if self._is_closed or not self._is_ours():
                return
            modes = termios.tcgetattr(self._number)
            if not modes[_LFLAG] & (termios.ICANON | termios.ECHO):
                return
            self._before = self._before or termios.tcgetattr(self._number)
            modes[_LFLAG] &= ~(termios.ICANON | termios.ECHO)
            modes[_CC][termios.VMIN], modes[_CC][termios.VTIME] = 0, 0
            termios.tcsetattr(self._number, termios.TCSADRAIN, modes)

    def _give_back(self) -> None:
        with self._lock, suppress(OSError, termios.error):
            if self._before is not None and self._is_ours():
                termios.tcsetattr(self._number, termios.TCSADRAIN, self._before)  # type: ignore[arg-type]
            self._before = None

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._on_stop()
        self._give_back()
        sys.stdout.flush()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._stop)
        self._take()
        self._on_continue()


def read_keys(typed: str) -> Iterator[str]:
    """The names of the keys that mean something."""
    while typed:
        length = next((n for n in (4, 3, 1) if typed[:n] in _NAMES and len(typed) >= n), 0)
        if length == 1 and typed[0] == _ESCAPE and len(typed) > 1:
            typed = typed[_end_of_sequence(typed) :]  # a key that we do not know
            continue
        if length:
            yield _NAMES[typed[:length]]
        typed = typed[length or 1 :]


def _end_of_sequence(typed: str) -> int:
    if typed[1] not in "[O":
        return 2
    return next((i + 1 for i in range(2, len(typed)) if "@" <= typed[i] <= "~"), len(typed))


@dataclass(slots=True)
class Focus:
    """Which step a person looks at, and whether it is open."""

    chosen: StepId | None = None
    is_open: bool = False
    above: int = 0  # lines between the last of the stream and the last that is shown
    at_work: Sequence[StepId] = ()
    in_sight: Sequence[StepId] = ()  # begun, and with a row
    room: int = 1  # lines of a stream that fit

    def seen(self, at_work: Sequence[StepId], in_sight: Sequence[StepId]) -> None:
        self.at_work, self.in_sight = at_work, in_sight

    def hold(self, lines: int, room: int) -> int:
        """How many lines the person has scrolled up, within a stream of so many lines."""
        self.room = room
        self.above = max(0, min(self.above, lines - room))
        return self.above

    def press(self, key: str) -> None:
        if not self.is_open:
            self._press_in_list(key)
        elif key in ("back", "open"):
            self.is_open, self.above = False, 0
        elif key in ("next", "previous"):
            self._move(self.at_work or self.in_sight, 1 if key == "next" else -1)
            self.above = 0
        else:
            page = max(1, self.room - 1)
            moves = {"up": 1, "down": -1, "page up": page, "page down": -page}
            self.above = max(0, self.above + moves.get(key, 0))

    def _press_in_list(self, key: str) -> None:
        if key in ("down", "next", "up", "previous"):
            self._move(self.in_sight, 1 if key in ("down", "next") else -1)
        elif key == "back":
            self.chosen = None
        elif key == "open":
            if self.chosen is None:
                self.chosen = next(iter(self.at_work or self.in_sight), None)
            self.is_open = self.chosen is not None

    def _move(self, steps: Sequence[StepId], by: int) -> None:
        if not steps:
            return
        if self.chosen in steps:
            at = (steps.index(self.chosen) + by) % len(steps)
        else:
            first = next((id for id in self.at_work if id in steps), steps[0])
            at = steps.index(first) if by > 0 else -1
        self.chosen = steps[at]
