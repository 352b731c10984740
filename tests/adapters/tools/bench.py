"""A workspace with tools in it, for the tests of tools."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from weft.adapters.tools.files import Files
from weft.ports.tool import Reach, Tool, ToolOutcome
from weft.vocabulary.values import Json

WRITES = ("out/**", "src/*.py")


def reach_of(
    workspace: Path,
    may_write: bool = True,
    read_set: tuple[str, ...] = ("**/*",),
    write_set: tuple[str, ...] = ("**/*",),
) -> Reach:
    return Reach(workspace, may_write, read_set, write_set)


@contextmanager
def opened(make: Callable[[Files], Tool], reach: Reach) -> Iterator[Tool]:
    with Files(reach) as files:
        yield make(files)


def called(make: Callable[[Files], Tool], reach: Reach, **arguments: Json) -> ToolOutcome:
    with opened(make, reach) as tool:
        return call(tool, **arguments)


def call(tool: Tool, **arguments: Json) -> ToolOutcome:
    return asyncio.run(tool.call(arguments, "run/step/part/1/1"))


def tree(root: Path) -> Mapping[str, bytes]:
    """Every file with its content, links as what they say."""
    return {
        str(path.relative_to(root)): str(path.readlink()).encode()
        if path.is_symlink()
        else path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_symlink() or path.is_file()
    }
