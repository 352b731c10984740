"""What installed packages add to Stretto, by entry points of these groups.

    stretto.tools    a tool made by @stretto.tool, or a plain typed function
    stretto.agents   a function that does the work of a step, or the Path of an agent file; the
                     entry's name is the agent's
    stretto.models   a function of (name, environ) that gives a model of pydantic-ai; the entry's
                     name stands before the colon of the models' names
    stretto.stores   a coroutine function of (home) that opens a store

What Stretto itself has is found by entry points too, and first: all other packages are looked at only
for a name that Stretto does not have. Of a package that lies in the project's own folder nothing is
used unless the user has trusted the folder.
"""

import sys
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from stretto.config.settings import Settings
from stretto.registry.entry_points import InstalledPoint, PluginGroup, other_points, own_points

_GROUPS: tuple[PluginGroup, ...] = get_args(PluginGroup)


class Plugins:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loaded: dict[InstalledPoint, Any] = {}

    def has(self, group: PluginGroup, name: str) -> bool:
        return name in own_points(group) or name in self._added[group]

    def adds(self, group: PluginGroup, name: str) -> bool:
        """Whether a package other than Stretto has it, and it counts."""
        return name not in own_points(group) and name in self._added[group]

    def names(self, group: PluginGroup) -> tuple[str, ...]:
        return (*own_points(group), *self.added(group))

    def added(self, group: PluginGroup) -> tuple[str, ...]:
        """The names that packages other than Stretto add."""
        return tuple(name for name in self._added[group] if name not in own_points(group))

    def load(self, group: PluginGroup, name: str) -> Any:
        """Raises KeyError where there is none of this name, InvalidConfig where it is broken."""
        point = own_points(group).get(name) or self._added[group][name]
        if point not in self._loaded:
            self._loaded[point] = point.load()
        return self._loaded[point]

    def unused(self, among: Collection[str] | None = None) -> Iterator[str]:
        """What packages add under a name that is taken: such an entry point is never used.
        `among`: the names of tools and agents that matter."""
        for point in self._usable:
            group: PluginGroup = point.group  # type: ignore[assignment]
            counts = own_points(group).get(point.name) or self._added[group][point.name]
            if counts != point and (among is None or point.name in among):
                owner = "Stretto itself" if counts.package == "stretto" else counts.package
                yield (
                    f"the {group[8:-1]} '{point.name}' of the package {point.package} is not used: "
                    f"{owner} has one of this name"
                )

    @cached_property
    def _usable(self) -> tuple[InstalledPoint, ...]:
        return tuple(e for e in other_points() if e.group in _GROUPS and self._may_use(e.folder))

    @cached_property
    def _added(self) -> dict[str, dict[str, InstalledPoint]]:
        found: dict[str, dict[str, InstalledPoint]] = {group: {} for group in _GROUPS}
        for point in self._usable:
            found[point.group].setdefault(point.name, point)
        return found

    def _may_use(self, folder: Path) -> bool:
        """`folder`: where the package is installed. What the interpreter itself has is the user's
        own, also where its environment lies in the project."""
        project = self._settings.project.resolve()
        folder = folder.resolve()
        if not folder.is_relative_to(project) or self._settings.may_shadow:
            return True
        own = Path(sys.prefix).resolve()
        return own.is_relative_to(project) and own != project and folder.is_relative_to(own)


async def open_sqlite(home: Path) -> Any:
    from stretto.adapters.stores.sqlite import SqliteJournal

    return await SqliteJournal.open(home / "runs.db")


async def open_memory(home: Path) -> Any:
    """For trying things out: its runs are gone with the process."""
    from stretto.adapters.clock import SystemClock
    from stretto.adapters.stores.memory import MemoryJournal

    return MemoryJournal(SystemClock().now)
