"""Find a program of this machine by its name, and say how it is to be started.

What is started on the host must not be what a step has written. So a program is never taken from a
folder that steps write to, neither by its place on PATH nor by a link anywhere on the way to it.
Relative entries of PATH mean another folder wherever one stands, and do not count at all.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

_MOST_HOPS = 400


class ProgramStart(Struct, frozen=True):
    """What is needed to start a program."""

    words: tuple[str, ...]  # the first is the program's whole path
    folder: Path  # where it starts
    environment: Mapping[str, str]  # all of it
    stdin_text: str | None = ""  # what it reads; None: a pipe, to be written to while it runs
    keep_fds: tuple[int, ...] = ()


class Writable(Struct, frozen=True):
    """Where steps write."""

    folders: tuple[Path, ...] = ()  # workspaces
    but_not: tuple[Path, ...] = ()  # what of them no step can change: see `python.own_places`

    def reaches(self, path: str) -> bool:
        """Whether a step could change what this path means, by a link on the way to it too."""
        roots = tuple(os.path.join(os.path.realpath(folder), "") for folder in self.folders)
        kept = [os.path.realpath(place) for place in self.but_not]
        return any(
            place.startswith(roots) and not any(_is_on_the_way(place, each) for each in kept)
            for place in _places_on_the_way(path)
        )


NOWHERE = Writable()


def find_program(name: str, path: str | None = None, writable: Writable = NOWHERE) -> str | None:
    """The program's whole path, or None. `path`: as PATH is written, ours by default. A name with a slash
    must be a whole path."""
    if os.sep in name:
        return name if os.path.isabs(name) and _is_usable(name, writable) else None
    for folder in _absolute_folders(os.environ.get("PATH", os.defpath) if path is None else path):
        candidate = os.path.join(folder, name)
        if _is_usable(candidate, writable):
            return candidate
    return None


def find_command(word: str, folder: Path, path: str | None, writable: Writable) -> str | None:
    """A command as the user writes it in settings: a path, relative to `folder`, or a bare name.
    What is named by its path may lie in a workspace, and `writable` is not asked: the settings
    protect a program there, and an MCP server is compared with what was trusted."""
    if os.sep in word:
        return find_program(os.path.join(folder.absolute(), word))
    return find_program(word, path, writable)


def with_safe_path(environ: Mapping[str, str], writable: Writable) -> dict[str, str]:
    """An environment for a program that looks for further programs by its PATH."""
    if "PATH" not in environ:
        return dict(environ)
    kept = (it for it in _absolute_folders(environ["PATH"]) if not writable.reaches(it))
    return {**environ, "PATH": os.pathsep.join(kept)}


def _is_usable(path: str, writable: Writable) -> bool:
    is_program = os.path.isfile(path) and os.access(path, os.X_OK)
    return is_program and not writable.reaches(path)


def _is_on_the_way(place: str, kept: str) -> bool:
    """Within what steps cannot change, or a folder above it, which they cannot rename either."""
    return f"{place}/".startswith(f"{kept}/") or f"{kept}/".startswith(f"{place}/")


def _absolute_folders(path: str) -> Iterator[str]:
    return (folder for folder in path.split(os.pathsep) if os.path.isabs(folder))


def _places_on_the_way(path: str) -> Iterator[str]:
    """Every name that the kernel looks at when it follows the path: whoever can change one of
    them decides what the path means."""
    at, names = os.sep, path.split(os.sep)
    for _ in range(_MOST_HOPS):
        if not names:
            return
        name, names = names[0], names[1:]
        if name == "..":
            at = os.path.dirname(at)
        elif name not in ("", "."):
            here = os.path.join(at, name)
            yield here
            if not os.path.islink(here):
                at = here
                continue
            target = os.readlink(here)
            at = os.sep if target.startswith(os.sep) else at
            names = target.split(os.sep) + names
