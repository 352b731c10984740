"""Draw a plan. In: a Plan and a format. Out: the drawing as text."""

from importlib import import_module
from typing import Literal, Protocol, TypeAlias, cast, get_args

from stretto.plan.model import Plan
from stretto.report.diagrams.shape import Diagram, graph_of

DiagramFormat: TypeAlias = Literal["ascii", "mermaid", "dot", "svg"]
FORMATS: tuple[DiagramFormat, ...] = get_args(DiagramFormat)


class _Drawer(Protocol):
    def render(self, graph: Diagram, width: int) -> str: ...


def draw(plan: Plan, format: DiagramFormat, width: int = 80) -> str:
    """`width` is in columns, and matters to the one format that is made of them."""
    # Only the format that is asked for is imported: `stretto graph` should start at once.
    drawer = cast(_Drawer, import_module(f"stretto.report.diagrams.{format}"))
    return drawer.render(graph_of(plan), width)
