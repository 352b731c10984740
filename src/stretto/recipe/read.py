"""Read a recipe from a file, bytes or text. There always is one; what is wrong is in `problems`."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path as FilePath
from typing import TypeVar

from msgspec import structs

from stretto.documents.document import Document, read_bytes, read_file, read_text
from stretto.documents.node import (
    ListNode,
    MapNode,
    Node,
    Path,
    RefusedNode,
    ScalarNode,
    describe,
)
from stretto.documents.shapes import Fields, Reading, unknown_keys
from stretto.problems import Problem
from stretto.recipe.grammar import BODY, ENVELOPE, INDENTED
from stretto.recipe.model import Budget, Dialect, Input, Recipe
from stretto.recipe.parts import timeout_of
from stretto.vocabulary.amounts import DEFAULT_LIMITS, Limits
from stretto.vocabulary.names import AgentId

SUFFIXES = (".yaml", ".yml", ".json")  # of files that hold recipes

T = TypeVar("T")

# The three ways to write a recipe. They differ in their defaults and in nothing else.
# `name` and `steps` at the root, edges as written.
FLAT = Dialect(
    name="flat",
    agent_key="subagent",
    instruction_key="prompt",
    chains_steps=False,
    on_failure="inline",
    width=None,
    needs_name=True,
    needs_instruction=True,
    default_agent=None,
)
# Everything under `workflow:`, steps follow one another.
WRAPPED = Dialect(
    name="wrapped",
    agent_key="agent",
    instruction_key="input",
    chains_steps=True,
    on_failure="abort",
    width=None,
    needs_name=True,
    needs_instruction=False,  # the agent's own prompt says what to do
    default_agent=None,
)
# Steps carry `task` and are held apart by their sets.
STRUCTURAL = Dialect(
    name="structural",
    agent_key="agent",
    instruction_key="task",
    chains_steps=False,
    on_failure="block",
    width=6,
    needs_name=False,  # documents of this kind are often handed over unnamed
    needs_instruction=True,
    default_agent=AgentId("default"),
)


def read_recipe(text: str | bytes, file: str = "", limits: Limits = DEFAULT_LIMITS) -> Recipe:
    if isinstance(text, bytes):
        return from_document(read_bytes(text, file, limits))
    return from_document(read_text(text, file, limits))


def read_recipe_file(path: FilePath, limits: Limits = DEFAULT_LIMITS, shown_as: str = "") -> Recipe:
    return from_document(read_file(path, limits, shown_as))


def from_document(document: Document) -> Recipe:
    reading = Reading(document.source, [_with_hint(each) for each in document.problems])
    if document.root is None or isinstance(document.root, RefusedNode):
        return _unread(document, reading)
    if not isinstance(document.root, MapNode):
        message = f"a recipe is a mapping, not {describe(document.root)}"
        hint = "it starts with `name:` and has `steps:`"
        if isinstance(document.root, ListNode) and _are_all(
            document.root.items, {"agent", "prompt"}, set()
        ):
            hint += "; a list of tasks is for stretto batch"
        reading.problem_at("RCP016", document.root, (), message, hint)
        return _unread(document, reading)
    names = document.root.keys
    whose = _another_tools(document.root)
    if whose or (names and not any(map(BODY.recognises, names)) and "workflow" not in names):
        message = f"this is {whose}, not a recipe" if whose else _NOTHING_OF_A_RECIPE
        reading.problem_at("RCP016", next(iter(names.values())), (), message, _HOW_IT_LOOKS)
        return _unread(document, reading)
    document = _with_name(document, document.root, reading)
    assert isinstance(document.root, MapNode)
    if "workflow" not in document.root.entries:
        fields = BODY.read(document.root, (), reading)
        assert fields is not None
        return _recipe(document, reading, fields, None, _dialect(document.root, FLAT))
    document = _with_all_inside(document, document.root, reading)
    assert isinstance(document.root, MapNode)
    envelope = ENVELOPE.read(_without_steps(document.root, reading), (), reading)
    inner = document.root.entries["workflow"]
    body = BODY.read(inner, ("workflow",), reading)
    if body is None or not isinstance(inner, MapNode):
        return _unread(document, reading)
    return _recipe(document, reading, body, envelope, _dialect(inner, WRAPPED))


def _with_hint(problem: Problem) -> Problem:
    """An empty document comes without a hint: its reader does not know that it is a recipe."""
    is_blank = problem.code == "RCP016" and not problem.hint
    return replace(problem, hint=_HOW_IT_STARTS) if is_blank else problem


_HOW_IT_STARTS = "a recipe starts with `name:` and has `steps:`"
_NOTHING_OF_A_RECIPE = "none of these keys is one of a recipe"
_HOW_IT_LOOKS = (
    "a recipe has `name:` and `steps:`, each with `id:`, `agent:` and `prompt:`, or `run:`; "
    "stretto new writes one to begin with"
)


_DAGU_WORK = {"command", "script", "executor", "depends"}


def _another_tools(root: MapNode) -> str:
    """What kind of file this is, where that is certain: each of its keys would be a problem."""
    names = root.entries.keys()
    if {"apiVersion", "kind"} <= names:
        return "a Kubernetes object, such as an Argo workflow"
    if isinstance(root.entries.get("jobs"), MapNode):
        return "a GitHub Actions workflow"
    if isinstance(root.entries.get("services"), MapNode) and "steps" not in names:
        return "a Docker Compose file"
    if {"nodes", "connections"} <= names or {"nodes", "edges"} <= names:
        return "a graph of nodes and connections, as editors of other tools write it"
    workflow = root.entries.get("workflow")
    has_agents = isinstance(root.entries.get("agents"), ListNode)
    if isinstance(workflow, MapNode) and has_agents and "steps" not in {*workflow.entries, *names}:
        return "a workflow of Conductor"
    if _are_all(root.entries.values(), {"role", "goal"}, {"backstory"}):
        return "a file of CrewAI agents"
    if _are_all(root.entries.values(), {"description", "expected_output"}, set()):
        return "a file of CrewAI tasks"
    steps = root.entries.get("steps")
    if isinstance(steps, ListNode) and _are_all(steps.items, {"name"}, _DAGU_WORK):
        return "a DAG of Dagu"
    return ""


def _are_all(nodes: Iterable[Node], each: set[str], some: set[str]) -> bool:
    """Whether all are mappings with each of these keys and no `id`, and one has one of the others."""
    found = [node.entries.keys() if isinstance(node, MapNode) else set() for node in nodes]
    has_some = not some or any(some & names for names in found)
    return bool(found) and has_some and all(each <= names and "id" not in names for names in found)


def _with_name(document: Document, root: MapNode, reading: Reading) -> Document:
    """`workflow: brief` above `steps:` is meant for the name."""
    written = root.entries.get("workflow")
    if not isinstance(written, ScalarNode) or "steps" not in root.entries or "name" in root.entries:
        return document
    message = f"'workflow' must be a mapping, not {describe(written)}"
    hint = f"write name: {written.written[:60]}"
    reading.problem_at("RCP103", written, ("workflow",), message, hint)
    named = {"name" if key == "workflow" else key: node for key, node in root.entries.items()}
    keys = {"name" if key == "workflow" else key: node for key, node in root.keys.items()}
    return structs.replace(document, root=structs.replace(root, entries=named, keys=keys))


def _with_all_inside(document: Document, root: MapNode, reading: Reading) -> Document:
    """Where `workflow:` has no steps and the root has: all that stands beside it is one slip, told
    once, and read as if it stood under `workflow:`."""
    inner = root.entries["workflow"]
    if "steps" not in root.entries or not isinstance(inner, MapNode) or "steps" in inner.entries:
        return document
    outer = [name for name in root.entries if name in INDENTED and name not in inner.entries]
    hint = f"indent {'it' if len(outer) == 1 else 'them'}, to stand under workflow:"
    message = unknown_keys("the root", outer)
    reading.problem_at("RCP101", root.keys[outer[0]], (outer[0],), message, hint)
    moved = {name: root.entries[name] for name in outer}
    keys = {**inner.keys, **{name: root.keys[name] for name in outer}}
    body = structs.replace(inner, entries={**inner.entries, **moved}, keys=keys)
    kept = {name: node for name, node in root.entries.items() if name not in outer}
    return structs.replace(document, root=structs.replace(root, entries={**kept, "workflow": body}))


def _without_steps(root: MapNode, reading: Reading) -> MapNode:
    """`steps` beside `workflow:` is two recipes in one, which deserves its own words."""
    if "steps" not in root.entries:
        return root
    reading.problem_at(
        "RCP114",
        root.keys["steps"],
        ("steps",),
        "'steps' stands beside 'workflow:'",
        "indent it, to stand under workflow:",
    )
    entries = {name: node for name, node in root.entries.items() if name != "steps"}
    return MapNode(root.start, root.end, entries, root.keys)


def _dialect(body: MapNode, otherwise: Dialect) -> Dialect:
    steps = body.entries.get("steps")
    if isinstance(steps, ListNode) and any(
        isinstance(step, MapNode) and "task" in step.entries for step in steps.items
    ):
        return STRUCTURAL
    return otherwise


def _recipe(
    document: Document, reading: Reading, body: Fields, envelope: Fields | None, dialect: Dialect
) -> Recipe:
    id, title = _choose_name(body, envelope, "id"), _choose_name(body, envelope, "name")
    if dialect.needs_name and not body.has_unknown and not _has(body, envelope, "name", "id"):
        first = next(iter(body.node.keys.values()), body.node)
        reading.problem_at(
            "RCP102", first, body.at, "a recipe needs 'name'", "name: what it is called"
        )
    if len(body.written("inputs", "parameters")) == 2:
        reading.problem_at(
            "RCP114",
            body.key("parameters"),
            body.path("parameters"),
            "'inputs' and 'parameters' are the same word",
            "keep one of them",
        )
    return Recipe(
        name=id or title or FilePath(document.source.file).stem or "workflow",
        dialect=dialect,
        source=document.source,
        root=document.root,
        at=body.at,
        title=title if id and title and title != id else "",
        description=_either(body, envelope, "description", str) or "",
        version=_either(body, envelope, "version", str) or "",
        inputs=_inputs(body, envelope),
        agents=body.get("agents", dict) or {},
        steps=body.many("steps") or (),
        output=body.get("output", str),
        timeout_seconds=timeout_of(body, reading),
        timeout_template=body.get("timeout", str),
        max_concurrency=body.get("max_concurrency", int),
        budget=body.get("budget", Budget) or Budget(),
        problems=tuple(reading.problems),
        guessed=frozenset(reading.guessed),
    )


def _inputs(body: Fields, envelope: Fields | None) -> tuple[Input, ...]:
    inputs: tuple[Input, ...] = ()
    for key in ("inputs", "parameters"):
        inputs += body.many(key) or ()
        inputs += (envelope.many(key) if envelope else None) or ()
    return inputs


def _has(body: Fields, envelope: Fields | None, *names: str) -> bool:
    return bool(body.written(*names) or (envelope and envelope.written(*names)))


def _choose_name(body: Fields, envelope: Fields | None, name: str) -> str:
    """The name beside `workflow:` comes first. An inner one may be a template, such as
    `Review of {{topic}}`, which is no name before the inputs are known."""
    said = [fields.get(name, str) for fields in (envelope, body) if fields]
    return next((text for text in said if text and "{{" not in text), "")


def _either(body: Fields, envelope: Fields | None, name: str, kind: type[T]) -> T | None:
    return body.get(name, kind) or (envelope.get(name, kind) if envelope else None)


def _unread(document: Document, reading: Reading, at: Path = ()) -> Recipe:
    name = FilePath(document.source.file).stem
    return Recipe(name, FLAT, document.source, document.root, at, problems=tuple(reading.problems))
