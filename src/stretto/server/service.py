"""What the routes of one server share: the Stretto, who may use it, and what it remembers."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from weakref import WeakValueDictionary

from fastapi import Depends, Request

from stretto.assembly.project import SCRIPTED
from stretto.assembly.subagents import is_for_the_user_to_name
from stretto.assembly.surface import Surface, SurfaceRun
from stretto.ports.journal import Leased
from stretto.problems.errors import NotFound, PermissionDenied, StrettoError
from stretto.server.answers import Unauthenticated
from stretto.server.run_changes import RunAnswers
from stretto.server.tokens import AccessRole, Identity

if TYPE_CHECKING:
    from stretto.assembly.chat import Chat, ChatOptions
    from stretto.assembly.goals import Goal
    from stretto.execution.history import History
    from stretto.ports.journal import RunRow
    from stretto.server.access import AccessControl
    from stretto.server.ledger import ServerLedger

MOST_BODY_BYTES = 8 * 2**20
_OF_OTHERS = ("", "mcp stdio")  # what began runs that are not a server's: a terminal, a program
_ADOPTED_SECONDS = 90 * 86_400


class Closing(StrettoError):
    """The server ends: what was asked is to be asked of the next one."""

    kind = "closing"


@dataclass(slots=True)
class Service:
    """Made in the event loop that serves, since a Stretto belongs to one loop."""

    stretto: Surface
    access: "AccessControl"
    ledger: "ServerLedger"
    metrics: Any  # a metrics.Metrics
    closing: asyncio.Event = field(default_factory=asyncio.Event)  # set when the server is to end
    feeds: dict[str, Any] = field(default_factory=dict)  # a streams.RunFeed for a run's id
    told: RunAnswers = field(default_factory=RunAnswers)
    desk: Any = None  # a news.NewsDesk, once somebody reads
    gates: Any = None  # an approvals.GateList, once somebody asks
    open_streams: int = 0
    done_goals: set[str] = field(default_factory=set)  # that have ended, and need no look
    is_one_of_many: bool = False  # several processes serve at one address
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    @property
    def home(self) -> Path:
        return self.stretto.project.settings.home

    def lock(self, name: str) -> asyncio.Lock:
        """One for a name, as long as somebody holds it or waits for it."""
        return self._locks.setdefault(name, asyncio.Lock())

    def check_serving(self) -> None:
        if self.closing.is_set():
            raise Closing("the server is stopping; send the request again in a moment")

    def check_workflows(self) -> None:
        """Raises NotFound where workflows are not served."""
        if not self.stretto.project.settings.are_workflows_served:
            hint = "workflows.enabled: true in stretto.yaml turns them on"
            raise NotFound("workflows are turned off here", hint=hint)

    async def until(self, work: Coroutine[Any, Any, object]) -> bool:
        """Whether the work was done; False: the server ends before it. Raises what the work raises."""
        task, end = asyncio.ensure_future(work), asyncio.ensure_future(self.closing.wait())
        try:
            await asyncio.wait((task, end), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
            return task.done()
        finally:
            for each in (task, end):
                each.cancel()
            with suppress(asyncio.CancelledError):
                await end

    async def unended(self) -> "list[RunRow]":
        """Runs that have not ended, whoever drives them."""
        runs = await self.stretto.engine.runs_of()
        return await runs.unended()

    async def resume(
        self,
        run_id: str,
        *,
        model: str | None = None,
        permission: str | None = None,
        accepted: str | None = None,
    ) -> bool:
        """Go on with a run, driven by this server and, should it end before the run, by the next one.
        False: it is driven already, here or elsewhere.

        Raises what `Run.resume` raises.
        """
        self.check_serving()
        async with self.lock(f"run {run_id}"):
            run = self.stretto.open(run_id)
            if await run.is_driven():
                return False
            started, now = (await run.history()).started, self.stretto.engine.now()
            # Before it goes on: a crash right after must not forget it.
            if started.trigger in _OF_OTHERS:
                self.ledger.adopt(run_id, now, now - _ADOPTED_SECONDS)
            try:
                await run.resume(model=model, permission=permission, accepted=accepted)
            except Leased:  # another server of this home was quicker: it goes on, as was asked
                return False
        return True

    async def drive_goal(self, id: str) -> "Goal":
        """Go on with a goal, driven by this server and, should it end before the goal, by the next one.

        Raises what `Goals.resume` raises.
        """
        now = self.stretto.engine.now()
        # Before it goes on: a crash right after must not forget it.
        self.ledger.adopt(id, now, now - _ADOPTED_SECONDS)
        self.done_goals.discard(id)
        return await self.stretto.goals.drive(id)

    def named_model(self, asker: Identity, model: str | None) -> str | None:
        """The model that a client names, as a run takes it. What `--model` may be at a terminal, a client
        may not name: neither a command nor a file of this machine, unless the settings name it or the
        client is an admin; and of scripts only those of the project.

        Raises PermissionDenied.
        """
        if model is None:
            return None
        if model.startswith(SCRIPTED):
            return self._script(model.removeprefix(SCRIPTED))
        is_admin = asker.role >= AccessRole.ADMIN
        if not is_admin and is_for_the_user_to_name(model, self.stretto.project.settings):
            said = f"'{model[:100]}' is a command or a file of the server's machine: an admin may name it"
            raise PermissionDenied(said, hint="or cli_commands in stretto.yaml allows a command")
        return model

    def check_folder(self, asker: Identity, folder: str) -> None:
        """Whoever watches a folder is told the names in it. Raises PermissionDenied."""
        if asker.role < AccessRole.ADMIN and self._in_project(folder) is None:
            said = f"'{folder[:100]}' is no folder of the project: an admin may watch it"
            raise PermissionDenied(said)

    def _script(self, written: str) -> str:
        script = self._in_project(written)
        if script is None:
            raise PermissionDenied("a scripted model must be a file of the project")
        return f"{SCRIPTED}{script}"

    def _in_project(self, written: str) -> Path | None:
        project = self.stretto.project.settings.project
        try:
            found = (project / written).resolve()
        except (OSError, ValueError, RuntimeError):
            return None  # no file has such a name
        return found if found.is_relative_to(project) else None

    async def history(self, run_id: str) -> "History":
        """Raises NotFound."""
        return await self.stretto.open(run_id).history()

    async def own_run(self, run_id: str, asker: Identity) -> SurfaceRun:
        """The run, for somebody who wants to change how it goes on: who started it, or an admin.

        Raises NotFound and PermissionDenied.
        """
        owner = (await self.history(run_id)).started.owner
        _check_owner(asker, owner, f"run {run_id}")
        return self.stretto.open(run_id)

    def own_chat(self, asker: Identity, options: "ChatOptions") -> "Chat":
        """A new chat of the asker, or one that is theirs; an admin may speak in any.

        Raises NotFound and PermissionDenied.
        """
        if options.resume is not None:
            # Before the options are kept: they count for the chat from then on.
            found = self.stretto.chat(options.resume)
            _check_owner(asker, found.owner, f"chat {found.id}")
            options = replace(options, resume=found.id)
        return self.stretto.open_chat(replace(options, owner=asker.name))


def _check_owner(asker: Identity, owner: str, what: str) -> None:
    """Raises PermissionDenied, unless it is the asker's or the asker is an admin."""
    if asker.role < AccessRole.ADMIN and owner != asker.name:
        whose = f"{owner} started it" if owner else "it was started on the server's machine"
        raise PermissionDenied(f"{what} is not yours: {whose}", hint="ask them, or an admin")


