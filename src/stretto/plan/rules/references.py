"""Every reference can be known: inputs, steps, outputs, fields, loop variables (RECIPES §5)."""

from stretto.plan.draft import EVERYWHERE, Draft, TemplateSite
from stretto.plan.edges import stored_names
from stretto.plan.known import known_names
from stretto.templates.check import Known, check_reference
from stretto.vocabulary.ids import AgentId


def check(draft: Draft) -> None:
    known = known_names(draft, stored_names(draft))
    told: set[tuple[object, ...]] = set()
    good: set[tuple[object, ...]] = set()
    for drafted in draft.steps:
        for site in (*drafted.sites, *drafted.later):
            _check(draft, site, known, told, good)
    for agent in _unused(draft):
        at = (*draft.recipe.agents[agent].at, "prompt")
        _check(draft, TemplateSite(at, draft.prompts[agent], EVERYWHERE), known, told, good)
    if draft.output is not None:
        _check(draft, draft.output, known, told, good)


def _check(
    draft: Draft,
    site: TemplateSite,
    known: Known,
    told: set[tuple[object, ...]],
    good: set[tuple[object, ...]],
) -> None:
    """`good`: references that were found good before; the steps of a layer name the same ones."""
    new = [each for each in site.references if (each.text, site.local) not in good]
    here = Known(known.inputs, known.steps, known.stored, site.local) if new else known
    for reference in new:
        fault = check_reference(reference, here)
        if fault is None:
            good.add((reference.text, site.local))
        # An unknown step may well be the one whose id cannot be read.
        if fault is None or (fault.code == "RCP203" and draft.has_nameless_step):
            continue
        # A prompt that two steps share has its fault once.
        key = (site.at, fault.code, fault.offset)
        if key not in told:
            told.add(key)
            draft.problem_inside(site.at, site.parsed.text, fault)


def _unused(draft: Draft) -> list[AgentId]:
    used = {use.agent for drafted in draft.steps for use in drafted.uses}
    return [agent for agent in draft.prompts if agent not in used]
