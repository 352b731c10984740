"""The agents a recipe may name. In: folders, later ones winning. Out: a Catalog, or all the files.

bundled < user (~/.stretto/agents) < .claude/agents < project (agents/) < agents.dirs of stretto.yaml
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from stretto.agents.definition import AgentFile, read_agent_file
from stretto.plan.catalog import Catalog
from stretto.recipe.model import Agent
from stretto.registry.folders import Folder, files_in
from stretto.text.short import relative_path
from stretto.vocabulary.ids import AgentId

BUNDLED = Path(__file__).parent.parent / "bundled" / "agents"
_SUFFIXES = (".md", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class ListedAgent:
    read: AgentFile
    layer: str
    shadowed_by: str | None = None  # the file that counts instead

    @property
    def name(self) -> str:
        return str(self.read.id)


def list_agents(folders: Iterable[Folder], project: Path) -> list[ListedAgent]:
    """Every file, also broken and shadowed ones, by name and then from the first layer to the last."""
    found: dict[AgentId, list[ListedAgent]] = {}
    for folder in (Folder(BUNDLED, "bundled"), *folders):
        for read in _read(folder.path, project):
            found.setdefault(read.id, []).append(ListedAgent(read, folder.layer))
    return [each for id in sorted(found) for each in _mark_shadowed(found[id])]


def load_catalog(folders: Iterable[Path], project: Path) -> Catalog:
    files = {read.id: read for folder in folders for read in _read(folder, project)}
    return Catalog(
        agents=_Agents(files),
        broken={id: read.problems[0] for id, read in files.items() if read.problems},
    )


class _Agents(Mapping[AgentId, Agent]):
    """Every agent that can be used. Those of the package are read when they are asked for: a
    recipe names few of them, and their files bear their ids, so a list needs no reading."""

    def __init__(self, files: Mapping[AgentId, AgentFile]) -> None:
        self._bundled = {AgentId(file.stem): file for file in _files_of(BUNDLED)}
        self._files = dict(files)

    def __getitem__(self, id: AgentId) -> Agent:
        if id not in self._files:
            self._files[id] = read_agent_file(self._bundled[id])
        agent = self._files[id].agent
        if agent is None:
            raise KeyError(id)
        return agent

    def __iter__(self) -> Iterator[AgentId]:
        ids = dict.fromkeys((*self._bundled, *self._files))
        return (id for id in ids if id not in self._files or self._files[id].agent)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _mark_shadowed(one_name: list[ListedAgent]) -> Iterator[ListedAgent]:
    *shadowed, winner = one_name
    for each in shadowed:
        yield replace(each, shadowed_by=winner.read.file)
    yield winner


def _read(folder: Path, project: Path) -> Iterator[AgentFile]:
    is_foreign = folder.parent.name == ".claude"
    for file in _files_of(folder):
        # A file of the package is shown by its name: nobody edits it there.
        shown_as = f"stretto:{file.name}" if folder == BUNDLED else relative_path(file, project)
        yield read_agent_file(file, shown_as, is_foreign)


def _files_of(folder: Path) -> list[Path]:
    return files_in(Folder(folder, ""), _SUFFIXES)
