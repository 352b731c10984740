"""The journal as evidence: read by another process, then asked when steps ran and what they got.

`python -m stretto.smoke.journal FILE` is that process: it knows nothing but the file, and prints the
rows of every run as one JSON object. The order of the rows is the evidence: a row is written before
anything follows from it. Their times say for how long, and must agree with the order.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stretto.adapters.stores.sqlite import SqliteJournal
from stretto.events.codec import UnknownEvent, decode, encode
from stretto.events.model import (
    AttemptCancelled,
    AttemptFailed,
    AttemptStarted,
    AttemptSucceeded,
    ChangesCollected,
    Event,
    MergeFailed,
    RunStarted,
)
from stretto.plan.model import decode_plan
from stretto.ports.journal import StoredEvent
from stretto.problems.errors import StrettoError
from stretto.processes import python
from stretto.schedule.advance import advance
from stretto.schedule.commands import StartAttempt
from stretto.schedule.state import begin
from stretto.vocabulary.json_value import Json, loaded

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
        output = done.stderr.strip().splitlines()[-1:] or ["it printed nothing"]
        raise StrettoError(f"the journal cannot be read back: {output[0]}")
    read = json.loads(done.stdout)
    journals = {
        run: [StoredEvent(seq, decode(text)) for seq, text in rows]
        for run, rows in read["runs"].items()
    }
    return ReadBack(journals, read["pid"])


async def _read(file: Path) -> dict[str, list[tuple[int, str]]]:
    store = await SqliteJournal.open(file)
    try:
        runs = [row.run_id for row in reversed(await store.runs(1000))]
        return {run: [(r.seq, _text(r)) for r in await store.read(run)] for run in runs}
    finally:
        await store.close()


def _text(row: StoredEvent) -> str:
    return row.event.raw if isinstance(row.event, UnknownEvent) else encode(row.event)


_Ends = (AttemptSucceeded, AttemptFailed, AttemptCancelled, ChangesCollected, MergeFailed)


@dataclass(frozen=True, slots=True)
class StepSpan:
    """From a step's first row to its last; an isolated writer is done once its change is merged."""

    first_seq: int
    last_seq: int
    started_at: float
    ended_at: float
    answered_seq: int = 0  # the work itself, without the merge
    answered_at: float = 0.0
    output: Json = None
    error: str = ""
    has_ended: bool = False
    changes: ChangesCollected | None = None

    @property
    def text(self) -> str:
        return self.output if isinstance(self.output, str) else json.dumps(self.output)


@dataclass(frozen=True, slots=True)
class GivenPrompt:
    """The prompt of a step. `is_on_record`: the key in the journal is the key of this prompt."""

    prompt: str
    is_on_record: bool


def events_of(rows: Sequence[StoredEvent]) -> list[tuple[int, Event]]:
    return [(row.seq, row.event) for row in rows if not isinstance(row.event, UnknownEvent)]


def spans_of(rows: Sequence[StoredEvent]) -> dict[str, StepSpan]:
    """By step. An end that comes before any start is ignored."""
    found: dict[str, StepSpan] = {}
    for seq, event in events_of(rows):
        if isinstance(event, AttemptStarted):
            found.setdefault(event.step, StepSpan(seq, seq, event.at, event.at))
        elif isinstance(event, _Ends) and event.step in found:
            span = found[event.step]
            ended = replace(span, last_seq=seq, ended_at=event.at, has_ended=True)
            if not isinstance(event, ChangesCollected | MergeFailed):
                ended = replace(ended, answered_seq=seq, answered_at=event.at)
            found[event.step] = _with_outcome(ended, event)
    return found


def _with_outcome(span: StepSpan, event: Event) -> StepSpan:
    match event:
        case AttemptSucceeded():
            return replace(span, output=loaded(event.output))
        case AttemptFailed() | MergeFailed():
            return replace(span, error=event.error)
        case AttemptCancelled():
            return replace(span, error="it was called off")
        case ChangesCollected():
            return replace(span, changes=event)
        case _:
            return span


def prompts_of(rows: Sequence[StoredEvent]) -> dict[str, GivenPrompt]:
    """By step. The journal does not hold prompts; folding its rows again yields the same ones."""
    events = [event for _, event in events_of(rows)]
    if not events or not isinstance(events[0], RunStarted):
        return {}
    keys = {event.step: event.key for event in events if isinstance(event, AttemptStarted)}
    state = begin(decode_plan(events[0].plan))
    decided = [command for event in events for command in advance(state, event)[1]]
    return {
        command.step: GivenPrompt(command.request.prompt, keys.get(command.step) == command.key)
        for command in decided
        if isinstance(command, StartAttempt)
    }


if __name__ == "__main__":
    print(json.dumps({"pid": os.getpid(), "runs": asyncio.run(_read(Path(sys.argv[1])))}))
