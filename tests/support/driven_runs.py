"""A run in a world of its own: journal in memory, virtual clock, scripted model. Nothing is real."""

from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from stretto.adapters.models.scripted import ScriptedRunner, read_script
from stretto.adapters.stores.memory import MemoryJournal
from stretto.events.codec import UnknownEvent, encode
from stretto.events.model import AttemptFailed, AttemptStarted, AttemptSucceeded, Event
from stretto.execution.driver import Listener
from stretto.execution.reuse import NOTHING, Reusable
from stretto.execution.runs import Runs, Start
from stretto.plan.model import Plan
from stretto.ports.journal import LeaseOwner
from stretto.ports.runner import AttemptRequest, AttemptResult, Witness
from stretto.processes.identity import is_dead, name_of_this_process
from stretto.schedule.state import RunState
from stretto.testing.clock import VirtualClock
from stretto.vocabulary.json_value import Json, Large
from stretto.vocabulary.models import Setup
from stretto.vocabulary.names import RunId
from support.recipes import plan_of

T = TypeVar("T")
RUN = RunId("run-1")
Place = tuple[str, str, int]


class Journal(MemoryJournal):
    """Says in `log` when something became durable."""

    def __init__(self, clock: VirtualClock, log: list[str], capacity: int | None = None) -> None:
        super().__init__(clock.now, capacity)
        self._log = log
        self.commits: list[list[Event]] = []

    async def append(
        self, run_id: RunId, events: Sequence[Event], *, fence: int
    ) -> Mapping[int, Large]:
        kept = await super().append(run_id, events, fence=fence)
        self.commits.append(list(events))
        self._log += [_words(event) for event in events]
        return kept


class Counting:
    """A scripted runner that says in `log` when it begins, and counts what it did."""

    def __init__(
        self, script: str, clock: VirtualClock, log: list[str], model: str = "a model"
    ) -> None:
        self.model = model  # who answers, as far as anybody can tell
        self._inner = ScriptedRunner(read_script(script), clock)
        self._log = log
        self.begun: list[Place] = []
        self.prompts: dict[str, str] = {}

    @property
    def steps(self) -> list[str]:
        return [step for step, _, _ in self.begun]

    def identify(self, models: Collection[str], tools: Collection[str]) -> Setup:
        return Setup({name: f"{self.model} {name}" for name in models})

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        id = request.attempt
        self.begun.append((id.step, id.part.text, id.number))
        self.prompts[request.step] = request.prompt
        self._log.append(f"runs {request.step}")
        return await self._inner.run(request, witness)


def this_process() -> LeaseOwner:
    return LeaseOwner(name_of_this_process(), is_dead)


class Stage:
    """`script` answers; each `Runs` made here is like another process on the same store."""

    def __init__(self, recipe: str | Plan, script: str = "default: ok") -> None:
        self.plan = plan_of(recipe) if isinstance(recipe, str) else recipe
        self.clock = VirtualClock()
        self.log: list[str] = []
        self.made: list[Runs] = []
        self.store = Journal(self.clock, self.log)
        self.runner = Counting(script, self.clock, self.log)

    def runs(self) -> Runs:
        self.made.append(Runs(self.store, self.clock, owner=this_process()))
        return self.made[-1]

    def do(self, main: Coroutine[Any, Any, T]) -> T:
        return self.clock.run(main)

    def start(self, **inputs: Json) -> RunState:
        return self.do(self.starting(self.runs(), **inputs))

    async def starting(
        self,
        runs: Runs,
        run_id: RunId = RUN,
        listener: Listener | None = None,
        reusable: Reusable = NOTHING,
        **inputs: Json,
    ) -> RunState:
        start = Start(self.plan, inputs, run_id, reusable=reusable, seed=7)
        return await runs.start(start, self.runner, listener)

    def resume(self) -> RunState:
        return self.do(self.runs().resume(RUN, self.runner))

    def journal(self, run_id: RunId = RUN) -> list[Event]:
        stored = self.do(self.store.read(run_id))
        return [one.event for one in stored if not isinstance(one.event, UnknownEvent)]

    def bytes(self, run_id: RunId = RUN) -> str:
        return "\n".join(encode(event) for event in self.journal(run_id))


def after_a_crash(stage: Stage, rows: Iterable[Event], script: str, at: float) -> Stage:
    """The same run in a new process at that time, with no more than these rows in its journal."""
    new = Stage(stage.plan, script)
    new.clock = VirtualClock(at)
    new.store = Journal(new.clock, new.log)
    new.runner = Counting(script, new.clock, new.log)

    async def left() -> None:
        fence = await new.store.lease(RUN, "a process that is no more", 60)
        await new.store.append(RUN, list(rows), fence=fence)
        await new.store.release(RUN, fence=fence)

    new.do(left())
    return new


def places(events: Iterable[Event], kind: type[Event]) -> list[Place]:
    attempts = AttemptStarted | AttemptSucceeded | AttemptFailed
    return [
        (event.attempt.step, event.attempt.part.text, event.attempt.number)
        for event in events
        if isinstance(event, kind) and isinstance(event, attempts)
    ]


def statuses(state: RunState) -> dict[str, str]:
    return {id: step.status.value for id, step in state.steps.items()}


def _words(event: Event) -> str:
    step = getattr(event, "step", "")
    return f"{event.type} {step}" if step else event.type
