"""What is written and has no effect: warnings, never problems."""

from weft.plan.draft import Draft
from weft.plan.edges import Graph, all_sayings, fallbacks
from weft.vocabulary.ids import StepId

_USE = "use it, or remove it"


def check(draft: Draft, graph: Graph) -> None:
    _agents(draft)
    _inputs(draft)
    _lonely_followers(draft, graph)


def _agents(draft: Draft) -> None:
    used = set()
    for drafted in draft.steps:
        for use in drafted.uses:
            used |= {use.agent, *fallbacks(draft, drafted, use.agent)}
    for agent in draft.recipe.agents.values():
        if agent.id not in used:
            draft.warn("RCP903", agent.at, f"no step uses agent '{agent.id}'", _USE)


def _inputs(draft: Draft) -> None:
    named: set[object] = set()
    for drafted in draft.steps:
        for saying in all_sayings(draft, drafted):
            for reference in saying.references:
                named.add(reference.path[1] if reference.path[0] == "inputs" else reference.path[0])
    for reference in draft.output.references if draft.output else ():
        named.add(reference.path[1] if reference.path[0] == "inputs" else reference.path[0])
    for declared in draft.recipe.inputs:
        if declared.name not in named:
            draft.warn("RCP903", declared.at, f"nothing uses input '{declared.name}'", _USE)


def _lonely_followers(draft: Draft, graph: Graph) -> None:
    """In the wrapped dialect a step after two routed ones follows only the last of them."""
    routed = {
        id
        for id, edges in graph.edges.items()
        if any(edge.reason == "routed" for edge in edges.values())
    }
    for drafted in draft.steps:
        edges = graph.before(drafted.id).values()
        if drafted.id in routed or not edges:
            continue
        if all(edge.before in routed and edge.reason == "listed before" for edge in edges):
            before = next(iter(edges)).before
            siblings = _siblings(graph, before)
            if len(siblings) > 1:
                draft.warn(
                    "RCP904",
                    drafted.step.at,
                    f"step '{drafted.id}' follows only '{before}' and is skipped when the "
                    "route goes elsewhere",
                    f"write depends_on: [{', '.join(siblings)}] to run either way",
                )


def _siblings(graph: Graph, routed: StepId) -> list[StepId]:
    """Every step that the same conditions choose among, in listing order."""
    routers = {edge.before for edge in graph.before(routed).values() if edge.reason == "routed"}
    return [
        id
        for id in graph.edges
        if any(
            edge.reason == "routed" and edge.before in routers for edge in graph.before(id).values()
        )
    ]
