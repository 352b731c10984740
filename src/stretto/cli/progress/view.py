"""A run as it goes, on a terminal. In: events and the state after them. Out: a picture kept fresh.

    driver's thread  __call__ → Board.note     what changed, copied out of the state
    our own thread   _tick    → Board.view → Frame.lines → terminal, if a line is different

The driver never waits for the terminal, and the drawing thread never sees the state, which the
driver may be changing. rich is imported when a view is made: whoever pipes has no use for it.
"""

import time
from collections.abc import Callable
from threading import Event as Flag, Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING

from stretto.cli.progress.board import Board
from stretto.cli.progress.frame import Frame, Line, room_for
from stretto.cli.progress.keyboard import Focus, Keyboard
from stretto.cli.progress.lines import Lines, signs_for
from stretto.cli.progress.stream import StepStreams
from stretto.cli.terminal import for_terminal
from stretto.events.model import Event
from stretto.plan.model import Plan
from stretto.schedule.state import RunState
from stretto.schedule.status import run_word
from stretto.vocabulary.statuses import INTERRUPTED

if TYPE_CHECKING:
    from rich.console import Console

    from stretto.cli.progress.screen import Screen

_TICK_SECONDS = 1 / 8


class LiveView:
    """The driver's listener, inside its `with` block. A dumb terminal gets lines instead."""

    def __init__(
        self,
        plan: Plan,
        console: "Console | None" = None,
        now: Callable[[], float] | None = None,
        is_watching: bool = False,
        takes_keys: bool = True,
    ) -> None:
        """`is_watching`: another process drives the run. `takes_keys`: where a person can press any."""
        from rich.console import Console

        self._console = console or Console(stderr=True)  # stdout is for the answer
        self._now = now or time.time
        self._is_watching = is_watching
        self._board = Board(plan)
        self._streams = StepStreams()
        self._focus = Focus()
        self._takes_keys = takes_keys
        self._keyboard: Keyboard | None = None
        self._id_columns = max((len(step.id) for step in plan.steps), default=0)
        self._lock = Lock()  # of the board, the streams and the focus; not held while drawing
        self._height = self._console.height
        self._latest = 0.0
        self._word = ""  # the status of the run if nobody drives it from here on; "": no event yet
        self._drawn: tuple[int, list[Line]] | None = None
        self._screen: Screen | None = None
        self._is_stopped = False  # by Ctrl-Z
        self._done = Flag()
        self._ticks = Thread(target=self._tick, name="stretto-live", daemon=True)
        can_redraw = self._console.is_terminal and not self._console.is_dumb_terminal
        self._lines = None if can_redraw else Lines(plan, self._say)

    def __call__(self, event: Event, state: RunState) -> None:
        if self._lines is not None:
            self._lines(event, state)
            return
        with self._lock:
            self._latest = state.now
            self._word = run_word(state, is_driven=False)
            self._board.note(event, state, self._height)
            self._streams.note(event)

    def __enter__(self) -> "LiveView":
        if self._lines is None:
            from stretto.cli.progress.screen import Screen

            self._screen = Screen(self._console)
            self._screen.start()
            try:
                if self._takes_keys and Keyboard.is_there():
                    self._keyboard = Keyboard(self._on_stop, self._on_continue)
                    self._keyboard.open()
                self._ticks.start()
            except BaseException:  # then nobody calls __exit__
                self._stop_ticks()
                self._screen.stop()
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._screen is None:
            return
        try:
            self._stop_ticks()
            # The process that drove the run drives it no longer.
            left = INTERRUPTED if self._word == INTERRUPTED else ""
            # To stop watching a run does not stop the run.
            stopped = "" if self._is_watching and kind else _stop_word(kind) or left
            self._draw(stopped, is_last=True)
        finally:
            self._screen.stop()

    def frame(self, stopped: str = "", is_last: bool = False) -> list[Line]:
        """What is to be seen now, in a window of the present size."""
        width, height = self._console.size
        signs = signs_for(self._console.encoding)
        frame = Frame(width, height, signs, self._is_watching, self._keyboard is not None)
        with self._lock:
            self._height = height
            focus = self._focus
            view = self._board.view(room_for(height), is_last, focus.chosen)
            # At rest, the time is that of the last event, as in the summary of the run.
            is_at_rest = stopped or (is_last and self._word == "waiting")
            now = self._latest if is_at_rest else max(self._latest, self._now())
            focus.seen(self._board.at_work(), [r.id for r in view.rows if r.started_at is not None])
            row = self._board.row(focus.chosen) if focus.is_open and focus.chosen else None
            if row is not None and not (stopped or is_last):
                stream = self._streams.lines(row.id, width)
                above = focus.hold(len(stream), frame.stream_room)
                return frame.open_step(view, row, stream, above, now)
        is_last = is_last or bool(stopped)
        chosen = None if is_last else focus.chosen
        return frame.lines(view, now, self._id_columns, stopped, chosen, is_last)

    def _tick(self) -> None:
        while not self._done.is_set():
            if self._keyboard is None:
                self._done.wait(_TICK_SECONDS)
            else:
                for key in self._keyboard.wait(_TICK_SECONDS):
                    self.press(key)
            if not self._done.is_set() and not self._is_stopped:
                self._draw()

    def _stop_ticks(self) -> None:
        self._done.set()
        if self._keyboard is not None:
            self._keyboard.close()
        if self._ticks.ident is not None:  # it was started
            self._ticks.join()
        if self._keyboard is not None:
            self._keyboard.release()

    def press(self, key: str) -> None:
        with self._lock:
            self._focus.press(key)

    def _on_stop(self) -> None:
        self._is_stopped = True
        self._console.show_cursor(True)

    def _on_continue(self) -> None:
        self._console.show_cursor(False)
        self._drawn = None  # others have written on the screen
        self._is_stopped = False

    def _draw(self, stopped: str = "", is_last: bool = False) -> None:
        # If no event has come, nothing is left on the screen.
        lines = [] if is_last and not self._word else self.frame(stopped, is_last)
        # Writing the same lines again would flicker, and be slow over a slow connection.
        drawn = (self._console.width, lines)
        if self._screen is not None and drawn != self._drawn:
            self._drawn = drawn
            self._screen.show(lines)

    def _say(self, line: str) -> None:
        line = for_terminal(line)
        self._console.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)


def _stop_word(kind: type[BaseException] | None) -> str:
    if kind is None:
        return ""
    # Ctrl-C reaches a coroutine as its cancellation.
    is_interrupted = kind.__name__ in ("KeyboardInterrupt", "CancelledError")
    return "interrupted" if is_interrupted else "stopped"
