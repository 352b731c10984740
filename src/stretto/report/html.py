"""The report as one HTML page. In: Report, and the Plan to draw. Out: a page that needs nothing.

No script, no request, and a policy that allows neither: the page can be mailed and opened
anywhere. What models said is text in it, never markup.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import TypeAlias

from stretto.plan.model import Plan
from stretto.report.diagrams import draw
from stretto.report.markup import NOTHING, Content, Html, join, tag, trusted
from stretto.report.model import AttemptReport, Issue, PathStep, Report, StepReport
from stretto.report.text import (
    calls_of,
    cost,
    length,
    moment,
    raw,
    since,
    size,
    status_word,
    tokens,
    took,
)
from stretto.report.timeline import chart
from stretto.report.transcript import Excerpt
from stretto.text.visible import one_line, visible
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.statuses import UNFINISHED, StepStatus

Transcripts: TypeAlias = Mapping[tuple[str, str, int], Sequence[Excerpt]]
# A page must open in any browser; `stretto logs` has the rest.
_MOST_ATTEMPTS = 20
_MOST_ENTRIES = 200


def transcript(run_id: str, step: StepReport, logs: Transcripts) -> Iterator[Html]:
    attempts = [each for each in step.attempts if (step.id, each.part, each.number) in logs]
    if not attempts:
        return
    command = f"stretto logs {run_id} {step.id}"
    folded = []
    for attempt in attempts[:_MOST_ATTEMPTS]:
        entries = logs[step.id, attempt.part, attempt.number]
        name = f"{attempt.part} attempt {attempt.number} by {attempt.agent}".strip()
        shown = [_entry(entry, command) for entry in entries[:_MOST_ENTRIES]]
        if len(entries) > _MOST_ENTRIES:
            shown.append(_cut(f"{len(entries) - _MOST_ENTRIES:,} more: {command}"))
        folded.append(tag("details", tag("summary", name), shown))
    if len(attempts) > _MOST_ATTEMPTS:
        folded.append(_cut(f"{len(attempts) - _MOST_ATTEMPTS:,} more attempts: {command}"))
    yield tag("div", tag("h4", "Transcript"), folded)


def _entry(entry: Excerpt, command: str) -> Html:
    label = f"{entry.kind} of {entry.step}"
    said = tag("pre", entry.text, tabindex="0", role="group", aria_label=label)
    more = [_cut(f"{entry.left_out:,} characters more: {command}")] if entry.left_out else []
    return tag("div", tag("p", entry.kind, class_="muted"), said, more)


def _cut(says: str) -> Html:
    return tag("p", says, class_="muted")


_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
# Longer ones are folded, so that a page of 500 steps can still be read.
_MOST_OPEN_CHARACTERS = 4000
_MOST_OPEN_LINES = 60
_MOST_OPEN_LEGS = 12
_MOST_OPEN_ISSUES = 24
_MOST_IN_A_CELL = 160
# A browser opens a page of this size; the rest is a command away.
_MOST_PAGE_CHARACTERS = 4_000_000
_MOST_VALUE_CHARACTERS = 200_000
_LEAST_VALUE_CHARACTERS = 1_000
_GRAVE = ("failed", "waiting", "stopped")


def as_html(report: Report, plan: Plan | None = None, logs: Transcripts | None = None) -> str:
    """`logs`: what was said and done in each attempt."""
    title = f"{report.workflow}: {status_word(report.status)}"
    graph = _graph(plan) if plan is not None else NOTHING
    sections = [
        _summary(report),
        _issues(report),
        _section("output", "Final output", _final(report)),
        chart(report),
        _critical_path(report),
        _section("steps", "Steps", _step_table(report), _step_details(report, logs or {})),
        graph,
        _inputs(report),
    ]
    page = tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("meta", name="referrer", content="no-referrer"),
            tag("title", one_line(title)),
            tag("style", trusted(_style())),
        ),
        tag(
            "body",
            tag("a", "Skip to the report", href="#report", class_="skip"),
            _header(report),
            tag("main", sections, id="report"),
            tag("footer", f"Run {report.run_id}. All times are UTC."),
        ),
        lang="en",
    )
    return f"<!doctype html>\n{page}\n"


def _style() -> str:
    return files("stretto.report").joinpath("page.css").read_text(encoding="utf-8")


def _header(report: Report) -> Html:
    facts = [f"Run {report.run_id}"]
    if report.started_at is not None:
        facts.append(f"started {moment(report.started_at)}")
    if report.ended_at is not None:
        facts.append(f"ended {moment(report.ended_at)}")
    elif report.started_at is not None:
        facts.append(f"as of {moment(report.as_of)}")
    if report.parent:
        facts.append(f"continues run {report.parent}")
    return tag(
        "header",
        tag("p", "Workflow execution report", class_="kind"),
        tag("h1", tag("span", one_line(report.workflow)), _badge(report.status)),
        tag("p", (tag("span", fact) for fact in facts), class_="facts"),
    )


def _badge(status: str) -> Html:
    return tag("span", status_word(status), class_=f"badge {_class(status)}")


def _class(status: str) -> str:
    """Statuses are our own words, but a class must be one word."""
    return f"is-{status.replace(' ', '-')}"


def _section(id: str, title: str, *content: Content) -> Html:
    heading = tag("h2", title, id=f"{id}-title")
    return tag("section", heading, content, id=id, aria_labelledby=f"{id}-title")


def _summary(report: Report) -> Html:
    skipped = report.count(StepStatus.SKIPPED, StepStatus.HELD, StepStatus.CANCELLED)
    not_ended = report.count(*UNFINISHED)
    figures = [
        ("Total steps", str(len(report.steps))),
        ("Completed", str(report.count(StepStatus.SUCCEEDED))),
        ("Failed", str(report.count(StepStatus.FAILED))),
        ("Skipped", str(skipped)),
        *([("Not ended", str(not_ended))] if not_ended else []),
        ("Agents deployed", f"{report.agents_deployed:,}"),
        ("Total time", length(report.duration_seconds)),
        ("Retries", f"{report.retries:,}"),
        *([("Tool calls", calls_of(report.calls))] if report.calls.made else []),
        ("Tokens", tokens(report.usage)),
        ("Cost", cost(report.usage) if report.usage.usd > 0 else "unknown"),
    ]
    tiles = (tag("div", tag("dt", name), tag("dd", value)) for name, value in figures)
    return _section("summary", "Summary", tag("dl", tiles, class_="tiles"))


def _issues(report: Report) -> Html:
    if not report.issues:
        return _section("issues", "Issues and warnings", tag("p", "None.", class_="muted"))
    items = tag("ul", (_issue(issue) for issue in report.issues), class_="issues")
    is_long = len(report.issues) > _MOST_OPEN_ISSUES
    content = _scrolling(items, "Issues and warnings") if is_long else items
    return _section("issues", "Issues and warnings", content)


def _issue(issue: Issue) -> Html:
    step = tag("b", issue.step, ": ") if issue.step else NOTHING
    grave = "grave" if issue.kind in _GRAVE else "light"
    kind = tag("span", issue.kind, class_=f"tagged {grave}")
    return tag("li", kind, tag("div", step, _fold(issue.says, "the whole text")))


def _fold(text: str, name: str) -> Content:
    """A long text behind its beginning and its end."""
    if len(text) <= _MOST_OPEN_CHARACTERS // 8 and text.count("\n") < 4:
        return tag("span", text, class_="said")
    return tag("details", tag("summary", one_line(text, _MOST_IN_A_CELL)), _quote(text, name))


def _quote(text: str, name: str) -> Html:
    return tag("pre", text, tabindex="0", role="group", aria_label=name)


def _final(report: Report) -> Content:
    if report.output is None:
        return tag("p", "None.", class_="muted")
    return _value(report, report.output, "Final output", most=_MOST_VALUE_CHARACTERS)


def _value(report: Report, value: Json, name: str, of: str = "", most: int = 0) -> Html:
    """Its beginning, where a page of all steps would be too large for a browser."""
    whole, most = raw(value), most or _share_of_page(report)
    text = visible(whole[:most])
    if len(whole) <= min(most, _MOST_OPEN_CHARACTERS) and text.count("\n") < _MOST_OPEN_LINES:
        return _quote(text, name)
    summary = tag("summary", f"{name}, {size(value)}")
    if len(whole) <= most:
        return tag("details", summary, _quote(text, name))
    left_out = (
        f"{len(whole) - most:,} characters more: stretto output {report.run_id} {of}".rstrip()
    )
    return tag("details", summary, _quote(f"{text}…", name), tag("p", left_out, class_="muted"))


def _share_of_page(report: Report) -> int:
    share = _MOST_PAGE_CHARACTERS // max(1, len(report.steps))
    return max(_LEAST_VALUE_CHARACTERS, min(_MOST_VALUE_CHARACTERS, share))


def _critical_path(report: Report) -> Html:
    path = report.critical_path
    if len(path) < 2:
        return NOTHING
    longest = max(max(step.duration_seconds, step.waited_seconds) for step in path)
    legs = (leg for step in path for leg in _legs(step, longest, report.duration_seconds))
    says = "The run took as long as these, one after the other: a shorter one shortens the run."
    chain = tag("ol", legs, class_="path")
    return _section(
        "critical-path",
        "Critical path",
        tag("p", says, class_="muted"),
        _scrolling(chain, "Critical path") if len(path) > _MOST_OPEN_LEGS else chain,
    )


def _legs(step: PathStep, longest: float, total: float) -> Iterator[Html]:
    waited = tag("span", f"waiting for {step.waited_for}", class_="muted")
    name = tag("b", step.step)
    if step.waited_seconds:
        yield _leg(waited, step.waited_seconds, longest, total, "wait")
    elif step.waited_for:
        # For the step above it, whose time this was already.
        name = tag("span", name, " after ", waited)
    yield _leg(name, step.duration_seconds, longest, total)


def _leg(name: Html, seconds: float, longest: float, total: float, kind: str = "") -> Html:
    share = f", {seconds / total:.0%}" if total > 0 else ""
    width = seconds / longest if longest > 0 else 0.0
    return tag(
        "li",
        name,
        tag("span", f"{length(seconds)}{share}", class_="figure"),
        tag("i", tag("i", style=f"width:{width:.1%}"), class_="share", aria_hidden="true"),
        class_=kind or False,
    )


def _step_table(report: Report) -> Html:
    head = ("Step", "Agent", "Status", "Started", "Duration", "Retries", "Output size", "Tokens")
    has_cost = report.usage.usd > 0
    heads = [*head, "Cost"] if has_cost else head
    rows = (_step_row(report, number, step, has_cost) for number, step in enumerate(report.steps))
    return _table("Step-by-step results", heads, rows)


def _step_row(report: Report, number: int, step: StepReport, has_cost: bool) -> Html:
    figures = [
        since(report.started_at, step.started_at),
        length(step.duration_seconds),
        str(step.retries),
        size(step.output),
        tokens(step.usage),
        *([cost(step.usage)] if has_cost else []),
    ]
    return tag(
        "tr",
        tag("th", tag("a", step.id, href=f"#step-{number}"), scope="row"),
        tag("td", ", ".join(step.agents) or "-"),
        tag("td", _word(step.status)),
        (tag("td", figure, class_="figure") for figure in figures),
    )


def _word(status: str) -> Html:
    return tag("span", status_word(status), class_=f"word {_class(status)}")


def _table(caption: str, heads: Iterable[str], rows: Iterable[Html]) -> Html:
    table = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", (tag("th", head, scope="col") for head in heads))),
        tag("tbody", rows),
    )
    return _scrolling(table, caption)


def _scrolling(content: Html, name: str, kind: str = "") -> Html:
    """What may be larger than its place can be scrolled by keyboard, and says what it is."""
    css = f"scroll {kind}".strip()
    return tag("div", content, class_=css, tabindex="0", role="group", aria_label=name)


def _step_details(report: Report, logs: Transcripts) -> Html:
    title = tag("h3", "Step by step, in full")
    each = (_step(report, number, step, logs) for number, step in enumerate(report.steps))
    return tag("div", title, each, class_="details")


def _step(report: Report, number: int, step: StepReport, logs: Transcripts) -> Html:
    summary = tag(
        "summary",
        tag("b", step.id),
        " ",
        _word(step.status),
        tag("span", f" {step.type}, {length(step.duration_seconds)}", class_="muted"),
    )
    # The id is inside: a link to it opens what is folded around it.
    facts = (*_step_facts(report, step), *transcript(report.run_id, step, logs))
    return tag("details", summary, tag("div", facts, id=f"step-{number}"))


def _step_facts(report: Report, step: StepReport) -> Iterator[Html]:
    if step.depends_on:
        yield tag("p", f"After {', '.join(step.depends_on)}.", class_="muted")
    if step.reason:
        yield tag("p", f"{status_word(step.status)}: {step.reason}")
    if step.error is not None:
        yield _label("Error", _quote(step.error, f"Error of {step.id}"))
    if step.warnings:
        yield _label("Warnings", tag("ul", (tag("li", text) for text in step.warnings)))
    if step.calls.made:
        yield tag("p", f"Tool calls: {calls_of(step.calls)}.", class_="muted")
    if step.kept_output is not None:
        yield _label("Output", _value(report, step.output, f"Output of {step.id}", step.id))
    elif step.status == StepStatus.SUCCEEDED:
        yield tag("p", "It has no output.", class_="muted")
    if step.validation is not None:
        yield _label("Last verdict", _value(report, step.validation, f"Last verdict on {step.id}"))
    if step.changes is not None and step.changes.patch:
        yield _label("Changes", _quote(step.changes.patch, f"Changes of {step.id}"))
    if step.attempts:
        yield _attempts(report, step)


def _label(title: str, content: Html) -> Html:
    return tag("div", tag("h4", title), content)


def _attempts(report: Report, step: StepReport) -> Html:
    heads = ("Attempt", "Agent", "Model", "Status", "Started", "Duration", "Tokens", "Cost", "Why")
    rows = (_attempt_row(report, attempt) for attempt in step.attempts)
    return _table(f"Attempts of {step.id}", heads, rows)


def _attempt_row(report: Report, attempt: AttemptReport) -> Html:
    name = f"{attempt.part} {attempt.number}".strip()
    figures = (
        since(report.started_at, attempt.started_at),
        took(attempt.started_at, attempt.ended_at),
        tokens(attempt.usage),
        cost(attempt.usage),
    )
    return tag(
        "tr",
        tag("th", name, scope="row"),
        tag("td", attempt.agent),
        tag("td", attempt.model or "-"),
        tag("td", _word(attempt.status)),
        (tag("td", figure, class_="figure") for figure in figures),
        tag("td", _why(attempt), class_="why"),
    )


def _why(attempt: AttemptReport) -> Content:
    if attempt.reused_from:
        return f"reused from run {attempt.reused_from}"
    return _fold(f"{attempt.failure}: {attempt.error}", "Error") if attempt.failure else "-"


def _graph(plan: Plan) -> Html:
    # Inside a page the name space says nothing, and no address at all is easiest to check.
    drawing = draw(plan, "svg").replace(' xmlns="http://www.w3.org/2000/svg"', "", 1)
    box = _scrolling(trusted(drawing), "Graph of the steps", "graph")
    return _section("graph", "Graph", box)


def _inputs(report: Report) -> Html:
    if not report.inputs:
        return NOTHING
    pairs = join(
        tag("div", tag("dt", name), tag("dd", _value(report, value, f"Input {name}")))
        for name, value in report.inputs.items()
    )
    return _section("inputs", "Inputs", tag("dl", pairs, class_="inputs"))
