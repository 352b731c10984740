"""`stretto run --detach`: leave a run to a background process.

That process is this module, run with -m. It starts in a folder of Stretto's own, so that Python
looks for modules nowhere in the user's folder, and changes to the user's folder only then.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping

from stretto.assembly.project import Project
from stretto.cli.terminal import print_json, say
from stretto.config.private import make_private
from stretto.execution.runs import new_run_id
from stretto.problems.errors import NotFound, StrettoError
from stretto.processes import python
from stretto.vocabulary.ids import RunId
from stretto.vocabulary.values import Json

_PATIENCE_SECONDS = 30.0


def detach(
    project: Project,
    recipe: str,
    inputs: Mapping[str, Json],
    model: str | None,
    permission: str | None,
    as_json: bool,
) -> int:
    run_id = new_run_id()
    log = project.settings.home / "logs" / f"{run_id}.log"
    make_private(log.parent)
    words = ["run", recipe, "--json", "--run-id", run_id, "--input-json", "-"]
    words += ["--model", model] if model else []
    words += ["--permission", permission] if permission else []
    command = python.module("stretto.cli.background", os.getcwd(), *words)
    with open(os.open(log, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as output:
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
    _wait_for_start(project, run_id, child, str(log))
    if as_json:
        print_json({"ok": True, "run_id": run_id, "log": str(log)})
    else:
        say(f"{run_id}\n\n  stretto watch {run_id}\n  stretto cancel {run_id}")
    return 0


def _wait_for_start(
    project: Project, run_id: RunId, child: "subprocess.Popen[bytes]", log: str
) -> None:
    """Its first event is in the journal: from here on nothing of it can be lost."""
    give_up_at = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < give_up_at:
        try:
            asyncio.run(_look(project, run_id))
            return
        except NotFound:
            if child.poll() is not None:
                break
            time.sleep(0.05)
    raise StrettoError(f"the run did not start; see {log}")


async def _look(project: Project, run_id: RunId) -> None:
    async with project.runs() as runs:
        await runs.history(run_id)


if __name__ == "__main__":
    from stretto.cli.main import main

    os.chdir(sys.argv[1])
    main(sys.argv[2:])
