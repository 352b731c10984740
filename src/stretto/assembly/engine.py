"""What a Stretto and its runs share: the project, the store, and the runs that are driven here.

It is private: users see Stretto and Run.
"""

import asyncio
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from stretto.assembly.ports import Ports
from stretto.assembly.project import Project
from stretto.assembly.request import PreparedRun, RecordedRun, RunRequest, prepare
from stretto.execution.start_line import StartLine, ThreadHop
from stretto.problems.errors import InvalidUsage, PlanNotAccepted
from stretto.processes.completion import complete
from stretto.registry.folders import looking_once
from stretto.vocabulary.names import RunId
from stretto.vocabulary.statuses import INTERRUPTED

if TYPE_CHECKING:
    from stretto.execution.driver import Listener
    from stretto.execution.history import History
    from stretto.execution.leases import Store
    from stretto.execution.runs import Runs
    from stretto.lead.chats import KeptTurn


class Stoppable(Protocol):
    def stop(self) -> None: ...


class Engine:
    def __init__(
        self,
        open_project: Callable[[Path | None], Project],
        folder: Path | None,
        ports: Ports,
    ) -> None:
        self.ports = ports
        self.project = open_project(folder)
        self.driven: dict[RunId, Any] = {}  # each Run that a task of this process drives
        self.tasks: set[asyncio.Task[Any]] = set()  # of those runs, and of goals
        self.stoppable: set[Stoppable] = set()  # goals driven here, readers of chats
        self.start_line = StartLine()  # of all runs that begin here
        self.listeners: list[Listener] = []  # each hears every event of every run driven here
        self._open_project = open_project
        self._store: Store | None = None
        self._opening = asyncio.Lock()
        self._hop = ThreadHop(together=looking_once)
        self._runs: dict[tuple[Path, frozenset[str]], Runs] = {}
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None  # the one that it is first used in

    def __del__(self) -> None:
        # Nothing is set where the folder could not be read.
        if getattr(self, "_store", None) is not None:
            said = f"unclosed stretto.Stretto of {self.project.settings.project}"
            warnings.warn(said, ResourceWarning, stacklevel=2, source=self)

    def now(self) -> float:
        return self.ports.open_clock().now()

    async def prepare(self, request: RunRequest, project: Project | None = None) -> PreparedRun:
        """All that comes before a run, for every way to begin one. Raises as `request.prepare` does,
        and NotFound and PlanNotAccepted for a recorded run. `project`: of a new run; ours by default."""
        # First: work that another event loop asked for would end without waking its caller.
        self.check_open()
        if request.of is None:
            return await prepare(request, project or self.project, self.ports, self._hop)
        runs = await self.runs_of(self.project, request.accepted)
        history = await runs.history(request.of)
        if not request.is_delegated and not (request.is_resumed and history.state.has_ended):
            await self._refuse_turn(history)
        if history.state.trigger.startswith("chat "):
            request = replace(request, is_delegated=True)
        doubt = ""
        try:
            if not (request.is_resumed and history.state.is_recorded):
                runs.check(history)
        except PlanNotAccepted as error:
            if request.recipe is None:
                raise
            doubt = f"{error.message}; its inputs, its model and its folder are not used"
        project = self.project if doubt else self.project_of(history)
        return await prepare(request, project, self.ports, self._hop, RecordedRun(history, doubt))

    async def _refuse_turn(self, history: "History") -> None:
        """A turn of a chat goes on by its chat alone, which has its tools and its memory."""
        state = history.state
        found = await self._turn(state.run_id, state.plan.name)
        if found is not None:
            hint = f"stretto chat --resume {found.chat}"
            raise InvalidUsage(f"run {state.run_id} is a turn of a chat", hint=hint)

    async def word_of(self, run_id: str, workflow: str, word: str) -> str:
        """The word of a run that nobody drives. `word`: by its journal, which does not know that a turn of
        the lead agent asks a person; its chat does."""
        found = await self._turn(run_id, workflow) if word == INTERRUPTED else None
        return "waiting" if found is not None and found.status == "waiting" else word

    async def _turn(self, run_id: str, workflow: str) -> "KeptTurn | None":
        """The turn of the lead agent that this run is."""
        from stretto.lead.turn import CHAT

        if workflow != CHAT:
            return None
        from stretto.lead.chats import ChatFile

        file = ChatFile(self.project.settings.home)
        found = await file.use(lambda store: store.turn_of(run_id)) if file.is_there else None
        is_turn = found is not None and found.run_id == run_id and found.kind == "lead"
        return found if is_turn else None

    def project_of(self, history: "History") -> Project:
        """The project in which a run began: its settings count, wherever one stands."""
        began_in = history.started.project or history.started.workspace
        return self.project_in(Path(began_in)) if began_in else self.project

    def project_in(self, folder: Path) -> Project:
        if folder == self.project.settings.project:
            return self.project
        return self._open_project(folder)

    async def runs_of(
        self, project: Project | None = None, accepted: frozenset[str] = frozenset()
    ) -> "Runs":
        """The runs of this user, with the workspaces of one project."""
        self.check_open()
        project = project or self.project
        place = (project.settings.project, accepted)
        if self._store is not None and place in self._runs:
            return self._runs[place]
        async with self._opening:
            self.check_open()  # it may have been closed while the store was being opened
            if self._store is None:
                self._store = await self.ports.open_store(self.project)
        if place not in self._runs:
            self._runs[place] = self.ports.open_runs(
                self._store, project, accepted, self.start_line
            )
        return self._runs[place]

    async def history(self, run_id: str, *, with_speech: bool = False) -> "History":
        """The journal of a run and what follows from it. Raises NotFound."""
        return await (await self.runs_of()).history(RunId(run_id), with_speech=with_speech)

    def check_open(self) -> None:
        """Raises InvalidUsage where it cannot be used, or can be used no longer."""
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if self._loop is not loop:
            hint = "make one in each event loop, that is, in each asyncio.run"
            raise InvalidUsage("this Stretto belongs to another event loop", hint=hint)
        if self._is_closed:
            hint = "use it inside its `async with` block"
            raise InvalidUsage("this Stretto is closed", hint=hint)

    async def close(self) -> None:
        """Stop the runs that are driven here, so that they can be resumed, and close the store."""
        for each in tuple(self.stoppable):
            each.stop()
        self._is_closed = True
        # A scope of anyio, as around a request to a web server, cancels each await anew.
        await complete(self._close())

    async def _close(self) -> None:
        async with self._opening:  # a store that is being opened is closed below
            pass
        for runs in self._runs.values():
            runs.stop()
        try:
            if self.tasks:
                await asyncio.wait(self.tasks)
        finally:
            if self._store is not None:
                await self._store.close()
                self._store = None
