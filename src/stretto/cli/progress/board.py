"""What the live view knows of a run. In: events and the state after them. Out: a View that fits.

Not thread-safe: a caller that notes events in one thread and asks for views in another holds a
lock. Noting an event costs what it changed and a look at the steps that wait next; a view costs the
lines that it fills.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from stretto.cli.progress.lines import ChangedSteps
from stretto.cli.progress.rows import Row, Tallies, one_line, row_of
from stretto.events.model import (
    AttemptCancelled,
    AttemptFailed,
    AttemptStarted,
    AttemptSucceeded,
    Event,
)
from stretto.plan.model import Plan
from stretto.schedule.state import RunState
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import StepWord

_ATTEMPT = AttemptStarted | AttemptSucceeded | AttemptFailed | AttemptCancelled
# Steps that need a person come first, then those about to continue, then those at work.
_ACTIVE: tuple[StepWord, ...] = ("awaiting approval", "retrying", "merging", "running")
_MOST_LAST = 6  # rows of the last view, where not all steps fit


@dataclass(frozen=True, slots=True)
class Head:
    """The run as a whole."""

    workflow: str
    total: int
    width: int
    run_id: str = ""
    status: str = "starting"
    started_at: float | None = None
    ended_at: float | None = None
    ended: int = 0
    running: int = 0  # subagents, which the width bounds
    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True)
class View:
    head: Head
    rows: Sequence[Row]  # in listing order; where not all fit, those at work before the others
    hidden: Mapping[StepWord, int]  # how many steps of each stage have no row
    asking: StepId | None  # the first step that awaits approval


class Board:
    def __init__(self, plan: Plan) -> None:
        self._head = Head(one_line(plan.name), len(plan.steps), plan.width)
        self._changes = ChangedSteps()
        self._tallies = Tallies()
        self._rows: dict[StepId, Row] = {}  # of every step that no longer just waits
        # Not a dict: its first keys are removed first, and a dict still iterates over their slots.
        self._waiting = OrderedDict.fromkeys(step.id for step in plan.steps)
        self._next: list[Row] = []  # the first that wait
        self._seen: object = None
        self._active: dict[StepWord, dict[StepId, None]] = {stage: {} for stage in _ACTIVE}
        self._failed: list[StepId] = []
        self._done: list[StepId] = []  # ended, and not failed
        self._counts: Counter[StepWord] = Counter({"waiting": len(plan.steps)})

    def note(self, event: Event, state: RunState, most_waiting: int) -> None:
        part = event.attempt.part if isinstance(event, _ATTEMPT) else None
        for step in self._changes.after(event, state):
            self._place(row_of(state, step, self._tallies.count(step, part)))
        self._head = _head(self._head, state)
        # Every event of a batch comes with the state after the last one: one look is enough.
        places = (
            len(state.values),
            len(state.running),
            len(state.awaiting_approval),
            state.open_attempts,
        )
        seen = (most_waiting, len(self._waiting), *places)
        if seen != self._seen:
            self._seen = seen
            self._look_ahead(state, most_waiting)

    def view(self, lines: int, is_last: bool = False, chosen: StepId | None = None) -> View:
        """As many rows as there are lines. Where not all steps fit, two lines are kept for the
        counts of the others, and the steps at work come first. The chosen step always has a row,
        once it has begun.

        The last view of more steps than there are lines is short: it stays on the screen, and what
        is said below it must not be pushed away.
        """
        total = self._head.total
        room = total if total <= lines else max(1, lines - 2)
        is_folded = room < total
        if is_last and is_folded:
            return self._last_view(min(room, _MOST_LAST))
        active = list(islice(chain.from_iterable(self._active.values()), room))
        room -= len(active)
        failed, waiting, done = _share(room, (len(self._failed), len(self._next), len(self._done)))
        ended = chain(_last(self._failed, failed), _last(self._done, done))
        shown = dict.fromkeys(chain(active, ended))
        if chosen in self._rows and chosen not in shown:
            if shown and len(shown) + waiting >= lines - 2:
                shown.popitem()
            shown[chosen] = None
        rows = [*(self._rows[id] for id in shown), *self._next[:waiting]]
        hidden = Counter(self._counts)
        hidden.subtract(row.stage for row in rows)
        asking = next(iter(self._active["awaiting approval"]), None)
        first = {id for id in active if self._rows[id].stage in _ACTIVE} if is_folded else set()
        rows.sort(key=lambda row: (row.id not in first, row.index))
        return View(self._head, rows, +hidden, asking)

    def _last_view(self, room: int) -> View:
        """The steps that failed or were stopped come first."""
        at_work = chain.from_iterable(self._active.values())
        wanted = chain(self._failed, at_work, reversed(self._done))
        rows = [self._rows[id] for id in islice(wanted, room)]
        hidden = Counter(self._counts)
        hidden.subtract(row.stage for row in rows)
        asking = next(iter(self._active["awaiting approval"]), None)
        return View(self._head, sorted(rows, key=_index), +hidden, asking)

    def row(self, id: StepId) -> Row | None:
        """Of a step that no longer just waits."""
        return self._rows.get(id)

    def at_work(self) -> list[StepId]:
        """In listing order."""
        found = (self._rows[id] for ids in self._active.values() for id in ids)
        return [row.id for row in sorted(found, key=_index)]

    def _place(self, row: Row) -> None:
        was = self._rows.get(row.id)
        stage_before: StepWord = was.stage if was else "waiting"
        if row.stage != "waiting":
            self._rows[row.id] = row
        elif was:
            del self._rows[row.id]  # a person allowed it, and it waits for a slot
        if row.stage == stage_before:
            return
        self._counts[stage_before] -= 1
        self._counts[row.stage] += 1
        if stage_before in self._active:
            del self._active[stage_before][row.id]
        if row.stage in self._active:
            self._active[row.stage][row.id] = None
        elif row.stage == "failed":
            self._failed.append(row.id)
        elif row.stage != "waiting":
            self._done.append(row.id)
        if row.stage == "waiting":
            self._waiting[row.id] = None
            self._waiting.move_to_end(row.id, last=False)  # it is ready: nobody is before it
        else:
            self._waiting.pop(row.id, None)

    def _look_ahead(self, state: RunState, most: int) -> None:
        self._next = [row_of(state, state.steps[id]) for id in islice(self._waiting, most)]


def _head(head: Head, state: RunState) -> Head:
    is_closing = state.closed_as is not None and not state.has_ended
    return Head(
        head.workflow,
        head.total,
        head.width,
        one_line(state.run_id),
        "stopping" if is_closing else state.status.value,
        _since(state),
        state.ended_at,
        len(state.values),
        state.ready.running,
        state.usage.tokens,
        state.usage.usd,
    )


def _since(state: RunState) -> float | None:
    """The start, moved by the time in which nobody drove the run."""
    if state.started_at is None:
        return None
    return state.started_at + state.paused_seconds(state.started_at, state.now)


def _share(room: int, wants: Sequence[int]) -> list[int]:
    """An equal part for each that wants it; what is left goes to the first that wants more."""
    given = [min(want, room // len(wants)) for want in wants]
    for i, want in enumerate(wants):
        given[i] += min(want - given[i], room - sum(given))
    return given


def _last(ids: Sequence[StepId], count: int) -> Iterable[StepId]:
    return ids[len(ids) - count :]


def _index(row: Row) -> int:
    return row.index
