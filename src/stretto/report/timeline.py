"""When everything happened. In: Report. Out: Timeline: rows of bars, placed in per cent.

A stretch without a sign of work (a person thinks, a process is gone) would squeeze all work into
slivers, so it is cut short and marked as a break.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil

from stretto.report.markup import NOTHING, Html, join, tag
from stretto.report.model import AttemptReport, Report, StepReport
from stretto.report.text import length, since, took
from stretto.text.visible import one_line
from stretto.vocabulary.amounts import format_duration

# An idle stretch is cut when it is longer than this share of all work, and then drawn as long as
# this other share.
_IDLE_SHARE = 0.5
_BREAK_SHARE = 0.06
_LEAST_BAR = 0.3  # per cent: what is shorter could not be seen
_NEAR = 0.15  # per cent: bars of one status that are nearer than this are drawn as one
_LEAST_TICK_GAP = 9.0  # per cent: labels must not touch
_TICKS = 6
_ROUND_SECONDS = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400),
)


@dataclass(frozen=True, slots=True)
class Bar:
    left: float
    width: float
    status: str
    says: str  # in full, for whoever points at it
    word: str


@dataclass(frozen=True, slots=True)
class TimelineRow:
    step: StepReport
    is_critical: bool
    left: float  # the step as a whole, its waits included
    width: float
    lanes: tuple[tuple[Bar, ...], ...]  # attempts that ran at the same time are in different ones


@dataclass(frozen=True, slots=True)
class Tick:
    left: float
    label: str


@dataclass(frozen=True, slots=True)
class Break:
    left: float
    width: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Timeline:
    rows: tuple[TimelineRow, ...]  # steps that have started, in the order in which they did
    ticks: tuple[Tick, ...]
    breaks: tuple[Break, ...]
    statuses: tuple[str, ...]  # of all bars, for the legend


def timeline_of(report: Report) -> Timeline:
    start = report.started_at or 0.0
    # By the clock: the time in which nobody worked is drawn as a break.
    end = start + report.duration_seconds + report.paused_seconds
    scale = _Scale(start, end, _spans(report, end))
    critical = {step.step for step in report.critical_path}
    # Sorting is stable, so the listing breaks ties.
    began = sorted(
        (step for step in report.steps if step.started_at is not None),
        key=lambda step: step.started_at or 0.0,
    )
    rows = tuple(_row(step, step.id in critical, scale, end) for step in began)
    bars = (bar for row in rows for lane in row.lanes for bar in lane)
    return Timeline(
        rows, tuple(scale.ticks()), scale.breaks, tuple(dict.fromkeys(bar.status for bar in bars))
    )


def _spans(report: Report, end: float) -> Iterator[tuple[float, float]]:
    """When somebody worked, as far as anybody knows."""
    for attempt in (attempt for step in report.steps for attempt in step.attempts):
        if attempt.started_at is None:
            continue
        # Work that was interrupted ends in the journal when the run is resumed, days later perhaps.
        known_end = attempt.started_at if attempt.status == "in doubt" else attempt.ended_at
        yield attempt.started_at, end if known_end is None else known_end


class _Scale:
    """Seconds since the epoch to per cent of the picture, idle stretches cut short."""

    def __init__(self, start: float, end: float, spans: Iterable[tuple[float, float]]) -> None:
        self._start = start
        busy = _merge([(max(start, a), min(end, b)) for a, b in spans])
        edges = [start, *(edge for span in busy for edge in span), end]
        work = sum(b - a for a, b in busy)
        # Stretches by turns idle and busy, with how long each is drawn.
        self._from: list[float] = []
        drawn: list[float] = []
        cut: list[int] = []
        for number, (a, b) in enumerate(pairwise(edges)):
            is_cut = number % 2 == 0 and work > 0 and b - a > work * _IDLE_SHARE
            if is_cut:
                cut.append(number)
            self._from.append(a)
            drawn.append(work * _BREAK_SHARE if is_cut else max(0.0, b - a))
        total = sum(drawn) or 1.0
        self._left = [100 * before / total for before in accumulate(drawn[:-1], initial=0.0)]
        self._width = [100 * each / total for each in drawn]
        self._to = [*self._from[1:], end]
        self._cut = frozenset(cut)
        self._seconds_drawn = total
        self.breaks = tuple(
            Break(self._left[i], self._width[i], self._to[i] - self._from[i]) for i in cut
        )

    def at(self, moment: float) -> float:
        i = min(max(0, bisect_right(self._from, moment) - 1), len(self._from) - 1)
        seconds = self._to[i] - self._from[i]
        share = (moment - self._from[i]) / seconds if seconds > 0 else 0.0
        return self._left[i] + self._width[i] * min(1.0, max(0.0, share))

    def ticks(self) -> Iterator[Tick]:
        every = next((s for s in _ROUND_SECONDS if self._seconds_drawn / s <= _TICKS), 86400.0)
        last = -_LEAST_TICK_GAP
        for i, (a, b) in enumerate(zip(self._from, self._to, strict=True)):
            if i in self._cut or b <= a:
                continue
            number = ceil((a - self._start) / every - 1e-9)
            while (moment := self._start + number * every) <= b:
                left = self.at(moment)
                if last + _LEAST_TICK_GAP <= left <= 100 - _LEAST_TICK_GAP / 2:
                    yield Tick(left, format_duration(number * every) if number else "0s")
                    last = left
                number += 1


def _merge(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for a, b in sorted(span for span in spans if span[1] >= span[0]):
        if merged and a <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], b))
        else:
            merged.append((a, b))
    return merged


def _row(step: StepReport, is_critical: bool, scale: _Scale, end: float) -> TimelineRow:
    left = scale.at(step.started_at or 0.0)
    right = scale.at(end if step.ended_at is None else step.ended_at)
    lanes: list[list[Bar]] = []
    free_from: list[float] = []
    begun = [attempt for attempt in step.attempts if attempt.started_at is not None]
    for attempt in sorted(begun, key=lambda attempt: attempt.started_at or 0.0):
        start = attempt.started_at or 0.0
        until = end if attempt.ended_at is None else attempt.ended_at
        lane = next((i for i, free in enumerate(free_from) if free <= start), len(lanes))
        if lane == len(lanes):
            lanes.append([])
            free_from.append(until)
        free_from[lane] = until
        _add(lanes[lane], _bar(attempt, scale.at(start), scale.at(until), until - start))
    return TimelineRow(step, is_critical, left, max(0.0, right - left), tuple(map(tuple, lanes)))


def _add(lane: list[Bar], bar: Bar) -> None:
    """A thousand slivers side by side are one bar."""
    if not lane or lane[-1].status != bar.status or lane[-1].width > _NEAR * 4:
        lane.append(bar)
        return
    last = lane[-1]
    if bar.left - (last.left + last.width) > _NEAR:
        lane.append(bar)
    else:
        width = bar.left + bar.width - last.left
        lane[-1] = Bar(last.left, width, bar.status, f"several attempts, {bar.status}", bar.status)


def _bar(attempt: AttemptReport, left: float, right: float, seconds: float) -> Bar:
    left = min(left, 100 - _LEAST_BAR)
    part = f"{attempt.part}, " if attempt.part else ""
    why = f": {attempt.error}" if attempt.error else ""
    says = (
        f"{part}attempt {attempt.number} by {attempt.agent}, {attempt.status}"
        f" after {format_duration(max(0.0, seconds))}{why}"
    )
    width = max(_LEAST_BAR, right - left)
    return Bar(left, width, attempt.status, says, f"{attempt.part} {attempt.status}".strip())


# Per cent of the width: a word in a narrower bar would be cut off.
_LEAST_WORD = 9.0
_MOST_TITLE = 300


def chart(report: Report) -> Html:
    timeline = timeline_of(report)
    if not timeline.rows:
        return NOTHING
    label = (
        f"Timeline of {len(timeline.rows)} steps over {length(report.duration_seconds)}."
        " The table below it says the same."
    )
    picture = tag(
        "div",
        tag("div", _grid(timeline), class_="grid"),
        tag("div", tag("div", _axis(timeline), class_="scale"), class_="axis"),
        (_chart_row(row) for row in timeline.rows),
        class_="chart",
        role="img",
        aria_label=label,
    )
    box = tag(
        "div",
        picture,
        class_="scroll timeline",
        tabindex="0",
        role="group",
        aria_label="Timeline",
    )
    return tag(
        "section",
        tag("h2", "Timeline", id="timeline-title"),
        tag("figure", box, tag("figcaption", _legend(timeline))),
        tag("details", tag("summary", "The timeline as a table"), _table(report, timeline)),
        id="timeline",
        aria_labelledby="timeline-title",
    )


def _grid(timeline: Timeline) -> Iterator[Html]:
    for tick in timeline.ticks:
        yield tag("i", style=f"left:{tick.left:.3f}%")
    for gap in timeline.breaks:
        yield tag("i", class_="gap", style=_place(gap.left, gap.width))


def _axis(timeline: Timeline) -> Iterator[Html]:
    for tick in timeline.ticks:
        yield tag("span", tick.label, style=f"left:{tick.left:.3f}%")


def _chart_row(row: TimelineRow) -> Html:
    step = row.step
    mark = tag("span", "◆ ", class_="mark") if row.is_critical else NOTHING
    name = tag("span", mark, step.id, class_="name", title=step.id)
    how = f"{step.status}, {length(step.duration_seconds)}"
    lanes = [tag("div", (_chart_bar(bar) for bar in lane), class_="lane") for lane in row.lanes]
    if not lanes:
        # A condition asks no model and takes no time: a point shows when it was decided.
        point = Bar(row.left, row.width, step.status, how, "")
        lanes = [tag("div", _chart_bar(point), class_="lane point")]
    span = tag("i", class_="span", style=_place(row.left, row.width))
    return tag(
        "div",
        tag("div", name, tag("span", how, class_=f"how is-{step.status}"), class_="label"),
        tag("div", span, lanes, class_="track"),
        class_=f"row{' many' if len(lanes) > 2 else ''}",
    )


def _chart_bar(bar: Bar) -> Html:
    word = tag("b", bar.word) if bar.width >= _LEAST_WORD and bar.word else NOTHING
    return tag(
        "span",
        word,
        class_=f"bar is-{bar.status.replace(' ', '-')}",
        style=_place(bar.left, bar.width),
        title=one_line(bar.says, _MOST_TITLE),
    )


def _place(left: float, width: float) -> str:
    return f"left:{left:.3f}%;width:{width:.3f}%"


def _legend(timeline: Timeline) -> Html:
    keys = [
        tag("span", tag("i", class_=f"bar is-{status.replace(' ', '-')}"), status, class_="key")
        for status in timeline.statuses
    ]
    if any(row.is_critical for row in timeline.rows):
        keys.append(tag("span", tag("span", "◆ ", class_="mark"), "critical path", class_="key"))
    for gap in timeline.breaks[:3]:
        cut = f"cut short: {length(gap.seconds)} without a sign of work"
        keys.append(tag("span", tag("i", class_="bar gap"), cut, class_="key"))
    return join([tag("span", "A bar is an attempt.", class_="key"), keys])


def _table(report: Report, timeline: Timeline) -> Html:
    heads = ("Step", "Attempt", "Agent", "Status", "From", "To", "Took", "Critical path")
    table = tag(
        "table",
        tag("caption", "When each attempt ran, counted from the start of the run"),
        tag("thead", tag("tr", (tag("th", head, scope="col") for head in heads))),
        tag("tbody", (_table_rows(report, row) for row in timeline.rows)),
    )
    name = "The timeline as a table"
    return tag("div", table, class_="scroll", tabindex="0", role="group", aria_label=name)


def _table_rows(report: Report, row: TimelineRow) -> Iterator[Html]:
    step = row.step
    began = [attempt for attempt in step.attempts if attempt.started_at is not None]
    for each in began:
        name = f"{each.part} {each.number}".strip()
        when = _when(report, each.started_at, each.ended_at)
        yield _table_row(row, name, each.agent, each.status, when)
    if not began:
        yield _table_row(row, "-", "-", step.status, _when(report, step.started_at, step.ended_at))


def _table_row(row: TimelineRow, name: str, agent: str, status: str, when: tuple[str, ...]) -> Html:
    return tag(
        "tr",
        tag("th", row.step.id, scope="row"),
        tag("td", name),
        tag("td", agent),
        tag("td", status),
        (tag("td", figure, class_="figure") for figure in when),
        tag("td", "yes" if row.is_critical else "no"),
    )


def _when(report: Report, began: float | None, ended: float | None) -> tuple[str, ...]:
    start = report.started_at
    return since(start, began), since(start, ended), took(began, ended)
