"""Every reference can be known: inputs, steps, outputs, fields, loop variables (RECIPES §5)."""

from stretto.plan.draft import EVERYWHERE, Draft, Saying
from stretto.plan.edges import all_sayings, stored_names
from stretto.plan.known import known_names
from stretto.templates.check import Known, check_reference
from stretto.vocabulary.ids import AgentId


def check(draft: Draft) -> None:
    known = known_names(draft, stored_names(draft))
    told: set[tuple[object, ...]] = set()
    for drafted in draft.steps:
        for saying in (*all_sayings(draft, drafted), *drafted.later):
            _check(draft, saying, known, told)
    for agent in _unused(draft):
        at = (*draft.recipe.agents[agent].at, "prompt")
        _check(draft, Saying(at, draft.prompts[agent], EVERYWHERE), known, told)
    if draft.output is not None:
        _check(draft, draft.output, known, told)


def _check(draft: Draft, saying: Saying, known: Known, told: set[tuple[object, ...]]) -> None:
    here = Known(known.inputs, known.steps, known.stored, saying.local)
    for reference in saying.references:
        fault = check_reference(reference, here)
        # An unknown step may well be the one whose id cannot be read.
        if fault is None or (fault.code == "RCP203" and draft.has_nameless_step):
            continue
        # A prompt that two steps share has its fault once.
        key = (saying.at, fault.code, fault.offset)
        if key not in told:
            told.add(key)
            draft.say_inside(saying.at, saying.parsed.text, fault)


def _unused(draft: Draft) -> list[AgentId]:
    used = {use.agent for drafted in draft.steps for use in drafted.uses}
    return [agent for agent in draft.prompts if agent not in used]
