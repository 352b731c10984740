"""What starts runs by itself in one project, as one user sees it: `Stretto.triggers`.

    add_schedule, add_webhook, add_folder    say when runs start
    deliver, fire                            record that one is to start now
    serve                                    starts them, until it is cancelled

What is recorded is started by whichever process serves the project.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from stretto.assembly.arguments import (
    check_inputs,
    check_number,
    check_permission,
    check_text,
    check_texts,
    is_number,
)
from stretto.assembly.trigger_loop import LONGEST_WHY, TriggerLoop, new_fire
from stretto.problems.errors import InvalidUsage, NotFound, RefusedToOverwrite
from stretto.processes.identity import is_dead, name_of_this_process
from stretto.text.short import did_you_mean, listed
from stretto.triggers.arrivals import (
    check_delivery,
    check_folder,
    check_mapping,
    mapped_inputs,
    read_body,
    versions_in,
)
from stretto.triggers.cron import MISSED, OVERLAP, CronSchedule, next_fires
from stretto.triggers.store import open_triggers
from stretto.triggers.trigger import Trigger, TriggerFire
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import RunId, is_id

if TYPE_CHECKING:
    from stretto.assembly.engine import Engine
    from stretto.assembly.goal_executor import Launch, OpenRun
    from stretto.recipe.model import Recipe
    from stretto.triggers.store import TriggerStore

_LONGEST_NAME = 64
_CHANGEABLE = {
    "schedule": ("cron", "zone", "missed"),
    "webhook": ("mapping",),
    "folder": ("folder", "pattern", "input", "settle_seconds"),
}
_LONGEST_SETTLE_SECONDS = 3600.0
_KILLED = "the process that was starting its run was killed"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class AddedWebhook:
    """A new webhook. The secret is told now, and never again."""

    trigger: Trigger
    secret: str


class Triggers:
    """The schedules, webhooks and watched folders of a project. `wall`: the time, in seconds since
    the epoch, by the clock that people set; a schedule goes by nothing else."""

    def __init__(
        self,
        engine: "Engine",
        launch: "Launch",
        open_run: "OpenRun",
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._launch = launch
        self._open_run = open_run
        self.wall = wall

    def __repr__(self) -> str:
        return "<stretto.Triggers>"

    async def list(self) -> tuple[Trigger, ...]:
        """By name."""
        return await self._with_store(lambda store: tuple(store.all()))

    async def show(self, name: str) -> Trigger:
        """Raises NotFound."""
        check_text(name=name)
        return await self._with_store(lambda store: store.named(name))

    async def fires(self, name: str, limit: int = 20) -> tuple[TriggerFire, ...]:
        """What it has fired, newest first, and what became of it. Raises NotFound."""
        check_text(name=name)
        check_number("limit", limit)
        await self.show(name)
        found = await self._with_store(lambda store: tuple(store.fires(name, limit=limit)))
        if not any(each.starter for each in found):
            return found
        await self._settle_left(found)
        return await self._with_store(lambda store: tuple(store.fires(name, limit=limit)))

    async def _settle_left(self, fires: "tuple[TriggerFire, ...]") -> None:
        """Record what became of fires whose process was killed before it could say so."""
        runs = await self._engine.runs_of()
        for fire in fires:
            # Asked first: once the process is dead, no run of it can begin any more.
            if not fire.starter or not is_dead(fire.starter):
                continue
            if await runs.is_known(RunId(fire.run_id)):
                await self._with_store(partial(_settle, fire, "started", ""))
            else:
                await self._with_store(partial(_settle, fire, "failed", _KILLED))

    async def next(self, name: str, count: int = 5) -> tuple[float, ...]:
        """When a schedule fires next, in seconds since the epoch; nothing while it is paused."""
        check_number("count", count, 1, 1000)
        trigger = await self.show(name)
        return await asyncio.to_thread(_next, trigger, self.wall(), count)

    async def add_schedule(
        self,
        name: str,
        workflow: str,
        cron: str,
        *,
        zone: str = "UTC",
        inputs: Mapping[str, object] | None = None,
        missed: str = "once",
        overlap: str = "skip",
        permission: str | None = None,
    ) -> Trigger:
        """Run a saved workflow at the times of a cron expression, by the clock of a time zone.

        `missed`: what becomes of fires that nobody served: skip, once (the last of them), all.
        `overlap`: what happens while its last run goes on: skip, queue, cancel-previous, allow.
        Raises InvalidUsage, InvalidInputs, NotFound and RefusedToOverwrite.
        """
        check_text(cron=cron, zone=zone)
        _check_choice("missed", missed, MISSED)
        trigger = self._make("schedule", name, workflow, inputs, overlap, permission)
        trigger = replace(trigger, cron=cron, zone=zone, missed=missed)
        await asyncio.to_thread(CronSchedule(cron, zone).check)
        return await self._add(trigger)

    async def add_webhook(
        self,
        name: str,
        workflow: str,
        *,
        mapping: Mapping[str, str] | None = None,
        inputs: Mapping[str, object] | None = None,
        overlap: str = "allow",
        permission: str | None = None,
    ) -> AddedWebhook:
        """Run a saved workflow when somebody posts to `/hooks/ID` of a server.

        `mapping`: templates by input, such as {"topic": "{{body.issue.title}}"}; without it, the
        fields of the body that have the names of inputs. Raises as `add_schedule` does.
        """
        trigger = self._make("webhook", name, workflow, inputs, overlap, permission)
        templates = {} if mapping is None else dict(check_texts("mapping", mapping))
        trigger = replace(trigger, mapping=templates, hook=secrets.token_urlsafe(16))
        secret = secrets.token_urlsafe(32)
        return AddedWebhook(await self._add(trigger, secret), secret)

    async def add_folder(
        self,
        name: str,
        workflow: str,
        folder: str | Path,
        *,
        input: str,
        pattern: str = "*",
        settle_seconds: float = 2.0,
        existing: bool = False,
        inputs: Mapping[str, object] | None = None,
        overlap: str = "queue",
        permission: str | None = None,
    ) -> Trigger:
        """Run a saved workflow for each file that comes into a folder, or changes there.

        `input` gets the file's path. A file counts once it has not changed for a while. `existing`:
        those that are there now count too. Raises as `add_schedule` does.
        """
        trigger = self._make("folder", name, workflow, inputs, overlap, permission)
        trigger = await self._resolve_folder(
            replace(
                trigger,
                folder=str(folder),
                pattern=pattern,
                settle_seconds=settle_seconds,
                input=input,
            )
        )
        seen = {} if existing else await asyncio.to_thread(_versions, trigger)
        return await self._add(trigger, seen=seen)

    async def _resolve_folder(self, trigger: Trigger) -> Trigger:
        """With its folder whole. Raises InvalidUsage."""
        check_text(folder=trigger.folder, input=trigger.input, pattern=trigger.pattern)
        seconds = trigger.settle_seconds
        if not is_number(seconds) or not 0 < seconds <= _LONGEST_SETTLE_SECONDS:
            raise InvalidUsage("settle_seconds must be from 0 to 3600")
        project = self._engine.project.settings.project
        place = await asyncio.to_thread(check_folder, trigger, project)
        if self._takes_file(trigger) and not place.is_relative_to(project.resolve()):
            raise InvalidUsage(
                f"{place} is outside the workspace, and '{trigger.input}' takes a file of it",
                hint="watch a folder of the project, or make it an input of type string",
            )
        return replace(trigger, folder=str(place))

    def _takes_file(self, trigger: Trigger) -> bool:
        declared = self._recipe(trigger.workflow).inputs
        return any(each.name == trigger.input and each.type == "file_path" for each in declared)

    async def pause(self, name: str) -> Trigger:
        """Fire no more until it is resumed. Raises NotFound."""
        return await self._set_paused(name, True)

    async def resume(self, name: str) -> Trigger:
        """Fire again. What would have fired in between is not made up for. Raises NotFound."""
        return await self._set_paused(name, False)

    async def change(self, name: str, **settings: Any) -> Trigger:
        """Set a trigger otherwise, by the names that `add_…` takes; what is not named stays. Its fires stay
        on record, and nothing is made up for that it would have fired before. Files that are in another
        folder already, or that another pattern takes in, count with `existing` alone.

        Raises InvalidUsage, InvalidInputs and NotFound.
        """
        before = await self.show(name)
        is_folder = before.kind == "folder"
        existing = bool(settings.pop("existing", False)) if is_folder else False
        allowed = {*_CHANGEABLE[before.kind], "workflow", "inputs", "overlap", "permission"}
        if unknown := sorted(settings.keys() - allowed):
            hint = f"it has {listed(sorted(allowed))}"
            raise InvalidUsage(f"a {before.kind} has no '{unknown[0]}' to change", hint=hint)
        known: dict[str, Any] = {each: getattr(before, each) for each in allowed} | settings
        _check_choice("missed", str(known.get("missed", "once")), MISSED)
        made = self._make(
            before.kind, name, known.pop("workflow"), known.pop("inputs"),
            known.pop("overlap"), known.pop("permission"),
        )  # fmt: skip
        kept = replace(
            before, **{**known, **({"folder": str(known["folder"])} if is_folder else {})}
        )
        trigger = replace(
            kept, workflow=made.workflow, inputs=made.inputs, overlap=made.overlap,
            permission=made.permission, decided_until=made.decided_until,
        )  # fmt: skip
        if trigger.kind == "schedule":
            check_text(cron=trigger.cron, zone=trigger.zone)
            await asyncio.to_thread(CronSchedule(trigger.cron, trigger.zone).check)
        trigger = await self._resolve_folder(trigger) if is_folder else trigger
        await self._check(trigger)
        await self._with_store(
            lambda store: store.change(trigger, _still_seen(store, before, trigger, existing))
        )
        return await self.show(name)

    async def remove(self, name: str) -> None:
        """Remove a trigger; the runs that it started stay. Raises NotFound."""
        await self.show(name)
        await self._with_store(lambda store: store.remove(name))

    async def rotate(self, name: str) -> AddedWebhook:
        """Give a webhook a new secret; the old one counts no more. Raises NotFound."""
        trigger = await self.show(name)
        if trigger.kind != "webhook":
            raise InvalidUsage(f"'{name}' is a {trigger.kind}: only a webhook has a secret")
        secret = secrets.token_urlsafe(32)
        await self._with_store(lambda store: store.set_secret(name, secret))
        return AddedWebhook(trigger, secret)

    async def fire(
        self, name: str, *, is_started_here: bool = False, owner: str = ""
    ) -> TriggerFire:
        """Record that it fires now; `serve` starts its run, here or in another process.

        `is_started_here`: the caller starts the run itself, by the id that the fire has. `owner`: whose
        the run is. Raises NotFound, and InvalidInputs where the trigger alone does not give all inputs.
        """
        trigger = await self.show(name)
        if trigger.kind == "folder":
            raise InvalidUsage(f"'{name}' fires for files: put one into {trigger.folder}")
        project = self._engine.project
        plan, _ = await asyncio.to_thread(project.open_plan, self._recipe(trigger.workflow))
        project.inputs(plan, trigger.inputs)
        now = self.wall()
        made = new_fire(trigger, f"now:{now:.3f}:{secrets.token_hex(4)}", now, now)
        status = "started" if is_started_here else made.status
        starter = name_of_this_process() if is_started_here else ""
        made = replace(made, status=status, owner=owner, starter=starter)
        await self._with_store(lambda store: store.record(name, [made]))
        return made

    async def give_up(self, fire: TriggerFire, why: str) -> None:
        """Record that a fire with `is_started_here` has failed, unless its run has begun."""
        runs = await self._engine.runs_of()
        if not await runs.is_known(RunId(fire.run_id)):
            said = self._engine.project.redactor.text(why)[:LONGEST_WHY]
            await self._with_store(lambda store: store.settle(fire, "failed", said))

    async def note_begun(self, fire: TriggerFire) -> None:
        """Record that the run of a fire with `is_started_here` has begun, and that nobody prepares it."""
        await self._with_store(lambda store: store.settle(fire, "started"))

    async def deliver(self, hook: str, timestamp: str, signed: str, body: bytes) -> TriggerFire:
        """A delivery to a webhook: recorded, so that its run will start, whatever happens.

        Raises NotFound, PermissionDenied for a signature that is not valid, InvalidUsage and
        InvalidInputs for a body that cannot be used, and RefusedToOverwrite for a delivery that is
        on record already.
        """
        found = await self._with_store(lambda store: store.hooked(hook))
        if found is None:
            raise NotFound("there is no such webhook")
        trigger, secret = found
        now = self.wall()
        key = check_delivery(secret, timestamp, signed, body, now)
        if trigger.is_paused:
            raise InvalidUsage(f"the webhook '{trigger.name}' is paused")
        inputs = await asyncio.to_thread(self._inputs_of, trigger, body)
        made = replace(new_fire(trigger, key, now, now), inputs=inputs)
        if not await self._with_store(lambda store: store.record(trigger.name, [made])):
            raise RefusedToOverwrite("this delivery has been received before")
        return made

    def _inputs_of(self, trigger: Trigger, body: bytes) -> dict[str, Json]:
        """As they are kept: what maps onto inputs and nothing more, and no secret in it.

        Raises InvalidUsage and InvalidInputs: who sends a bad body is told at once.
        """
        project = self._engine.project
        plan, _ = project.open_plan(trigger.workflow)
        found = mapped_inputs(trigger, plan.inputs, read_body(body))
        bound = project.inputs(plan, {**trigger.inputs, **found})
        kept = {name: project.redactor.json(value) for name, value in found.items()}
        if kept != found:  # then the run gets what is kept, which a program must not be given
            project.tell_of_secrets(project.bind(plan, bound), bound)
            project.inputs(plan, {**trigger.inputs, **kept})
        return kept

    async def serve(self, tell: Callable[[TriggerFire], None] | None = None) -> None:
        """Fire until it is cancelled, and tell people of steps that await them (`notify`). One
        process of a project fires at a time; others wait.

        `tell` hears what became of each fire.
        """
        from stretto.assembly.notices import Notifier

        async with asyncio.TaskGroup() as both:
            both.create_task(Notifier(self._engine).serve())
            both.create_task(self._loop(tell).run())

    def _loop(self, tell: Callable[[TriggerFire], None] | None = None) -> TriggerLoop:
        """What `serve` runs, for those who take one step at a time."""
        return TriggerLoop(
            self._with_store, self.wall, self._engine, self._launch, self._open_run, tell
        )

    def _make(
        self,
        kind: str,
        name: str,
        workflow: str,
        inputs: Mapping[str, object] | None,
        overlap: str,
        permission: str | None,
    ) -> Trigger:
        check_text(name=name, workflow=workflow)
        if not is_id(name) or len(name) > _LONGEST_NAME:
            hint = f"letters, digits, '-' and '_', at most {_LONGEST_NAME}"
            raise InvalidUsage(f"'{name[:80]}' cannot be the name of a {kind}", hint=hint)
        _check_choice("overlap", overlap, OVERLAP)
        given, now = check_inputs(inputs), self.wall()
        allowed = check_permission(permission)
        return Trigger(
            name, kind, workflow, given, overlap=overlap, permission=allowed,
            created_at=now, decided_until=now,
        )  # fmt: skip

    def _recipe(self, workflow: str) -> "Recipe":
        """Raises NotFound: a trigger outlives the terminal, so it names a saved workflow."""
        entry = self._engine.project.saved(workflow)
        if entry is None:
            known = [each.name for each in self._engine.project.workflows.entries()]
            hint = did_you_mean(workflow, known) or "stretto list shows the saved workflows"
            raise NotFound(f"there is no saved workflow '{workflow[:100]}'", hint=hint)
        return entry.recipe

    async def _add(
        self, trigger: Trigger, secret: str = "", seen: Mapping[str, str] | None = None
    ) -> Trigger:
        await self._check(trigger)
        await self._with_store(lambda store: store.add(trigger, secret, seen))
        return trigger

    async def _check(self, trigger: Trigger) -> None:
        project = self._engine.project
        given = {"its inputs": dict(trigger.inputs), "its mapping": dict(trigger.mapping)}
        project.refuse_secrets("a trigger", given)
        plan, _ = await asyncio.to_thread(project.open_plan, self._recipe(trigger.workflow))
        check_mapping(trigger, plan.inputs)
        if trigger.kind == "schedule":
            project.inputs(plan, trigger.inputs)

    async def _set_paused(self, name: str, is_paused: bool) -> Trigger:
        await self.show(name)
        now = self.wall()
        await self._with_store(lambda store: store.set_paused(name, is_paused, now))
        return await self.show(name)

    async def _with_store(self, work: "Callable[[TriggerStore], _T]") -> _T:
        settings = self._engine.project.settings

        def do() -> _T:
            with open_triggers(settings.home, settings.project) as store:
                return work(store)

        return await asyncio.to_thread(do)


def _settle(fire: TriggerFire, status: str, why: str, store: "TriggerStore") -> None:
    store.settle(fire, status, why)


def _versions(trigger: Trigger) -> dict[str, str]:
    return versions_in(Path(trigger.folder), trigger.pattern)


def _still_seen(
    store: "TriggerStore", before: Trigger, now: Trigger, existing: bool
) -> dict[str, str] | None:
    """Which files count as seen once a folder's trigger has changed; None: as before."""
    if (before.folder, before.pattern) == (now.folder, now.pattern):
        return None
    there = _versions(now)
    known = store.seen(now.name) if before.folder == now.folder else {}
    if existing:
        return known
    # A file that both patterns take in may have come just now: it is waited for as before.
    waited = {
        name for name in there if before.folder == now.folder and fnmatchcase(name, before.pattern)
    }
    return {**{name: it for name, it in there.items() if name not in waited}, **known}


def _next(trigger: Trigger, now: float, count: int) -> tuple[float, ...]:
    if trigger.kind != "schedule" or trigger.is_paused:
        return ()
    return tuple(islice(next_fires(CronSchedule(trigger.cron, trigger.zone), now), count))


def _check_choice(what: str, written: str, known: tuple[str, ...]) -> None:
    if written not in known:
        raise InvalidUsage(f"{what} cannot be '{written}'", hint=f"one of {', '.join(known)}")
