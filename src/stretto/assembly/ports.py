"""What a Stretto reaches the world through: a store, a clock, a runner, the copies of writers.

The usual ones are opened here. Tests and proofs give others, and everything else stays the same.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from stretto.problems.errors import InvalidConfig, InvalidUsage, StrettoError
from stretto.text.short import did_you_mean, kind_of, listed
from stretto.vocabulary.models import ModelSelection

if TYPE_CHECKING:
    from stretto.adapters.workspaces import LocalWorkspaces
    from stretto.agents.conversation import LeadTurn
    from stretto.assembly.project import Project
    from stretto.config.settings import Settings
    from stretto.execution.leases import Store
    from stretto.execution.runs import Runs
    from stretto.execution.start_line import StartLine
    from stretto.plan.model import Plan
    from stretto.ports.clock import Clock
    from stretto.ports.runner import Runner
    from stretto.text.redaction import Redactor

_STORE = (
    "append",
    "read",
    "runs",
    "run",
    "begin",
    "lease",
    "send",
    "pending",
    "put",
    "get",
    "close",
)
_NEVER = 10 * 365 * 86_400.0


def store_name(project: "Project") -> str:
    return project.environ.get("STRETTO_STORE") or project.settings.store


@dataclass(frozen=True, slots=True)
class Ports:
    """None: the usual one. A given store is in memory: it needs no seals and no renewed leases."""

    store: "Store | None" = None
    clock: "Clock | None" = None
    runner: "Runner | None" = None  # it does the work of every agent, and no model is chosen
    has_workspaces: bool = True  # False: no step works on files

    async def open_store(self, project: "Project") -> "Store":
        """The one that STRETTO_STORE or the user's settings name. Raises InvalidUsage."""
        if self.store is not None:
            return self.store
        name = store_name(project)
        try:
            opener = project.plugins.load("stretto.stores", name)
        except KeyError:
            known = project.plugins.names("stretto.stores")
            hint = did_you_mean(name, known) or f"there are {listed(known)}"
            raise InvalidUsage(f"there is no store '{name}'", hint=hint) from None
        try:
            store = await opener(project.settings.home)
            lacks = [each for each in _STORE if not callable(getattr(store, each, None))]
            if lacks:
                raise TypeError(f"it gave {kind_of(store)}, without {listed(lacks)}")
            return cast("Store", store)
        except StrettoError:
            raise
        except (Exception, SystemExit) as error:  # whatever a stranger's store does
            said = f"{type(error).__name__}: {error}"
            raise InvalidConfig(f"the store '{name}' cannot be opened: {said}") from error

    def open_clock(self) -> "Clock":
        from stretto.adapters.clock import SystemClock

        return self.clock or SystemClock()

    async def choose(
        self,
        project: "Project",
        plan: "Plan",
        model: str | None,
        is_delegated: bool = False,
        tell: "Callable[[str], None] | None" = None,
    ) -> ModelSelection:
        """Raises NotReady. `is_delegated`: a script may name steps of other runs of the same chat.
        `tell` hears what it does that may take long."""
        from stretto.assembly.models import choose_models

        if self.runner is not None:
            return ModelSelection("")
        return await choose_models(project, plan, model, is_delegated, tell)

    def choose_at_once(
        self, project: "Project", plan: "Plan", model: str | None, is_delegated: bool
    ) -> ModelSelection | None:
        """In a thread, what `choose` finds without waiting for anybody. None: ask it. Raises NotReady."""
        from stretto.assembly.models import choose_script

        if self.runner is not None:
            return ModelSelection("")
        return choose_script(project, plan, model, is_delegated)

    def open_runner(
        self, project: "Project", chosen: ModelSelection, lead: "LeadTurn | None" = None
    ) -> "AbstractAsyncContextManager[Runner]":
        from stretto.assembly.models import open_runner

        if self.runner is not None:
            return nullcontext(self.runner)
        return open_runner(project, chosen, lead)

    def open_runs(
        self,
        store: "Store",
        project: "Project",
        accepted: frozenset[str] = frozenset(),
        start_line: "StartLine | None" = None,
    ) -> "Runs":
        """The runs of one user, with the workspaces and limits of one project."""
        from stretto.config.home import user_secret
        from stretto.execution.leases import LEASE_SECONDS
        from stretto.execution.runs import Runs
        from stretto.execution.seals import Seals
        from stretto.ports.journal import LeaseOwner
        from stretto.processes.identity import is_dead, name_of_this_process

        settings, environ = project.settings, project.environ
        clock = self.open_clock()
        workspaces = None
        if self.has_workspaces:
            workspaces = open_workspaces(settings, project.redactor)
        if self.store is not None:
            # Nobody else can reach it: no lease runs out, and no message comes by its mailbox.
            return Runs(store, clock, workspaces, lease_seconds=_NEVER, poll_seconds=_NEVER)
        lease = _number(environ, "STRETTO_LEASE_SECONDS", LEASE_SECONDS, 3600)
        crashes = _number(environ, "STRETTO_MAX_CRASHES", 3, 1000)
        seals = Seals(lambda: user_secret(settings.home), accepted)
        owner = LeaseOwner(name_of_this_process(), is_dead)
        kept = settings.retention
        return Runs(
            store,
            clock,
            workspaces,
            seals,
            lease,
            crashes,
            owner,
            retention=kept,
            start_line=start_line,
        )


def open_workspaces(settings: "Settings", redactor: "Redactor") -> "LocalWorkspaces":
    from stretto.adapters.workspaces import LocalWorkspaces
    from stretto.assembly.copies import copy_limits
    from stretto.workspaces.protected import Protected

    copies = settings.workspace
    protected = Protected(settings.protected)
    return LocalWorkspaces(settings.home, protected, copy_limits(copies), copies.carry, redactor)


def _number(environ: Mapping[str, str], name: str, default: float, most: int) -> int:
    written = environ.get(name, "")
    if not written:
        return int(default)
    if not (written.isdecimal() and len(written) <= 4 and 1 <= int(written) <= most):
        said = f"{name} is '{written[:20]}'; it must be a number from 1 to {most:,}"
        raise InvalidUsage(said)
    return int(written)
