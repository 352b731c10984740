"""The playbooks that count here: those of some folders, and emitted ones. In: folders. Out: Playbooks.

Of two with one name the later folder's counts; an emitted one never stands in for one that a person
wrote:

emitted < bundled < user (~/.stretto/playbooks) < playbooks.dirs < project (playbooks/)
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from stretto.playbooks.playbook import (
    Playbook,
    copy_skill_folder,
    read_skill_folder,
    skill_folders,
    stamp_of,
)
from stretto.playbooks.store import BODY, EMITTED, HEAD, PlaybookStore, PlaybookUse
from stretto.problems.errors import NotFound
from stretto.registry.folders import Folder
from stretto.text.short import did_you_mean, listed
from stretto.text.terms import terms

BUNDLED = Path(__file__).parent.parent / "bundled" / "playbooks"
DAY_SECONDS = 86_400.0
HALF_LIFE_DAYS = 30.0
# A query reads about so many places in the index. The rarest words come first, as they say most.
_MOST_PLACES = 200
_MOST_WORDS = 24
_CANDIDATES = 20
_SHARE_OF_CONFIDENCE = 0.5  # of a score


@dataclass(frozen=True, slots=True)
class FoundPlaybook:
    playbook: Playbook
    score: float  # by BM25, lower for one that few trust any more
    coverage: float  # how much of its name and description the query speaks of, from 0 to 1


def confidence_at(playbook: Playbook, now: float, half_life_days: float) -> float:
    """What is left of its confidence: half after each half-life without use.

    Counted from the last use, and never written back, so that nothing fades twice.
    """
    if playbook.is_pinned:
        return playbook.confidence
    since = max(0.0, now - max(playbook.made_at, playbook.last_used_at or 0.0))
    return float(playbook.confidence * 0.5 ** (since / (half_life_days * DAY_SECONDS)))


@contextmanager
def open_library(
    file: Path,
    folders: Sequence[Folder],
    now: Callable[[], float],
    half_life_days: float = HALF_LIFE_DAYS,
) -> Iterator["Library"]:
    """Raises StrettoError where its file cannot be used."""
    store = PlaybookStore.open(file)
    try:
        library = Library(store, folders, now, half_life_days)
        library.refresh()
        yield library
    finally:
        store.close()


class Library:
    """For one thread at a time."""

    def __init__(
        self,
        store: PlaybookStore,
        folders: Sequence[Folder],
        now: Callable[[], float],
        half_life_days: float = HALF_LIFE_DAYS,
    ) -> None:
        self.store = store
        self.now = now
        self.half_life_days = half_life_days
        self._folders = folders
        # From the first layer to the last. A folder that is named twice counts where it is last.
        self._layers = {EMITTED: "emitted"}
        for folder in folders:
            self._layers.pop(str(folder.path), None)
            self._layers[str(folder.path)] = folder.layer
        self._order = {root: place for place, root in enumerate(self._layers)}

    def refresh(self) -> None:
        """Read the folders that are new or changed, and note those that are gone."""
        for folder in self._folders:
            self._refresh(folder)

    def _refresh(self, folder: Folder) -> None:
        root = str(folder.path)
        # A person may link what they keep elsewhere; what a project brings stays inside it.
        found = skill_folders(folder.path, follows_links=folder.layer != "project")
        stamps = {path.name: stamp_of(path) for path in found}
        known = self.store.skills_of(root)
        changed = [
            path
            for path in found
            if path.name not in known or known[path.name].stamp != stamps[path.name]
        ]
        gone = [
            skill.id for name, skill in known.items() if name not in stamps and not skill.is_away
        ]
        if not changed and not gone:
            return
        with self.store.change():
            self.store.set_away(gone)
            for path in changed:
                read = read_skill_folder(path)
                self.store.put(root, path.name, stamps[path.name], read, self.now())

    def playbooks(self, *, with_deleted: bool = False) -> list[Playbook]:
        """The playbooks that count, and broken ones, by name."""
        found = self.store.every(self._layers)
        counting = list(self._counting(found, with_deleted))
        doubled = _find_doubled(counting, found)
        broken = [each for each in found if each.fault]
        return sorted(
            [*counting, *doubled, *broken], key=lambda each: (each.name, bool(each.fault))
        )

    def all(self) -> list[Playbook]:
        """Also those that others shadow, and those that were deleted."""
        return self.store.every(self._layers)

    def named(self, name: str, *, is_deleted: bool = False) -> Playbook:
        """Raises NotFound."""
        found = [each for each in self.store.every(self._layers, name) if not each.fault]
        wanted = [each for each in found if (each.deleted_at is not None) == is_deleted]
        if wanted:
            last = max(wanted, key=self._place)
            return replace(last, files=tuple(self.store.files_of(last.id)))
        if is_deleted:
            deleted = [each.name for each in self.all() if each.deleted_at is not None]
            hint = f"deleted: {listed(deleted)}" if deleted else "nothing was deleted"
            raise NotFound(f"no playbook '{name}' was deleted", hint=hint)
        broken = [each for each in self.store.every(self._layers, name) if each.fault]
        if broken:
            raise NotFound(f"playbook '{name}' cannot be used: {broken[0].fault}")
        known = [each.name for each in self.playbooks()]
        hint = did_you_mean(name, known) or "stretto playbooks list shows them"
        raise NotFound(f"there is no playbook '{name}'", hint=hint)

    def faded(self, playbook: Playbook) -> Playbook:
        """With the confidence that is left of it now, to be shown."""
        left = confidence_at(playbook, self.now(), self.half_life_days)
        return replace(playbook, confidence=left)

    def pin(self, name: str, is_pinned: bool, by: str = "") -> Playbook:
        """Curation leaves a pinned one alone. Raises NotFound."""
        found = self.named(name)
        with self.store.change():
            if found.is_pinned != is_pinned:
                self.store.set(found.id, is_pinned=int(is_pinned))
                self.store.note(self.now(), "pin" if is_pinned else "unpin", name, by=by)
        return self.named(name)

    def delete(self, name: str, by: str = "") -> Playbook:
        """Stop using a playbook. Its folder stays, and `restore` undoes it. Raises NotFound."""
        found = self.named(name)
        with self.store.change():
            self.store.set(found.id, deleted_at=self.now())
            self.store.note(self.now(), "delete", name, by=by)
        return found

    def restore(self, name: str, by: str = "") -> Playbook:
        """Raises NotFound."""
        found = self.named(name, is_deleted=True)
        with self.store.change():
            # Its time begins anew, or the next curation would prune it again.
            used = found.last_used_at if found.is_pinned else self.now()
            self.store.set(found.id, deleted_at=None, last_used_at=used)
            self.store.note(self.now(), "restore", name, by=by)
        return self.named(name)

    def add(self, source: Path, target: Path, by: str = "") -> Playbook:
        """Copy a SKILL.md folder into a folder of ours. Raises InvalidUsage, RefusedToOverwrite."""
        name = copy_skill_folder(source, target)
        self.refresh()
        with self.store.change():
            for each in self.store.every(self._layers, name):
                if each.deleted_at is not None:
                    self.store.set(each.id, deleted_at=None)
            self.store.note(self.now(), "add", name, str(source), by)
        return self.named(name)

    def count_use(self, names: Iterable[str], by: PlaybookUse | None = None) -> None:
        """Note that these playbooks were given to a step now. `by`: the step, if it was one."""
        wanted = tuple(names)
        if not wanted:
            return
        used = [each.id for each in self._counting(self.store.every(self._layers, *wanted))]
        with self.store.change():
            self.store.count_use(used, self.now(), by)

    def search(self, query: str, most: int = 10) -> list[FoundPlaybook]:
        """The best first."""
        asked = list(dict.fromkeys(terms(query)))
        counts = self.store.counts_of(part + word for word in asked for part in (HEAD, BODY))
        words = _rarest(counts)
        if not words:
            return []
        scores = dict(self.store.ranked(words, max(_CANDIDATES, 2 * most)))
        candidates = self.store.some(list(scores), self._layers)
        rivals = self.store.others_named(candidates, self._layers)
        counting = {each.id for each in self._counting((*candidates, *rivals))}
        now, total = self.now(), self.store.count()
        found = [
            (scores[each.id] * self._trust(each, now), each)
            for each in candidates
            if each.id in counting
        ]
        found.sort(key=lambda pair: (-pair[0], pair[1].name))
        return [
            FoundPlaybook(each, score, _coverage(each, set(asked), counts, total))
            for score, each in found[:most]
        ]

    def _counting(
        self, found: Iterable[Playbook], with_deleted: bool = False
    ) -> Iterator[Playbook]:
        """Of those with one name, the one of the last folder."""
        by_name: dict[str, Playbook] = {}
        for each in sorted(found, key=self._place):
            if not each.fault and (with_deleted or each.deleted_at is None):
                by_name[each.name] = each
        yield from by_name.values()

    def _place(self, playbook: Playbook) -> tuple[int, str]:
        root = str(Path(playbook.folder).parent) if playbook.folder else EMITTED
        return self._order.get(root, 0), playbook.folder

    def _trust(self, playbook: Playbook, now: float) -> float:
        left = confidence_at(playbook, now, self.half_life_days)
        return 1 - _SHARE_OF_CONFIDENCE + _SHARE_OF_CONFIDENCE * left


def _find_doubled(counting: Iterable[Playbook], found: Iterable[Playbook]) -> Iterator[Playbook]:
    """Playbooks that are not used because another one beside them has the same name, each with that
    as its fault. One of an earlier layer is shadowed on purpose, and has no fault."""
    used = {each.name: each for each in counting if each.folder}
    for each in found:
        wins = used.get(each.name)
        if wins is None or wins.id == each.id or each.fault or not each.folder:
            continue
        if Path(wins.folder).parent == Path(each.folder).parent:
            by = Path(wins.folder).name
            said = f"the folder '{Path(each.folder).name}' has the same name as '{by}' beside it, which is used"
            yield replace(each, fault=said)


def _rarest(counts: Mapping[str, int]) -> list[str]:
    chosen: list[str] = []
    places = 0
    for word in sorted(counts, key=lambda word: (counts[word], word)):
        places += counts[word]
        if chosen and (places > _MOST_PLACES or len(chosen) == _MOST_WORDS):
            break
        chosen.append(word)
    return chosen


def _coverage(playbook: Playbook, asked: set[str], counts: Mapping[str, int], total: int) -> float:
    head = set(terms(f"{playbook.name} {playbook.description}"))
    # A word that the query does not have was not counted; it weighs as much as a rare one.
    weights = {word: math.log(1 + total / counts.get(HEAD + word, 1)) for word in head}
    covered = sum(weight for word, weight in weights.items() if word in asked)
    return covered / (sum(weights.values()) or 1.0)
