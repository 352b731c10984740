"""What a text of a recipe may refer to. In: a recipe and a place in its text. Out: References, each of
which the checker accepts there: inputs, loop variables, and what steps that do not wait for this one give.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msgspec import structs

from stretto.documents.node import ListNode, MapNode, Node, Path, ScalarNode
from stretto.plan.catalog import EMPTY_CATALOG, Catalog
from stretto.plan.check import ExaminedRecipe, examine
from stretto.plan.draft import EVERYWHERE, Draft, DraftStep, TemplateSite
from stretto.plan.edges import Edges, outcomes_of, stored_names
from stretto.plan.rules.templates import item_schema, known_names
from stretto.recipe.model import Recipe
from stretto.recipe.read import read_recipe
from stretto.templates.check import Known, KnownStep, check_reference, closed_at, schema_at
from stretto.templates.template import Fault, Template, parse_reference
from stretto.vocabulary.amounts import DEFAULT_LIMITS, Limits
from stretto.vocabulary.names import AgentId, StepId

ReferenceKind: TypeAlias = Literal["input", "step", "loop", "run"]
_DEEPEST = 3
_MOST = 2_000
_ANY_FIELD = "\N{REPLACEMENT CHARACTER}"  # no field has this name
_LOCALS = {
    "item": "the element",
    "index": "its number, from 0",
    "candidate": "the last output of the loop",
    "feedback": "the judge's reasons for its decision",
    "iteration": "which round it is, from 1",
}


@dataclass(frozen=True, slots=True)
class KnownReference:
    text: str  # what stands between the braces
    kind: ReferenceKind
    about: str


@dataclass(frozen=True, slots=True)
class ReferencesHere:
    where: str  # 'prompt of step draft'; empty: no text at that place is filled in
    is_expression: bool
    references: tuple[KnownReference, ...]


_NOTHING = ReferencesHere("", False, ())


def references_at(
    text: str,
    index: int,
    file: str = "",
    catalog: Catalog = EMPTY_CATALOG,
    limits: Limits = DEFAULT_LIMITS,
) -> ReferencesHere:
    found = _readable(text, index, file, limits)
    if found is None:
        return _NOTHING
    recipe, at, node = found
    # What the text refers to so far does not count, so one small reference takes its place: it can
    # be read as a template, as an expression, and as a set or a timeout that names inputs.
    word = '"{{inputs}}"'
    tail = "\n" if recipe.source.text[node.start] in "|>" else ""
    plain = recipe.source.text[: node.start] + word + tail + recipe.source.text[node.end :]
    examined = examine(read_recipe(plain, file, limits), catalog, limits)
    draft = examined.draft
    owners = list(_owners(draft, at))
    for drafted, site in owners:
        if site.at == at and drafted is not None and site in drafted.early:
            return _answer(at, drafted, site, _inputs(draft))
    return _of_sites(examined, at, owners)


def _readable(
    text: str, index: int, file: str, limits: Limits
) -> tuple[Recipe, Path, ScalarNode] | None:
    """The text, or what it is without the braces that are being written: `prompt: {{` is a mapping."""
    line_end = min(at for at in (text.find("\n", index), len(text)) if at >= 0)
    opened = text.rfind("{{", text.rfind("\n", 0, index) + 1, index)
    closed = text.find("}}", index, line_end)
    texts = [text]
    if opened >= 0:
        end = closed + 2 if closed >= 0 else index
        # A quote that is not closed yet is closed.
        texts += [f"{text[:opened]}x{quote}{text[end:]}" for quote in ("", '"', "'")]
    for each in texts:
        recipe = read_recipe(each, file, limits)
        at = index if each is text else opened
        place = _scalar_at(recipe.root, at) if recipe.root is not None else None
        if place is not None:
            return recipe, *place
    return None


def _scalar_at(node: Node, index: int, at: Path = ()) -> tuple[Path, ScalarNode] | None:
    if isinstance(node, ScalarNode):
        return at, node
    inner: list[tuple[str | int, Node]] = []
    if isinstance(node, MapNode):
        inner = list(node.entries.items())
    elif isinstance(node, ListNode):
        inner = list(enumerate(node.items))
    for key, each in inner:
        if each.start <= index <= each.end:
            found = _scalar_at(each, index, (*at, key))
            if found is not None:
                return found
    return None


def _owners(draft: Draft, at: Path) -> Iterator[tuple[DraftStep | None, TemplateSite]]:
    """The text, once for each step in which it is filled in; None: in no step."""
    for drafted in draft.steps:
        for site in (*drafted.sites, *drafted.later, *drafted.early):
            if site.at == at:
                yield drafted, site
    if draft.output is not None and draft.output.at == at:
        yield None, draft.output
    for site in draft.early:
        if site.at == at:
            yield None, site
    used = {use.agent for drafted in draft.steps for use in drafted.uses}
    for agent in draft.prompts:
        if agent not in used and (*draft.recipe.agents[AgentId(agent)].at, "prompt") == at:
            yield None, TemplateSite(at, draft.prompts[agent], EVERYWHERE)


def _of_sites(
    examined: ExaminedRecipe, at: Path, owners: list[tuple[DraftStep | None, TemplateSite]]
) -> ReferencesHere:
    if not owners:
        return _NOTHING
    draft = examined.draft
    drafted, site = owners[0]
    if site in draft.early:
        return _answer(at, drafted, site, _inputs(draft))
    known = known_names(draft, stored_names(draft))
    steps = set(known.steps)
    partly: set[str] = set()  # whose output would close a cycle, and nothing else of them
    local = site.local
    for each, place in owners:
        local &= place.local
        if each is not None:
            allowed, some = _sources(draft, examined.edges, each, place)
            steps, partly = steps & (allowed | some), partly | some
    if drafted is not None and "item" in local:
        known = structs.replace(known, item=item_schema(draft, drafted, site, known))
    known = structs.replace(known, local=local)
    offered = [*_inputs(draft), *_locals(known), *_steps(draft, known, steps, partly)]
    offered.append(KnownReference("run.id", "run", "the id of the run"))
    return _answer(at, drafted, site, _keep_valid(offered, known))


def _sources(
    draft: Draft, edges: Edges, owner: DraftStep, site: TemplateSite
) -> tuple[set[str], set[str]]:
    """The steps that do not wait for this one. Apart from them, conditions that may choose this step
    or one that waits for it: of these all may be used but the output."""
    waiting = _waiting_for(edges, owner.id)
    if site in owner.later:  # looked at when the step of its merge has ended
        before = _befores(edges, owner.step.merge_after) if owner.step.merge_after else set()
        return {str(id) for id in (before | {owner.id}) if not id.startswith("#")}, set()
    allowed = {str(id) for id in draft.step_ids() if id not in waiting}
    if site.may_name_itself:
        allowed.add(str(owner.id))
    some = {
        str(drafted.id)
        for drafted in draft.steps
        if str(drafted.id) in allowed
        and drafted.targets
        and not waiting.isdisjoint(outcomes_of(draft, drafted))
    }
    return allowed - some, some


def _waiting_for(edges: Edges, id: StepId) -> set[StepId]:
    """The step, and all that wait for it."""
    after: dict[StepId, list[StepId]] = {}
    for then, befores in edges.items():
        for before in befores:
            after.setdefault(before, []).append(then)
    return _find_reached(id, lambda each: after.get(each, []))


def _befores(edges: Edges, id: StepId) -> set[StepId]:
    return _find_reached(id, lambda each: list(edges.get(each, {})))


def _find_reached(id: StepId, next_of: Callable[[StepId], list[StepId]]) -> set[StepId]:
    seen, waiting = {id}, [id]
    while waiting:
        for each in next_of(waiting.pop()):
            if each not in seen:
                seen.add(each)
                waiting.append(each)
    return seen


def _inputs(draft: Draft) -> list[KnownReference]:
    return [
        KnownReference(
            f"inputs.{each.name}",
            "input",
            f"{each.type}: {each.description.strip()}" if each.description else each.type,
        )
        for each in draft.recipe.inputs
    ]


def _locals(known: Known) -> Iterator[KnownReference]:
    for name, about in _LOCALS.items():
        if name in known.local:
            yield KnownReference(name, "loop", about)
    if "item" in known.local:
        for field in _fields(known.item):
            yield KnownReference(f"item{field}", "loop", "a field of the element")


def _steps(
    draft: Draft, known: Known, steps: set[str], partly: set[str]
) -> Iterator[KnownReference]:
    for id in draft.step_ids():
        if str(id) not in steps:
            continue
        step, drafted = known.steps[id], draft.by_id[id]
        by = ", ".join(dict.fromkeys(str(use.agent) for use in drafted.uses)) or "a command"
        if str(id) not in partly:
            yield KnownReference(f"steps.{id}.output", "step", f"what {by} gives")
            if not step.is_text:
                for field in _fields(step.schema, "[0]" if step.is_list else ""):
                    yield KnownReference(f"steps.{id}.output{field}", "step", "a field of it")
            stored = drafted.step.output.store_as
            if stored:
                yield KnownReference(stored, "step", f"the output of {id}, as it is stored")
        if step.output_keys is not None:
            yield KnownReference(f"steps.{id}.outputs", "step", "the outputs of all branches")
        for key in step.output_keys or ():
            yield KnownReference(f"steps.{id}.outputs.{key}", "step", "the output of one branch")
        for facet, about in _facets(drafted, step):
            yield KnownReference(f"steps.{id}.{facet}", "step", about)


def _facets(drafted: DraftStep, step: KnownStep) -> Iterator[tuple[str, str]]:
    yield "status", "succeeded, failed, skipped, held or cancelled"
    yield "error", "why it failed"
    if hasattr(drafted.step.work, "validator"):
        yield "validation", "the last verdict of the loop"
    if step.is_condition:
        yield "chosen", "the step or the agent that it chose"
    if step.has_change:
        yield "diff", "what it changed in files"
        yield "files", "the paths that it changed"


def _fields(schema: object, path: str = "", depth: int = 0) -> Iterator[str]:
    """`.name`, `.items[0].id`: as far as the schema says."""
    for name in _names(schema):
        yield f"{path}.{name}"
        below = schema_at(schema, (name,))
        if depth < _DEEPEST:
            yield from _fields(below, f"{path}.{name}", depth + 1)
            yield from _fields(schema_at(below, (0,)), f"{path}.{name}[0]", depth + 1)


def _names(schema: object) -> tuple[str, ...]:
    closed = closed_at(schema, (_ANY_FIELD,))
    if closed is not None:
        return closed.names if closed.kind == "an object" else ()
    named = schema.get("properties") if isinstance(schema, Mapping) else None
    return tuple(map(str, named)) if isinstance(named, Mapping) else ()


def _keep_valid(offered: list[KnownReference], known: Known) -> list[KnownReference]:
    """The checker has the last word, also about fields with names that no path can have."""
    good: dict[str, KnownReference] = {}
    for each in offered[:_MOST]:
        reference = parse_reference(each.text)
        if not isinstance(reference, Fault) and check_reference(reference, known) is None:
            good.setdefault(each.text, each)
    return list(good.values())


def _answer(
    at: Path, drafted: DraftStep | None, site: TemplateSite, offered: list[KnownReference]
) -> ReferencesHere:
    key = next((str(part) for part in reversed(at) if isinstance(part, str)), "")
    owner = f" of step {drafted.id}" if drafted is not None else ""
    if "agents" in at[:-2]:
        owner = f" of agent {at[at.index('agents') + 1]}"
    return ReferencesHere(key + owner, not isinstance(site.parsed, Template), tuple(offered))
