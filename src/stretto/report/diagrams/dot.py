"""Draw a plan for Graphviz. In: a Diagram. Out: a digraph, its labels quoted and escaped.

A step with parts is a cluster. Graphviz links nodes, so a link to a cluster is one to a part that
is cut off at its border.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stretto.report.diagrams.shape import Box, Diagram, Role
from stretto.text.short import fit_name

_LONGEST_LINE = 60
_OPENING = """digraph {name} {{
    graph [compound=true, fontname="Helvetica", fontsize=11, nodesep=0.3, ranksep=0.45];
    node [shape=box, style=rounded, fontname="Helvetica", fontsize=11, margin="0.15,0.08"];
    edge [fontname="Helvetica", fontsize=10, arrowsize=0.7];"""
_SHAPES: Mapping[Role, str] = {"judge": "diamond", "test": "diamond", "stage": "box3d"}


def render(graph: Diagram, width: int) -> str:
    lines = [_OPENING.format(name=quoted(graph.name))]
    for node in graph.nodes:
        lines += (f"    {line}" for line in _node(node))
    for link in graph.links:
        before, after = _ends(graph.nodes[link.before]), _ends(graph.nodes[link.after])
        start = before.decision if link.label else before.exit
        cut = {
            "label": link.label,
            "ltail": "" if link.label else before.cluster,
            "lhead": after.cluster,
        }
        lines.append(f"    {start} -> {after.entry}{_attributes(cut)};")
    return "\n".join([*lines, "}"]) + "\n"


def quoted(*lines: str) -> str:
    r"""`\N` and `&lt;` mean something to Graphviz, so backslash and ampersand are escaped too."""
    escaped = (
        line.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for line in lines
    )
    return '"' + "\\n".join(escaped) + '"'


@dataclass(frozen=True, slots=True)
class _Ends:
    """Where links meet a step."""

    entry: str
    exit: str
    decision: str
    cluster: str = ""


def _ends(node: Box) -> _Ends:
    own = f"n{node.number}"
    if not node.parts:
        return _Ends(own, own, own)
    parts = _part_ids(node)
    cluster = f"cluster_{node.number}"
    if node.kind == "conditional":
        return _Ends(own, parts[-1], own, cluster)
    middle = parts[len(parts) // 2]
    if node.kind == "parallel":
        return _Ends(middle, middle, middle, cluster)
    return _Ends(parts[0], parts[-1], parts[0], cluster)


def _part_ids(node: Box) -> list[str]:
    return [f"n{node.number}p{place}" for place in range(1, len(node.parts) + 1)]


def _node(node: Box) -> Iterator[str]:
    notes = [f"({note})" for note in node.notes]
    if node.over:
        notes.insert(0, f"× each of {node.over}")
    if not node.parts:
        kind = "diamond" if node.kind == "conditional" else "hexagon" if node.is_gated else ""
        yield _draw_node(f"n{node.number}", kind, node.title, node.agent, *notes)
        return
    yield f"subgraph cluster_{node.number} {{"
    yield f"    label={_label(node.title, *notes)}; style=rounded;"
    yield from (f"    {line}" for line in _inside(node))
    yield "}"


def _inside(node: Box) -> Iterator[str]:
    if node.kind == "conditional":
        yield _draw_node(f"n{node.number}", "diamond", "?")
    ids = _part_ids(node)
    for id, part in zip(ids, node.parts, strict=True):
        yield _draw_node(id, _SHAPES.get(part.role, ""), part.title, part.agent)
        if part.role == "choice":
            yield f"n{node.number} -> {id}{_attributes({'label': part.label})};"
    if node.kind in ("loop", "map") and len(ids) > 1:
        yield " -> ".join(ids) + ";"
    if node.kind == "loop":
        label = quoted("FAIL: feedback", f"max {node.limit} iterations")
        # Written forwards and drawn backwards: otherwise there would be no room for the label.
        yield f"{ids[0]} -> {ids[-1]} [label={label}, style=dashed, dir=back];"


def _draw_node(id: str, shape: str, *lines: str) -> str:
    # Only boxes have corners to round.
    kind = f", shape={shape}, style=solid" if shape else ""
    return f"{id} [label={_label(*lines)}{kind}];"


def _label(*lines: str) -> str:
    return quoted(*(fit_name(line, _LONGEST_LINE) for line in lines if line))


def _attributes(values: Mapping[str, str]) -> str:
    written = [f"{key}={quoted(value)}" for key, value in values.items() if value]
    return f" [{', '.join(written)}]" if written else ""
