"""Plans and reports as values that draw themselves: in a notebook, as text, as JSON.

What models said is text in all of these, or Markdown that can do no harm, never markup.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from html import escape
from typing import TYPE_CHECKING, Any

from stretto.events.model import Event
from stretto.plan.model import Plan
from stretto.problems import Problem
from stretto.report.model import Report
from stretto.text.short import counted
from stretto.vocabulary.json_value import Json

if TYPE_CHECKING:
    from stretto.execution.history import History

_FRAME = '<iframe sandbox srcdoc="{}" style="width:100%;height:32em;border:0"></iframe>'


@dataclass(frozen=True, slots=True, repr=False)
class DryRun:
    """What a run would do: its steps in order, their prompts as far as they are known, its cost."""

    workflow: str
    inputs: Mapping[str, Json]
    warnings: tuple[Problem, ...]
    waves: tuple[tuple[str, ...], ...]  # steps that may start together, if all took equally long
    json: Mapping[str, Any]  # all of it, as `stretto plan --json` prints it
    plan: Plan

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(step.id for step in self.plan.steps)

    def draw(self, format: str = "ascii", width: int = 80) -> str:
        """ascii, mermaid, dot or svg."""
        from stretto.problems.errors import InvalidUsage
        from stretto.report.diagrams import FORMATS, draw

        for known in FORMATS:
            if known == format:
                return draw(self.plan, known, width)
        raise InvalidUsage(f"there is no format '{format}'", hint=f"one of {', '.join(FORMATS)}")

    def __repr__(self) -> str:
        return f"<stretto.DryRun of {self.workflow}: {counted(len(self.plan.steps), 'step')}>"

    def __str__(self) -> str:
        return self.draw()

    def _repr_svg_(self) -> str:
        return self.draw("svg")

    def _repr_html_(self) -> str:
        return _frame(f"<title>{escape(self.workflow)}</title>{self.draw('svg')}")

    def _repr_markdown_(self) -> str:
        return f"```text\n{self.draw().replace('```', '` ` `')}\n```"


@dataclass(frozen=True, slots=True, repr=False)
class RunReport(Report):
    """What a run did, as a value: `status`, `output`, `steps["brief"].output`, `issues`, `usage`."""

    plan: Plan | None = None
    # What the transcripts on the page are made of, and what hides secrets in them.
    events: tuple[Event, ...] = field(default=(), compare=False)
    hide: Callable[[str], str] = field(default=str, compare=False)

    def markdown(self) -> str:
        from stretto.report.markdown import as_markdown

        return as_markdown(self)

    def html(self) -> str:
        """One page that needs nothing else: no script, no request."""
        from stretto.report.html import as_html
        from stretto.report.transcript import transcripts

        logs = transcripts(self.plan, self.events) if self.plan else {}
        return self.hide(as_html(self, self.plan, logs))

    def json(self) -> dict[str, Any]:
        """As `stretto report --json` prints it."""
        from stretto.report.json_form import report_as_json

        return report_as_json(self)

    def __repr__(self) -> str:
        return f"<stretto.RunReport of {self.workflow}: {self.status}>"

    def __str__(self) -> str:
        return self.markdown()

    def _repr_svg_(self) -> str | None:
        """The graph, with how each step stands."""
        from stretto.report.diagrams import draw_run

        statuses = {step.id: step.status for step in self.steps}
        return draw_run(self.plan, statuses, {}) if self.plan else None

    def _repr_html_(self) -> str:
        # A link within the page would otherwise load the notebook itself into the frame. The
        # page's policy forbids every base that comes after it.
        return _frame(self.html().replace("<head>", '<head><base href="about:srcdoc">', 1))

    def _repr_markdown_(self) -> str:
        # A notebook may take HTML in markdown as it is.
        return self.markdown().replace("&", "&amp;").replace("<", "&lt;")


def view_of(report: Report, history: "History", hide: Callable[[str], str]) -> RunReport:
    values = {each.name: getattr(report, each.name) for each in fields(report)}
    return RunReport(**values, plan=history.state.plan, events=history.events, hide=hide)


def _frame(page: str) -> str:
    """A page of its own: its style does not reach the notebook, and no script in it can run."""
    return _FRAME.format(escape(page, quote=True))
