"""Change the steps of a recipe in its text. In: a Recipe and a StepEdit. Out: the new text, or a refusal.

Comments, quotes, order and keys that nobody asked about stay byte for byte. What comes out was read again
and means what was asked for and nothing else; where the text is written in a way that does not allow that,
it is refused, and the author changes it by hand.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeAlias

from stretto.documents.node import ListNode, MapNode, Node, Path, ScalarNode, find, plain
from stretto.documents.text_changes import Change, WrittenText, apply_changes
from stretto.plan.catalog import EMPTY_CATALOG, Catalog
from stretto.plan.draft import Draft, asks_for_all_prior, make_draft
from stretto.plan.edges import Edges, cause_of, connect
from stretto.plan.rules.graph import check_cycles
from stretto.plan.rules.templates import feedback_reference
from stretto.problems import Problem
from stretto.problems.errors import InvalidUsage, NotFound, StepInUse
from stretto.recipe.model import Loop, Recipe, Step
from stretto.recipe.read import read_recipe
from stretto.templates.template import Reference
from stretto.vocabulary.amounts import DEFAULT_LIMITS, Limits
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import AgentId, StepId, is_id

_BY_HAND = "change it in the text"
_UNREADABLE = ("RCP201", "RCP209", "RCP210")  # of a text that may name any step
_TWICE = ("RCP012",)  # keys of which the tree of nodes has only the first
_UNREAD = (*_TWICE, "RCP010", "RCP011", "RCP014")  # and anchors, merge keys and tags
_NEW_ID = "use letters, digits, '-' and '_'"


@dataclass(frozen=True, slots=True)
class ConnectSteps:
    """`step` is to wait for `before`."""

    before: str
    step: str


@dataclass(frozen=True, slots=True)
class DisconnectSteps:
    before: str
    step: str


@dataclass(frozen=True, slots=True)
class AddStep:
    id: str
    agent: str
    instruction: str
    depends_on: tuple[str, ...] = ()
    after: str | None = None  # None: the last one


@dataclass(frozen=True, slots=True)
class DuplicateStep:
    step: str
    id: str


@dataclass(frozen=True, slots=True)
class RemoveStep:
    step: str
    is_forced: bool = False  # although others name it


@dataclass(frozen=True, slots=True)
class RenameStep:
    step: str
    id: str


StepEdit: TypeAlias = (
    ConnectSteps | DisconnectSteps | AddStep | DuplicateStep | RemoveStep | RenameStep
)


@dataclass(frozen=True, slots=True)
class _Mention:
    """Where a step's name stands in the value at a path."""

    at: Path
    offset: int
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class _Edit:
    """What changes in the text, and what the recipe says then."""

    changes: list[Change]
    wanted: Json


def change_steps(
    recipe: Recipe,
    change: StepEdit,
    catalog: Catalog = EMPTY_CATALOG,
    limits: Limits = DEFAULT_LIMITS,
) -> str:
    """Raises InvalidUsage, NotFound, and StepInUse for a step that others name."""
    if not isinstance(recipe.root, MapNode):
        first = next(iter(recipe.problems), None)
        hint = f"line {first.place.line}: {first.message}" if first and first.place else _BY_HAND
        raise InvalidUsage("the text cannot be read as it is, so it is not changed", hint=hint)
    before = _Steps(recipe, catalog, limits)
    edit = _edit(before, change)
    text = apply_changes(recipe.source.text, edit.changes)
    after = _Steps(read_recipe(text, recipe.source.file, limits), catalog, limits)
    if after.recipe.root is None or _spell(after.content()) != _spell(edit.wanted):
        raise _unsafe("this part of the text is written in a way that cannot be changed safely")
    _check(before, after, change)
    return text


def _spell(value: Json) -> str:
    return json.dumps(value)  # 1 is not true here, and the order of keys counts


def _unsafe(message: str) -> InvalidUsage:
    return InvalidUsage(message, hint=_BY_HAND)


