"""Nothing waits for itself. A cycle is spelt out, once, from its first listed step."""

from collections import deque
from collections.abc import Iterator

from stretto.plan.draft import Draft
from stretto.plan.edges import DraftEdge, Graph
from stretto.templates.fault import Fault
from stretto.vocabulary.ids import StepId


def check(draft: Draft, graph: Graph) -> None:
    told: set[StepId] = set()
    while left := _unorderable(graph, told):
        cycle = _first_cycle(graph, left)
        _say(draft, graph, cycle)
        # Take this cycle out and look again: two cycles are two problems, told apart.
        told.update(cycle)


def _first_cycle(graph: Graph, left: set[StepId]) -> list[StepId]:
    # Some of `left` only stand behind a cycle; the first listed one that is on it is the start.
    cycles = (_shortest_cycle(graph, id, left) for id in graph.edges if id in left)
    return next(cycle for cycle in cycles if cycle)


def _unorderable(graph: Graph, gone: set[StepId]) -> set[StepId]:
    """Steps on a cycle or behind one: what is left once everything orderable is taken away."""
    waiting = {id: {b for b in edges if b not in gone} for id, edges in graph.edges.items()}
    after: dict[StepId, list[StepId]] = {}
    for id, edges in graph.edges.items():
        for before in edges:
            after.setdefault(before, []).append(id)
    ready = deque(id for id, edges in waiting.items() if not edges and id not in gone)
    left = set(waiting) - gone
    while ready:
        id = ready.popleft()
        left.discard(id)
        for dependent in after.get(id, ()):
            if dependent in left and id in waiting[dependent]:
                waiting[dependent].remove(id)
                if not waiting[dependent]:
                    ready.append(dependent)
    return left


def _shortest_cycle(graph: Graph, start: StepId, within: set[StepId]) -> list[StepId] | None:
    """Backwards over the edges from `start` to itself; listed in the order of running."""
    came_from: dict[StepId, StepId] = {}
    queue = deque([start])
    while queue:
        id = queue.popleft()
        for before in graph.before(id):
            if before == start:
                return _walk(came_from, start, id)
            if before in within and before not in came_from:
                came_from[before] = id
                queue.append(before)
    return None


def _walk(came_from: dict[StepId, StepId], start: StepId, last: StepId) -> list[StepId]:
    # came_from leads from a step to the one that waits for it, so this runs forwards.
    path = [last]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return [start, *path[:-1]]


def _say(draft: Draft, graph: Graph, cycle: list[StepId]) -> None:
    spelt = " → ".join([*cycle, cycle[0]])
    edges = list(_edges(graph, cycle))
    for edge in edges:
        if edge.reason == "reference" and edge.saying and edge.reference:
            itself = len(cycle) == 1
            message = (
                f"step '{cycle[0]}' refers to itself"
                if itself
                else f"this reference closes a cycle: {spelt}"
            )
            hint = "a template can use only steps that have ended before"
            reference = edge.reference
            fault = Fault("RCP211", message, hint, reference.offset, len(reference.text))
            draft.say_inside(edge.saying.at, edge.saying.parsed.text, fault)
            return
    written = next((edge for edge in edges if edge.reason == "written"), edges[0])
    if len(cycle) == 1:
        draft.say("RCP106", written.at, f"step '{cycle[0]}' waits for itself: {spelt}", "remove it")
        return
    draft.say(
        "RCP106",
        written.at,
        f"these steps wait for each other: {spelt}",
        "remove one of the dependencies",
    )


def _edges(graph: Graph, cycle: list[StepId]) -> Iterator[DraftEdge]:
    for before, id in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        yield graph.before(id)[before]
