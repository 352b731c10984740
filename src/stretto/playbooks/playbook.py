"""What a playbook is, and how a `SKILL.md` folder is read. In: a folder that anybody may have made. Out:
PlaybookText, or a fault.

    review-a-pull-request/
      SKILL.md              front matter (name, description), then the method
      references/style.md   further files, which an agent may ask for

A playbook is a method in words: such a folder, or what was captured from a delegation that worked
(*emitted*). It is given to a model as text. Nothing in it is run, and nothing in it changes what a step
may do: front matter may say more (`license`, `allowed-tools`), and that is passed over. No link
inside it is followed, nothing but regular files is opened, and nothing beyond the limits is read.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

from stretto.config.home import make_private
from stretto.config.trust import SKILL_FILE
from stretto.documents.document import compose
from stretto.documents.node import MapNode, ScalarNode, Source
from stretto.problems.errors import InvalidUsage, RefusedToOverwrite, StrettoError
from stretto.text.visible import one_line, visible
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import is_id

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
    confidence: float  # at its last use; `confidence_at` tells what is left of it
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


_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)??---[ \t]*(?:\n|\Z)", re.DOTALL)
_MOST_DEPTH = 4
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY


@dataclass(frozen=True, slots=True)
class BrokenPlaybook:
    """A folder with a SKILL.md that cannot be used, and why."""

    name: str
    fault: str


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A regular file of a playbook, as far as its folder tells."""

    path: str  # from the playbook's folder on
    size: int
    stamp: str  # changes when the file does


class _Refused(Exception):
    """The text says why a playbook cannot be used."""


def skill_folders(root: Path, follows_links: bool) -> list[Path]:
    """The folders in `root` that hold a SKILL.md, by name."""
    try:
        with os.scandir(root) as entries:
            found = sorted(
                entry.name
                for entry in entries
                if not entry.name.startswith(".")
                and _is_utf8(entry.name)  # the index is UTF-8, and no playbook can have such a name
                and entry.is_dir(follow_symlinks=follows_links)
            )
    except OSError:  # a folder that is not there holds nothing
        return []
    return [root / name for name in found if os.path.lexists(root / name / SKILL_FILE)]


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def stamp_of(folder: Path) -> str:
    """Changes when any file of the playbook does."""
    digest = sha256()
    try:
        for file in _files_of(folder):
            digest.update(f"{file.path}\0{file.size}\0{file.stamp}\n".encode(errors="replace"))
    except _Refused as refused:
        return f"refused: {refused}"
    except OSError as error:  # a file was removed meanwhile, or a folder may not be entered
        return f"refused: {error.strerror or type(error).__name__}"
    return digest.hexdigest()


def read_skill_folder(folder: Path) -> PlaybookText | BrokenPlaybook:
    try:
        contents = dict(_contents(folder))
        if SKILL_FILE not in contents:
            raise _Refused(f"{SKILL_FILE} is not a regular file; links are not followed")
        digest = sha256()
        for path in sorted(contents):
            digest.update(path.encode(errors="replace") + b"\0")
            digest.update(sha256(contents[path]).digest())
        skill = read_skill_text(_decode(contents.pop(SKILL_FILE), SKILL_FILE), folder.name)
        files = {path: text for path, raw in contents.items() if (text := _text(raw)) is not None}
        return PlaybookText(skill.name, skill.description, skill.body, digest.hexdigest(), files)
    except _Refused as refused:
        return BrokenPlaybook(_name_for(folder), str(refused))
    except OSError as error:
        return BrokenPlaybook(
            _name_for(folder), f"it cannot be read: {error.strerror or type(error).__name__}"
        )


def copy_skill_folder(source: Path, target: Path) -> str:
    """Copy a playbook into the folder `target`, whole or not at all. Gives its name.

    Raises InvalidUsage where it cannot be used, and RefusedToOverwrite.
    """
    read = read_skill_folder(source)
    if isinstance(read, BrokenPlaybook):
        raise InvalidUsage(f"{source} is no playbook: {read.fault}")
    place = target / read.name
    if place.exists():
        hint = "remove that folder first, or give the new one another name"
        raise RefusedToOverwrite(f"{place} is there already", hint=hint)
    try:
        make_private(target)
        # The dot keeps a copy that is not whole from being found.
        with TemporaryDirectory(prefix=".adding-", dir=target) as folder:
            draft = Path(folder, read.name)
            for path, content in _contents(source):
                (draft / path).parent.mkdir(parents=True, exist_ok=True)
                (draft / path).write_bytes(content)
            draft.rename(place)
    except OSError as error:
        raise StrettoError(f"{place} cannot be written: {error.strerror}") from error
    return read.name


