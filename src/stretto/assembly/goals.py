"""Goals: run again until a verifier passes. `Stretto.goals`.

    set ──→ GoalSpec, on record ─┐
    resume ──────────────────────┴→ lease ─→ GoalDriver ─→ runs by the one road, checks

A goal lives in the user's own folder; its runs are runs like any other.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from msgspec import structs

from stretto.assembly.arguments import (
    check_budget,
    check_inputs,
    check_number,
    check_optional_text,
    check_permission,
    check_text,
)
from stretto.assembly.chat import BudgetSpent, Chat, open_chat
from stretto.assembly.engine import Engine
from stretto.assembly.goal_checks import Checks
from stretto.assembly.project import Project, RecipeSource
from stretto.assembly.request import PreparedRun, RunRequest
from stretto.assembly.run import Run, user_name
from stretto.execution.runs import new_run_id
from stretto.goals.evidence import CheckResult, judge_result
from stretto.goals.goal import (
    DEFAULT_ITERATIONS,
    DEFAULT_STALL,
    GoalEnded,
    GoalEvent,
    GoalLimits,
    GoalReopened,
    GoalReport,
    GoalSpec,
    GoalStanding,
    GoalState,
    IterationStarted,
    advance,
    goal_report,
)
from stretto.goals.loop import Effort, GoalDriver, Tell
from stretto.goals.prompts import (
    declared_reason,
    evidence_input_of,
    goal_input_of,
    inputs_of,
    judge_inputs,
    judge_recipe,
    turn_prompt,
)
from stretto.goals.store import GoalOwner, GoalStore, StoredGoal
from stretto.goals.verifier import Verifier, read_verifier
from stretto.lead.chats import ChatFile, KeptChat
from stretto.lead.turn import ChatTurn
from stretto.problems.errors import InvalidUsage, PermissionDenied, StrettoError
from stretto.recipe.model import Budget
from stretto.text.short import shorten
from stretto.vocabulary.durations import parse_duration
from stretto.vocabulary.ids import RunId
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.usage import Usage

if TYPE_CHECKING:
    from stretto.assembly.delegation import ChatHost
    from stretto.assembly.views import RunReport
    from stretto.execution.driver import Listener
    from stretto.plan.model import Plan
    from stretto.recipe.model import Recipe

_T = TypeVar("_T")
AskedBy: TypeAlias = Literal["person", "model"]
Launch: TypeAlias = "Callable[[PreparedRun, Listener | None], Awaitable[Run]]"
OpenRun: TypeAlias = Callable[[RunId], Run]
_MOST_ITERATIONS = 10_000
_LONGEST_TEXT = 50_000
_MOST_WARNINGS = 20  # of one iteration that are kept
_POLL_SECONDS = 0.5  # of a goal that another process drives
_CLEAR_SECONDS = 20.0  # how long `clear` waits for the process that drives the goal


@dataclass(frozen=True, slots=True)
class GoalWatch:
    """Who is told how a goal goes: `heard` its events, `prepared` what is about to run, and `opened`
    the plan of each run, for which it may give a Listener."""

    heard: Tell = lambda event, goal: None
    prepared: Callable[[PreparedRun], None] = lambda prepared: None
    opened: "Callable[[Plan], Listener | None]" = lambda plan: None

    @contextmanager
    def show(self, plan: "Plan") -> "Iterator[Listener]":
        """As a chat shows the runs that its turns start."""
        yield self.opened(plan) or (lambda event, state: None)


NOBODY = GoalWatch()


class GoalHands:
    """The loop's hands: checks, and runs by the one road."""

    def __init__(
        self, engine: Engine, project: Project, spec: GoalSpec, roads: "Roads", watch: GoalWatch
    ) -> None:
        self._engine = engine
        self._project = project
        self._verifier = read_verifier(spec.verify)
        self._roads = roads
        self._watch = watch
        permission = spec.permission or project.settings.permission
        self._checks = Checks(
            project,
            may_write=permission != "read_only",
            is_asked_by_person=spec.asked_by == "person",
        )

    @property
    def asks_model(self) -> bool:
        return self._verifier.asks_model

    def new_run_id(self) -> str:
        return new_run_id()

    async def verify(self, goal: GoalStanding, run_id: str) -> CheckResult:
        if not self._verifier.asks_model:
            return await self._checks.run(self._verifier, goal.limits.check_seconds)
        return await self._judge(goal, run_id)

    async def _judge(self, goal: GoalStanding, run_id: str) -> CheckResult:
        output: Json = None
        if goal.iterations:
            with suppress(StrettoError):  # a run that never began has said nothing
                output = (await self._roads.open(RunId(goal.iterations[-1].run_id)).report()).output
        request = self._request(
            goal, judge_recipe(), judge_inputs(goal, self._verifier.spec, output), run_id
        )
        run = await self._go_on(request, goal)
        report = await self._finish(run, goal.limits.check_seconds)
        said = [issue.text for issue in report.issues if issue.kind in ("failed", "stopped")]
        hide = self._project.redactor.text
        return judge_result(report.status, report.output, report.usage, said, hide)

    async def work(self, goal: GoalStanding, begun: IterationStarted) -> Effort:
        if not goal.spec.recipe:
            return await self._turn(goal, RunId(begun.run_id))
        recipe = self._project.recipe_from_text(goal.spec.recipe, goal.spec.workflow)
        run = await self._go_on(self._request(goal, recipe, inputs_of(goal), begun.run_id), goal)
        report = await self._finish(run, goal.seconds_left)
        waits = [issue.text for issue in report.issues if issue.kind == "waiting"]
        error = next((issue.text for issue in report.issues if issue.kind == "failed"), "")
        return Effort(
            report.status,
            report.usage,
            declared_reason(report.output),
            _spent(report, goal),
            shorten(self._project.redactor.text(waits[0] if waits else error), 500),
            self._warned(issue.text for issue in report.issues if issue.kind == "warning"),
        )

    def _warned(self, said: Iterable[str]) -> tuple[str, ...]:
        hidden = (shorten(self._project.redactor.text(each), 400) for each in said)
        return tuple(islice(hidden, _MOST_WARNINGS))

    async def _turn(self, goal: GoalStanding, run_id: RunId) -> Effort:
        """A turn of the lead agent, in a chat that the goal has for itself."""
        chat = await self._chat(goal)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(goal.seconds_left):
                    turn = await chat.send_once(turn_prompt(goal), run_id)
                    effort = _effort(turn, await self._spent_by(goal, run_id))
                    return replace(effort, warnings=self._warned(turn.warnings))
            await chat.stop()
            return _effort(await chat.cancel("the time of its goal is up"), "")
        except asyncio.CancelledError:
            await chat.stop()
            raise
        except BudgetSpent as error:
            spent = "tokens" if goal.tokens_left is not None else "usd"
            return Effort("failed", spent=spent, error=error.message)

    async def _spent_by(self, goal: GoalStanding, run_id: RunId) -> str:
        if goal.tokens_left is None and goal.usd_left is None:
            return ""
        return _spent(await self._roads.open(run_id).report(), goal)

    async def _chat(self, goal: GoalStanding) -> Chat:
        """With a budget of what the goal has left, whatever its turns have used so far."""
        host = self._roads.chat_host()
        if self._project is not self._engine.project:
            folder = goal.spec.folder
            hint = f"cd {folder} && stretto goal resume {goal.id}"
            raise InvalidUsage(
                f"goal {goal.id} works in {folder}, by the lead agent there", hint=hint
            )
        file = ChatFile(self._engine.project.settings.home)
        turns = await file.use(lambda store: store.turns(goal.id))
        used = sum((each.usage for each in turns), Usage())
        budget = Budget(
            None if goal.tokens_left is None else goal.tokens_left + used.tokens,
            None if goal.usd_left is None else goal.usd_left + used.usd,
        )
        spec = goal.spec
        wanted = KeptChat(
            goal.id, self._engine.now(), spec.folder, spec.model, spec.permission, budget
        )
        is_known = any(each.id == goal.id for each in await file.use(lambda store: store.chats()))
        open_it = partial(open_chat, host, goal.id if is_known else None, wanted, self._watch.show)
        return await asyncio.to_thread(open_it)

    async def abandon(self, goal: GoalStanding, run_id: str) -> None:
        with suppress(StrettoError):  # it has ended, or never began
            if not goal.spec.recipe and isinstance(goal.in_flight, IterationStarted):
                await (await self._chat(goal)).cancel("its goal was cleared")
        with suppress(StrettoError):
            await self._roads.open(RunId(run_id)).cancel("its goal was cleared")

    def _request(
        self, goal: GoalStanding, recipe: RecipeSource, inputs: Mapping[str, Json], run_id: str
    ) -> RunRequest:
        return RunRequest(
            recipe,
            inputs,
            model=goal.spec.model,
            permission=goal.spec.permission,
            budget=Budget(goal.tokens_left, goal.usd_left),
            run_id=RunId(run_id),
            trigger=f"goal {goal.id}",
            is_delegated=True,
        )

    async def _go_on(self, request: RunRequest, goal: GoalStanding) -> Run:
        """Resume the run if it has begun before; start it otherwise."""
        assert request.run_id is not None
        runs = await self._engine.runs_of()
        if await runs.is_known(request.run_id):
            run = self._roads.open(request.run_id)
            if await run.status() in _ENDED:
                return run
            request = RunRequest(
                of=request.run_id,
                is_resumed=True,
                model=goal.spec.model,
                permission=goal.spec.permission,
                is_delegated=True,
            )
            prepared = await self._engine.prepare(request)
        else:
            prepared = await self._engine.prepare(request, self._project)
        self._watch.prepared(prepared)
        return await self._roads.launch(prepared, self._watch.opened(prepared.plan))

    async def _finish(self, run: Run, seconds: float | None) -> "RunReport":
        """The report, once the run has ended or waits. After `seconds` the run is cancelled."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    return await run.report()
            with suppress(StrettoError):  # it has ended meanwhile
                await run.cancel("the time of its goal is up")
            return await run.report()
        except asyncio.CancelledError:
            await run.stop()
            raise


def _effort(turn: ChatTurn, spent: str) -> Effort:
    status = {"open": "interrupted"}.get(turn.status, turn.status)
    waits = "; ".join(f"{shorten(each.shown, 200)} (key {each.key})" if each.key
                      else shorten(each.shown, 200) for each in turn.awaits)  # fmt: skip
    error = shorten(waits or turn.error, 500)
    return Effort(status, turn.usage, declared_reason(turn.text), spent, error)


_ENDED = ("complete", "partial", "failed", "cancelled")


def _spent(report: "RunReport", goal: GoalStanding) -> str:
    """The budget of the goal that kept a step from working, if one did."""
    failed = [
        attempt.error
        for step in report.steps
        for attempt in step.attempts
        if attempt.failure == "budget"
    ]
    failed += [issue.says for issue in report.issues if "budget exhausted" in issue.says]
    if not failed or report.plan is None:
        return ""
    budget = report.plan.budget
    if goal.tokens_left is not None and budget.tokens == goal.tokens_left:
        return "tokens"
    return "usd" if goal.usd_left is not None and budget.usd == goal.usd_left else ""


@dataclass(frozen=True, slots=True)
class Roads:
    """How a run is started and opened: by the Stretto that the goal belongs to."""

    launch: Launch
    open: OpenRun
    chat_host: "Callable[[], ChatHost]"


class _LeasedGoal:
    """The record of one goal, as its driver sees it. One thread at a time reaches the file."""

    def __init__(self, goals: "Goals", id: str, fence: int) -> None:
        self._goals = goals
        self._id = id
        self._fence = fence

    async def append(self, event: GoalEvent) -> None:
        await self._goals._with(lambda store: store.append(self._id, self._fence, event))

    async def renew(self, worked: float) -> str | None:
        return await self._goals._with(lambda store: store.renew(self._id, self._fence, worked))

    async def release(self, worked: float) -> None:
        await self._goals._with(lambda store: store.release(self._id, self._fence, worked))

    def now(self) -> float:
        return self._goals._engine.now()


class Goal:
    """One goal: `Goals.set` gives one that a task of this process drives, `Goals.open` one that is
    recorded. `wait` returns once it has ended, waits for a person, or was stopped."""

    def __init__(self, goals: "Goals", id: str) -> None:
        self._goals = goals
        self._id = id
        self._driver: GoalDriver | None = None
        self._task: asyncio.Task[GoalStanding] | None = None

    def __repr__(self) -> str:
        return f"<stretto.Goal {self._id}>"

    @property
    def id(self) -> str:
        return self._id

    async def report(self) -> GoalReport:
        """How it stands now. Raises NotFound."""
        return await self._goals.show(self._id)

    async def wait(self) -> GoalReport:
        """How it stands when nobody drives it any longer. Raises what kept this process from going
        on: a model that is not there, a full disk, another process."""
        if self._task is not None:
            await asyncio.wait([self._task])
            self._task.result()
            return await self.report()
        while (report := await self.report()).status == "active":
            await asyncio.sleep(_POLL_SECONDS)
        return report

    async def stop(self) -> None:
        """Drive it no further; `resume` goes on where it stands."""
        self.halt()
        if self._task is not None:
            await asyncio.wait([self._task])

    def halt(self) -> None:
        """The same without waiting, for signals."""
        if self._driver is not None:
            self._driver.stop()

    async def clear(self) -> GoalReport:
        """End the goal, and the run that works on it."""
        return await self._goals.clear(self._id)

    async def resume(
        self,
        *,
        max_iterations: int | None = None,
        budget: Mapping[str, float] | None = None,
        timeout: str | float | None = None,
    ) -> "Goal":
        """As `Goals.resume`."""
        return await self._goals.resume(
            self._id, max_iterations=max_iterations, budget=budget, timeout=timeout
        )

    async def _drive(
        self, hands: GoalHands, standing: GoalStanding, fence: int, tell: Tell
    ) -> None:
        engine = self._goals._engine
        journal = _LeasedGoal(self._goals, self._id, fence)
        driver = self._driver = GoalDriver(standing, journal, hands, tell)

        async def work() -> GoalStanding:
            try:
                return await driver.drive()
            finally:
                with suppress(StrettoError):  # a full disk: the lease runs out by itself
                    await journal.release(driver.worked)

        self._task = asyncio.get_running_loop().create_task(work())
        engine.tasks.add(self._task)
        engine.stoppable.add(driver)

        def end(task: "asyncio.Task[GoalStanding]") -> None:
            engine.tasks.discard(task)
            engine.stoppable.discard(driver)
            if not task.cancelled():
                task.exception()  # `wait` raises it

        self._task.add_done_callback(end)


@dataclass(frozen=True, slots=True)
class GoalRequest:
    """What somebody wants to reach, and how.

    `verify`: KIND:SPEC, such as "command:make check". `workflow`: what one iteration runs, with
    `inputs`; without it, a turn of an agent. `evidence_input`: the input that gets the evidence of
    the last check; by default `evidence`, `feedback`, or below the text that the workflow is given.
    `limits`: of all runs together, and of the time at work.

    `asked_by`: "model" where a model has chosen the verifier. One that runs a command then needs a
    person's `consent`: the very text of `verify` that the person was shown.
    """

    text: str
    verify: str
    workflow: RecipeSource | None = None
    inputs: Mapping[str, Json] = field(default_factory=dict)
    evidence_input: str | None = None
    limits: GoalLimits = GoalLimits()
    model: str | None = None
    permission: str | None = None
    asked_by: AskedBy = "person"
    consent: str | None = None


class Goals:
    """The goals of this user: `Stretto.goals`."""

    def __init__(self, engine: Engine, roads: Roads) -> None:
        self._engine = engine
        self._roads = roads

    async def set(
        self,
        text: str,
        verify: str,
        *,
        workflow: RecipeSource | None = None,
        inputs: Mapping[str, object] | None = None,
        evidence_input: str | None = None,
        max_iterations: int = DEFAULT_ITERATIONS,
        budget: Mapping[str, float] | None = None,
        timeout: str | float | None = None,
        verify_timeout: str | float | None = None,
        stall_after: int = DEFAULT_STALL,
        model: str | None = None,
        permission: str | None = None,
        asked_by: AskedBy = "person",
        consent: str | None = None,
    ) -> Goal:
        """Record a goal and drive it by a task of this process; GoalRequest says what each is.

        Raises InvalidUsage, InvalidRecipe, InvalidInputs, NotFound and PermissionDenied.
        """
        limits = read_limits(
            GoalLimits(), max_iterations, budget, timeout, verify_timeout, stall_after
        )
        given = check_inputs(inputs)
        request = GoalRequest(
            text,
            verify,
            workflow,
            given,
            evidence_input,
            limits,
            model,
            permission,
            asked_by,
            consent,
        )
        return await self.drive(await self.record(request))

    async def record(self, request: "GoalRequest") -> str:
        """Keep a goal without driving it: the id, for `drive`. Raises as `set` does."""
        check_text(text=request.text, verify=request.verify)
        check_optional_text(
            model=request.model, evidence_input=request.evidence_input, consent=request.consent
        )
        if not request.text.strip():
            raise InvalidUsage("the goal says nothing", hint='stretto goal set "All tests pass" …')
        if len(request.text) > _LONGEST_TEXT:
            hint = "put the rest into a file of the workspace, and name that"
            raise InvalidUsage(f"a goal has at most {_LONGEST_TEXT:,} characters", hint=hint)
        verifier = _permitted(read_verifier(request.verify), request.asked_by, request.consent)
        project = self._engine.project
        spec = GoalSpec(
            project.redactor.text(request.text.strip()),
            str(verifier),
            str(project.settings.project),
            model=project.model(request.model) or request.model,
            permission=check_permission(request.permission),
            limits=request.limits,
            asked_by=request.asked_by,
            by=user_name(),
        )
        if request.workflow is not None:
            spec = await asyncio.to_thread(_with_workflow, project, spec, request)
        elif request.inputs or request.evidence_input is not None:
            raise InvalidUsage(
                "inputs are for a workflow, and none is named", hint="--workflow NAME"
            )
        id = f"g-{new_run_id()}"
        await self._with(lambda store: store.add(id, spec, self._engine.now()))
        return id

    async def list(self) -> tuple[GoalReport, ...]:
        """Newest first."""

        def read(store: GoalStore) -> tuple[GoalReport, ...]:
            return tuple(_report(store.get(id)) for id in store.ids())

        return await self._with(read)

    async def show(self, id: str) -> GoalReport:
        """Raises NotFound."""
        check_text(id=id)
        return _report(await self._with(lambda store: store.get(id)))

    def open(self, id: str) -> Goal:
        """A recorded goal. Whether there is one shows in its first use: NotFound."""
        check_text(id=id)
        return Goal(self, id)

    async def resume(
        self,
        id: str,
        *,
        max_iterations: int | None = None,
        budget: Mapping[str, float] | None = None,
        timeout: str | float | None = None,
    ) -> Goal:
        """Go on with a goal that was interrupted or waited. One that is exhausted, stalled or
        unachievable is opened again, with the limits that are given; what it has used still counts.

        Raises NotFound, InvalidUsage, and GoalLeased where another process drives it.
        """
        check_text(id=id)
        before = (await self.show(id)).limits
        return await self.drive(
            id, read_limits(before, max_iterations, budget, timeout, None, None)
        )

    async def drive(
        self, id: str, limits: GoalLimits | None = None, watch: GoalWatch = NOBODY
    ) -> Goal:
        """Go on with a recorded goal, with these limits. Raises as `resume` does."""
        self._engine.check_open()
        fence = await self._with(lambda store: store.lease(id))
        journal = _LeasedGoal(self, id, fence)
        try:
            goal = await self._opened(id, journal, limits)
            project = await asyncio.to_thread(self._engine.project_in, Path(goal.spec.folder))
            hands = GoalHands(self._engine, project, goal.spec, self._roads, watch)
        except BaseException:
            await journal.release(0.0)
            raise
        found = Goal(self, id)
        await found._drive(hands, goal, fence, watch.heard)
        return found

    async def _opened(
        self, id: str, journal: "_LeasedGoal", limits: GoalLimits | None
    ) -> GoalStanding:
        """How a leased goal stands; one that has ended, or has other limits now, is opened again."""
        await self._with(lambda store: store.check_seal(id))
        stored = await self._with(lambda store: store.get(id))
        goal = stored.standing
        worked = max(stored.worked, goal.worked_seconds)
        limits = limits or goal.limits
        _check_resumable(goal, limits)
        if limits != goal.limits or goal.state != GoalState.ACTIVE:
            opened = GoalReopened(self._engine.now(), worked, limits=limits, by=user_name())
            await journal.append(opened)
            goal = advance(goal, opened)
        return replace(goal, worked_seconds=worked)

    async def clear(self, id: str) -> GoalReport:
        """End a goal and the run that works on it. One that has ended stays as it is."""
        check_text(id=id)
        stored = await self._with(lambda store: store.get(id))
        if stored.standing.state != GoalState.ACTIVE:
            return _report(stored)
        give_up_at = asyncio.get_running_loop().time() + _CLEAR_SECONDS
        by = user_name()
        await self._with(lambda store: store.ask_to_clear(id, by))
        while asyncio.get_running_loop().time() < give_up_at:
            stored = await self._with(lambda store: store.get(id))
            if stored.standing.state != GoalState.ACTIVE:
                break
            if not stored.is_driven:
                await self._clear_undriven(id)
            else:
                await asyncio.sleep(0.1)
        return _report(await self._with(lambda store: store.get(id)))

    async def _clear_undriven(self, id: str) -> None:
        fence = await self._with(lambda store: store.lease(id))
        journal = _LeasedGoal(self, id, fence)
        stored = await self._with(lambda store: store.get(id))
        goal = stored.standing
        try:
            if goal.in_flight is not None and goal.in_flight.run_id:
                hands = GoalHands(
                    self._engine, self._engine.project, goal.spec, self._roads, NOBODY
                )
                await hands.abandon(goal, goal.in_flight.run_id)
            why = f"cleared by {user_name()}"
            at = self._engine.now()
            await journal.append(
                GoalEnded(at=at, worked=stored.worked, state=GoalState.CLEARED, why=why)
            )
        finally:
            await journal.release(stored.worked)

    async def _with(self, work: "Callable[[GoalStore], _T]") -> "_T":
        def do() -> "_T":
            with closing(self._open_store()) as store:
                return work(store)

        return await asyncio.to_thread(do)

    def _open_store(self) -> GoalStore:
        from stretto.adapters.clock import boot_name, elapsed
        from stretto.config.home import user_secret
        from stretto.processes.identity import is_dead, name_of_this_process

        home = self._engine.project.settings.home
        owner = GoalOwner(
            name_of_this_process(),
            is_dead,
            boot_name(),
            elapsed,
            self._engine.now,
            lambda: user_secret(home),
        )
        return GoalStore.open(home / "goals.db", owner)


def _report(stored: StoredGoal) -> GoalReport:
    goal = stored.standing
    worked = max(goal.worked_seconds, stored.worked)
    return goal_report(replace(goal, worked_seconds=worked), stored.is_driven)


def _permitted(verifier: Verifier, asked_by: AskedBy, consent: str | None) -> Verifier:
    if asked_by not in ("person", "model"):
        raise InvalidUsage(f"asked_by is '{asked_by}'; it must be person or model")
    if asked_by == "person" or not verifier.runs_command:
        return verifier
    if consent is not None and str(read_verifier(consent)) == str(verifier):
        return verifier
    raise PermissionDenied(
        f"a model chose the verifier '{shorten(str(verifier), 200)}', which runs a command, and "
        "no person has agreed to it",
        hint="read it, then set the goal yourself: stretto goal set … --verify …",
    )


def _with_workflow(project: Project, spec: GoalSpec, request: GoalRequest) -> GoalSpec:
    """Checked as far as that goes without a model: the recipe, its inputs."""
    recipe: Recipe
    recipe, _ = project.read(request.workflow)
    plan = project.plan(recipe)
    project.check_namesakes(plan)
    given = request.inputs
    goal_input = goal_input_of(recipe, given)
    name, is_appended = evidence_input_of(recipe, request.evidence_input, given, goal_input)
    spec = structs.replace(
        spec,
        workflow=recipe.name,
        recipe=recipe.source.text,
        inputs={key: project.redactor.json(value) for key, value in given.items()},
        goal_input=goal_input,
        evidence_input=name,
        is_appended=is_appended,
    )
    trial = inputs_of(GoalStanding("", spec, 0.0, spec.limits))
    if name and not is_appended:
        trial[name] = "what the last check said"
    project.inputs(plan, trial)
    project.prepare(plan, spec.model, spec.permission, workspace="")  # raises PermissionDenied
    return spec


def read_limits(
    before: GoalLimits,
    iterations: int | None,
    budget: Mapping[str, float] | None,
    timeout: str | float | None,
    verify_timeout: str | float | None,
    stall_after: int | None,
) -> GoalLimits:
    changes: dict[str, object] = {}
    if iterations is not None:
        check_number("max_iterations", iterations, 1, _MOST_ITERATIONS)
        changes["iterations"] = iterations
    if stall_after is not None:
        check_number("stall_after", stall_after, 0, _MOST_ITERATIONS)
        changes["stall_after"] = stall_after
    given = check_budget(budget)
    if given.agents is not None:
        raise InvalidUsage(
            "a goal's budget is {'tokens', 'usd'}; its runs are counted by max_iterations"
        )
    if given.tokens is not None:
        changes["tokens"] = given.tokens
    if given.usd is not None:
        changes["usd"] = given.usd
    if timeout is not None:
        changes["seconds"] = _seconds("timeout", timeout)
    if verify_timeout is not None:
        changes["check_seconds"] = _seconds("verify_timeout", verify_timeout)
    return structs.replace(before, **changes)


def _seconds(name: str, written: object) -> float:
    is_number = isinstance(written, int | float) and not isinstance(written, bool)
    if not isinstance(written, str) and not (is_number and math.isfinite(float(written))):  # type: ignore[arg-type]
        raise InvalidUsage(f"{name} must be a duration, such as '30m' or a number of seconds")
    found = parse_duration(written)  # type: ignore[arg-type]
    if found is None:
        raise InvalidUsage(f"{name} is '{shorten(str(written), 40)}', which is no duration", hint="90s, 1h30m")  # fmt: skip
    return found


def _check_resumable(goal: GoalStanding, limits: GoalLimits) -> None:
    """Raises InvalidUsage."""
    if goal.state in (GoalState.ACHIEVED, GoalState.CLEARED):
        hint = "stretto goal set sets another one"
        raise InvalidUsage(f"goal {goal.id} is {goal.state}: there is nothing to resume", hint=hint)
    if goal.state == GoalState.EXHAUSTED and limits == goal.limits:
        option = {"iterations": "--max-iterations", "time": "--timeout"}.get(
            goal.limit or "", "--budget"
        )
        hint = f"give it more: stretto goal resume {goal.id} {option} …"
        raise InvalidUsage(f"goal {goal.id} is exhausted: {goal.why}", hint=hint)