class _Steps:
    """A recipe, its text and its edges."""

    def __init__(self, recipe: Recipe, catalog: Catalog, limits: Limits) -> None:
        self.recipe = recipe
        self.draft: Draft = make_draft(recipe, catalog, limits)
        self.edges: Edges = connect(self.draft)
        text = recipe.source.text
        is_json = recipe.source.file.endswith(".json") or _looks_like_json(text)
        self.written = WrittenText(text, is_json)

    @property
    def root(self) -> MapNode:
        assert isinstance(self.recipe.root, MapNode)
        return self.recipe.root

    def step(self, id: str) -> Step:
        found = [each for each in self.recipe.steps if each.id == id]
        if not found:
            raise NotFound(f"there is no step '{id[:100]}'")
        if len(found) > 1:
            raise _unsafe(f"two steps have the id '{id}'")
        return found[0]

    def node(self, step: Step) -> MapNode:
        node = find(self.root, step.at)
        assert isinstance(node, MapNode)
        return node

    def list_of(self, step: Step) -> ListNode:
        many = find(self.root, step.at[:-1])
        assert isinstance(many, ListNode)
        return many

    def check_read(self, step: Step, codes: Collection[str] = _UNREAD) -> None:
        """Raises InvalidUsage for a step with an unread part: it cannot be copied or removed."""
        node, source = self.node(step), self.recipe.source
        for problem in self.recipe.problems:
            if problem.code in codes and problem.place:
                line, column = problem.place.line, problem.place.column
                if node.start <= source.index_of(line, column) <= node.end:
                    raise _unsafe(
                        f"step '{step.id}' has a part that cannot be read, line {line}: {problem.message}"
                    )

    def line(self, at: Path) -> int:
        return self.recipe.source.place_of(find(self.root, at)).line

    def content(self) -> Any:
        """A copy of what the recipe says. A last line without a break says the same as one with it."""
        source = self.recipe.source
        if source.text.endswith("\n"):
            return plain(self.root)
        ended = read_recipe(source.text + "\n", source.file)
        return plain(ended.root) if ended.root is not None else None

    def check_new_id(self, id: str) -> None:
        if not is_id(id) or len(id) > 100:
            raise InvalidUsage(f"'{id[:100]}' is not a name for a step", hint=_NEW_ID)
        if id in self.draft.by_id:
            raise InvalidUsage(f"there is a step '{id}' already", hint="choose another name")


def _looks_like_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _edit(steps: _Steps, change: StepEdit) -> _Edit:
    match change:
        case ConnectSteps():
            return _connect(steps, change)
        case DisconnectSteps():
            return _disconnect(steps, change)
        case AddStep():
            return _add(steps, change)
        case DuplicateStep():
            return _duplicate(steps, change)
        case RemoveStep():
            return _remove(steps, change)
        case RenameStep():
            return _rename(steps, change)


# --- edges ---------------------------------------------------------------------------------


def _connect(steps: _Steps, change: ConnectSteps) -> _Edit:
    step, before = steps.step(change.step), steps.step(change.before)
    if step.id == before.id:
        raise InvalidUsage(f"step '{step.id}' cannot wait for itself")
    reason = steps.edges[step.id].get(before.id)
    if reason is not None:
        hint = "" if reason == "written" else _because(steps, before.id, step.id)
        raise InvalidUsage(f"step '{step.id}' waits for '{before.id}' already", hint=hint)
    befores = [*_find_unwritten(steps, step), before.id]
    content, node = steps.content(), steps.node(step)
    inside = _at(content, step.at)
    there = node.entries.get("depends_on")
    if there is None:
        return _write_dependencies(steps, step, befores)
    if isinstance(there, ListNode):
        inside["depends_on"].append(before.id)
        return _Edit(steps.written.add_item(there, len(there.items), before.id), content)
    if step.depends_on:
        befores = [step.depends_on[0], before.id]
    inside["depends_on"] = befores
    return _Edit(steps.written.replace(there, _flow_list(steps, befores)), content)


def _find_unwritten(steps: _Steps, step: Step) -> list[str]:
    """What a step waits for only as long as it has no depends_on."""
    if step.depends_on is not None:
        return []
    reasons = steps.edges[step.id].items()
    return [id for id, reason in reasons if reason in ("listed before", "context")]


def _write_dependencies(steps: _Steps, step: Step, befores: Sequence[str]) -> _Edit:
    """A depends_on where there is none."""
    if step.depends_on is not None:
        raise _unsafe(f"step '{step.id}' says what it waits for under another key")
    node = steps.node(step)
    anchors = ("agent", "subagent", "type", "id")
    anchor = next((key for key in anchors if key in node.entries), None)
    if anchor is None:  # its id stands under another key, which was guessed
        raise _unsafe(f"step '{step.id}' has no key 'id'")
    content = steps.content()
    inside = _at(content, step.at)
    entries = list(inside.items())
    place = list(inside).index(anchor) + 1
    inside.clear()
    inside.update([*entries[:place], ("depends_on", list(befores)), *entries[place:]])
    value = _flow_list(steps, befores)
    return _Edit(steps.written.add_entry(node, "depends_on", value, anchor), content)


