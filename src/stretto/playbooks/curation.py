"""Keep what worked, and drop what nobody uses. In: a library and the time. Out: its changes.

An emitted playbook (`skill-v1`) is a delegation that worked, kept as a prompt template and the tools used:

    {"format": "skill-v1", "name": …, "description": …, "prompt_template": …, "tools_used": […]}

It is not pinned: its confidence fades when nobody uses it. A new one that says what another emitted
one says is not added, and strengthens that one. Curation touches only what nobody has pinned:
emitted playbooks, and folders that somebody has unpinned. What goes is marked as deleted and can be
restored; no file is removed.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Literal

from stretto.documents.regular_file import NotRegular, TooLarge, read_regular
from stretto.playbooks.library import DAY_SECONDS, Library, confidence_at
from stretto.playbooks.playbook import (
    MOST_DESCRIPTION,
    MOST_NAME,
    MOST_SKILL_BYTES,
    Playbook,
    PlaybookText,
)
from stretto.playbooks.store import EMITTED
from stretto.problems.errors import InvalidUsage
from stretto.text.terms import likeness
from stretto.text.visible import one_line, visible
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import is_id

FLOOR = 0.1  # below this confidence a playbook is pruned
LIKENESS = 0.8  # from here on two playbooks say the same
_NEIGHBOURS = 8
_MOST_QUERY = 4_000  # characters


@dataclass(frozen=True, slots=True)
class CurationStep:
    action: Literal["prune", "merge"]
    name: str
    why: str
    id: int
    into: Playbook | None = None  # where it is merged: the playbook that stays


def curate(library: Library, *, is_dry_run: bool = False, since: float = 0.0) -> list[CurationStep]:
    """`since`: only playbooks that are newer are compared with others; all are looked at for use."""
    now = library.now()
    steps = list(_decide(library, now, since))
    if not is_dry_run:
        with library.store.change():
            for step in steps:
                _carry_out(library, step, now)
            pruned = sum(step.action == "prune" for step in steps)
            said = f"pruned {pruned}, merged {len(steps) - pruned}"
            library.store.note(now, "curate", "", said)
    return steps


def curate_if_due(library: Library) -> None:
    """Once a day, by whoever uses playbooks; at every use, where the last time lies in the future:
    a clock that was set back must not put it off for years."""
    last = library.store.last_time("curate")
    if last is None or not 0 <= library.now() - last < DAY_SECONDS:
        curate(library, since=min(last or 0.0, library.now()))


def _decide(library: Library, now: float, since: float) -> Iterator[CurationStep]:
    known = [each for each in library.all() if each.is_usable and each.layer != "bundled"]
    gone: set[int] = set()
    for each in known:
        left = confidence_at(each, now, library.half_life_days)
        if not each.is_pinned and left < FLOOR:
            gone.add(each.id)
            said = f"its confidence is {left:.2f}, below {FLOOR}; last used {_days_ago(each, now)}"
            yield CurationStep("prune", each.name, said, each.id)
    by_worth = sorted(known, key=lambda each: _worth(library, each, now))
    for each in by_worth:
        if each.is_pinned or each.id in gone or each.made_at < since:
            continue
        twin = _twin(library, each, gone, now)
        if twin is not None:
            gone.add(each.id)
            yield CurationStep(
                "merge", each.name, f"it says what '{twin.name}' says", each.id, twin
            )


def _twin(library: Library, playbook: Playbook, gone: set[int], now: float) -> Playbook | None:
    """A playbook that says the same and is worth more, if there is one."""
    query = f"{playbook.name} {playbook.description} {playbook.body}"[:_MOST_QUERY]
    for found in library.search(query, _NEIGHBOURS):
        other = found.playbook
        if other.id == playbook.id or other.id in gone:
            continue
        is_worth_more = _worth(library, other, now) > _worth(library, playbook, now)
        if is_worth_more and likeness(_words_of(playbook), _words_of(other)) >= LIKENESS:
            return other
    return None


def _worth(library: Library, playbook: Playbook, now: float) -> tuple[bool, float, int, float, int]:
    """What a person wrote or pinned first; then what is trusted, used, and older."""
    left = confidence_at(playbook, now, library.half_life_days)
    return playbook.is_pinned, left, playbook.uses, -playbook.made_at, -playbook.id


def _carry_out(library: Library, step: CurationStep, now: float) -> None:
    store = library.store
    store.set(step.id, deleted_at=now)
    store.note(now, step.action, step.name, step.why)
    if step.into is not None and not step.into.is_pinned:
        store.add_uses(step.into.id, step.id)


def _days_ago(playbook: Playbook, now: float) -> str:
    if playbook.last_used_at is None:
        return "never"
    return f"{(now - playbook.last_used_at) / DAY_SECONDS:.0f} days ago"


FORMAT = "skill-v1"
CONFIDENCE = 0.5  # of what worked once


@dataclass(frozen=True, slots=True)
class EmittedSkill:
    name: str
    description: str
    prompt_template: str
    tools_used: tuple[str, ...] = ()
    confidence: float = CONFIDENCE
    origin: Mapping[str, Json] = field(default_factory=dict)

    @property
    def body(self) -> str:
        tools = ", ".join(self.tools_used) or "none"
        return visible(f"This prompt worked:\n\n{self.prompt_template}\n\nTools used: {tools}")


def emit(library: Library, skill: EmittedSkill, by: str = "") -> Playbook:
    """Keep it, under a name of its own; or strengthen the emitted playbook that says the same."""
    now = library.now()
    with library.store.change():
        near = [found.playbook for found in library.search(f"{skill.description} {skill.body}")]
        # A deleted one that says the same comes back, whoever deleted it.
        gone = [each for each in library.all() if each.deleted_at is not None]
        emitted = (each for each in (*near, *gone) if each.source == "emitted")
        twin = next((each for each in emitted if _is_same(each, skill)), None)
        if twin is not None:
            left = confidence_at(twin, now, library.half_life_days)
            grown = max(twin.confidence, 1 - (1 - left) * (1 - skill.confidence))
            library.store.set(twin.id, confidence=grown, last_used_at=now, deleted_at=None)
            library.store.note(now, "capture", twin.name, f"again: {_where(skill)}", by)
            name = twin.name
        else:
            name = _free_name(skill.name, (each.name for each in library.all()))
            digest = sha256(f"{skill.description}\0{skill.body}".encode()).hexdigest()
            text = PlaybookText(name, skill.description, skill.body, digest)
            library.store.put(
                EMITTED, name, "", text, now, confidence=skill.confidence, origin=skill.origin
            )
            library.store.note(now, "capture", name, _where(skill), by)
    return library.named(name)


def read_emitted(file: Path) -> EmittedSkill:
    """Raises InvalidUsage."""
    try:
        read = json.loads(read_regular(file, MOST_SKILL_BYTES).decode("utf-8"))
    except (TooLarge, NotRegular) as error:
        raise InvalidUsage(f"{file} {error}") from None
    except OSError as error:
        raise InvalidUsage(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidUsage(f"{file} is not JSON: {error}") from None
    if not isinstance(read, dict) or read.get("format") != FORMAT:
        hint = 'a folder with a SKILL.md, or JSON with "format": "skill-v1"'
        raise InvalidUsage(f"{file} is no playbook", hint=hint)
    texts = {key: read.get(key) for key in ("name", "description", "prompt_template")}
    lacking = [key for key, value in texts.items() if not isinstance(value, str) or not value]
    tools = read.get("tools_used", [])
    if not isinstance(tools, list) or not all(isinstance(tool, str) for tool in tools):
        lacking.append("tools_used")
    confidence = read.get("confidence", CONFIDENCE)
    if type(confidence) not in (int, float) or not 0 < confidence <= 1:
        lacking.append("confidence")
    if lacking:
        raise InvalidUsage(f"{file}: missing or wrong: {', '.join(lacking)}")
    name = str(texts["name"])
    if not is_id(name) or len(name) > MOST_NAME:
        raise InvalidUsage(f"{file}: a name has letters, digits, - and _, at most {MOST_NAME}")
    return EmittedSkill(
        name,
        one_line(str(texts["description"]), MOST_DESCRIPTION),
        str(texts["prompt_template"]),
        tuple(map(str, tools)),
        float(confidence),
        {"file": str(file)},
    )


def slug(text: str) -> str:
    """A name made of any text."""
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")[: MOST_NAME - 4].rstrip("-") or "x"


def _is_same(playbook: Playbook, skill: EmittedSkill) -> bool:
    return likeness(_words_of(playbook), f"{skill.description} {skill.body}") >= LIKENESS


def _words_of(playbook: Playbook) -> str:
    return f"{playbook.description} {playbook.body}"


def _free_name(name: str, taken: Iterable[str]) -> str:
    used = set(taken)
    names = (name, *(f"{name}-{number}" for number in range(2, len(used) + 3)))
    return next(each for each in names if each not in used)


def _where(skill: EmittedSkill) -> str:
    return ", ".join(f"{key} {value}" for key, value in skill.origin.items() if value)
