"""A Stretto as the command line and other surfaces of this package use it: the same road to a run, in
two halves, because a surface speaks in between.

    prepared = await w.prepare(RunRequest("brief", inputs))   # raises; nothing has happened yet
    ...                                                       # show prepared.warnings and .notices
    run = await w.launch(prepared, listener)                  # listener(event, state), for a live view
    await run.wait()                                          # run.stop() on a signal
    report = await run.report()
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from stretto.assembly.engine import Engine
from stretto.assembly.ports import Ports
from stretto.assembly.project import Project
from stretto.assembly.request import PreparedRun, RunRequest
from stretto.assembly.run import Run
from stretto.assembly.stretto import Stretto

if TYPE_CHECKING:
    from stretto.assembly.chat import Chat, ChatOptions, ShowRun
    from stretto.assembly.goals import SurfaceGoals
    from stretto.execution.driver import Listener
    from stretto.execution.history import History
    from stretto.ports.journal import StoredEvent
    from stretto.schedule.state import RunState


class SurfaceRun(Run):
    """A run with what only surfaces need: rows of the journal, the state, the history."""

    rows = Run._rows
    is_driven = Run._is_driven
    report_of = Run._report_of

    async def state(self) -> "RunState":
        """How the run stands: as the task of this process leaves it, else by its journal."""
        if self._task is None:
            return (await self.history()).state
        await asyncio.wait([self._task])
        return self._task.result()

    async def page(self, *, after: int, limit: int) -> "list[StoredEvent]":
        """The next events of the journal, with their numbers; none where there are none yet."""
        return await (await self._open()).events(self._id, after, limit)

    async def news(self, seconds: float) -> None:
        """Returns when something may have happened: at once where this process drives the run, else
        after that time."""
        if not self._is_driven_here:
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    def follow(self, seconds: float) -> None:
        """Somebody reads along for that long: what models say is journaled ten times a second then,
        where this process drives the run."""
        if self._is_driven_here and self._runs is not None:
            self._runs.follow(self._id, seconds)

    async def history(self, *, with_speech: bool = False) -> "History":
        """The journal and what follows from it."""
        return await self._engine.history(self._id, with_speech=with_speech)


class Surface(Stretto):
    _run_type = SurfaceRun

    def __init__(
        self,
        open_project: Callable[[Path | None], Project] | None = None,
        ports: Ports | None = None,
    ) -> None:
        super().__init__(_open_project=open_project, _ports=ports)

    read_tasks = Stretto._read_tasks

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def project(self) -> Project:
        return self._engine.project

    async def prepare(self, request: RunRequest) -> PreparedRun:
        """All that comes before a run, for every way to begin one. Raises as `Engine.prepare` does."""
        return await self._engine.prepare(request)

    async def launch(self, prepared: PreparedRun, listener: "Listener | None" = None) -> SurfaceRun:
        """Drive what `prepare` gave. `listener` hears every event once it is durable, with the state
        after it; the state is the driver's own, so it is read at once and not kept."""
        return cast(SurfaceRun, await self._launch(prepared, listener))

    def open_chat(
        self,
        options: "ChatOptions",
        show: "ShowRun | None" = None,
        hear: "Listener | None" = None,
    ) -> "Chat":
        """As `chat`, with what shows it: `show` the runs that a turn starts, `hear` the turn itself."""
        wanted = (options.resume, options.model, options.permission, options.budget)
        return self._chat(*wanted, show, hear, options.owner)

    async def prepare_again(self, chat: "Chat", run_id: str) -> PreparedRun:
        """A run that a turn of this chat has started, for whoever asks a person about its steps."""
        return await chat._prepare_again(run_id)

    @property
    def goals(self) -> "SurfaceGoals":
        from stretto.assembly.goals import SurfaceGoals

        return SurfaceGoals(self._engine, self._run_access())

    def open(self, run_id: str) -> SurfaceRun:
        return cast(SurfaceRun, super().open(run_id))
