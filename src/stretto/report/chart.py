"""The timeline as a picture. In: Report. Out: Html: bars of an attempt each, and the same as a table."""

from collections.abc import Iterator

from stretto.report.markup import NOTHING, Html, join, tag
from stretto.report.model import Report
from stretto.report.text import length, since, status_word, took
from stretto.report.timeline import Bar, Row, Timeline, timeline_of
from stretto.text.visible import one_line

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
        (_row(row) for row in timeline.rows),
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


def _row(row: Row) -> Html:
    step = row.step
    mark = tag("span", "◆ ", class_="mark") if row.is_critical else NOTHING
    name = tag("span", mark, step.id, class_="name", title=step.id)
    how = f"{step.status}, {length(step.duration_seconds)}"
    lanes = [tag("div", (_bar(bar) for bar in lane), class_="lane") for lane in row.lanes]
    if not lanes:
        # A condition asks nobody and takes no time: a point says that it was there.
        point = Bar(row.left, row.width, step.status, how, "")
        lanes = [tag("div", _bar(point), class_="lane point")]
    span = tag("i", class_="span", style=_place(row.left, row.width))
    return tag(
        "div",
        tag("div", name, tag("span", how, class_=f"how is-{step.status}"), class_="label"),
        tag("div", span, lanes, class_="track"),
        class_=f"row{' many' if len(lanes) > 2 else ''}",
    )


def _bar(bar: Bar) -> Html:
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


def _table_rows(report: Report, row: Row) -> Iterator[Html]:
    step = row.step
    began = [attempt for attempt in step.attempts if attempt.started_at is not None]
    for each in began:
        name = f"{each.part} {each.number}".strip()
        when = _when(report, each.started_at, each.ended_at)
        yield _table_row(row, name, each.agent, each.status, when)
    if not began:
        yield _table_row(row, "-", "-", step.status, _when(report, step.started_at, step.ended_at))


def _table_row(row: Row, name: str, agent: str, status: str, when: tuple[str, ...]) -> Html:
    return tag(
        "tr",
        tag("th", row.step.id, scope="row"),
        tag("td", name),
        tag("td", agent),
        tag("td", status_word(status)),
        (tag("td", figure, class_="figure") for figure in when),
        tag("td", "yes" if row.is_critical else "no"),
    )


def _when(report: Report, began: float | None, ended: float | None) -> tuple[str, ...]:
    start = report.started_at
    return since(start, began), since(start, ended), took(began, ended)
