"""What is written and has no effect: warnings, never problems."""

from stretto.plan.draft import Draft
from stretto.plan.edges import all_sayings, fallbacks

_USE = "use it, or remove it"


def check(draft: Draft) -> None:
    _agents(draft)
    _inputs(draft)


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
