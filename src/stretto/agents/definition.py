"""One agent from one file. In: agents/*.md or *.yaml. Out: Agent, or the file's problems.

A Markdown file is front matter and a system prompt, the layout of `.claude/agents/*.md`.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from stretto.documents.document import Document, compose, load
from stretto.documents.node import MapNode, ScalarNode
from stretto.documents.shapes import Fields, Reading
from stretto.documents.source import Source, find
from stretto.problems import Problem
from stretto.recipe.grammar import AGENT
from stretto.recipe.model import Agent
from stretto.recipe.parts import make_agent
from stretto.toolnames.filters import tool_fault
from stretto.validation.schema import SCHEMA_EXAMPLE, schema_faults
from stretto.vocabulary.ids import AgentId, is_id
from stretto.vocabulary.tools import KNOWN_TOOLS

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?\r?\n)?---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class AgentFile:
    id: AgentId
    file: str
    agent: Agent | None
    problems: tuple[Problem, ...] = ()


def read_agent_file(path: Path, shown_as: str = "", is_foreign: bool = False) -> AgentFile:
    """`is_foreign`: another tool's file, whose further keys are its own business."""
    source = load(path, shown_as=shown_as)
    document, prompt = (source, "") if isinstance(source, Document) else _split(source, path)
    reading = Reading(document.source, list(document.problems))
    root = document.root
    if is_foreign and isinstance(root, MapNode):
        root = _known_keys_only(root)
    fields = AGENT.read(root, (path.stem,), reading) if root is not None else None
    if fields is None or reading.problems:
        return AgentFile(AgentId(path.stem), document.source.file, None, tuple(reading.problems))
    agent = _agent(fields, reading, path, prompt, is_foreign)
    if not is_foreign:
        _check_tools(agent, fields, reading)
    _check_schema(agent, fields, reading)
    problems = tuple(reading.problems)
    return AgentFile(agent.id, document.source.file, None if problems else agent, problems)


def _check_tools(agent: Agent, fields: Fields, reading: Reading) -> None:
    for tool in agent.tools:
        fault = tool_fault(tool)
        if fault is not None:
            node = fields.node.entries["tools"]
            place = reading.source.place_inside_list(node, tool)
            reading.say(fault.code, place, fields.path("tools"), fault.message, fault.hint)


def _check_schema(agent: Agent, fields: Fields, reading: Reading) -> None:
    schema = agent.validation.schema
    for fault in schema_faults(schema) if schema is not None else ():
        path = ("validation", "schema", *fault.path)
        place = reading.source.place_of(find(fields.node, path))
        reading.say("RCP124", place, (*fields.at, *path), fault.message, SCHEMA_EXAMPLE)


def _agent(fields: Fields, reading: Reading, path: Path, prompt: str, is_foreign: bool) -> Agent:
    agent = make_agent(fields, reading)
    named = fields.get("name", str)
    # In a file the name is the id; a title with blanks leaves the file's own name as the id.
    id = named if named and is_id(named) else path.stem
    # Another tool's agent that lists no tools has all of them; ours then has none.
    has_all = is_foreign and not fields.written("tools")
    return replace(
        agent,
        id=AgentId(id),
        at=(),
        is_local=False,
        prompt=agent.prompt or prompt,
        tools=tuple(sorted(KNOWN_TOOLS)) if has_all else agent.tools,
        model=None if agent.model == "inherit" else agent.model,
    )


def _split(source: Source, path: Path) -> tuple[Document, str]:
    """The settings, and the prompt behind them."""
    text = source.text
    if path.suffix != ".md":
        return compose(source), ""
    matter = _FRONT_MATTER.match(text)
    if matter is None and text.split("\n", 1)[0].rstrip() == "---":
        problem = source.problem(
            "RCP005",
            source.place_of_index(0, 3),
            "the front matter is not closed",
            "end it with a line '---'",
        )
        return Document(source, None, (problem,)), ""
    if matter is None:
        # A bare prompt is a fine agent; it only has no settings.
        return Document(source, MapNode(0, 0, 1, 1)), text.strip()
    # Blanked, not cut: lines keep their numbers.
    front = "   " + matter[0][3:].rstrip().removesuffix("---")
    document = compose(Source(front, source.file))
    if document.root is None and [p.code for p in document.problems] == ["RCP016"]:
        document = Document(source, MapNode(0, 0, 1, 1))
    return document, text[matter.end() :].strip()


def _known_keys_only(root: MapNode) -> MapNode:
    known = {key.name for key in AGENT.keys}
    entries = {
        name: node
        for name, node in root.entries.items()
        if name in known and not (isinstance(node, ScalarNode) and node.value is None)
    }
    return MapNode(root.start, root.end, root.line, root.column, entries, root.keys)
