"""Whether a folder's own settings and agents may be used. In: its files. Out: yes, or not yet.

A repository that was just cloned may bring a weft.yaml that starts programs (MCP servers) and
agents that say what to do with your files. None of it counts until you have trusted the folder
as it is; a change asks again (DESIGN, rule 9). Recipes are not meant: you name them yourself.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from weft.problems.errors import WeftError

_FILE = "trust.json"


def digest_of(files: Iterable[Path], project: Path) -> str:
    """Changes with every name and every byte."""
    from hashlib import sha256  # most folders bring nothing, and a start should be quick

    digest = sha256()
    for file in sorted(files):
        content = sha256(_bytes_of(file)).hexdigest()
        digest.update(f"{file.relative_to(project)}\0{content}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def files_that_steer(config: Path, folders: Iterable[Path], project: Path) -> list[Path]:
    """What a folder brings along: its settings and its agents."""
    found = [config] if config.is_file() else []
    for folder in folders:
        if folder.is_relative_to(project) and folder.is_dir():
            found += [file for file in folder.rglob("*") if file.is_file()]
    return sorted(set(found))


class TrustStore:
    """The user's own list: which folders, and as they were then."""

    def __init__(self, home: Path) -> None:
        self._file = home / _FILE

    def is_trusted(self, project: Path, digest: str) -> bool:
        return self._read().get(str(project)) == digest

    def was_trusted(self, project: Path) -> bool:
        """Once, though it has changed since."""
        return str(project) in self._read()

    def trust(self, project: Path, digest: str) -> None:
        self._write({**self._read(), str(project): digest})

    def forget(self, project: Path) -> bool:
        known = self._read()
        was_known = known.pop(str(project), None) is not None
        if was_known:
            self._write(known)
        return was_known

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
            self._file.parent.mkdir(parents=True, exist_ok=True)
            beside = self._file.with_suffix(".new")
            beside.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
            beside.replace(self._file)
        except OSError as error:
            raise WeftError(f"{self._file} cannot be written: {error.strerror}") from error


def told(files: Sequence[Path], project: Path) -> str:
    """`weft.yaml and 2 agents`, for a person who is asked."""
    names = [str(file.relative_to(project)) for file in files]
    agents = [name for name in names if name != "weft.yaml"]
    count = f"{len(agents)} agent file" + ("s" if len(agents) != 1 else "")
    parts = (["weft.yaml"] if len(agents) < len(names) else []) + ([count] if agents else [])
    return " and ".join(parts)


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
