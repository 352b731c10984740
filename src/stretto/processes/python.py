"""Make command lines that start our own interpreter with a program or a module of ours.

Python looks for modules in the current folder and beside the script that it is given. Whoever stands
in a cloned folder, or lets an agent write there, would run what lies there as `click.py` or `json.py`.
So every interpreter that is started, is started here: by its whole path, told not to look there
(`-P`, or `-I` where it needs nothing but the standard library), and standing in a folder that no
step can write to.
"""

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

# Taken once: what a later step does to PATH, or to the current folder, changes nothing.
_INTERPRETER = os.path.abspath(sys.executable) if sys.executable else ""
FOLDER = Path(os.path.abspath(os.sep))
# Not the prefix itself: it can be a folder in which other things lie, even a workspace.
_OF_A_PREFIX = ("bin", "include", "lib", "lib64", "share", "pyvenv.cfg", "Scripts", "Lib")
_GUARD, _STARTER = (Path(__file__).with_name(name) for name in ("guard.py", "starter.py"))


class CommandLine(Struct, frozen=True):
    words: tuple[str, ...]
    folder: Path = FOLDER


def own_places() -> tuple[Path, ...]:
    """The interpreter, what is installed for it, and this package: what a step writes there, we
    would run. The base installation is named too, because a virtual environment borrows from it."""
    prefixes = {os.path.realpath(it) for it in (sys.prefix, sys.exec_prefix, sys.base_prefix)}
    package = os.path.realpath(Path(__file__).parents[1])
    inside = [Path(prefix, name) for prefix in sorted(prefixes) for name in _OF_A_PREFIX]
    return (*(place for place in inside if os.path.lexists(place)), Path(package))


def has_interpreter() -> bool:
    """An embedded Python does not know its own program."""
    return bool(_INTERPRETER)


def isolated(program: Path, *words: str, life: int | None = None) -> CommandLine:
    """A program of ours that needs the standard library and nothing else.

    `life`: the reading end of a pipe; once the other end is closed, the kernel ends the program.
    """
    return CommandLine((_INTERPRETER, "-I", "-S", *_starter(life), str(program), *words))


def with_packages(program: Path, *words: str, life: int | None = None) -> CommandLine:
    """A program of ours that needs installed packages. PYTHONPATH counts, as in `environment`."""
    return CommandLine((_INTERPRETER, "-P", *_starter(life), str(program), *words))


def module(name: str, *words: str) -> CommandLine:
    return CommandLine((_INTERPRETER, "-P", "-m", name, *words))


def guarded(words: Sequence[str], folder: Path, life: int) -> CommandLine:
    """A program of somebody else, beneath our guard. `life`: the reading end of a pipe; once the
    other end is closed, the program and all that it has started are ended.

    Raises OSError when the folder that it should start in is gone.
    """
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    return isolated(_GUARD, str(life), str(folder.absolute()), *words)


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Without entries of PYTHONPATH that mean another folder wherever one stands."""
    paths = environ.get("PYTHONPATH", "").split(os.pathsep)
    kept = os.pathsep.join(path for path in paths if os.path.isabs(path))
    rest = {name: value for name, value in environ.items() if name != "PYTHONPATH"}
    return {**rest, "PYTHONPATH": kept} if kept else rest


def _starter(life: int | None) -> tuple[str, ...]:
    return () if life is None else (str(_STARTER), str(life))
