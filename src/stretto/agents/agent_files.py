"""Agents that are defined in files, and the catalog that recipes name them from.

A Markdown file is front matter and a system prompt, the layout of `.claude/agents/*.md`. Of two
agents with one id the later folder wins:

bundled < user (~/.stretto/agents) < .claude/agents < project (agents/) < agents.dirs
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path

from msgspec import Struct, structs

from stretto.documents.document import Document, compose, load
from stretto.documents.node import MapNode, ScalarNode, Source, find
from stretto.documents.shapes import Fields, Reading
from stretto.plan.catalog import Catalog
from stretto.problems import Problem
from stretto.recipe.grammar import AGENT
from stretto.recipe.model import Agent
from stretto.recipe.parts import make_agent
from stretto.registry.entry_points import own_points
from stretto.registry.folders import Folder, files_in
from stretto.text.short import relative_path
from stretto.toolnames.filters import tool_fault
from stretto.validation.schema import schema_faults
from stretto.vocabulary.names import KNOWN_TOOLS, AgentId, is_id

_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(.*?\r?\n)?---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_BLANK_LINES = re.compile(r"(?:[ \t]*\r?\n)*")
AGENT_SUFFIXES = (".md", ".yaml", ".yml")


class AgentFile(Struct, frozen=True):
    id: AgentId
    file: str
    agent: Agent | None
    problems: tuple[Problem, ...] = ()


class ListedAgent(Struct, frozen=True):
    read: AgentFile
    layer: str
    shadowed_by: str | None = None  # the file that counts instead

    @property
    def name(self) -> str:
        return str(self.read.id)


def list_agents(
    folders: Iterable[Folder], project: Path, tools: Set[str] = KNOWN_TOOLS
) -> list[ListedAgent]:
    """Every file, also broken and shadowed ones, by name and then from the first layer to the last.
    `tools`: the names that an agent may list."""
    found: dict[AgentId, list[ListedAgent]] = {}
    for point in own_points("stretto.agents").values():
        file: Path = point.load()
        # A file of the package is shown by its name: nobody edits it there.
        read = read_agent_file(file, f"stretto:{file.name}")
        found[read.id] = [ListedAgent(read, "bundled")]
    for folder in folders:
        for read in _read(folder.path, project, tools):
            found.setdefault(read.id, []).append(ListedAgent(read, folder.layer))
    return [each for id in sorted(found) for each in _mark_shadowed(found[id])]


def load_catalog(folders: Iterable[Path], project: Path, tools: Set[str] = KNOWN_TOOLS) -> Catalog:
    """`tools`: the names that an agent may list."""
    files = {read.id: read for folder in folders for read in _read(folder, project, tools)}
    return Catalog(
        agents=_Agents(files),
        broken={id: read.problems[0] for id, read in files.items() if read.problems},
    )


class _Agents(Mapping[AgentId, Agent]):
    """Every agent that can be used. Those of Stretto itself are read when they are asked for: a
    recipe names few of them, and their entry points bear their ids, so a list needs no reading."""

    def __init__(self, files: Mapping[AgentId, AgentFile]) -> None:
        self._bundled = own_points("stretto.agents")
        self._files = dict(files)

    def __getitem__(self, id: AgentId) -> Agent:
        if id not in self._files:
            self._files[id] = read_agent_file(self._bundled[id].load())
        agent = self._files[id].agent
        if agent is None:
            raise KeyError(id)
        return agent

    def __iter__(self) -> Iterator[AgentId]:
        ids = dict.fromkeys((*map(AgentId, self._bundled), *self._files))
        return (id for id in ids if id not in self._files or self._files[id].agent)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _mark_shadowed(one_name: list[ListedAgent]) -> Iterator[ListedAgent]:
    *shadowed, winner = one_name
    for each in shadowed:
        yield structs.replace(each, shadowed_by=winner.read.file)
    yield winner


def _read(folder: Path, project: Path, tools: Set[str]) -> Iterator[AgentFile]:
    is_foreign = folder.parent.name == ".claude"
    for file in files_in(Folder(folder, ""), AGENT_SUFFIXES):
        yield read_agent_file(file, relative_path(file, project), is_foreign, tools)


def read_agent_file(
    path: Path, shown_as: str = "", is_foreign: bool = False, tools: Set[str] = KNOWN_TOOLS
) -> AgentFile:
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
        _check_tools(agent, fields, reading, tools)
    _check_schema(agent, fields, reading)
    if agent.timeout_template is not None:
        message = "an agent file knows no inputs, so its timeout is a duration"
        node, at = fields.node.entries["timeout"], fields.path("timeout")
        reading.problem_at("RCP110", node, at, message, "write a duration such as 90s or 3m")
    problems = tuple(reading.problems)
    return AgentFile(agent.id, document.source.file, None if problems else agent, problems)


def _check_tools(agent: Agent, fields: Fields, reading: Reading, tools: Set[str]) -> None:
    for tool in agent.tools:
        fault = tool_fault(tool, tools)
        if fault is not None:
            node = fields.node.entries["tools"]
            place = reading.source.place_inside_list(node, tool)
            reading.problem_at(fault.code, place, fields.path("tools"), fault.message, fault.hint)


def _check_schema(agent: Agent, fields: Fields, reading: Reading) -> None:
    schema = agent.validation.schema
    for fault in schema_faults(schema) if schema is not None else ():
        path = ("validation", "schema", *fault.path)
        place = reading.source.place_of(find(fields.node, path))
        reading.problem_at("RCP124", place, (*fields.at, *path), fault.message, fault.hint)


def _agent(fields: Fields, reading: Reading, path: Path, prompt: str, is_foreign: bool) -> Agent:
    agent = make_agent(fields, reading)
    named = fields.get("name", str)
    # In a file the name is the id; a title with blanks leaves the file's own name as the id.
    id = named if named and is_id(named) else path.stem
    # Another tool's agent that lists no tools has all of them; ours then has none.
    has_all = is_foreign and not fields.written("tools")
    return structs.replace(
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
    blank = text[: _BLANK_LINES.match(text).end()]  # type: ignore[union-attr]
    matter = _FRONT_MATTER.match(text, len(blank))
    if matter is None and text[len(blank) :].split("\n", 1)[0].rstrip() == "---":
        problem = source.problem(
            "RCP005",
            source.place_of_index(len(blank), 3),
            "the front matter is not closed",
            "end it with a line '---'",
        )
        return Document(source, None, (problem,)), ""
    if matter is None:
        # A bare prompt is a fine agent; it only has no settings.
        return Document(source, MapNode(0, 0)), text.strip()
    # Blanked, not cut: lines keep their numbers.
    front = blank.replace("\t", " ") + "   " + matter[0][3:].rstrip().removesuffix("---")
    document = compose(Source(front, source.file))
    if document.root is None and [p.code for p in document.problems] == ["RCP016"]:
        document = Document(source, MapNode(0, 0))
    return document, text[matter.end() :].strip()


def _known_keys_only(root: MapNode) -> MapNode:
    known = {key.name for key in AGENT.keys}
    entries = {
        name: node
        for name, node in root.entries.items()
        if name in known and not (isinstance(node, ScalarNode) and node.value is None)
    }
    return MapNode(root.start, root.end, entries, root.keys)
