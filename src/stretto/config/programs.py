"""Files in a project that its MCP servers run. In: how they are started. Out: those files, watched.

A server's script may lie in the folder that writers work on. Trust is given for what the script
says, so the script belongs to what is trusted: a change is asked about, writers may not touch it,
and a server whose files changed while a run was under way is not started.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from stretto.config.home import path_named
from stretto.config.trust import digest_of, files_below
from stretto.text.short import relative_path
from stretto.vocabulary.json_value import Json

# A larger file is not read at each start: it is known by the time of its last change.
MOST_PROGRAM_BYTES = 64 * 2**20
_OPTION = re.compile(r"^-{1,2}[^=]+=")


class Programs(Struct, frozen=True):
    """What the servers of a project run from inside it."""

    project: Path
    places: Mapping[str, tuple[Path, ...]]  # by server: files and folders that its words name

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(sorted({file for server in self.places for file in self._files(server)}))

    @property
    def protected(self) -> tuple[str, ...]:
        """What no writer may change, relative to the project."""
        every = {place for places in self.places.values() for place in places}
        return tuple(sorted(relative_path(place, self.project) for place in every))

    def digest(self, server: str) -> str:
        return digest_of(self._files(server), self.project, MOST_PROGRAM_BYTES)

    def _files(self, server: str) -> Iterator[Path]:
        for place in self.places.get(server, ()):
            if place.is_dir():
                yield from files_below(place)
            else:
                yield place
                yield from _siblings(place)


def programs_of(servers: Mapping[str, Json], project: Path) -> Programs:
    places = {
        name: tuple(_places(entry, project))
        for name, entry in servers.items()
        if isinstance(entry, dict) and "command" in entry
    }
    return Programs(project, {name: found for name, found in places.items() if found})


def _places(entry: Mapping[str, Json], project: Path) -> Iterator[Path]:
    cwd = entry.get("cwd")
    folder = project / cwd if isinstance(cwd, str) else project
    found: dict[Path, None] = {}
    for word in _words(entry):
        try:
            path = _inside(folder / path_named(word), project)
        except ValueError:  # `~nobody/x`
            continue
        if path is None:
            continue
        # A script's own folder goes with it: what lies beside it is what it imports.
        own = path if path.is_dir() else path.parent
        found[path if own == project else own] = None
    if folder != project and (inside := _inside(folder, project)) is not None:
        found[inside] = None
    return iter(found)


def _words(entry: Mapping[str, Json]) -> Iterator[str]:
    """All that may name a file: the command, its arguments, values of its environment."""
    command, args, env = entry.get("command"), entry.get("args"), entry.get("env")
    words = [command, *(args if isinstance(args, list) else ())]
    words += list(env.values()) if isinstance(env, dict) else []
    is_module = False
    for word in words:
        if not isinstance(word, str) or "\0" in word or len(word) > 4_096:
            continue
        if is_module:  # `python -m servers.mail`
            yield word.replace(".", "/")
            yield word.replace(".", "/") + ".py"
        is_module = word == "-m"
        yield word
        value = _OPTION.sub("", word)
        yield from value.split(os.pathsep)
        if any(blank in word for blank in " \t\n"):  # `sh -c "node server.js"`
            yield from re.split(r"[\s;&|'\"()]+", word)


def _inside(path: Path, project: Path) -> Path | None:
    """The file or folder in the project that a word names; not the project itself."""
    normal = Path(os.path.normpath(path))
    try:
        is_there = normal.exists() and (normal.is_file() or normal.is_dir())
    except OSError:  # a word that no path can be, or a folder that may not be entered
        return None
    is_inside = normal.is_relative_to(project) and normal != project
    return normal if is_there and is_inside else None


def _siblings(file: Path) -> Iterator[Path]:
    """Beside a script at the top of the project, what it may import: files of its own kind."""
    if not file.suffix:
        return
    with os.scandir(file.parent) as entries:
        for entry in entries:
            if entry.name.endswith(file.suffix) and entry.is_file():
                yield Path(entry.path)
