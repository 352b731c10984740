"""What is written and has no effect: warnings, never problems."""

from itertools import chain

from stretto.plan.draft import Draft

_USE = "use it, or remove it"


def check(draft: Draft) -> None:
    _agents(draft)
    _inputs(draft)


def _agents(draft: Draft) -> None:
    used = {agent.id for drafted in draft.steps for agent in drafted.agents}
    for agent in draft.recipe.agents.values():
        if agent.id not in used:
            draft.warning_at("RCP903", agent.at, f"no step uses agent '{agent.id}'", _USE)


def _inputs(draft: Draft) -> None:
    unused: set[object] = {declared.name for declared in draft.recipe.inputs}
    sites = (site for drafted in draft.steps for site in drafted.sites)
    for site in chain(sites, (draft.output,) if draft.output else ()):
        if not unused:
            return
        for reference in site.references:
            path = reference.path
            unused.discard(path[1] if path[0] == "inputs" else path[0])
    for declared in draft.recipe.inputs:
        if declared.name in unused:
            draft.warning_at("RCP903", declared.at, f"nothing uses input '{declared.name}'", _USE)
