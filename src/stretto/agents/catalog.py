"""The agents a recipe may name. In: folders, later ones winning. Out: Catalog.

bundled < user (~/.stretto/agents) < .claude/agents < project (agents/) < agents.dirs
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from stretto.agents.definition import AgentFile, read_agent_file
from stretto.plan.catalog import Catalog
from stretto.recipe.model import Agent
from stretto.registry.folders import Folder, files_in
from stretto.text.short import relative_path
from stretto.vocabulary.ids import AgentId

BUNDLED = Path(__file__).parent.parent / "bundled" / "agents"
_SUFFIXES = (".md", ".yaml", ".yml")


def agent_files(folders: Iterable[Path], project: Path) -> dict[AgentId, AgentFile]:
    """Every agent by its id; a broken file stays listed, with its problems."""
    return _read((BUNDLED, *folders), project)


def load_catalog(folders: Iterable[Path], project: Path) -> Catalog:
    files = _read(folders, project)
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


def _read(folders: Iterable[Path], project: Path) -> dict[AgentId, AgentFile]:
    found: dict[AgentId, AgentFile] = {}
    for folder in folders:
        is_foreign = folder.parent.name == ".claude"
        for file in _files_of(folder):
            read = read_agent_file(file, relative_path(file, project), is_foreign)
            found[read.id] = read
    return found


def _files_of(folder: Path) -> list[Path]:
    return files_in(Folder(folder, ""), _SUFFIXES)
