"""Saved recipes by name, good and broken ones alike.

    bundled < user (~/.stretto/workflows) < project (workflows.dir)

A recipe of a folder that is not trusted does not replace one of the same name: a user who writes
`stretto run brief` means the recipe that they know.

Every question looks at the folders anew, and reads only what changed since the last one, so
files that appear or change are seen without a restart.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from stretto.plan.catalog import Catalog
from stretto.plan.check import Problems, check
from stretto.problems import Problem
from stretto.recipe.model import Recipe
from stretto.recipe.read import SUFFIXES, read_recipe_file
from stretto.registry.folders import Folder, Stamp, files_in, once, signature, stamp
from stretto.vocabulary.amounts import DEFAULT_LIMITS, Limits

BUNDLED = Path(__file__).parent.parent / "bundled" / "workflows"


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    file: Path
    layer: str
    recipe: Recipe
    problems: tuple[Problem, ...]
    shadows: str = ""  # the layer whose recipe of the same name it replaces
    is_passed_over: bool = False  # it would, but its folder is not trusted
    passed_over: Path | None = None  # the file that would replace this one

    @property
    def is_clash(self) -> bool:
        """Another recipe of the same layer has its name."""
        return any(problem.code == "RCP401" for problem in self.problems)


class Workflows:
    def __init__(
        self,
        folders: Iterable[Folder],
        catalog: Callable[[], Catalog],
        limits: Limits = DEFAULT_LIMITS,
        shown: Callable[[Path], str] = str,
    ) -> None:
        self._folders = (Folder(BUNDLED, "bundled"), *folders)
        self._catalog = catalog
        self._limits = limits
        self._shown = shown
        self._read: dict[Path, tuple[object, Recipe]] = {}
        self._found: tuple[Stamp, list[Entry]] | None = None  # all, as the folders were then
        self._sound: dict[Path, tuple[Recipe, Catalog]] = {}  # checked, and nothing was wrong

    def entries(self) -> list[Entry]:
        """One per name: the nearest layer wins. Two in one layer: the first file wins, and the
        other is listed as broken, because it would not be clear which one runs."""
        catalog = self._catalog()
        return [self._check_entry(entry, catalog) for entry in self._all()]

    def get(self, name: str) -> Entry | None:
        entry = self.find(name)
        return None if entry is None else self._check_entry(entry, self._catalog())

    def find(self, name: str) -> Entry | None:
        """The recipe of that name, unchecked: for a recipe that uses it, and is being checked itself."""
        return next((entry for entry in self._all() if entry.name == name), None)

    def names(self) -> list[str]:
        return list(dict.fromkeys(entry.name for entry in self._all()))

    def _all(self) -> list[Entry]:
        """Every entry, unchecked: it has no problems but those of its name."""
        return once(("recipes", id(self)), self._all_now)

    def _all_now(self) -> list[Entry]:
        now, known = stamp(self._folders, SUFFIXES), self._found
        if known is not None and known[0] == now:
            return known[1]
        every = self._look()
        if now is not None:
            self._found = (now, every)
        return every

    def _look(self) -> list[Entry]:
        found: dict[str, Entry] = {}
        clashes: list[Entry] = []
        for folder in self._folders:
            for file in files_in(folder, SUFFIXES):
                entry = self._entry(file, folder.layer)
                there = found.get(entry.name)
                if there is None:
                    found[entry.name] = entry
                elif there.layer == entry.layer:
                    clashes.append(_clash(entry, there))
                elif folder.may_shadow:
                    found[entry.name] = replace(entry, shadows=there.layer)
                else:
                    found[entry.name] = replace(there, passed_over=entry.file)
                    clashes.append(replace(entry, shadows=there.layer, is_passed_over=True))
        every = [*found.values(), *clashes]
        return sorted(every, key=lambda e: (e.name, e.is_passed_over, str(e.file)))

    def _entry(self, file: Path, layer: str) -> Entry:
        recipe = self._recipe(file)
        return Entry(recipe.name, file, layer, recipe, ())

    def _check_entry(self, entry: Entry, catalog: Catalog) -> Entry:
        if entry.problems:
            return entry
        sound = self._sound.get(entry.file)
        if sound is not None and sound[0] is entry.recipe and sound[1] is catalog:
            return entry
        checked = check(entry.recipe, catalog, self._limits)
        if isinstance(checked, Problems):
            return replace(entry, problems=checked.problems)
        if not checked.inner:  # the recipes that it uses may change without it
            self._sound[entry.file] = (entry.recipe, catalog)
        return entry

    def _recipe(self, file: Path) -> Recipe:
        now = signature(file)
        known = self._read.get(file)
        if known is None or known[0] != now or now is None:
            recipe = read_recipe_file(file, self._limits, self._shown(file))
            self._read[file] = known = (now, recipe)
        return known[1]


def _clash(entry: Entry, there: Entry) -> Entry:
    message = f"'{entry.name}' is the name of {there.recipe.source.file} already"
    problem = Problem("RCP401", message, entry.recipe.source.file, hint="rename one of them")
    return Entry(entry.name, entry.file, entry.layer, entry.recipe, (problem,))
