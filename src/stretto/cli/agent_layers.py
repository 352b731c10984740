"""Every agent file, and which of them count. In: the settings. Out: Listed, in the order of layers.

bundled < user (~/.stretto/agents) < .claude/agents < project (agents/) < agents.dirs of stretto.yaml
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from stretto.agents.catalog import BUNDLED
from stretto.agents.definition import AgentFile, read_agent_file
from stretto.config.settings import Settings
from stretto.registry.folders import Folder, files_in
from stretto.text.short import relative_path

_SUFFIXES = (".md", ".yaml", ".yml")  # as stretto.agents.catalog reads them


@dataclass(frozen=True, slots=True)
class Listed:
    read: AgentFile
    layer: str
    is_foreign: bool = False  # another tool's file
    shadowed_by: str | None = None  # the file that counts instead

    @property
    def name(self) -> str:
        return str(self.read.id)


def all_agents(settings: Settings) -> list[Listed]:
    """Those that count and those that are shadowed, sorted by name and then by layer."""
    found: dict[str, list[Listed]] = {}
    for folder in (Folder(BUNDLED, "bundled"), *_folders(settings)):
        is_foreign = folder.path.parent.name == ".claude"
        for file in files_in(folder, _SUFFIXES):
            read = read_agent_file(file, _shown(file, settings), is_foreign)
            found.setdefault(read.id, []).append(Listed(read, folder.layer, is_foreign))
    return [each for name in sorted(found) for each in _shadowing(found[name])]


def _shadowing(one_name: list[Listed]) -> Iterator[Listed]:
    *shadowed, winner = one_name
    for each in shadowed:
        yield replace(each, shadowed_by=winner.read.file)
    yield winner


def _folders(settings: Settings) -> Iterator[Folder]:
    layers = {
        settings.home / "agents": "user",
        settings.project / ".claude" / "agents": ".claude",
        settings.project / "agents": "project",
    }
    for path in settings.agents_dirs:
        yield Folder(path, layers.get(path, "settings"))


def _shown(file: Path, settings: Settings) -> str:
    if file.is_relative_to(BUNDLED):
        return f"stretto:{file.name}"  # part of the package: nobody edits it there
    return relative_path(file, settings.project)
