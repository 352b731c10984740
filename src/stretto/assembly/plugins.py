"""What installed packages add to Stretto, by entry points of these groups.

    stretto.tools    a tool made by @stretto.tool, or a plain typed function
    stretto.agents   a function that does the work of a step; its name is the agent's
    stretto.models   a function of (name, environ) that gives a model of pydantic-ai; the entry's
                     name stands before the colon of the models' names
    stretto.stores   a coroutine function of (home) that opens a store

The stores and the providers of this package are entry points of it as well. Looking at what is
installed takes longer than a whole `stretto validate`, so it is done only for a name that nothing
here has. Of a package that lies in the project's own folder nothing is used unless the user has
trusted the folder (DESIGN, rule 9).
"""

import sys
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from stretto.config.settings import Settings
from stretto.problems.errors import InvalidConfig

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PluginGroup: TypeAlias = Literal[
    "stretto.tools", "stretto.agents", "stretto.models", "stretto.stores"
]
_GROUPS: tuple[PluginGroup, ...] = (
    "stretto.tools",
    "stretto.agents",
    "stretto.models",
    "stretto.stores",
)
# The same as in pyproject.toml, so that these are found without looking at what is installed.
BUILT_IN_STORES: Mapping[str, str] = {
    "sqlite": "stretto.assembly.plugins:open_sqlite",
    "memory": "stretto.assembly.plugins:open_memory",
}


class Plugins:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loaded: dict[tuple[str, str], Any] = {}

    def has(self, group: PluginGroup, name: str) -> bool:
        return name in self._installed.get(group, {})

    def has_model(self, provider: str) -> bool:
        """Not for built-in providers: they are entry points too, but their own table checks them."""
        from stretto.adapters.models.provider_table import ALIASES, BY_NAME

        is_built_in = provider in BY_NAME or provider in ALIASES
        return not is_built_in and self.has("stretto.models", provider)

    def names(self, group: PluginGroup) -> tuple[str, ...]:
        return tuple(self._installed.get(group, {}))

    def load(self, group: PluginGroup, name: str) -> Any:
        """Raises KeyError where there is none of this name, InvalidConfig where it is broken."""
        if (group, name) not in self._loaded:
            self._loaded[group, name] = self._load(group, name)
        return self._loaded[group, name]

    def _load(self, group: PluginGroup, name: str) -> Any:
        if group == "stretto.stores" and name in BUILT_IN_STORES:
            module, _, attribute = BUILT_IN_STORES[name].partition(":")
            return getattr(import_module(module), attribute)
        found = self._installed[group][name]
        try:
            return found.load()
        except (Exception, SystemExit) as error:  # whatever a stranger's module does
            said = f"{type(error).__name__}: {error}"
            raise InvalidConfig(
                f"the entry point {name} of {group} ({found.value}) cannot be loaded: {said}",
                hint=f"fix or uninstall the package that has it{_package_of(found)}",
            ) from error

    @cached_property
    def _installed(self) -> "dict[str, dict[str, EntryPoint]]":
        from importlib.metadata import distributions

        found: dict[str, dict[str, EntryPoint]] = {group: {} for group in _GROUPS}
        for distribution in distributions():
            points = [e for e in distribution.entry_points if e.group in found]
            if points and self._may_use(Path(str(distribution.locate_file("")))):
                for point in points:
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


def _package_of(point: "EntryPoint") -> str:
    return f": {point.dist.name}" if point.dist is not None else ""


async def open_sqlite(home: Path) -> Any:
    from stretto.adapters.stores.sqlite import SqliteJournal

    return await SqliteJournal.open(home / "runs.db")


async def open_memory(home: Path) -> Any:
    """For trying things out: its runs are gone with the process."""
    from stretto.adapters.clock import SystemClock
    from stretto.adapters.stores.memory import MemoryJournal

    return MemoryJournal(SystemClock().now)
