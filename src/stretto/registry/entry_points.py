"""What installed packages say that they add to Stretto. In: sys.path. Out: entry points, by name.

The tools, agents, providers and stores of Stretto itself are entry points of its own package, and
are found here like those of any other. The files are read as they are: `importlib.metadata` takes
longer to import than a recipe takes to check. It is asked only about places that are no folders.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cache, reduce
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from stretto.problems.errors import InvalidConfig
from stretto.text.short import listed
from stretto.vocabulary.names import KNOWN_TOOLS

PluginGroup: TypeAlias = Literal[
    "stretto.tools", "stretto.agents", "stretto.models", "stretto.stores"
]
_PACKAGE = Path(__file__).parents[1]
_METADATA = re.compile(r"([^-]+).*\.(dist|egg)-info")


class InstalledPoint(Struct, frozen=True):
    group: str
    name: str
    value: str  # module:attribute
    package: str
    folder: Path  # where the package is installed

    def load(self) -> Any:
        """Raises InvalidConfig where the module or what it should hold cannot be had."""
        module, _, attributes = self.value.partition("[")[0].replace(" ", "").partition(":")
        try:
            return reduce(getattr, filter(None, attributes.split(".")), import_module(module))
        except (Exception, SystemExit) as error:  # whatever a stranger's module does
            said = f"{type(error).__name__}: {error}"
            raise InvalidConfig(
                f"the entry point {self.name} of {self.group} ({self.value}) cannot be loaded: {said}",
                hint=f"fix or uninstall the package that has it: {self.package}",
            ) from error


@cache
def own_points(group: PluginGroup) -> Mapping[str, InstalledPoint]:
    """The entry points of Stretto itself. Raises InvalidConfig where its metadata does not have them all."""
    points = next(_packages((str(_PACKAGE.parent), *sys.path), "stretto"), ())
    found = {point.name: point for point in points if point.group == group}
    if missing := sorted(_expected_names(group) - set(found)):
        source = _PACKAGE.parents[1]
        is_source = (source / "pyproject.toml").is_file()
        what = f"--editable {source}" if is_source else "--force-reinstall stretto"
        raise InvalidConfig(
            f"the installed metadata of Stretto is older than the code in {_PACKAGE}, or missing: "
            f"it has no entry points of {group} for {listed(missing)}",
            hint=f"install it again: {sys.executable} -m pip install {what}",
        )
    return found


def _expected_names(group: PluginGroup) -> Set[str]:
    if group == "stretto.tools":
        return KNOWN_TOOLS
    if group == "stretto.agents":
        return {file.stem for file in _PACKAGE.glob("bundled/agents/*.md")}
    return {"sqlite"} if group == "stretto.stores" else {"openai"}


def other_points() -> Iterator[InstalledPoint]:
    """The entry points of all other packages, in the order of sys.path."""
    for points in _packages(sys.path):
        yield from (each for each in points if each.package != "stretto")


def _packages(places: Iterable[str], only: str = "") -> Iterator[tuple[InstalledPoint, ...]]:
    """The points of each package, or of one; of two copies of a package the first one counts."""
    seen = set[str]()
    for place in dict.fromkeys(places):
        for package, text in _texts(Path(place), only):
            if package not in seen and only in ("", package):
                seen.add(package)
                yield tuple(_read(text, package, Path(place)))


def _texts(place: Path, prefix: str) -> Iterator[tuple[str, str]]:
    """The name of each package in one place, and its entry_points.txt."""
    try:
        folders = sorted(os.listdir(place))
    except NotADirectoryError:  # an archive
        from importlib.metadata import distributions

        for each in distributions(path=[str(place)]):
            yield _plain(each.name), each.read_text("entry_points.txt") or ""
        return
    except OSError:  # a place that is not there has nothing
        return
    for folder in folders:
        if folder.lower().startswith(prefix) and (found := _METADATA.fullmatch(folder)):
            try:
                text = (place / folder / "entry_points.txt").read_text("utf-8", "replace")
            except OSError:  # most packages have none
                text = ""
            yield _plain(found[1]), text


def _plain(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def _read(text: str, package: str, folder: Path) -> Iterator[InstalledPoint]:
    group = ""
    for line in map(str.strip, text.splitlines() if "[stretto." in text else ()):
        name, sign, value = line.partition("=")
        if line.startswith("["):
            group = line.strip("[] ")
        elif sign and not line.startswith(("#", ";")):
            yield InstalledPoint(group, name.strip(), value.strip(), package, folder)
