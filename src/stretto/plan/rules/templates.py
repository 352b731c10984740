"""Every reference can be known before the run: inputs, steps, outputs, fields, loop variables.

What is written and never used is a warning.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias, cast

from msgspec import structs

from stretto.documents.node import Path
from stretto.plan.draft import EVERYWHERE, Draft, DraftStep, TemplateSite
from stretto.plan.edges import stored_names
from stretto.recipe.model import (
    Condition,
    Delegation,
    Loop,
    Map,
    Parallel,
    RecipeUse,
    ShellCommand,
    Step,
    Switch,
)
from stretto.templates.check import (
    Known,
    KnownStep,
    check_reference,
    element_schema,
    is_status,
    prose_fault,
    schema_at,
    status_fault,
)
from stretto.templates.template import Fault, Reference, Template, parse_reference
from stretto.validation.combined_schema import combine_schemas
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import is_function
from stretto.vocabulary.names import AgentId, StepId

_SINGLE_BRACES = re.compile(r"(?<!\{)\$?\{(\s*(inputs|steps)\.([\w-]+)[^{}\0]{0,200})\}(?!\})")


def check_references(draft: Draft) -> None:
    known = known_names(draft, stored_names(draft))
    told: set[tuple[object, ...]] = set()
    good: _GoodReferences = {}
    for drafted in draft.steps:
        for site in (*drafted.sites, *drafted.later):
            item = item_schema(draft, drafted, site, known) if "item" in site.local else None
            _check_site(
                draft, site, structs.replace(known, item=item) if item else known, told, good
            )
    for agent in _unused_agents(draft):
        at = (*draft.recipe.agents[agent].at, "prompt")
        _check_site(draft, TemplateSite(at, draft.prompts[agent], EVERYWHERE), known, told, good)
    if draft.output is not None:
        _check_site(draft, draft.output, known, told, good)


def check_early(draft: Draft) -> None:
    """Sets and timeouts are known before the run exists, so they may name inputs and nothing else."""
    known = Known(inputs={declared.name: declared.type for declared in draft.recipe.inputs})
    sites = [site for drafted in draft.steps for site in drafted.early]
    for site in (*draft.early, *sites):
        for reference in site.located:
            fault = check_reference(reference, known)
            if reference.path[0] != "inputs":
                names = ", ".join(f"{{{{inputs.{name}}}}}" for name in known.inputs)
                fault = Fault(
                    "RCP206",
                    f"'{reference.text}' is not known before the run",
                    f"a set or a timeout may name inputs only: {names or 'declare one'}",
                    reference.offset,
                    len(reference.text),
                )
            if fault is not None:
                draft.problem_inside(site.at, site.parsed.text, fault)


# References that were found good before, by the names that may be used where they stand: the steps
# of a layer refer to the same ones. With the schema of `item`: kept, no other gets its identity.
_GoodReferences: TypeAlias = dict[tuple[object, ...], tuple[object, set[str]]]


def _check_site(
    draft: Draft,
    site: TemplateSite,
    known: Known,
    told: set[tuple[object, ...]],
    good: _GoodReferences,
) -> None:
    _, good_here = good.setdefault((site.local, id(known.item)), (known.item, set()))
    if {each.text for each in site.references} <= good_here:
        return
    here = known if site.local == known.local else structs.replace(known, local=site.local)
    if all(_is_good(reference, here, good_here) for reference in site.references):
        return
    for reference in site.located:
        fault = check_reference(reference, here)
        # An unknown step or input may well be the one whose name cannot be read.
        is_nameless = (
            fault is not None
            and (
                (fault.code == "RCP203" and draft.has_nameless_step)
                or (fault.code in ("RCP202", "RCP207") and draft.has_nameless_input)
                # `for_each:` was meant for a map, in which there is an item.
                or (fault.code == "RCP206" and draft.has_unknown_key(site.at[:-1]))
            )
        )
        if fault is None or is_nameless:
            continue
        # A prompt that two steps share has its fault once.
        key = (site.at, fault.code, fault.offset)
        if key not in told:
            told.add(key)
            fault = _quote_word(fault, reference, site)
            draft.problem_inside(site.at, site.parsed.text, fault)


def _is_good(reference: Reference, known: Known, good: set[str]) -> bool:
    if reference.text in good:
        return True
    if check_reference(reference, known) is not None:
        return False
    good.add(reference.text)
    return True


def _quote_word(fault: Fault, reference: Reference, site: TemplateSite) -> Fault:
    """`category == hot`: a lone word in an expression that is no name is most likely a text."""
    is_lone = len(reference.path) == 1 and not isinstance(site.parsed, Template)
    is_told = fault.hint.startswith(("did you mean", "write steps."))
    if fault.code != "RCP207" or not is_lone or is_told:
        return fault
    number = reference.text.replace("_", "")
    if number.isdigit():
        return structs.replace(fault, hint=f"write {number}")
    return structs.replace(fault, hint=f"put a text in quotes: '{reference.text}'")


def item_schema(draft: Draft, drafted: DraftStep, site: TemplateSite, known: Known) -> object:
    """What is known of `item` there: an element of the list, or what the stage before gives."""
    work, over = drafted.step.work, draft.parsed.get((*drafted.step.at, "map", "over"))
    if not isinstance(work, Map) or not isinstance(over, Template):
        return None
    stage = next((n for n, each in enumerate(work.stages) if _is_in(site.at, each.at)), 0)
    if stage:
        agent = work.stages[stage - 1].agent
        return _schema_of(draft, agent) if agent else None
    is_told_here = _is_in(site.at, drafted.step.at) or not work.stages
    if not is_told_here or len(over.references) != 1:
        return None
    return element_schema(over.references[0], known)


def _is_in(at: Path, outer: Path) -> bool:
    return at[: len(outer)] == outer


def _unused_agents(draft: Draft) -> list[AgentId]:
    used = {use.agent for drafted in draft.steps for use in drafted.uses}
    return [agent for agent in draft.prompts if agent not in used]


def known_names(draft: Draft, stored: Mapping[str, StepId], finds_prose: bool = False) -> Known:
    """`finds_prose`: also whose output is free text, which takes a look at every prompt."""
    return Known(
        inputs={declared.name: declared.type for declared in draft.recipe.inputs},
        steps={id: _known_step(draft, draft.by_id[id], finds_prose) for id in draft.step_ids()},
        stored=dict(stored),
        local=frozenset(),
    )


def _known_step(draft: Draft, drafted: DraftStep, finds_prose: bool) -> KnownStep:
    step = drafted.step
    schema = step.output.schema
    has_change = drafted.posture == "writer" and step.workspace_mode != "shared"
    is_text = step.output.format in ("text", "markdown")
    match step.work:
        case Parallel():
            return KnownStep(
                tuple(step.work.output_keys),
                has_change=has_change,
                branches=_known_branches(draft, step.work, finds_prose),
            )
        case Delegation(agent) | Loop(agent):
            schema = combine_schemas(_schema_of(draft, agent), schema) if agent else schema
            is_prose = finds_prose and schema is None
            is_prose = is_prose and _is_prose(draft, step, agent, step.instruction)
            is_loop = isinstance(step.work, Loop)
            return KnownStep(
                None, schema, False, is_text, has_change, is_loop=is_loop, is_prose=is_prose
            )
        case Map(reduce=reduce) if reduce:
            schema = combine_schemas(_schema_of(draft, reduce), schema)
            is_prose = finds_prose and schema is None and _is_prose(draft, step, reduce)
            return KnownStep(None, schema, False, is_text, has_change, is_prose=is_prose)
        case Map() if schema is None:
            known = _known_elements(draft, step, step.work, finds_prose)
            return known._replace(is_text=is_text, has_change=has_change)
        case Condition() | Switch():
            known = KnownStep(None, schema, False, is_text, has_change, is_condition=True)
            return known._replace(targets=tuple(name for _, name in drafted.targets))
        case RecipeUse():
            return draft.inner_outputs.get(step.id, KnownStep())
        case ShellCommand():
            is_stdout = schema is None and step.output.format != "json"
            return KnownStep(None, schema, False, is_text, has_change, is_stdout=is_stdout)
        case _:
            pass
    return KnownStep(None, schema, False, is_text, has_change)


def _known_branches(draft: Draft, work: Parallel, finds_prose: bool) -> dict[str, KnownStep]:
    known: dict[str, KnownStep] = {}
    for key, branch in zip(work.output_keys, work.branches, strict=True):
        schema = _schema_of(draft, branch.agent) if branch.agent else None
        is_prose = finds_prose and schema is None
        is_prose = is_prose and _is_prose(draft, None, branch.agent, branch.instruction)
        known[key] = KnownStep(schema=schema, is_prose=is_prose)
    return known


def _known_elements(draft: Draft, step: Step, work: Map, finds_prose: bool) -> KnownStep:
    last = work.stages[-1].agent if work.stages else work.agent
    item = _schema_of(draft, last) if last else None
    texts = (step.instruction, work.instruction, *(each.instruction for each in work.stages))
    is_prose = finds_prose and item is None and _is_prose(draft, step, last, *texts)
    return KnownStep(schema=item, is_list=True, is_prose=is_prose)


# A text that shows JSON, or names it, asks for it.
_ASKS_FOR_JSON = re.compile(r"""(?i)json|yaml|[{\[]\s*["']""")


def _is_prose(
    draft: Draft, step: Step | None, agent: AgentId | None, *instructions: str | None
) -> bool:
    """Whether nothing asks an agent for JSON: neither format nor rules nor the words that it gets."""
    found = draft.agent(agent) if agent else None
    if found is None or is_function(found.model) or (step and step.output.format == "json"):
        return False
    # What comes from elsewhere may ask for anything.
    texts = [text for text in (found.prompt, found.role, *instructions) if text]
    if any(_ASKS_FOR_JSON.search(text) for text in texts):
        return False
    if not found.validation.rules:
        return True
    # On use: it loads all that rules need.
    from stretto.validation.implied_schema import implied_schema

    return implied_schema(found.validation.rules) is None


def known_output(draft: Draft) -> KnownStep:
    """What is known of the output of a whole recipe, for the recipes that use it as a step."""
    stored = stored_names(draft)
    known = known_names(draft, stored)
    if draft.output is not None:
        written = draft.output.parsed.parts if isinstance(draft.output.parsed, Template) else ()
        parts = [each for each in written if isinstance(each, Reference) or each.strip()]
        alone = parts[0] if len(parts) == 1 else None
        return _known_value(alone, known) if isinstance(alone, Reference) else KnownStep()
    if draft.recipe.dialect.name == "structural":
        fields = {str(id): _as_field(known.steps[id]) for id in draft.step_ids()}
        return KnownStep(schema={"properties": fields, "additionalProperties": False})
    may_skip = any(
        each.step.when is not None or isinstance(each.step.work, Condition | Switch)
        for each in draft.steps
    )
    if may_skip or not draft.steps:
        return KnownStep()  # the last step that ran gives the output, and it is not known which one
    return _as_output(known.steps[draft.steps[-1].step.id])


def _known_value(reference: Reference, known: Known) -> KnownStep:
    path = reference.path
    is_stored = path[0] in known.stored
    if not is_stored and (path[0] != "steps" or path[2:3] != ("output",)):
        return KnownStep()
    step = known.steps.get(known.stored[str(path[0])] if is_stored else str(path[1]), KnownStep())
    fields = path[1 if is_stored else 3 :]
    if not fields:
        return _as_output(step)
    if step.is_text or step.is_list or step.output_keys is not None:
        return KnownStep()
    below = schema_at(step.schema, fields)
    return KnownStep(schema=below if isinstance(below, Mapping) and _is_whole(below) else None)


def _as_output(step: KnownStep) -> KnownStep:
    """The same value as the output of a workflow step, which has no branches and no copy."""
    if step.output_keys is not None:
        fields = dict.fromkeys(step.output_keys, True)
        return KnownStep(schema={"properties": fields, "additionalProperties": False})
    return KnownStep(None, step.schema, step.is_list, step.is_text)


def _as_field(step: KnownStep) -> object:
    schema = _as_output(step).schema
    is_known = schema is not None and _is_whole(schema) and not step.is_text
    items = schema if is_known else True
    return {"type": "array", "items": items} if step.is_list and not step.is_text else items


def _is_whole(schema: Mapping[str, object]) -> bool:
    """Whether it means the same wherever it stands. Its $refs start at the root of what it was in."""
    waiting, seen = [cast(object, schema)], set[int]()
    while waiting:
        value = waiting.pop()
        # What was joined on the way to a field may hold one schema in many places.
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Mapping):
            if "$ref" in value:
                return False
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
    return True


def _schema_of(draft: Draft, id: AgentId) -> Mapping[str, Json] | None:
    agent = draft.agent(id)
    return agent.validation.schema if agent else None


def check_statuses(draft: Draft) -> None:
    """`steps.a.status == 'success'` is always false."""
    for at, parsed in draft.parsed.items():
        if not isinstance(parsed, Template) and "status" in parsed.text:
            from stretto.templates.expression import words_beside  # on use, as in draft.py

            for word in words_beside(parsed.tree, is_status):
                start = max(parsed.text.find(f"'{word}'"), parsed.text.find(f'"{word}"'), 0)
                fault = status_fault(word, start, len(word) + 2)
                if fault is not None:
                    draft.problem_inside(at, parsed.text, fault)
    for step in draft.recipe.steps:
        value = draft.parsed.get((*step.at, "switch", "value"))
        if isinstance(step.work, Switch) and value and is_status(getattr(value, "tree", None)):
            for case in step.work.cases:
                fault = status_fault(case, 0, 0)
                if fault is not None:
                    at = (*step.at, "switch", "cases", case)
                    draft.problem_at(fault.code, at, fault.message, fault.hint)


def check_lists(draft: Draft) -> None:
    for step in draft.recipe.steps:
        match step.work:
            case Map():
                at = (*step.at, "map", "over")
                parsed = draft.parsed.get(at)
                if isinstance(parsed, Template) and not _is_list(parsed, draft, at):
                    is_bare = parsed.is_literal and parsed.text.startswith(("steps.", "inputs."))
                    meant = parsed.text.strip() if is_bare else "steps.split.output.chunks"
                    hint = f'{"write" if is_bare else "for example"} "{{{{{meant}}}}}"'
                    message = "'over' must be one reference to a list"
                    draft.problem_at("RCP212", at, message, hint)
            case Loop(feedback_path=str() as path):
                at = (*step.at, "loop", "feedback_path")
                if feedback_reference(path) is None and not draft.has_problem_below(at):
                    draft.problem_at(
                        "RCP212",
                        at,
                        "'feedback_path' must be one reference",
                        f'for example "{{{{steps.{step.id}.output.feedback}}}}"',
                    )
            case _:
                pass


def _is_list(template: Template, draft: Draft, at: Path) -> bool:
    if len(template.references) == 1:
        words = [part for part in template.parts if isinstance(part, str)]
        return not "".join(words).strip()
    if not template.is_literal or draft.has_problem_below(at):
        return draft.has_problem_below(at)
    try:
        return isinstance(json.loads(template.text), list)
    except (ValueError, RecursionError):
        return False


def feedback_reference(written: str) -> Reference | None:
    """The path inside the braces, or a bare one: `feedback` is the verdict's field."""
    text = written.strip()
    if text.startswith("{{") and text.endswith("}}"):
        text = text[2:-2].strip()
    reference = parse_reference(text)
    return None if isinstance(reference, Fault) else reference


def warn_prose(draft: Draft) -> None:
    """`steps.a.output.score`, where nothing tells `a` to answer in JSON."""
    known, stored = None, stored_names(draft)
    told: set[tuple[object, ...]] = set()
    for site in _sites(draft):
        if not any(
            (len(each.path) > 2 and not each.is_whole_output) or each.path[0] in stored
            for each in site.references
        ):
            continue
        known = known or known_names(draft, stored, finds_prose=True)
        for reference in site.located:
            fault = _default_fault(draft, reference) or prose_fault(reference, known)
            # What a loop feeds back is its verdict, and not its own output.
            is_verdict = site.at[-1] == "feedback_path"
            if fault is not None and not is_verdict and (site.at, fault.offset) not in told:
                told.add((site.at, fault.offset))
                draft.warning_inside(site.at, site.parsed.text, fault)


def _default_fault(draft: Draft, reference: Reference) -> Fault | None:
    """`inputs.rows.length`, where the input is a list unless the user gives something else."""
    path = reference.path
    if path[0] != "inputs" or len(path) < 3 or not isinstance(path[2], str):
        return None
    declared = next((each for each in draft.recipe.inputs if each.name == path[1]), None)
    if declared is None or not (isinstance(declared.default, list) or declared.shape == "array"):
        return None
    name, (offset, width) = f"inputs.{path[1]}", reference.span(2)
    message = f"'{name}' is a list, as it is declared, and has no field '{path[2]}'"
    hint = f"write size({name}), in an expression such as when:, or {name}[0].{path[2]}"
    return Fault("RCP910", message, hint, offset, width)


_USE = "use it, or remove it"


def warn_unused(draft: Draft) -> None:
    _warn_unused_agents(draft)
    _warn_unused_inputs(draft, _warn_single_braces(draft) | _warn_no_braces(draft))
    _warn_marks_of_others(draft)


def _warn_single_braces(draft: Draft) -> set[str]:
    """`{inputs.topic}` is no reference: a model would get it as it stands. Out: the inputs so named."""
    names: dict[str, set[str]] = {
        "inputs": {each.name for each in draft.recipe.inputs},
        "steps": {drafted.step.id for drafted in draft.steps},
    }
    told: set[tuple[Path, str]] = set()
    meant: set[str] = set()
    for site in _sites(draft):
        text = site.parsed.text
        # Counted first, which is quick: few texts have a brace that stands alone.
        if not isinstance(site.parsed, Template) or text.count("{") == 2 * text.count("{{"):
            continue
        literals = site.parsed.parts
        for found in _SINGLE_BRACES.finditer("\0".join(map(_literal, literals))):
            written, kind, name = found.group(0, 2, 3)
            if name not in names[kind] or (site.at, written) in told:
                continue
            told.add((site.at, written))
            meant |= {name} if kind == "inputs" else set()
            message = f"'{written}' has single braces, so a model gets it as it stands"
            hint = f"write {{{{{found.group(1).strip()}}}}}"
            offset = max(0, site.parsed.text.find(written))
            fault = Fault("RCP907", message, hint, offset, len(written))
            draft.warning_inside(site.at, site.parsed.text, fault)
    return meant


_BARE_PATH = re.compile(r"(steps|inputs)\.([\w-]+)(?:\.[\w-]+|\[[0-9]+\])*")


def _warn_no_braces(draft: Draft) -> set[str]:
    """`input: steps.a.output` is text, and no reference. Out: the inputs so named."""
    steps, stored = {drafted.step.id for drafted in draft.steps}, stored_names(draft)
    inputs = {str(each.name) for each in draft.recipe.inputs}
    meant: set[str] = set()
    for site in _sites(draft):
        text = site.parsed.text.strip()
        is_text = isinstance(site.parsed, Template) and site.at[-1] not in ("over", "feedback_path")
        if not is_text or " " in text or "{{" in text:
            continue
        found = _BARE_PATH.fullmatch(text)
        named = found is not None and found[2] in (steps if found[1] == "steps" else inputs)
        if named or text in stored:
            meant |= {found[2]} if found and found[1] == "inputs" else set()
            message = f"'{text}' has no braces, so it is text and nothing is filled in"
            fault = Fault("RCP907", message, f"write {{{{{text}}}}}", 0, len(text))
            draft.warning_inside(site.at, site.parsed.text, fault)
    return meant


_BLOCK = re.compile(r"\{%.{0,80}?%\}", re.DOTALL)
# Where a dollar before a value is likely to be the currency.
_MONEY = re.compile(r"(?i)price|cost|usd|dollar|amount|budget|fee|salary|revenue|total|spend")


def _warn_marks_of_others(draft: Draft) -> None:
    """`${{ inputs.topic }}` and `{% if … %}` mean something elsewhere: here a model gets them."""
    kinds = {str(each.name): str(each.type) for each in draft.recipe.inputs}
    told: set[tuple[Path, str]] = set()
    for site in _sites(draft):
        text = site.parsed.text
        if not isinstance(site.parsed, Template) or ("${{" not in text and "{%" not in text):
            continue
        for fault in (*_dollars(site.parsed, kinds), *_blocks(text)):
            if (site.at, fault.message) not in told:
                told.add((site.at, fault.message))
                draft.warning_inside(site.at, text, fault)


def _dollars(parsed: Template, kinds: Mapping[str, str]) -> Iterator[Fault]:
    before: str | Reference = ""
    for part in parsed.parts:
        if isinstance(part, Reference) and isinstance(before, str) and before.endswith("$"):
            is_number = part.path[0] == "inputs" and kinds.get(str(part.path[-1])) == "number"
            if not is_number and not _MONEY.search(part.text):
                message = f"the '$' before '{{{{{part.text}}}}}' stays, so a model gets it too"
                hint = f"write {{{{{part.text}}}}} without it"
                found = re.search(r"\$\{\{\s*" + re.escape(part.text), parsed.text)
                yield Fault("RCP907", message, hint, found.start() if found else 0)
        before = part


def _blocks(text: str) -> Iterator[Fault]:
    for found in _BLOCK.finditer(text):
        message = f"'{found[0][:40]}' is no part of a template, so a model gets it as it stands"
        hint = "write when: in a step of its own, or say it in words"
        yield Fault("RCP907", message, hint, found.start(), len(found[0]))
        return  # where one stands there are more, and all are one slip


def _literal(part: str | Reference) -> str:
    return part if isinstance(part, str) else ""


def _sites(draft: Draft) -> Iterator[TemplateSite]:
    for drafted in draft.steps:
        yield from drafted.sites
        yield from drafted.later
        yield from drafted.early
    yield from draft.early
    if draft.output:
        yield draft.output


def _warn_unused_agents(draft: Draft) -> None:
    used = {agent.id for drafted in draft.steps for agent in drafted.agents}
    for agent in draft.recipe.agents.values():
        if agent.id not in used:
            draft.warning_at("RCP903", agent.at, f"no step uses agent '{agent.id}'", _USE)


def _warn_unused_inputs(draft: Draft, meant: set[str]) -> None:
    """`meant`: those about which more has been said already."""
    names = {declared.name for declared in draft.recipe.inputs}
    unused: set[object] = {name for name in names if name not in meant}
    for site in _sites(draft):
        if not unused:
            return
        for reference in site.references:
            path = reference.path
            unused.discard(path[1] if path[0] == "inputs" else path[0])
    for declared in draft.recipe.inputs:
        if declared.name in unused:
            draft.warning_at("RCP903", declared.at, f"nothing uses input '{declared.name}'", _USE)