def _flow_list(steps: _Steps, ids: Sequence[str]) -> str:
    return f"[{', '.join(map(steps.written.word, ids))}]"


def _disconnect(steps: _Steps, change: DisconnectSteps) -> _Edit:
    step, before = steps.step(change.step), steps.step(change.before)
    reason = steps.edges[step.id].get(before.id)
    if reason is None:
        raise InvalidUsage(f"step '{step.id}' does not wait for '{before.id}'")
    if before.id in (step.depends_on or ()):
        content = steps.content()
        return _Edit(_forget(steps, step, before.id, _at(content, step.at)), content)
    unwritten = _find_unwritten(steps, step)
    if before.id not in unwritten:
        raise _unsafe(_because(steps, before.id, step.id))
    return _write_dependencies(steps, step, [id for id in unwritten if id != before.id])


def _forget(steps: _Steps, step: Step, before: str, inside: dict[str, Any]) -> list[Change]:
    """Take a step out of the depends_on of another one; `inside` is changed alike."""
    node = steps.node(step)
    there = node.entries.get("depends_on")
    if there is None:
        raise _unsafe(f"step '{step.id}' says what it waits for under another key")
    if isinstance(there, ListNode) and len(there.items) > 1:
        index = next(n for n, item in enumerate(there.items) if _word(item) == before)
        del inside["depends_on"][index]
        return steps.written.remove_item(there, index)
    # Without the key a step may wait for others: for the one listed before it, say.
    is_chained = steps.recipe.dialect.chains_steps or _is_told_all(steps, step)
    gone = [] if is_chained else steps.written.remove_entry(node, "depends_on")
    if gone:
        del inside["depends_on"]
        return gone
    inside["depends_on"] = []
    if isinstance(there, ListNode) and steps.written.is_flow(there):
        return steps.written.remove_item(there, 0)
    if isinstance(there, ListNode) and steps.written.has_comment(there.start, there.end):
        raise _unsafe(f"a comment stands in the depends_on of step '{step.id}'")
    if isinstance(there, ListNode):  # a list of lines: the brackets go behind the key
        key = node.keys["depends_on"].end
        colon = steps.recipe.source.text.index(":", key) + 1
        if steps.written.has_comment(colon, there.start):
            raise _unsafe(f"a comment stands in the depends_on of step '{step.id}'")
        return [Change(colon, steps.written.end_of(there), " []")]
    return steps.written.replace(there, "[]")


def _is_told_all(steps: _Steps, step: Step) -> bool:
    return asks_for_all_prior(step) is not None


def _because(steps: _Steps, before: StepId, id: StepId) -> str:
    cause = cause_of(steps.draft, steps.edges, before, id)
    line = f"line {steps.line(cause.at)}"
    match cause.reason:
        case "reference" if cause.reference is not None:
            return f"'{id}' waits for '{before}' because it uses {cause.reference.text}, {line}"
        case "routed":
            return f"'{id}' waits for '{before}', which chooses it, {line}"
        case "context":
            return f"'{id}' is told all prior context, {line}"
        case "listed before":
            return f"'{id}' follows '{before}', which is listed before it"
    return f"'{id}' waits for '{before}', {line}"


# --- steps ---------------------------------------------------------------------------------


def _add(steps: _Steps, change: AddStep) -> _Edit:
    steps.check_new_id(change.id)
    if not steps.recipe.steps:
        raise _unsafe("there is no step yet beside which one could be written")
    for before in change.depends_on:
        steps.step(before)
    beside = steps.step(change.after) if change.after else steps.recipe.steps[-1]
    steps.check_read(beside, _TWICE)  # where it ends is not known then
    many = steps.list_of(beside)
    index = int(beside.at[-1]) + 1 if change.after else len(many.items)
    dialect = steps.recipe.dialect
    item: dict[str, Json] = {"id": change.id, dialect.agent_key: change.agent}
    if change.depends_on:
        item["depends_on"] = list(change.depends_on)
    if change.instruction:
        item[dialect.instruction_key] = change.instruction
    content = steps.content()
    _at(content, beside.at[:-1]).insert(index, item)
    return _Edit(steps.written.add_item(many, index, item), content)


