"""Libraries of playbooks for tests: filled from the labelled set, on a clock that tests move."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stretto.playbooks.library import DAY_SECONDS, Library, open_library
from stretto.playbooks.playbook import PlaybookText
from stretto.registry.folders import Folder

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


def labelled_queries() -> list[tuple[str, str]]:
    """A query, and the playbook that it is about; empty: none is."""
    rows = (DATA / "queries.txt").read_text(encoding="utf-8").splitlines()
    return [(query, name) for query, _, name in (row.rpartition("|") for row in rows)]


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
