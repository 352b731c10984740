"""`stretto run --detach`: leave a run to a background process.

That process is this module, run with -m. It starts in a folder of Stretto's own, so that Python
looks for modules nowhere in the user's folder, and changes to the user's folder only then.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stretto.assembly.request import PreparedRun, RunRequest
from stretto.assembly.surface import Surface
from stretto.cli.result import ResultOptions
from stretto.cli.terminal import print_json, say
from stretto.config.home import make_private
from stretto.problems.errors import StrettoError
from stretto.processes import python
from stretto.vocabulary.json_value import Json

_PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.05
_GRACE_SECONDS = 5.0  # between SIGTERM and SIGKILL


async def detach(
    stretto: Surface, prepared: PreparedRun, recipe: str, request: RunRequest, result: ResultOptions
) -> int:
    """Returns once the run's start is in the journal: from then on it can be resumed."""
    run_id = prepared.run_id
    words = ["run", recipe, "--json", "--run-id", run_id, "--input-json", "-"]
    words += ["--model", request.model] if request.model else []
    words += ["--permission", request.permission] if request.permission else []
    child = start_background(stretto, run_id, words, request.inputs)
    runs = await stretto.engine.runs_of()
    await child.wait_until(lambda: runs.is_known(run_id), "the run")
    if result.as_json:
        print_json({"ok": True, "run_id": run_id, "log": str(child.log)})
        return 0
    say(run_id)  # alone on stdout, for `run=$(stretto run … --detach)`
    if not result.is_quiet:
        say(f"\n  stretto watch {run_id}\n  stretto cancel {run_id}", err=True)
    return 0


@dataclass(frozen=True, slots=True)
class BackgroundCommand:
    """A command that another process carries out."""

    process: "subprocess.Popen[bytes]"
    log: Path  # what it prints

    async def wait_until(self, has_begun: Callable[[], Awaitable[bool]], what: str) -> None:
        """Raises StrettoError if the process ends first, or has not begun after half a minute. It is
        ended then: if it still began, whoever tries again would have the work done twice."""
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                while self.process.poll() is None:
                    if await has_begun():
                        return
                    await asyncio.sleep(_POLL_SECONDS)
        except BaseException as error:  # Ctrl-C too
            await self._end()
            if not isinstance(error, TimeoutError):
                raise
        if not await has_begun():
            raise StrettoError(f"{what} did not start; see {self.log}")

    async def _end(self) -> None:
        """End the process and those of its group."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                os.killpg(self.process.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    await asyncio.to_thread(self.process.wait, _GRACE_SECONDS)


def start_background(
    stretto: Surface, name: str, words: list[str], inputs: Mapping[str, Json] | None = None
) -> BackgroundCommand:
    """`name`: of the log. `inputs`: what the command reads from stdin."""
    log = stretto.project.settings.home / "logs" / f"{name}.log"
    make_private(log.parent)
    with open(os.open(log, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as output:
        return BackgroundCommand(_start(words, inputs or {}, output.fileno()), log)


def _start(words: list[str], inputs: Mapping[str, Json], output: int) -> "subprocess.Popen[bytes]":
    command = python.module("stretto.cli.background", os.getcwd(), *words)
    child = subprocess.Popen(
        command.words,
        cwd=command.folder,
        env=python.environment(os.environ),
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        start_new_session=True,  # it outlives this terminal
    )
    assert child.stdin is not None
    child.stdin.write(json.dumps(dict(inputs)).encode())
    child.stdin.close()
    return child


if __name__ == "__main__":
    from stretto.cli.main import main

    os.chdir(sys.argv[1])
    main(sys.argv[2:])
