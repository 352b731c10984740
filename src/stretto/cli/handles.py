"""Find the run that a user means. In: an id, `last`, the beginning or the end of an id, or nothing.

A command that takes another run than the one whose id was written says on stderr which one.
"""

import time
from collections.abc import Sequence
from contextlib import suppress

from stretto.assembly.surface import Surface
from stretto.cli.terminal import columns, say
from stretto.ports.journal import RunRow
from stretto.problems.errors import InvalidUsage, NotFound, StrettoError
from stretto.text.short import did_you_mean, listed
from stretto.vocabulary.amounts import format_duration
from stretto.vocabulary.names import RunId, StepId

LAST = "last"
WAITING_RUNS = "stretto runs --status waiting lists the runs that wait for a person"
MOST_ROWS = 10_000
_MOST_CANDIDATES = 8
_NO_RUNS = "there are no runs yet"
_START_ONE = "stretto run NAME starts one"


async def find_run(stretto: Surface, handle: str | None, as_json: bool = False) -> RunId:
    """None: the newest run. Raises NotFound, and InvalidUsage where several are meant."""
    refuse_blank(handle, "RUN")
    runs = await stretto.engine.runs_of()
    if handle and handle != LAST and await runs.is_known(RunId(handle)):
        return RunId(handle)
    rows = await runs.recent(MOST_ROWS)
    if not rows and handle in (None, LAST):
        raise NotFound(_NO_RUNS, hint=_START_ONE)
    found = rows[0] if handle in (None, LAST) else _matching(handle or "", rows)
    return _tell(found, as_json)


async def find_step(
    stretto: Surface, run: str | None, step: str | None, as_json: bool = False
) -> tuple[RunId, str | None]:
    """For commands that take [RUN] [STEP]: a single word may be either. A step of the newest run
    comes before a part of an id."""
    if run is None or step is not None or run == LAST:
        return await find_run(stretto, run, as_json), step
    runs = await stretto.engine.runs_of()
    newest = await runs.recent(1)
    if newest and not await runs.is_known(RunId(run)):
        state = (await runs.history(newest[0].run_id)).state
        if run in state.steps:
            return _tell(newest[0], as_json), run
    return await find_run(stretto, run, as_json), None


async def find_asking(
    stretto: Surface, run: str | None, step: str, as_json: bool
) -> tuple[RunId, StepId]:
    """Without a RUN: the one whose step of this name awaits approval. A single word may also be a
    RUN of which exactly one step awaits approval."""
    refuse_blank(step, "STEP")
    if run is not None:
        return await find_run(stretto, run, as_json), StepId(step)
    runs = await stretto.engine.runs_of()
    asking: dict[RunId, Sequence[StepId]] = {}
    rows = await runs.recent(MOST_ROWS)
    for row in rows:
        if row.ended_at is not None:
            continue
        with suppress(StrettoError):  # one journal that cannot be read must not hide the others
            asking[row.run_id] = list((await runs.history(row.run_id)).state.awaiting_approval)
    named = [row for row in rows if step in asking.get(row.run_id, ())]
    meant = [row for row in rows if _fits(step, row.run_id)] if step != LAST else rows[:1]
    if named or not meant:
        found = _only(named, f"no run has a step '{step}' that awaits approval", WAITING_RUNS)
        return _tell(found, as_json), StepId(step)
    row = _only(meant, "")
    return _tell(row, as_json), _only_step(row, asking.get(row.run_id, ()))


def refuse_blank(word: str | None, name: str) -> None:
    """A shell's variable that is not set would be the beginning of every id."""
    if word is not None and not word.strip():
        raise InvalidUsage(f"{name} is empty", hint="leave it out, or write the id")


def _only_step(row: RunRow, asking: Sequence[StepId]) -> StepId:
    if len(asking) == 1:
        return asking[0]
    says = f"{len(asking)} steps of run {row.run_id} await approval" if asking else ""
    raise InvalidUsage(
        says or f"no step of run {row.run_id} awaits approval",
        hint=f"name one of them: {listed(asking)}" if asking else WAITING_RUNS,
    )


async def find_unended(stretto: Surface, run: str | None, as_json: bool) -> RunId:
    """Without a RUN: the only one that has not ended."""
    if run is not None:
        return await find_run(stretto, run, as_json)
    runs = await stretto.engine.runs_of()
    rows = [row for row in await runs.recent(MOST_ROWS) if row.ended_at is None]
    return _tell(_only(rows, "every run has ended"), as_json)


def _only(rows: Sequence[RunRow], lack: str, hint: str = "stretto runs lists the runs") -> RunRow:
    if not rows:
        raise NotFound(lack, hint=hint)
    if len(rows) > 1:
        raise InvalidUsage(f"this may mean {len(rows)} runs: name one of them\n{_list_runs(rows)}")
    return rows[0]


def _matching(handle: str, rows: Sequence[RunRow]) -> RunRow:
    """By the beginning or the end of an id, or by the beginning of what follows its last '-'."""
    found = [row for row in rows if _fits(handle, row.run_id)]
    if len(found) == 1:
        return found[0]
    if found:
        said = f"'{handle}' is a part of the ids of {len(found)} runs: write more of one"
        raise InvalidUsage(f"{said}\n{_list_runs(found)}")
    raise NotFound(f"there is no run '{handle}'", hint=_suggestion(handle, rows))


def _fits(handle: str, id: str) -> bool:
    ends = (id, id.rpartition("-")[2])
    return id.endswith(handle) or any(end.startswith(handle) for end in ends)


def _suggestion(handle: str, rows: Sequence[RunRow]) -> str:
    if not rows:
        return f"{_NO_RUNS}; {_START_ONE}"
    of_workflow = next((row.run_id for row in rows if row.workflow == handle), None)
    if of_workflow is not None:
        return f"the newest run of {handle} is {of_workflow}"
    known = [row.run_id for row in rows[:200]]
    return did_you_mean(handle, [*known, LAST]) or "stretto runs lists them"


def _list_runs(rows: Sequence[RunRow]) -> str:
    lines = columns([(row.run_id, row.workflow, _ago(row)) for row in rows[:_MOST_CANDIDATES]])
    if len(rows) > _MOST_CANDIDATES:
        lines.append(f"… and {len(rows) - _MOST_CANDIDATES} more: stretto runs")
    return "\n".join(f"  {line}" for line in lines)


def _tell(row: RunRow, as_json: bool) -> RunId:
    if not as_json:
        say(f"run {row.run_id} of {row.workflow}, {_ago(row)}", err=True)
    return row.run_id


def _ago(row: RunRow) -> str:
    return f"started {format_duration(max(1, round(time.time() - row.started_at)))} ago"
