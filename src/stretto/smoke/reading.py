"""Read a journal in a process that knows nothing else. In: a file. Out: the rows of every run.

`python -m stretto.smoke.reading FILE` is that process: it prints one JSON object.
"""

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from stretto.adapters.stores.sqlite import SqliteJournal
from stretto.events.codec import UnknownEvent, decode, encode
from stretto.ports.journal import StoredEvent
from stretto.problems.errors import StrettoError
from stretto.processes import python

_PATIENCE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class ReadBack:
    journals: dict[str, list[StoredEvent]]
    pid: int  # who read it


def read_elsewhere(file: Path) -> ReadBack:
    command = python.module(__name__, str(file.absolute()))
    done = subprocess.run(
        command.words,
        cwd=command.folder,
        env=python.environment(os.environ),
        capture_output=True,
        text=True,
        timeout=_PATIENCE_SECONDS,
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise StrettoError(f"the journal cannot be read back: {said[0]}")
    said_back = json.loads(done.stdout)
    journals = {
        run: [StoredEvent(seq, decode(text)) for seq, text in rows]
        for run, rows in said_back["runs"].items()
    }
    return ReadBack(journals, said_back["pid"])


async def _read(file: Path) -> dict[str, list[tuple[int, str]]]:
    store = await SqliteJournal.open(file)
    try:
        runs = [row.run_id for row in reversed(await store.runs(1000))]
        return {run: [(r.seq, _text(r)) for r in await store.read(run)] for run in runs}
    finally:
        await store.close()


def _text(row: StoredEvent) -> str:
    return row.event.raw if isinstance(row.event, UnknownEvent) else encode(row.event)


if __name__ == "__main__":
    print(json.dumps({"pid": os.getpid(), "runs": asyncio.run(_read(Path(sys.argv[1])))}))
