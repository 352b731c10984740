"""The live view as lines of text. In: a View, the time, a window. Out: lines of styled spans.

header   two lines: which run, and how far it is
counts   ended steps that have no line of their own
rows     a line a step
counts   steps at work or still to come that have none
footer   which keys there are, and what a person may do

Or, where a step is open: the header, the step, the end of its stream, the footer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from stretto.cli.progress.board import Head, View
from stretto.cli.progress.lines import SIGNS
from stretto.cli.progress.rows import Row, join_pieces
from stretto.text.short import columns, counted, fit, fit_end, fit_name
from stretto.vocabulary.amounts import format_duration
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import StepWord

Span: TypeAlias = tuple[str, str]  # text, style
Line: TypeAlias = tuple[Span, ...]

_HEADER_LINES = 2
_FOOTER_LINES = 1
_SHORTEST = 6  # a window with fewer lines has none to spare for a footer
_NARROW, _WIDE = 60, 90
_FEWEST_WORDS = 12  # columns; in fewer, an answer's words cannot be read
_STYLES: Mapping[StepWord, str] = {
    "awaiting approval": "bold magenta",
    "overdue": "bold magenta",
    "retrying": "yellow",
    "merging": "cyan",
    "interrupted": "yellow",
    "running": "cyan",
    "failed": "red",
    "succeeded": "green",
    "skipped": "dim",
    "held": "dim",
    "cancelled": "dim",
    "waiting": "dim",
}
_RUN_STYLES = {
    "complete": "bold green",
    "partial": "bold yellow",
    "failed": "bold red",
    "interrupted": "bold yellow",
    "waiting": "bold magenta",
}
_ENDED: tuple[StepWord, ...] = ("succeeded", "failed", "skipped", "held", "cancelled")
_OPEN: tuple[StepWord, ...] = (
    "awaiting approval",
    "overdue",
    "retrying",
    "merging",
    "running",
    "interrupted",
    "waiting",
)


def room_for(height: int) -> int:
    """The lines that are left for steps and for the counts of those without one."""
    return max(1, height - _HEADER_LINES - (_FOOTER_LINES if height >= _SHORTEST else 0))


class Frame:
    """How to write a view in a window of this size."""

    def __init__(
        self,
        width: int,
        height: int,
        signs: Mapping[StepWord, str] = SIGNS,
        is_watching: bool = False,
        has_keys: bool = False,
    ) -> None:
        """`has_keys`: somebody can press them."""
        self._is_watching = is_watching
        self._has_keys = has_keys
        self._width = width
        self._height = height
        self._signs = signs

    def lines(
        self,
        view: View,
        now: float,
        id_columns: int,
        stopped: str = "",
        chosen: StepId | None = None,
        is_last: bool = False,
    ) -> list[Line]:
        """`stopped`: why the run is not driven any more; no step is at work then. `is_last`: this
        stays on the screen, where no key has an effect any more."""
        head = view.head
        ids = min(id_columns, 28 if self._width >= _WIDE else 20 if self._width >= _NARROW else 14)
        lines = [self._title(head, stopped), self._sums(head, now, stopped)]
        lines += self._counts(view.hidden, _ENDED, stopped)
        for row in view.rows:
            line = self._row(row, head, now, ids, stopped)
            lines.append(_mark(line) if row.id == chosen else line)
        lines += self._counts(view.hidden, _OPEN, stopped)
        if not is_last and self._height >= _SHORTEST:
            keys = ["↑↓ choose a step", "Enter opens it"] if self._has_keys else []
            lines.append(self._footer(view, keys))
        return lines

    def open_step(
        self, view: View, row: Row, stream: Sequence[Span], above: int, now: float
    ) -> list[Line]:
        """One step with the end of its stream. `above`: how many lines below the last one shown
        are passed over, because the person has scrolled up."""
        head = view.head
        ids = min(columns(row.id), max(8, self._width - 40))
        lines = [self._title(head, ""), self._sums(head, now, "")]
        lines.append(self._row(replace(row, words=""), head, now, ids, ""))
        room = self.stream_room
        end = max(0, len(stream) - above)
        lines += [((fit(text, self._width), style),) for text, style in stream[:end][-room:]]
        if self._height >= _SHORTEST:
            keys = ["Esc closes it", "↑↓ scroll", "Tab next step"]
            lines.append(self._footer(view, keys))
        return lines

    @property
    def stream_room(self) -> int:
        return max(1, room_for(self._height) - 1)

    def _footer(self, view: View, keys: list[str]) -> Line:
        asking, stop = _hints(view, self._is_watching, is_short=bool(keys))
        # The least important hint comes last: a narrow window leaves it out.
        hint = _fitting([*([asking] if asking else []), *keys, stop], self._width)
        return ((fit(hint, self._width), "dim"),)

    def _title(self, head: Head, stopped: str) -> Line:
        word = stopped or head.status
        style = _RUN_STYLES.get(stopped or head.status, "bold cyan")
        name = fit(head.workflow, max(8, self._width - columns(word) - 2))
        left = self._width - columns(name) - columns(word) - 2
        run = f"  run {head.run_id}" if head.run_id else ""
        spans = ((name, "bold"), ("  ", ""), (word, style))
        # A run's id is for copying: half of one is of no use.
        return (*spans, (run, "dim")) if columns(run) <= left else spans

    def _sums(self, head: Head, now: float, stopped: str) -> Line:
        pieces = [f"{head.ended:,} of {counted(head.total, 'step')}"]
        if head.started_at is not None:
            pieces.insert(0, elapsed(head.started_at, head.ended_at, now))
        if head.ended_at is None and not stopped:
            pieces.append(f"{head.running} of {head.width} running")
        if head.tokens:
            pieces.append(f"{head.tokens:,} tokens")
        if head.usd:
            pieces.append(dollars(head.usd))
        return ((fit(_fitting(pieces, self._width), self._width), ""),)

    def _row(self, row: Row, head: Head, now: float, ids: int, stopped: str) -> Line:
        sign, word, style = self._look(row.stage, stopped)
        says = row.says
        if row.retries_at is not None and not stopped:
            says = join_pieces(f"retries in {_seconds(row.retries_at - now)}", says)
        spans: list[Span] = [
            (f"{sign} ", style),
            (f"{fit_name(row.id, ids).ljust(ids)} ", "dim" if style == "dim" else ""),
            (word.ljust(9), style),
            (self._figures(row, head, now), ""),
        ]
        room = self._width - sum(columns(text) for text, _ in spans) - 1
        if says and room > 0:
            spans.append((f" {fit(says, room)}", "red" if row.stage == "failed" else "dim"))
        room -= columns(says) + (2 if says else 0)
        if row.words and not stopped and room >= _FEWEST_WORDS:
            spans.append((f"{':' if says else ''} {fit_end(row.words, room)}", ""))
        return tuple(spans)

    def _look(self, stage: StepWord, stopped: str) -> tuple[str, str, str]:
        if stopped and stage in ("running", "retrying", "merging"):
            return "-", "stopped", "yellow"
        return self._signs[stage], stage, _STYLES[stage]

    def _figures(self, row: Row, head: Head, now: float) -> str:
        """Columns that some step has something for, as far as the window is wide enough."""
        if self._width < _NARROW:
            return ""
        spent = row.tally
        time = "" if row.started_at is None else elapsed(row.started_at, row.ended_at, now)
        figures = f" {time:>6}"
        if head.tokens:
            figures += f" {short_count(spent.tokens) if spent.tokens else '':>6}"
        if head.usd and self._width >= _WIDE:
            figures += f" {dollars(spent.usd) if spent.usd else '':>7}"
        return figures + " "

    def _counts(
        self, hidden: Mapping[StepWord, int], stages: Iterable[StepWord], stopped: str
    ) -> list[Line]:
        spans: list[Span] = []
        for stage in stages:
            if hidden.get(stage):
                sign, word, style = self._look(stage, stopped)
                gap = "  " if spans else ""
                spans.append((f"{gap}{sign} {hidden[stage]:,} more {word}", style))
        return [tuple(spans)] if spans else []


def elapsed(started_at: float, ended_at: float | None, now: float) -> str:
    """At most six columns. While it counts, only whole seconds: tenths would never stand still."""
    if ended_at is None:
        return _seconds(now - started_at)
    seconds = max(0.0, ended_at - started_at)
    return format_duration(seconds) if seconds < 60 else _seconds(seconds)


def short_count(count: int) -> str:
    """At most six columns: 950, 9,999, 12.3k, 1.2M."""
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1000:.1f}k" if count < 999_950 else f"{count / 1_000_000:.1f}M"


def dollars(usd: float) -> str:
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}"


def _seconds(seconds: float) -> str:
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{whole % 60:02}s"


def _fitting(pieces: list[str], width: int) -> str:
    """As many of the pieces as fit; the last are left out first."""
    while len(pieces) > 1 and columns(" · ".join(pieces)) > width:
        pieces = pieces[:-1]
    return " · ".join(pieces)


def _hints(view: View, is_watching: bool, is_short: bool) -> tuple[str, str]:
    """How to decide at a gate, if one is open, and how to stop."""
    stop = "Ctrl-C stops" if is_short else "Ctrl-C stops cleanly and prints how to resume"
    if is_watching:
        stop = "Ctrl-C stops watching, not the run"
    if view.asking is None:
        return "", stop
    return f"stretto approve {view.head.run_id} {view.asking} (or reject)", stop


def _mark(line: Line) -> Line:
    """Mark the chosen row, by a sign besides the colour: not everybody sees colours."""
    (sign, style), (name, _), *rest = line
    return ((f"{sign[:-1]}›", style), (name, "reverse"), *rest)
