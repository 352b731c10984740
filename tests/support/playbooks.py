"""Libraries of playbooks for tests: filled from the labelled set, on a clock that tests move."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stretto.playbooks.library import DAY_SECONDS, Library, open_library
from stretto.playbooks.playbook import PlaybookText
from stretto.registry.folders import Folder

HELD_OUT = "held_out_queries.txt"  # written after the index was made, and never used to tune it
DATA = Path(__file__).parents[1] / "playbooks" / "data"


@dataclass
class Calendar:
    """A virtual clock."""

    at: float = 1_700_000_000.0

    def now(self) -> float:
        return self.at

    def pass_days(self, days: float) -> None:
        self.at += days * DAY_SECONDS


def labelled_playbooks() -> list[PlaybookText]:
    rows = (DATA / "playbooks.txt").read_text(encoding="utf-8").splitlines()
    return [PlaybookText(*row.split("|"), digest="d") for row in rows]


def labelled_queries(file: str = "queries.txt") -> list[tuple[str, str]]:
    """A query, and the playbook that it is about; empty: none is."""
    rows = (DATA / file).read_text(encoding="utf-8").splitlines()
    return [(query, name) for query, _, name in (row.rpartition("|") for row in rows)]


def recall(filled: Library, file: str = "queries.txt") -> tuple[float, list[tuple[str, str]]]:
    """The share of queries that find their playbook among the first five, and those that do not."""
    asked = [(query, name) for query, name in labelled_queries(file) if name]
    missed = [
        (query, name)
        for query, name in asked
        if name not in [found.playbook.name for found in filled.search(query, 5)]
    ]
    return 1 - len(missed) / len(asked), missed


@contextmanager
def library(folder: Path, calendar: Calendar | None = None) -> Iterator[Library]:
    clock = calendar or Calendar()
    roots = (Folder(folder / "playbooks", "user"),)
    with open_library(folder / "playbooks.db", roots, clock.now) as opened:
        yield opened


def write_skill(folder: Path, name: str, description: str, body: str = "Do it.") -> Path:
    place = folder / "playbooks" / name
    place.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {name}\ndescription: {json.dumps(description)}\n---\n{body}\n"
    (place / "SKILL.md").write_text(text, encoding="utf-8")
    return place
