"""The one road to a run, and the public Python API. In: a folder. Out: runs, plans, problems.

    start ─┐
    resume ┼→ RunRequest ─prepare→ PreparedRun ─launch→ Run
    retry ─┘

The command line uses the same road, in two halves, because it speaks in between:

    prepared = await w.prepare(RunRequest("brief", inputs))   # raises; nothing has happened yet
    ...                                                       # show prepared.warnings and .notices
    run = await w.launch(prepared, listener)                  # listener(event, state), for a live view
    await run.wait()                                          # run.stop() on a signal
    report = await run.report()

Nothing here prints or ends the process; what a user should read is in values.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from stretto.assembly.ports import Ports
from stretto.assembly.project import Project
from stretto.assembly.request import (
    PreparedRun,
    RecipeSource,
    RecordedRun,
    RunRequest,
    prepare,
)
from stretto.assembly.run import Run
from stretto.execution.runs import Resume
from stretto.plan.check import Problems
from stretto.problems import Problem
from stretto.problems.errors import InvalidUsage, PlanNotAccepted
from stretto.recipe.model import Budget
from stretto.vocabulary.ids import RunId
from stretto.vocabulary.values import Json

if TYPE_CHECKING:
    from typing import Self

    from stretto.execution.driver import Listener
    from stretto.execution.history import History
    from stretto.execution.leases import Store
    from stretto.execution.runs import Runs


_BUDGETS = ("tokens", "usd", "agents")


class Stretto:
    """One project as one user sees it: its recipes, and the runs of this user.

    `folder`: where the project is; the nearest folder upwards that has a stretto.yaml counts, and
    the current folder without it. `model` and `permission` come before the settings, `home` in
    place of ~/.stretto; `trust` uses what the folder brings along (as --trust does). `environ`
    stands for the environment, also for the keys of providers.

    Use it as an `async with` block. Leaving the block stops the runs that are driven here; each can
    be resumed. Several instances may live in one process, each in one event loop.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        model: str | None = None,
        permission: str | None = None,
        home: str | Path | None = None,
        trust: bool = False,
        environ: Mapping[str, str] | None = None,
        _project: Project | None = None,
        _ports: Ports | None = None,
    ) -> None:
        self._changes = {"model": model, "permission": _permission(permission)}
        self._environ = _environment(environ, home, trust)
        self.ports = _ports or Ports()
        self.project = _project or self._open_project(Path(folder) if folder else None)
        self._store: Store | None = None
        self._opening = asyncio.Lock()
        self._runs: dict[tuple[Path, frozenset[str]], Runs] = {}
        self._driven: dict[RunId, Run] = {}
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop the runs that are driven here, so that they can be resumed, and close the journal."""
        self._is_closed = True
        for runs in self._runs.values():
            runs.stop()
        tasks = [run._task for run in self._driven.values() if run._task is not None]
        if tasks:
            await asyncio.wait(tasks)
        if self._store is not None:
            await self._store.close()

    async def start(
        self,
        recipe: RecipeSource,
        inputs: Mapping[str, Json] | None = None,
        *,
        model: str | None = None,
        permission: str | None = None,
        budget: Mapping[str, float] | None = None,
    ) -> Run:
        """Start a run. Returns when its start is in the journal; a task of this process drives it.

        `recipe`: a saved one's name, a path, the text itself (it has a line break or begins with a
        brace) or a dict. `model` overrides the model of every agent. `permission`: read_only, ask or
        auto. `budget`: {"tokens", "usd", "agents"}; the stricter one of this and the recipe's counts.

        Raises NotFound, InvalidRecipe, InvalidInputs, PermissionDenied or NotReady, before any
        model is asked, with all problems at once.
        """
        request = RunRequest(
            recipe,
            inputs or {},
            model=model,
            permission=_permission(permission),
            budget=_budget(budget),
        )
        return await self.launch(await self.prepare(request))

    def open(self, run_id: str) -> Run:
        """A recorded run, by its id; the same value while it is driven here.

        Whether there is such a run shows in the first use: NotFound.
        """
        id = RunId(run_id)
        return self._driven.get(id) or Run(self, id)

    async def validate(self, recipe: RecipeSource) -> tuple[Problem, ...]:
        """All that must be fixed before the recipe can run; nothing when it is sound.

        Raises NotFound for a name or a file that is not there.
        """
        read, _ = self.project.read(recipe)
        checked = self.project.check(read)
        return checked.problems if isinstance(checked, Problems) else ()

    async def prepare(self, request: RunRequest) -> PreparedRun:
        """All that comes before a run, for every way to begin one. Private: `start`, `Run.resume`,
        `Run.retry` and the surfaces of this package call it."""
        if request.of is None:
            return await prepare(request, self.project, self.ports)
        runs = await self.runs_of(self.project, request.accepted)
        history = await runs.history(request.of)
        doubt = ""
        try:
            if not (request.is_resumed and history.state.is_recorded):
                runs.check(history)
        except PlanNotAccepted as error:
            if request.recipe is None:
                raise
            doubt = f"{error.message}; its inputs, its model and its folder are not used"
        project = self.project if doubt else self.project_of(history)
        return await prepare(request, project, self.ports, RecordedRun(history, doubt))

    async def launch(self, prepared: PreparedRun, listener: "Listener | None" = None) -> Run:
        """Private, as `prepare` is. `listener` hears every event once it is durable, with the state
        after it; the state is the driver's own, so it is read at once and not kept."""
        run = self.open(prepared.run_id)
        await run.drive(prepared, listener)
        return run

    def going_on(self, prepared: PreparedRun) -> PreparedRun:
        """The same run after a person has decided. Private."""
        return replace(prepared, beginning=Resume(prepared.run_id, prepared.permission))

    def now(self) -> float:
        return self.ports.open_clock().now()

    def project_of(self, history: "History") -> Project:
        """The project in which a run began: its settings count, wherever one stands."""
        began_in = history.started.project or history.started.workspace
        if not began_in or Path(began_in) == self.project.settings.project:
            return self.project
        return self._open_project(Path(began_in))

    async def runs_of(
        self, project: Project | None = None, accepted: frozenset[str] = frozenset()
    ) -> "Runs":
        """Private: the runs of this user, with the workspaces of one project."""
        if self._is_closed:
            raise InvalidUsage(
                "this Stretto is closed", hint="use it inside its `async with` block"
            )
        project = project or self.project
        async with self._opening:
            if self._store is None:
                self._store = await self.ports.open_store(self.project.settings)
        place = (project.settings.project, accepted)
        if place not in self._runs:
            self._runs[place] = self.ports.open_runs(self._store, project, accepted)
        return self._runs[place]

    def keep(self, run: Run) -> None:
        """Private: remember a run for as long as it is driven here."""
        self._driven[RunId(run.id)] = run

    def forget(self, run: Run) -> None:
        self._driven.pop(RunId(run.id), None)

    def _open_project(self, folder: Path | None) -> Project:
        project = Project(folder, self._environ)
        given = {name: value for name, value in self._changes.items() if value is not None}
        project.settings = replace(project.settings, **given)  # type: ignore[arg-type]
        return project


def _environment(
    environ: Mapping[str, str] | None, home: str | Path | None, trust: bool
) -> Mapping[str, str] | None:
    if home is None and not trust:
        return environ
    import os

    changed = dict(os.environ if environ is None else environ)
    if home is not None:
        changed["STRETTO_HOME"] = str(home)
    if trust:
        changed["STRETTO_TRUST"] = "1"
    return changed


def _permission(written: str | None) -> str | None:
    known = ("read_only", "ask", "auto")
    if written is not None and written not in known:
        raise InvalidUsage(f"permission is '{written}'; it must be {', '.join(known)}")
    return written


def _budget(written: Mapping[str, float] | None) -> Budget:
    given = dict(written or {})
    for name, most in given.items():
        if name not in _BUDGETS:
            raise InvalidUsage(f"budget has no '{name}'", hint=f"it has {', '.join(_BUDGETS)}")
        if type(most) not in (int, float) or not 0 <= most < float("inf"):
            raise InvalidUsage(f"budget['{name}'] must be a number from 0 on")
    tokens, usd, agents = map(given.get, _BUDGETS)
    return Budget(
        None if tokens is None else int(tokens), usd, None if agents is None else int(agents)
    )
