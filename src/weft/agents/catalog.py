"""The agents a recipe may name. In: folders, later ones winning. Out: Catalog.

bundled < user (~/.weft/agents) < .claude/agents < project (agents/) < agents.dirs
"""

from collections.abc import Iterable
from pathlib import Path

from weft.agents.definition import AgentFile, read_agent_file
from weft.plan.catalog import Catalog
from weft.registry.folders import Folder, files_in
from weft.vocabulary.ids import AgentId

BUNDLED = Path(__file__).parent.parent / "bundled" / "agents"
_SUFFIXES = (".md", ".yaml", ".yml")


def agent_files(folders: Iterable[Path], project: Path) -> dict[AgentId, AgentFile]:
    """Every agent by its id; a broken file stays listed, with its problems."""
    found: dict[AgentId, AgentFile] = {}
    for folder in (BUNDLED, *folders):
        for file in files_in(Folder(folder, ""), _SUFFIXES):
            is_foreign = folder.parent.name == ".claude"
            read = read_agent_file(file, _shown(file, project), is_foreign)
            found[read.id] = read
    return found


def load_catalog(folders: Iterable[Path], project: Path) -> Catalog:
    files = agent_files(folders, project)
    return Catalog(
        agents={id: read.agent for id, read in files.items() if read.agent},
        broken={id: read.problems[0] for id, read in files.items() if read.problems},
    )


def _shown(file: Path, project: Path) -> str:
    return str(file.relative_to(project)) if file.is_relative_to(project) else str(file)
