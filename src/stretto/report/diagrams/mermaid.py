"""Draw a plan for mermaid. In: a Diagram. Out: a flowchart, its labels quoted and escaped.

A step with parts is a subgraph and links go to and from it, but a route leaves from the decision.
"""

from collections.abc import Iterator, Mapping

from stretto.report.diagrams.shape import Box, Diagram, Role
from stretto.text.short import fit_name

_LONGEST_LINE = 60
# Letters of any script, and what has no meaning to mermaid, markdown or HTML. A dot has: "1. "
# would start a list, which mermaid refuses to draw.
_SAFE = frozenset(" _-,:=()?'!+/…×")
# Opening and closing marks of a shape.
_BOX, _GATE, _DECISION, _MANY = ("[", "]"), ("{{", "}}"), ("{", "}"), ("[[", "]]")
_SHAPES: Mapping[Role, tuple[str, str]] = {"test": _DECISION, "judge": _DECISION, "stage": _MANY}


def render(graph: Diagram, width: int) -> str:
    lines = ["flowchart TD"]
    for node in graph.nodes:
        lines += (f"    {line}" for line in _node(node))
    for link in graph.links:
        label = f'|"{escaped(link.label)}"|' if link.label else ""
        before = graph.nodes[link.before]
        start = _decision_id(before) if link.label else _id(before)
        lines.append(f"    {start} -->{label} {_id(graph.nodes[link.after])}")
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    return "".join(c if c.isalnum() or c in _SAFE else f"#{ord(c)};" for c in text)


def _id(node: Box) -> str:
    return f"n{node.number}"


def _part_ids(node: Box) -> list[str]:
    return [f"{_id(node)}p{place}" for place in range(1, len(node.parts) + 1)]


def _decision_id(node: Box) -> str:
    return f"{_id(node)}if" if node.parts else _id(node)


def _node(node: Box) -> Iterator[str]:
    shape = _DECISION if node.kind == "conditional" else _GATE if node.is_gated else _BOX
    title = _label(node.title, node.agent, *_notes(node))
    if not node.parts:
        yield _draw_node(_id(node), title, shape)
        return
    # Mermaid keeps one line free for a heading, and lays parts out across its own direction.
    yield f"subgraph {_id(node)}[{_label(' '.join([node.title, *_notes(node)]))}]"
    yield f"    direction {'LR' if node.kind in ('loop', 'map') else 'TB'}"
    yield from (f"    {line}" for line in _inside(node))
    yield "end"


def _notes(node: Box) -> Iterator[str]:
    if node.over:
        yield f"× each of {node.over}"
    yield from (f"({note})" for note in node.notes)


def _inside(node: Box) -> Iterator[str]:
    if node.kind == "conditional":
        yield _draw_node(_decision_id(node), _label("?"), _DECISION)
    ids = _part_ids(node)
    for id, part in zip(ids, node.parts, strict=True):
        yield _draw_node(id, _label(part.title, part.agent), _SHAPES.get(part.role, _BOX))
        if part.role == "choice":
            yield f'{_decision_id(node)} -->|"{escaped(part.label)}"| {id}'
    if node.kind in ("loop", "map"):
        yield " --> ".join(ids)
    if node.kind == "loop":
        label = f"FAIL: feedback, max {node.limit} iterations"
        yield f'{ids[-1]} -.->|"{label}"| {ids[0]}'


def _label(*lines: str) -> str:
    return (
        '"' + "<br/>".join(escaped(fit_name(line, _LONGEST_LINE)) for line in lines if line) + '"'
    )


def _draw_node(id: str, label: str, shape: tuple[str, str]) -> str:
    return f"{id}{shape[0]}{label}{shape[1]}"
