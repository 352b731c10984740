"""The report as one HTML page. In: Report, and the Plan to draw. Out: a page that needs nothing.

No script, no request, and a policy that allows neither: the page can be mailed and opened
anywhere. What models said is text in it, or Markdown that can do no harm, never markup.
"""

import re
from collections.abc import Iterator, Sequence
from importlib.resources import files

from stretto.plan.model import Plan
from stretto.report.conclusion import NextCommand, conclusion_of
from stretto.report.diagrams import draw_run
from stretto.report.markup import NOTHING, Content, Html, join, tag, trusted
from stretto.report.model import Issue, PathStep, Report
from stretto.report.page_parts import (
    beginning,
    command,
    facts,
    folded,
    muted,
    room_of_step,
    scrolling,
    section,
    show_answer,
    show_value,
    status_class,
    word,
)
from stretto.report.step_section import StepSections, Transcripts
from stretto.report.text import (
    calls_of,
    cost_of,
    length,
    moment,
    run_time,
    status_word,
    tokens,
    uses_of,
)
from stretto.report.timeline import chart
from stretto.text.visible import one_line
from stretto.vocabulary.statuses import UNFINISHED, RunStatus, StepStatus

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'none'; "
    "base-uri 'none'; form-action 'none'"
)
_MOST_LINKS = 8
_MOST_OPEN_LEGS = 12
_MOST_OPEN_ISSUES = 12
_MOST_OPEN_BOXES = 40  # a larger graph is folded
# A graph that is wider than its place shrinks to this part of its size, and then scrolls.
_SMALLEST_SCALE = 0.75
_GRAVE = ("failed", "waiting", "stopped")


def as_html(report: Report, plan: Plan | None = None, logs: Transcripts | None = None) -> str:
    """`logs`: what was said and done in each attempt."""
    sections = dict(_sections(report, plan, logs or {}))
    title = f"{report.workflow}: {status_word(report.status)}"
    links = (tag("li", tag("a", name, href=f"#{id}")) for id, name in _NAMES if id in sections)
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
            tag("nav", tag("ul", links), aria_label="Sections"),
            tag("main", (sections[id] for id, _ in _NAMES if id in sections), id="report"),
            tag("footer", f"Run {report.run_id}. All times are UTC."),
        ),
        lang="en",
    )
    return f"<!doctype html>\n{page}\n"


# The sections in their order.
_NAMES = (
    ("answer", "Answer"),
    ("issues", "Issues and warnings"),
    ("graph", "Graph"),
    ("steps", "Steps"),
    ("timeline", "Timeline"),
    ("critical-path", "Critical path"),
    ("inputs", "Inputs"),
)


def _sections(report: Report, plan: Plan | None, logs: Transcripts) -> Iterator[tuple[str, Html]]:
    names = dict(_NAMES)
    contents: dict[str, Content] = {
        "answer": _answer(report),
        "issues": _issues(report),
        "graph": _graph(report, plan) if plan is not None else NOTHING,
        "steps": _steps(report, logs),
        "critical-path": _critical_path(report),
        "inputs": _inputs(report),
    }
    for id, content in contents.items():
        if content is not NOTHING:
            yield id, section(id, names[id], content)
    if timeline := chart(report):
        yield "timeline", timeline


def _style() -> str:
    return files("stretto.report").joinpath("page.css").read_text(encoding="utf-8")


def _header(report: Report) -> Html:
    found = conclusion_of(report)
    told = [tag("p", found.says, class_="says")]
    if found.advice:
        told.append(tag("p", tag("b", "What to do: "), found.advice))
    if found.commands:
        told.append(tag("ul", map(_next, found.commands), class_="next"))
    told += _ways_to_failures(report)
    return tag(
        "header",
        tag("p", "Workflow execution report", class_="kind"),
        tag("h1", one_line(report.workflow)),
        tag(
            "div",
            # A run waits for a person; a step that waits does so for other steps.
            word(report.status, "?" if report.status == RunStatus.WAITING else ""),
            tag("div", told),
            class_=f"conclusion {status_class(report.status)}",
        ),
        facts(_figures(report), "tiles"),
        tag("p", (tag("span", fact) for fact in _facts(report)), class_="facts"),
    )


def _ways_to_failures(report: Report) -> Iterator[Html]:
    places = _places(report)
    failed = [step.id for step in report.steps if step.status == StepStatus.FAILED]
    links = [tag("a", id, href=places[id]) for id in failed[:_MOST_LINKS]]
    if links:
        yield tag("p", "In full below: ", join(_separate(links)))


def _separate(links: Sequence[Html]) -> Iterator[Content]:
    for number, link in enumerate(links):
        yield from (", ", link) if number else (link,)


def _next(each: NextCommand) -> Html:
    return tag("li", command(each.command), " ", tag("span", each.does, class_="muted"))


def _facts(report: Report) -> Iterator[str]:
    yield f"Run {report.run_id}"
    if report.started_at is not None:
        yield f"started {moment(report.started_at)}"
    if report.ended_at is not None:
        yield f"ended {moment(report.ended_at)}"
    elif report.started_at is not None:
        yield f"as of {moment(report.as_of)}"
    if report.parent:
        yield f"continues run {report.parent}"
    if report.trigger:
        yield f"started by {report.trigger}"


