"""Draw a plan, or a run of it. In: a Plan, and a format or the steps' states. Out: the drawing."""

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Literal, Protocol, TypeAlias, cast, get_args

from stretto.plan.model import Plan
from stretto.report.diagrams.shape import Diagram, drawn_steps, graph_of

DiagramFormat: TypeAlias = Literal["ascii", "mermaid", "dot", "svg"]
FORMATS: tuple[DiagramFormat, ...] = get_args(DiagramFormat)


class _Drawer(Protocol):
    def render(self, graph: Diagram, width: int) -> str: ...


def draw(plan: Plan, format: DiagramFormat, width: int = 80, *, is_expanded: bool = False) -> str:
    """`width` is in columns, and matters to the one format that is made of them. `is_expanded`: with
    the steps of workflow steps."""
    # Only the format that is asked for is imported: `stretto graph` should start at once.
    drawer = cast(_Drawer, import_module(f"stretto.report.diagrams.{format}"))
    return drawer.render(graph_of(plan, is_expanded), width)


def draw_run(
    plan: Plan,
    statuses: Mapping[str, str],
    links: Mapping[str, str],
    *,
    is_expanded: bool = False,
) -> str:
    """As SVG: each step with its state, and with a link where `links` has one for it."""
    from stretto.report.diagrams.svg import render

    graph = graph_of(plan, is_expanded)
    nodes = (
        replace(node, status=statuses.get(step.id, ""), link=links.get(step.id, ""))
        for node, step in zip(graph.nodes, drawn_steps(plan, is_expanded), strict=True)
    )
    return render(replace(graph, nodes=tuple(nodes)), 0)
