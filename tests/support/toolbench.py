"""A workspace with tools in it, for the tests of tools."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from stretto.adapters.tools.files import Files
from stretto.ports.tool import Reach, Tool, ToolOutcome
from stretto.vocabulary.json_value import Json
from stretto.workspaces.isolated_copy import isolate

T = TypeVar("T")
WRITES = ("out/**", "src/*.py")


def reach_of(
    workspace: Path,
    may_write: bool = True,
    read_set: tuple[str, ...] = ("**/*",),
    write_set: tuple[str, ...] = ("**/*",),
    carried: tuple[str, ...] = (),
    origin: Path | None = None,
) -> Reach:
    return Reach(workspace, may_write, read_set, write_set, origin=origin, carried=carried)


def copy_of(origin: Path, home: Path, *carry: str) -> Reach:
    """The reach of an isolated writer that may write everything."""
    root = isolate(origin, home, writes=["**/*"], carry=carry).root
    return reach_of(root, carried=carry, origin=origin)


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


async def longest_pause(work: Awaitable[T]) -> tuple[T, float]:
    """What comes of the work, and for how many seconds nothing else on the loop could go on."""
    longest, loop = 0.0, asyncio.get_running_loop()

    async def beat() -> None:
        nonlocal longest
        before = loop.time()
        while True:
            await asyncio.sleep(0.01)
            longest, before = max(longest, loop.time() - before), loop.time()

    beating = asyncio.create_task(beat())
    await asyncio.sleep(0.02)
    try:
        done = await work
        await asyncio.sleep(0.02)
        return done, longest
    finally:
        beating.cancel()