def read_skill_text(text: str, folder_name: str) -> PlaybookText:
    """Raises _Refused. `folder_name` is the playbook's name where its front matter says none."""
    text = text.replace("\r\n", "\n")
    matter = _FRONT_MATTER.match(text)
    if matter is None:
        raise _Refused(f"{SKILL_FILE} must begin with front matter: name and description")
    entries = _entries(matter[1] or "")
    name = entries.get("name") or folder_name
    if not is_id(name) or len(name) > MOST_NAME:
        shown = one_line(name, 80)
        raise _Refused(f"its name is '{shown}'; use letters, digits, - and _, at most {MOST_NAME}")
    description = one_line(entries.get("description") or "")
    if not description:
        raise _Refused("it has no description, which says when the playbook is of use")
    if len(description) > MOST_DESCRIPTION:
        raise _Refused(f"its description has more than {MOST_DESCRIPTION:,} characters")
    return PlaybookText(name, description, visible(text[matter.end() :]).strip())


def _entries(front: str) -> dict[str, str]:
    document = compose(Source(front, SKILL_FILE))
    if document.problems:
        problem = document.problems[0]
        line = f", line {problem.place.line + 1}" if problem.place else ""
        raise _Refused(f"its front matter cannot be read{line}: {problem.message}")
    if not isinstance(document.root, MapNode):
        raise _Refused("its front matter must be a mapping: name and description")
    found = {}
    for key in ("name", "description"):
        node = document.root.entries.get(key)
        if node is None:
            continue
        if not isinstance(node, ScalarNode) or isinstance(node.value, dict | list):
            raise _Refused(f"'{key}' in its front matter must be text")
        found[key] = "" if node.value is None else str(node.value)
    return found


def _name_for(folder: Path) -> str:
    return one_line(folder.name, MOST_NAME) or "?"


def _contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    total = 0
    for file in _files_of(folder):
        most = MOST_SKILL_BYTES if file.path == SKILL_FILE else MOST_FILE_BYTES
        raw = _read(folder, file.path, most)
        total += len(raw)
        if total > MOST_BYTES:
            raise _Refused(f"its files have more than {MOST_BYTES:,} bytes together")
        yield file.path, raw


def _files_of(folder: Path) -> Iterator[SkillFile]:
    """Regular files only, in a stable order."""
    count = 0
    for parent, folders, names, _ in os.fwalk(folder, follow_symlinks=False):
        inside = os.path.relpath(parent, folder)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if inside != "." and inside.count(os.sep) + 1 >= _MOST_DEPTH:
            folders.clear()
        for name in sorted(names):
            status = os.stat(os.path.join(parent, name), follow_symlinks=False)
            if name.startswith(".") or not stat.S_ISREG(status.st_mode):
                continue
            count += 1
            if count > MOST_FILES:
                raise _Refused(f"it has more than {MOST_FILES} files")
            path = name if inside == "." else f"{inside}/{name}"
            if not _is_utf8(path):
                raise _Refused(f"the name of its file {path!a} is not UTF-8")
            stamp = f"{status.st_mtime_ns}-{status.st_ctime_ns}-{status.st_ino}"
            yield SkillFile(path, status.st_size, stamp)


def _read(folder: Path, path: str, most: int) -> bytes:
    """Component by component, so that no link can lead out of the folder."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        *parents, name = path.split("/")
        for parent in parents:
            inner = os.open(parent, _OPEN | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = inner
        descriptor = os.open(name, _OPEN, dir_fd=at)
    finally:
        os.close(at)
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _Refused(f"{one_line(path, 80)} is not a regular file")
        raw = stream.read(most + 1)
    if len(raw) > most:
        raise _Refused(f"{one_line(path, 80)} has more than {most:,} bytes")
    return raw


def _decode(raw: bytes, path: str) -> str:
    text = _text(raw)
    if text is None:
        raise _Refused(f"{path} is not text in UTF-8")
    return text


def _text(raw: bytes) -> str | None:
    """None for what is no text: a picture, an archive."""
    if b"\0" in raw:
        return None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
