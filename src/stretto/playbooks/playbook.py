"""What a playbook is, and how much of one is ever read.

A playbook is a method in words: a `SKILL.md` folder that somebody wrote, or what was captured from
a delegation that worked (*emitted*). It is given to a model as text. Nothing in it is run, and nothing
in it changes what a step may do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from stretto.vocabulary.json_value import Json

# skill: a folder with a SKILL.md. emitted: captured from a delegation (skill-v1).
PlaybookSource: TypeAlias = Literal["skill", "emitted"]
MOST_SKILL_BYTES = 256 * 1024  # of a SKILL.md
MOST_FILE_BYTES = 256 * 1024  # of a further file
MOST_FILES = 64
MOST_BYTES = 1024 * 1024  # of all files of one playbook
MOST_DESCRIPTION = 1024  # characters
MOST_NAME = 64


@dataclass(frozen=True, slots=True)
class PlaybookText:
    """All that a playbook says."""

    name: str
    description: str
    body: str
    digest: str = ""  # of all its files
    files: Mapping[str, str] = field(default_factory=dict)  # further ones, by path; only text


@dataclass(frozen=True, slots=True)
class Playbook:
    """One playbook as a list shows it. Times are seconds since the epoch."""

    name: str
    description: str
    body: str
    digest: str
    source: PlaybookSource
    layer: str  # bundled | user | settings | project | emitted
    folder: str  # empty for an emitted one
    is_pinned: bool
    confidence: float  # as it was when it was last used; what is left of it now: `curation`
    uses: int
    last_used_at: float | None
    made_at: float
    origin: Mapping[str, Json] = field(default_factory=dict)  # run, step, agent, tools
    files: tuple[str, ...] = ()
    fault: str = ""  # why it cannot be used
    deleted_at: float | None = None
    id: int = 0  # its row

    @property
    def is_usable(self) -> bool:
        return not self.fault and self.deleted_at is None
