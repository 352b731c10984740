"""One run, as its user holds it: started here, or recorded earlier."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from stretto.assembly.arguments import (
    check_flags,
    check_inputs,
    check_number,
    check_optional_text,
    check_paths,
    check_permission,
    check_text,
)
from stretto.assembly.engine import Engine
from stretto.assembly.project import RecipeSource
from stretto.assembly.request import PreparedRun, RunRequest
from stretto.events.codec import UnknownEvent
from stretto.events.model import AttemptSucceeded, RunStarted
from stretto.ports.journal import Leased
from stretto.problems import Problem
from stretto.problems.errors import InvalidUsage
from stretto.processes.completion import complete
from stretto.schedule.status import run_word
from stretto.text.short import listed
from stretto.vocabulary.json_value import loaded
from stretto.vocabulary.names import RunId, StepId
from stretto.vocabulary.statuses import RunStatus

if TYPE_CHECKING:
    from logging import Logger

    from stretto.assembly.changes import AppliedChange, ApplyOptions, StepChange
    from stretto.assembly.views import RunReport
    from stretto.events.model import Event
    from stretto.execution.driver import Listener
    from stretto.execution.history import History
    from stretto.execution.runs import Runs
    from stretto.ports.journal import StoredEvent
    from stretto.schedule.state import RunState

_POLL_SECONDS = 0.2  # of a run that another process drives


class Run:
    """A run: watch it, decide about its steps, stop it, go on with it, read its report.

    `Stretto.start` gives one that a task of this process drives, `Stretto.open` one that is
    recorded. Where a method waits for the run, it waits until the run has ended, was stopped, or
    waits for a person and for nothing else: a caller that is the only one to decide never hangs.
    """

    def __init__(self, engine: Engine, run_id: RunId) -> None:
        self._engine = engine
        self._id = run_id
        self._prepared: PreparedRun | None = None  # None: this process has not driven it
        self._runs: Runs | None = None
        self._task: asyncio.Task[RunState] | None = None
        self._state: RunState | None = None  # the driver's own, while a task drives the run
        self._is_accepted = False
        self._has_begun = False
        self._news = asyncio.Event()
        self._deciding = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<stretto.Run {self._id}>"

    @property
    def id(self) -> str:
        return self._id

    @property
    def notices(self) -> tuple[str, ...]:
        """Which model was chosen and why, what its agents go without, and what the folder brings
        along that is not used because it is not trusted."""
        if self._prepared is None:
            return ()
        return tuple(filter(None, (self._prepared.project.trust_notice, *self._prepared.notices)))

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What is doubtful about the recipe, though it can run."""
        return self._prepared.warnings if self._prepared else ()

    @property
    def _is_driven_here(self) -> bool:
        """Whether a task of this process works on the run now."""
        return self._task is not None and not self._task.done()

    async def events(self, *, after: int = 0) -> "AsyncGenerator[Event, None]":
        """What happened, from the beginning, then as it happens.

        It ends when the run has ended, was stopped, or waits for a person; the event that says so
        (ApprovalRequested) is given first. A loop that approves the step goes on with the run.
        """
        check_number("after", after)
        async for row in self._rows(after=after):
            if isinstance(row.event, AttemptSucceeded):
                # The store keeps large outputs apart from their events; a user wants the value.
                yield structs.replace(row.event, output=loaded(row.event.output))
            elif not isinstance(row.event, UnknownEvent):
                yield row.event

    async def _rows(
        self, *, after: int = 0, is_followed: bool = True
    ) -> "AsyncGenerator[StoredEvent, None]":
        """The same with the number of each event in the journal, for those who go on later with
        `after`; an event that this version cannot read is an UnknownEvent. `is_followed`: False for
        those events alone that are there now."""
        runs = await self._open()
        if not await runs.is_known(self._id):
            await runs.history(self._id)  # raises NotFound, and names runs that were meant perhaps
        while True:
            # Both are asked before reading: a driver that has let the run go has written all its events.
            is_driven, news = is_followed and await self._is_driven(), self._news
            self._engine.check_open()
            for row in await runs.events(self._id, after):
                after = row.seq
                yield row
            if not is_driven and not (is_followed and self._is_driven_here):
                self._raise_error()
                return
            if not self._is_driven_here:
                await asyncio.sleep(_POLL_SECONDS)
            else:
                await news.wait()

    async def wait(self) -> str:
        """The status, once the run has ended, was stopped, or waits for a person.

        Raises what kept the run from going on: a full disk, another process that took it over.
        """
        await self._wait_until_idle()
        return await self.status()

    async def _wait_until_idle(self) -> None:
        """Returns once nobody drives the run."""
        self._engine.check_open()
        while True:
            if self._task is not None:
                await asyncio.wait([self._task])
                if not self._is_driven_here:
                    self._raise_error()
                    return
            elif await self._is_driven():
                await asyncio.sleep(_POLL_SECONDS)
            else:
                return

    async def status(self) -> str:
        """complete, partial, failed or cancelled; before that running, waiting (for a person),
        overdue (a deadline has passed while it waited) or interrupted (nobody drives it)."""
        if self._is_driven_here and self._is_accepted and not self._has_begun:
            return RunStatus.RUNNING.value  # what it will wait for is not on record yet
        if self._is_driven_here and self._state is not None:
            return self._state.status.value
        history = await self._engine.history(self._id)
        word = run_word(history.state, await self._is_driven(), self._engine.now())
        return await self._engine.word_of(self._id, history.state.plan.name, word)

    async def report(self, *, wait: bool = True) -> "RunReport":
        """What the run did, once it has ended, was stopped, or waits for a person. `wait`: False for
        what it has done until now."""
        check_flags(wait=wait)
        if wait:
            await self._wait_until_idle()
        return await self._report_of(await self._engine.history(self._id))

    async def _report_of(self, history: "History") -> "RunReport":
        """What the run had done when its journal was read."""
        from stretto.assembly.changes import with_patches
        from stretto.assembly.views import view_of
        from stretto.report.report import report_of

        is_interrupted = not await self._is_driven()
        report = report_of(history.state, is_interrupted=is_interrupted, now=self._engine.now())
        word = await self._engine.word_of(self._id, report.workflow, report.status)
        report = replace(report, status=word)
        if any(step.changes for step in report.steps):
            project = self._engine.project_of(history)
            report = await asyncio.to_thread(with_patches, project, report, history)
        return view_of(report, history, self._engine.project.redactor.text)

    async def diff(self, step: str) -> "StepChange":
        """What a step changed in its own copy of the workspace. Raises NotFound."""
        from stretto.assembly.changes import diff_of

        check_text(step=step)
        history = await self._engine.history(self._id)
        return await asyncio.to_thread(diff_of, self._engine.project_of(history), history, step)

    async def apply(
        self,
        step: str,
        *,
        dry_run: bool = False,
        unfinished: bool = False,
        allow_removals: bool = False,
        allow_secrets: bool = False,
        resolved: Sequence[str] = (),
        ours: bool = False,
        theirs: bool = False,
    ) -> "AppliedChange":
        """Merge what a step changed into the workspace: all of it, or nothing.

        For steps with merge_back: manual, and for those whose merge met a conflict: settle it in
        the workspace and name its paths in `resolved`, or take one side of all with `ours` or
        `theirs`. `unfinished`, `allow_removals` and `allow_secrets` merge what would be refused
        otherwise. Raises MergeConflict, NotFound, InvalidUsage, PermissionDenied, PlanNotAccepted.
        """
        from stretto.assembly.changes import ApplyOptions

        check_text(step=step)
        check_flags(
            dry_run=dry_run,
            unfinished=unfinished,
            allow_removals=allow_removals,
            allow_secrets=allow_secrets,
            ours=ours,
            theirs=theirs,
        )
        paths = check_paths("resolved", resolved)
        options = ApplyOptions(
            dry_run, unfinished, allow_removals, allow_secrets, paths, ours, theirs
        )
        # A merge that has begun is not stopped halfway: it is soon done, and then on record.
        return await complete(self._apply(step, options))

    async def _apply(self, step: str, options: "ApplyOptions") -> "AppliedChange":
        from stretto.assembly.changes import apply_change

        runs, history = await self._open(), await self._engine.history(self._id)
        runs.check(history)
        project = self._engine.project_of(history)
        applied = await asyncio.to_thread(apply_change, project, history, step, options)
        if not options.is_dry_run:
            await runs.note_applied(self._id, StepId(step), user_name())
        return applied

    async def cancel(self, reason: str = "") -> None:
        """End the run; what had ended is kept. Returns when the run has ended, or, where another
        process drives it, when that process is asked."""
        check_text(reason=reason)
        reason = self._engine.project.redactor.text(reason)
        runs = await self._open()
        await runs.cancel(self._id, reason)
        if self._task is None:
            return
        await self._wait_until_idle()
        if not (await runs.history(self._id)).state.has_ended and not await self._is_driven():
            await runs.cancel(self._id, reason)  # it was stopped before the first one was on record

    async def approve(
        self,
        step: str,
        reason: str = "",
        *,
        edit: str | Mapping[str, str] | None = None,
        key: str | None = None,
        by: str | None = None,
    ) -> None:
        """Let a step go on that awaits approval. `edit`: a prompt to run instead, or several by
        part. `key`: approve only what was shown with this key.

        A run that this process drove goes on by itself; any other one with `resume`.
        """
        check_text(step=step)
        check_optional_text(key=key, by=by)
        await self._decide(step, True, by, reason, await self._prompts(step, edit), key)

    async def reject(
        self, step: str, reason: str = "", *, key: str | None = None, by: str | None = None
    ) -> None:
        """Fail a step that awaits approval. `key`: reject only what was shown with this key.

        The run goes on as after `approve`.
        """
        check_optional_text(key=key, by=by)
        await self._decide(step, False, by, reason, {}, key)

    async def stop(self) -> None:
        """Drive the run no further. What was under way is in doubt, as after a crash, and
        `resume` goes on."""
        if self._runs is not None and self._is_driven_here:
            self._runs.stop(self._id)
            await self.wait()

    async def resume(
        self,
        *,
        model: str | None = None,
        permission: str | None = None,
        accepted: str | None = None,
    ) -> "Run":
        """Go on where the journal ends, driven by this process. A run that has ended stays so.

        `accepted`: the fingerprint of a stored plan that you have read (PlanNotAccepted names it).
        """
        check_optional_text(model=model, accepted=accepted)
        check_permission(permission)
        self._engine.check_open()  # before a task of another loop is awaited
        await self._finish_task()
        if not self._is_driven_here:
            marks = frozenset([accepted] if accepted else [])
            request = RunRequest(
                of=self._id, is_resumed=True, model=model, permission=permission, accepted=marks
            )
            await self._drive(await self._engine.prepare(request))
        return self

    async def retry(
        self,
        *,
        from_step: str | None = None,
        part: str | None = None,
        recipe: RecipeSource | None = None,
        inputs: Mapping[str, object] | None = None,
        model: str | None = None,
        permission: str | None = None,
        accepted: str | None = None,
    ) -> "Run":
        """A new run that reuses every step whose agent, prompt, tools, model and schema are
        unchanged. `from_step`: do this one anew, and all that depends on it. `part`: of that step,
        only this branch (its key) or this element of a map (its index, from 0)."""
        check_optional_text(model=model, from_step=from_step, part=part, accepted=accepted)
        check_permission(permission)
        request = RunRequest(
            recipe,
            check_inputs(inputs),
            of=self._id,
            from_step=from_step,
            part=part,
            model=model,
            permission=permission,
            accepted=frozenset([accepted] if accepted else []),
        )
        prepared = await self._engine.prepare(request)
        again = type(self)(self._engine, prepared.run_id)
        await again._drive(prepared)
        return again

    async def fork(
        self,
        from_step: str,
        *,
        inputs: Mapping[str, object] | None = None,
        model: str | None = None,
        permission: str | None = None,
    ) -> "Run":
        """A new run that shares all that comes before a step, and runs that step and the rest again."""
        check_text(from_step=from_step)
        return await self.retry(
            from_step=from_step, inputs=inputs, model=model, permission=permission
        )

    async def _drive(self, prepared: PreparedRun, listener: "Listener | None" = None) -> None:
        """Returns when the run's first event is durable."""
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[bool] = loop.create_future()  # False: the task has ended before
        listeners = [*([listener] if listener else []), *self._engine.listeners]

        def begin() -> None:
            self._is_accepted = True
            if not begun.done():
                begun.set_result(True)

        def hear(event: "Event", state: "RunState") -> None:
            begin()
            self._state, self._has_begun = state, not isinstance(event, RunStarted)
            self._tell()
            for each in tuple(listeners):
                try:
                    each(event, state)
                except Exception:  # a view that cannot show an event is no reason to stop the work
                    _log().exception(
                        "stretto: the view of run %s failed, and gets no more events", self._id
                    )
                    listeners.remove(each)

        runs = await self._engine.runs_of(prepared.project, prepared.accepted)
        if self._is_driven_here:  # another call has begun to drive it meanwhile
            return
        self._prepared, self._runs = prepared, runs
        task = self._task = loop.create_task(self._work(prepared, runs, hear, begin))
        self._engine.tasks.add(task)
        self._engine.driven[self._id] = self
        task.add_done_callback(self._on_done)
        task.add_done_callback(lambda _: None if begun.done() else begun.set_result(False))
        try:
            has_begun = await begun
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not has_begun:
            task.result()  # raises what kept the run from starting

    async def _work(
        self,
        prepared: PreparedRun,
        runs: "Runs",
        listener: "Listener",
        on_accepted: "Callable[[], None]",
    ) -> "RunState":
        ports = self._engine.ports
        async with ports.open_runner(prepared.project, prepared.models, prepared.lead) as runner:
            return await runs.drive(prepared.beginning, runner, listener, on_accepted)

    def _on_done(self, task: "asyncio.Task[RunState]") -> None:
        # Asking for the error keeps asyncio from logging it: `wait` and `events` raise it.
        if task.cancelled() or task.exception() is not None or task.result().has_ended:
            self._engine.driven.pop(self._id, None)
        self._engine.tasks.discard(task)
        self._tell()

    async def _finish_task(self) -> None:
        """A task that has let its run go may still be closing tools and models: wait for it, since
        until then the run looks as if it was driven here."""
        if self._task is not None and self._runs and not self._runs.is_driving(self._id):
            await asyncio.wait([self._task])

    def _raise_error(self) -> None:
        """What kept this process from driving the run on: a full disk, another process."""
        if self._task is not None and not self._task.cancelled():
            self._task.result()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _open(self) -> "Runs":
        self._engine.check_open()
        if self._runs is None:
            self._runs = await self._engine.runs_of()
        return self._runs

    async def _is_driven(self) -> bool:
        """Whether this process or another one works on the run now."""
        return self._is_driven_here or await (await self._open()).is_driven(self._id)

    async def _prompts(self, step: str, edit: str | Mapping[str, str] | None) -> Mapping[str, str]:
        if edit is None:
            return {}
        from stretto.report.gate import gate_of

        state = (await self._engine.history(self._id)).state
        found = state.awaiting_approval.get(StepId(step))
        asked = gate_of(state, found).parts if found else ()
        edited = edit if isinstance(edit, Mapping) else [each.part for each in asked]
        if any(each.is_command and each.part in edited for each in asked):
            hint = "reject it, change the recipe, and run that"
            raise InvalidUsage(f"step '{step}' runs a command: it has no prompt to edit", hint=hint)
        if isinstance(edit, Mapping):
            for part, text in edit.items():
                check_text(part=part, edit=text)
            return edit
        check_text(edit=edit)
        parts = [each.part for each in asked]
        if len(parts) > 1:
            hint = f"its parts: {', '.join(parts)}"
            raise InvalidUsage(
                f"step '{step}' has {len(parts)} prompts: edit={{part: text}}", hint=hint
            )
        return {parts[0] if parts else "": edit}

    async def _decide(
        self,
        step: str,
        is_approved: bool,
        by: str | None,
        reason: str,
        prompts: Mapping[str, str],
        key: str | None,
    ) -> None:
        runs = await self._open()
        who = user_name() if by is None else by
        check_text(step=step, reason=reason, by=who)
        redactor = self._engine.project.redactor
        if names := redactor.named("\n".join(prompts.values())):
            said = f"the edited prompt holds the value of {listed(names)}, which no model is given"
            raise InvalidUsage(said, hint="leave it out")
        reason = redactor.text(reason)
        # One at a time: a decision that is being written down holds the run's lease for a moment,
        # and the run would look as if somebody drove it.
        async with self._deciding:
            await runs.decide(self._id, StepId(step), is_approved, who, reason, prompts, key)
            await self._finish_task()
            if self._prepared is not None and not await self._is_driven():
                with suppress(Leased):  # another process was quicker, and goes on with it
                    await self._drive(self._prepared.resumed())


def _log() -> "Logger":
    import logging  # seldom

    return logging.getLogger("stretto.assembly")


def user_name() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        return ""
