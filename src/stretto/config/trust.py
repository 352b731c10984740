"""Whether a folder's own settings, agents and playbooks may be used. In: its files. Out: yes, or not yet.

A repository that was just cloned may bring a stretto.yaml that starts programs (MCP servers), and
agents and playbooks that say what to do with your files. None of it counts until you have trusted the folder
as it is; a change asks again. Recipes need no trust, since you name them yourself; only
one that has the name of a recipe of your own, or of a bundled one, needs the folder's trust.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from stretto.config.home import make_private
from stretto.documents.regular_file import NotRegular, TooLarge, read_regular
from stretto.problems.errors import StrettoError
from stretto.text.short import counted, relative_path

_FILE = "trust.json"
SKILL_FILE = "SKILL.md"  # a folder that holds one is a playbook
# Of settings and agents no more is ever read: what lies beyond steers nothing.
MOST_TEXT_BYTES = 4 * 2**20
_MOST_FILES = 2_000


def digest_of(files: Iterable[Path], project: Path, most_bytes: int = MOST_TEXT_BYTES) -> str:
    """Changes with every name and every byte; of a file above `most_bytes`, with any write to it."""
    from hashlib import sha256  # most folders bring nothing, and a start should be quick

    digest = sha256()
    for file in sorted(files):
        content = sha256(_bytes_of(file, most_bytes)).hexdigest()
        digest.update(
            f"{relative_path(file, project)}\0{content}\n".encode(errors="surrogateescape")
        )
    return digest.hexdigest()


def files_that_steer(config: Path, folders: Iterable[Path]) -> list[Path]:
    """What a folder brings along: its settings, and all that is in the folders of its agents."""
    found = [config] if config.is_file() else []
    for folder in folders:
        found += files_below(folder)
    return sorted(set(found))


def files_of_playbooks(folders: Iterable[Path]) -> list[Path]:
    """All that is in the folders that hold a SKILL.md. What else lies beside them steers nothing."""
    found: list[Path] = []
    for folder in folders:
        skills: list[Path] = []
        with suppress(OSError):  # a name that no folder can have
            skills = sorted(folder.glob(f"*/{SKILL_FILE}"))
        for skill in skills:
            found += files_below(skill.parent)
    return found


def files_below(folder: Path) -> Iterator[Path]:
    """Raises StrettoError for a folder with more files than anybody can read before trusting them."""
    count = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            file = Path(parent, name)
            if not file.is_file():
                continue
            count += 1
            if count > _MOST_FILES:
                hint = "move them, or name another folder in the settings"
                raise StrettoError(f"{folder} holds more than {_MOST_FILES:,} files", hint=hint)
            yield file


class TrustStore:
    """The user's own list of trusted folders, each with the digest that it had then."""

    def __init__(self, home: Path) -> None:
        self._file = home / _FILE

    def is_trusted(self, project: Path, digest: str) -> bool:
        return self._read().get(str(project)) == digest

    def was_trusted(self, project: Path) -> bool:
        """Once, though it may have changed since."""
        return str(project) in self._read()

    def trust(self, project: Path, digest: str) -> None:
        with self._alone():
            self._write({**self._read(), str(project): digest})

    def forget(self, project: Path) -> bool:
        with self._alone():
            known = self._read()
            was_known = known.pop(str(project), None) is not None
            if was_known:
                self._write(known)
        return was_known

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Of two commands at once, the second reads what the first has written."""
        try:
            make_private(self._file.parent)
            lock = os.open(self._file.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise StrettoError(f"{self._file} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)  # and the lock with it

    def _read(self) -> dict[str, str]:
        import json

        try:
            known = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}  # what cannot be read trusts nobody
        return known if isinstance(known, dict) else {}

    def _write(self, known: dict[str, str]) -> None:
        import json

        try:
            beside = self._file.with_suffix(".new")
            beside.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
            beside.replace(self._file)
        except OSError as error:
            raise StrettoError(f"{self._file} cannot be written: {error.strerror}") from error


def describe_files(files: Sequence[Path], project: Path) -> str:
    """`stretto.yaml and 2 agent files`, for a person who is asked."""
    settings = [file for file in files if relative_path(file, project) == "stretto.yaml"]
    playbooks = {file.parent for file in files if file.name == SKILL_FILE}
    agents = [file for file in files if file not in settings and playbooks.isdisjoint(file.parents)]
    parts = ["stretto.yaml"] if settings else []
    for count, word in ((len(agents), "agent file"), (len(playbooks), "playbook")):
        if count:
            parts.append(counted(count, word))
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 2 else parts)


def _bytes_of(file: Path, most_bytes: int) -> bytes:
    try:
        return read_regular(file, most_bytes)
    except TooLarge:
        return _last_change(file)
    except NotRegular:
        return b"no regular file, which nobody reads"
    except OSError:
        return b""


def _last_change(file: Path) -> bytes:
    try:
        status = os.stat(file)
    except OSError:
        return b""
    # Unlike the time of the last write, no program can set st_ctime back.
    return f"{status.st_ino} {status.st_size} {status.st_ctime_ns}, not read".encode()