# These are coroutines because FastAPI runs a plain function in a thread, which costs a request more
# than all that they do. They read the request and do not depend on each other, because FastAPI
# solves a dependency of a dependency each time anew.
async def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


async def _identity(request: Request) -> Identity:
    # Below an open path (`/hooks/`) nobody is identified: a route that needs a role refuses all.
    found: Identity | None = getattr(request.state, "identity", None)
    if found is None:
        raise Unauthenticated("a token is needed")
    return found


async def _with_workflows(request: Request) -> None:
    (await _service(request)).check_workflows()


# What a route asks for by the type of an argument.
TheService = Annotated[Service, Depends(_service)]
Asker = Annotated[Identity, Depends(_identity)]
IF_WORKFLOWS = Depends(_with_workflows)  # for routes that `workflows.enabled: false` takes away


class _Needs:
    def __init__(self, role: AccessRole) -> None:
        self.role = role

    async def __call__(self, request: Request) -> None:
        require_role(await _identity(request), self.role)


def require_role(asker: Identity, role: AccessRole) -> None:
    """Raises PermissionDenied."""
    if asker.role < role:
        raise PermissionDenied(
            f"this needs the role {role.word}, and {asker.name} is {asker.role.word}",
            hint="use a token with that role: stretto serve token add NAME --role ROLE",
        )


def role_of(call: object) -> AccessRole | None:
    """The role that a dependency asks for, if it asks for one."""
    return call.role if isinstance(call, _Needs) else None


# Every route has one of these among its dependencies: routers are not taken without.
VIEWER = Depends(_Needs(AccessRole.VIEWER))
OPERATOR = Depends(_Needs(AccessRole.OPERATOR))
AUTHOR = Depends(_Needs(AccessRole.AUTHOR))
ADMIN = Depends(_Needs(AccessRole.ADMIN))