def _duplicate(steps: _Steps, change: DuplicateStep) -> _Edit:
    step = steps.step(change.step)
    steps.check_new_id(change.id)
    steps.check_read(step)
    many, index = steps.list_of(step), int(step.at[-1])
    copied = deepcopy(_at(steps.content(), step.at))
    changes: list[Change] = []
    for mention in _mentions(steps, step.id):
        if mention.at[: len(step.at)] == step.at:
            changes += _rename_mention(steps, mention, step.id, change.id)
            _put(copied, mention, step.at, change.id, len(step.id))
    stored = step.output.store_as
    if stored:  # two steps cannot keep their outputs under one name
        at = (*step.at, "output", "store_as")
        new = _free_name(steps, stored)
        changes += _rename_mention(steps, _Mention(at, 0, True), stored, new)
        copied["output"]["store_as"] = new
    content = steps.content()
    _at(content, step.at[:-1]).insert(index + 1, copied)
    return _Edit(steps.written.copy_item(many, index, changes), content)


def _free_name(steps: _Steps, stored: str) -> str:
    taken = {each.output.store_as for each in steps.recipe.steps}
    return next(name for n in range(2, 1000) if (name := f"{stored}_{n}") not in taken)


def _remove(steps: _Steps, change: RemoveStep) -> _Edit:
    step = steps.step(change.step)
    others = [each for each in _mentions(steps, step.id) if each.at[: len(step.at)] != step.at]
    if others and not change.is_forced:
        raise StepInUse(
            f"step '{step.id}' is used by other parts of the recipe",
            [_use(steps, each, step) for each in others],
        )
    steps.check_read(step)
    many, index = steps.list_of(step), int(step.at[-1])
    if len(many.items) == 1:
        raise InvalidUsage("a recipe has at least one step", hint="add another one first")
    content = steps.content()
    changes = steps.written.remove_item(many, index)
    for each in steps.recipe.steps:
        if each is not step and step.id in (each.depends_on or ()):
            changes += _forget(steps, each, step.id, _at(content, each.at))
    del _at(content, step.at[:-1])[index]
    return _Edit(changes, content)


def _use(steps: _Steps, mention: _Mention, step: Step) -> Problem:
    source = steps.recipe.source
    owner = next(
        (
            f"step '{each.id}'"
            for each in steps.recipe.steps
            if mention.at[: len(each.at)] == each.at
        ),
        f"'{mention.at[-2]}'" if len(mention.at) > 1 else "the output",
    )
    key = next(str(part) for part in reversed(mention.at) if isinstance(part, str))
    node = find(steps.root, mention.at)
    place = source.place_of(node)
    if isinstance(node, ScalarNode) and isinstance(node.value, str) and not mention.is_whole:
        place = source.place_inside(node, node.value, mention.offset, len(step.id))
    message = f"{owner} names '{step.id}' in its {key}"
    return source.problem(
        "RCP104" if mention.is_whole else "RCP203", place, message, "", mention.at
    )


def _rename(steps: _Steps, change: RenameStep) -> _Edit:
    step = steps.step(change.step)
    steps.check_new_id(change.id)
    for problem in steps.draft.problems:
        if problem.code in _UNREADABLE and problem.place:
            hint = f"line {problem.place.line}: {problem.message}"
            raise InvalidUsage("a text that may name the step cannot be read", hint=hint)
    content, changes = steps.content(), list[Change]()
    # From behind: the places before in the same text stay where they are.
    for mention in sorted(_mentions(steps, step.id), key=lambda each: -each.offset):
        changes += _rename_mention(steps, mention, step.id, change.id)
        _put(content, mention, (), change.id, len(step.id))
    return _Edit(changes, content)


def _rename_mention(steps: _Steps, mention: _Mention, old: str, new: str) -> list[Change]:
    node = find(steps.root, mention.at)
    if not isinstance(node, ScalarNode):
        raise _unsafe(f"'{old}' cannot be found on line {steps.line(mention.at)}")
    if mention.is_whole:
        return steps.written.rename(node, old, new)
    value = node.value if isinstance(node.value, str) else node.written
    at = steps.recipe.source.index_inside(node, value, mention.offset, len(old))
    if at is None:
        raise _unsafe(f"'{old}' stands behind an escape on line {steps.line(mention.at)}")
    return [Change(at, at + len(old), new)]


def _put(content: Any, mention: _Mention, above: Path, new: str, width: int) -> None:
    """Make the same change in the content that was read."""
    path = mention.at[len(above) :]
    owner = _at(content, path[:-1])
    if mention.is_whole:
        owner[path[-1]] = new
        return
    text = owner[path[-1]]
    owner[path[-1]] = text[: mention.offset] + new + text[mention.offset + width :]