def _figures(report: Report) -> Iterator[tuple[str, str]]:
    left_out = report.count(StepStatus.SKIPPED, StepStatus.HELD, StepStatus.CANCELLED)
    counts = [
        (report.count(StepStatus.SUCCEEDED), "succeeded"),
        (report.count(StepStatus.FAILED), "failed"),
        (left_out, "not run"),
        (report.count(*UNFINISHED), "not ended"),
    ]
    yield "Time", run_time(report)
    yield "Tokens", tokens(report.usage)
    yield "Cost", cost_of(report.usage, uses_of(report.steps))
    yield (
        f"Steps: {', '.join(f'{n:,} {word}' for n, word in counts if n)}",
        f"{len(report.steps):,}",
    )
    yield "Agents deployed", f"{report.agents_deployed:,}"
    yield "Retries", f"{report.retries:,}"
    if report.calls.made:
        made, _, not_done = calls_of(report.calls).partition(" ")
        yield f"Tool calls {not_done}".strip(), made


def _answer(report: Report) -> Content:
    if report.output is None:
        return muted(
            "The run has none so far." if report.ended_at is None else "The run gave none."
        )
    return show_answer(report.output, "Answer", f"stretto output {report.run_id}")


def _issues(report: Report) -> Content:
    if not report.issues:
        return muted("None.")
    places = _places(report)
    items = tag("ul", (_issue(issue, places) for issue in report.issues), class_="issues")
    is_long = len(report.issues) > _MOST_OPEN_ISSUES
    return scrolling(items, "Issues and warnings") if is_long else items


def _places(report: Report) -> dict[str, str]:
    return {step.id: f"#step-{number}" for number, step in enumerate(report.steps)}


def _issue(issue: Issue, places: dict[str, str]) -> Html:
    place = places.get(issue.step)
    step = tag("a", issue.step, href=place) if place else issue.step
    grave = "grave" if issue.kind in _GRAVE else "light"
    kind = tag("span", issue.kind, class_=f"tagged {grave}")
    where = tag("b", step, ": ") if issue.step else NOTHING
    return tag("li", kind, tag("div", where, beginning(issue.says, "the whole text")))


def _graph(report: Report, plan: Plan) -> Html:
    box = _drawing(report, plan, is_expanded=False)
    drawn = sum(step.inside is None for step in plan.steps)
    if drawn > _MOST_OPEN_BOXES:
        box = folded(f"The graph of {drawn:,} steps", box)
    if drawn == len(plan.steps):
        return box
    inner = _drawing(report, plan, is_expanded=True)
    return join([box, folded(f"With the steps of its workflows: {len(plan.steps):,}", inner)])


def _drawing(report: Report, plan: Plan, is_expanded: bool) -> Html:
    statuses = {step.id: step.status for step in report.steps}
    drawing = draw_run(plan, statuses, _places(report), is_expanded=is_expanded)
    # Inside a page the name space says nothing, and no address at all is easiest to check.
    drawing = drawing.replace(' xmlns="http://www.w3.org/2000/svg"', "", 1)
    width = re.search(r' width="(\d+)"', drawing)
    least = f"min-width:{int(width[1]) * _SMALLEST_SCALE:.0f}px" if width else False
    name = "Graph of all steps" if is_expanded else "Graph of the steps"
    return scrolling(tag("div", trusted(drawing), style=least), name, "graph")


def _steps(report: Report, logs: Transcripts) -> Html:
    sections = StepSections(report, logs, room_of_step(report))
    each = (sections.of(number, step) for number, step in enumerate(report.steps))
    return tag("div", each, class_="steps")


def _critical_path(report: Report) -> Html:
    path = report.critical_path
    if len(path) < 2:
        return NOTHING
    longest = max(max(step.duration_seconds, step.waited_seconds) for step in path)
    legs = (leg for step in path for leg in _legs(step, longest, report.duration_seconds))
    says = "The run took as long as these, one after the other: a shorter one shortens the run."
    chain = tag("ol", legs, class_="path")
    is_long = len(path) > _MOST_OPEN_LEGS
    return join([muted(says), scrolling(chain, "Critical path") if is_long else chain])


def _legs(step: PathStep, longest: float, total: float) -> Iterator[Html]:
    waited = tag("span", f"waiting for {step.waited_for}", class_="muted")
    name = tag("b", step.step)
    if step.waited_seconds:
        yield _leg(waited, step.waited_seconds, longest, total, "wait")
    elif step.waited_for:
        # It waited for the step above it, so the wait is a part of that step's time.
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


def _inputs(report: Report) -> Html:
    if not report.inputs:
        return NOTHING
    room, rest = room_of_step(report), f"stretto events {report.run_id}"
    pairs = (
        (name, show_value(value, f"Input {name}", room, rest))
        for name, value in report.inputs.items()
    )
    return facts(pairs, "inputs")
