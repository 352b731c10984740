"""One agent from one file. In: agents/*.md or *.yaml. Out: Agent, or the file's problems.

A Markdown file is front matter and a system prompt, the layout of `.claude/agents/*.md`.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from weft.documents.document import Document, read_file, read_text
from weft.documents.node import MapNode, ScalarNode
from weft.documents.shapes import Fields, Reading
from weft.plan.catalog import KNOWN_TOOLS
from weft.problems import Problem
from weft.recipe.grammar import AGENT
from weft.recipe.model import Agent
from weft.recipe.parts import make_agent
from weft.vocabulary.ids import AgentId, is_id

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?\r?\n)?---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class AgentFile:
    id: AgentId
    file: str
    agent: Agent | None
    problems: tuple[Problem, ...] = ()


def read_agent_file(path: Path, shown_as: str = "", is_foreign: bool = False) -> AgentFile:
    """`is_foreign`: another tool's file, whose further keys are its own business."""
    document = read_file(path, shown_as=shown_as)
    prompt = ""
    if path.suffix == ".md" and document.source.text:
        document, prompt = _split(document.source.text, document.source.file)
    reading = Reading(document.source, list(document.problems))
    root = document.root
    if is_foreign and isinstance(root, MapNode):
        root = _known_keys_only(root)
    fields = AGENT.read(root, (path.stem,), reading) if root is not None else None
    if fields is None or reading.problems:
        return AgentFile(AgentId(path.stem), document.source.file, None, tuple(reading.problems))
    agent = _agent(fields, reading, path, prompt, is_foreign)
    problems = tuple(reading.problems)
    return AgentFile(agent.id, document.source.file, None if problems else agent, problems)


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


def _split(text: str, file: str) -> tuple[Document, str]:
    matter = _FRONT_MATTER.match(text)
    if matter is None:
        # A bare prompt is a fine agent; it only has no settings.
        return Document(read_text("{}", file).source, MapNode(0, 0, 1, 1)), text.strip()
    # Blanked, not cut: lines keep their numbers.
    front = re.sub(r"[^\r\n]", " ", matter[0][:3]) + (matter[0][3:]).rstrip().removesuffix("---")
    document = read_text(front, file)
    if document.root is None and [p.code for p in document.problems] == ["RCP016"]:
        document = Document(document.source, MapNode(0, 0, 1, 1))
    return document, text[matter.end() :].strip()


def _known_keys_only(root: MapNode) -> MapNode:
    known = {key.name for key in AGENT.keys}
    entries = {
        name: node
        for name, node in root.entries.items()
        if name in known and not (isinstance(node, ScalarNode) and node.value is None)
    }
    return MapNode(root.start, root.end, root.line, root.column, entries, root.keys)