def _mentions(steps: _Steps, id: StepId) -> list[_Mention]:
    """Everywhere that a recipe names a step."""
    found = [mention for each in steps.recipe.steps for mention in _named_by(steps, each, id)]
    for at, reference in _references(steps.draft):
        if reference.step == id:
            found.append(_Mention(at, reference.span(1)[0]))
    return list(dict.fromkeys(found))


def _named_by(steps: _Steps, step: Step, id: StepId) -> Iterator[_Mention]:
    if step.id == id:
        yield _Mention((*step.at, "id"), 0, True)
    at = (*step.at, "depends_on")
    there = steps.node(step).entries.get("depends_on")
    if isinstance(there, ListNode):
        for index, item in enumerate(there.items):
            if _word(item) == id:
                yield _Mention((*at, index), 0, True)
    elif there is not None and _word(there) == id:
        yield _Mention(at, 0, True)
    for target_at, name in steps.draft.by_id[step.id].targets:
        if name == id:
            yield _Mention(target_at, 0, True)
    if step.merge_after == id:
        merge = find(steps.root, (*step.at, "merge_back"))
        if isinstance(merge, ScalarNode) and isinstance(merge.value, str):
            yield _Mention((*step.at, "merge_back"), merge.value.rindex(id))


def _word(node: Node) -> str | None:
    return node.written if isinstance(node, ScalarNode) else None


def _references(draft: Draft) -> Iterator[tuple[Path, Reference]]:
    for drafted in draft.steps:
        for site in (*drafted.sites, *drafted.later, *drafted.early):
            for reference in site.located:
                yield site.at, reference
        work = drafted.step.work
        if isinstance(work, Loop) and work.feedback_path and "{{" not in work.feedback_path:
            bare = feedback_reference(work.feedback_path)
            if isinstance(bare, Reference):
                blank = len(work.feedback_path) - len(work.feedback_path.lstrip())
                at = (*drafted.step.at, "loop", "feedback_path")
                yield at, bare._replace(offset=bare.offset + blank)
    for agent, prompt in draft.prompts.items():
        for reference in prompt.located:
            yield (*draft.recipe.agents[AgentId(agent)].at, "prompt"), reference
    for site in (*draft.early, *([draft.output] if draft.output else [])):
        for reference in site.located:
            yield site.at, reference


def _at(content: Any, path: Path) -> Any:
    for part in path:
        content = content[part]
    return content


# --- what it means -------------------------------------------------------------------------


def _check(before: _Steps, after: _Steps, change: StepEdit) -> None:
    _check_cycles(before, after, change)
    old, new = before.edges, after.edges
    match change:
        case ConnectSteps(first, then):
            kept = all(new[id].keys() >= befores.keys() for id, befores in old.items())
            if not kept or StepId(first) not in new[StepId(then)]:
                raise _unsafe(f"with '{first}' before '{then}' other edges would change")
        case DisconnectSteps(first, then):
            if StepId(first) in new[StepId(then)]:
                raise _unsafe(_because(after, StepId(first), StepId(then)))
            if not all(new[id].keys() >= old[id].keys() for id in old if id != then):
                raise _unsafe(f"without '{first}' before '{then}' other edges would change")
        case RenameStep(first, then):
            names = {StepId(first): StepId(then)}
            renamed = {
                names.get(id, id): [names.get(each, each) for each in befores]
                for id, befores in old.items()
            }
            if renamed != {id: list(befores) for id, befores in new.items()}:
                raise _unsafe(f"as '{then}' the step would mean something else somewhere")
        case _:
            pass


def _check_cycles(before: _Steps, after: _Steps, change: StepEdit) -> None:
    known = {problem.message for problem in _cycles(before)}
    for problem in _cycles(after):
        if problem.message not in known and not isinstance(change, RenameStep):
            if isinstance(change, ConnectSteps):
                message = f"step '{change.step}' cannot wait for '{change.before}'"
                raise InvalidUsage(message, hint=f"then {problem.message}")
            raise InvalidUsage(f"then {problem.message}")


def _cycles(steps: _Steps) -> list[Problem]:
    count = len(steps.draft.problems)
    check_cycles(steps.draft, steps.edges)
    found = steps.draft.problems[count:]
    del steps.draft.problems[count:]
    return found
