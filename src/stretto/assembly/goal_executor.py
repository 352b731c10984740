"""How a goal works and checks: by runs that start as all runs do, turns of the lead agent, a judge.

In: how a goal stands. Out: CheckResult, Effort. `goals.loop` decides what comes next.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from stretto.assembly.chat import BudgetSpent, Chat, open_chat
from stretto.assembly.engine import Engine
from stretto.assembly.goal_checks import Checks
from stretto.assembly.project import Project, RecipeSource
from stretto.assembly.request import PreparedRun, RunRequest
from stretto.assembly.run import Run
from stretto.execution.runs import new_run_id
from stretto.goals.evidence import CheckResult, judge_result
from stretto.goals.goal import GoalSpec, GoalStanding, IterationStarted
from stretto.goals.loop import Effort, Tell
from stretto.goals.prompts import (
    declared_reason,
    inputs_of,
    judge_inputs,
    judge_recipe,
    turn_prompt,
)
from stretto.goals.verifier import read_verifier
from stretto.lead.chats import ChatFile, KeptChat
from stretto.lead.turn import ChatTurn
from stretto.problems.errors import InvalidUsage, StrettoError
from stretto.recipe.model import Budget
from stretto.text.short import shorten
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import RunId

if TYPE_CHECKING:
    from stretto.assembly.delegation import ChatHost
    from stretto.assembly.views import RunReport
    from stretto.execution.driver import Listener
    from stretto.plan.model import Plan

Launch: TypeAlias = "Callable[[PreparedRun, Listener | None], Awaitable[Run]]"
OpenRun: TypeAlias = Callable[[RunId], Run]
_MOST_WARNINGS = 20  # of one iteration that are kept
_ENDED = ("complete", "partial", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class RunAccess:
    """How a run is started and opened: by the Stretto that the goal belongs to."""

    launch: Launch
    open: OpenRun
    chat_host: "Callable[[], ChatHost]"


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


class RunExecutor:
    """Carries out what the loop decides: checks, and runs that start as all runs do."""

    def __init__(
        self,
        engine: Engine,
        project: Project,
        spec: GoalSpec,
        run_access: RunAccess,
        watch: GoalWatch,
    ) -> None:
        self._engine = engine
        self._project = project
        self._verifier = read_verifier(spec.verify)
        self._run_access = run_access
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
                output = (
                    await self._run_access.open(RunId(goal.iterations[-1].run_id)).report()
                ).output
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
            _spent_budget(report, goal),
            shorten(self._project.redactor.text(waits[0] if waits else error), 500),
            self._shorten_warnings(
                issue.text for issue in report.issues if issue.kind == "warning"
            ),
        )

    def _shorten_warnings(self, said: Iterable[str]) -> tuple[str, ...]:
        hidden = (shorten(self._project.redactor.text(each), 400) for each in said)
        return tuple(islice(hidden, _MOST_WARNINGS))

    async def _turn(self, goal: GoalStanding, run_id: RunId) -> Effort:
        """A turn of the lead agent, in a chat that the goal has for itself."""
        chat = await self._chat(goal)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(goal.seconds_left):
                    turn = await chat._send_once(turn_prompt(goal), run_id)
                    effort = _effort(turn, await self._spent_by(goal, run_id))
                    return replace(effort, warnings=self._shorten_warnings(turn.warnings))
            await chat.stop()
            return _effort(await chat.cancel("the time limit of its goal has passed"), "")
        except asyncio.CancelledError:
            await chat.stop()
            raise
        except BudgetSpent as error:
            spent = "tokens" if goal.tokens_left is not None else "usd"
            return Effort("failed", spent=spent, error=error.message)

    async def _spent_by(self, goal: GoalStanding, run_id: RunId) -> str:
        if goal.tokens_left is None and goal.usd_left is None:
            return ""
        return _spent_budget(await self._run_access.open(run_id).report(), goal)

    async def _chat(self, goal: GoalStanding) -> Chat:
        """With a budget of what the goal has left, whatever its turns have used so far."""
        host = self._run_access.chat_host()
        if self._project is not self._engine.project:
            folder = goal.spec.folder
            hint = f"cd {folder} && stretto goal resume {goal.id}"
            raise InvalidUsage(
                f"the lead agent of {folder} works on goal {goal.id}, and this is another folder",
                hint=hint,
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

    async def abandon(self, goal: GoalStanding, run_id: str) -> Usage:
        why, used = "its goal was cleared", Usage()
        with suppress(StrettoError):  # it has ended, or never began
            if not goal.spec.recipe and isinstance(goal.in_flight, IterationStarted):
                used = (await (await self._chat(goal)).cancel(why)).usage
        run = self._run_access.open(RunId(run_id))
        with suppress(StrettoError):
            await run.cancel(why)
        with suppress(StrettoError):
            used = used if used != Usage() else (await run.report()).usage
        return used

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
            run = self._run_access.open(request.run_id)
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
        return await self._run_access.launch(prepared, self._watch.opened(prepared.plan))

    async def _finish(self, run: Run, seconds: float | None) -> "RunReport":
        """The report, once the run has ended or waits. After `seconds` the run is cancelled."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    return await run.report()
            with suppress(StrettoError):  # it has ended meanwhile
                await run.cancel("the time limit of its goal has passed")
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


def _spent_budget(report: "RunReport", goal: GoalStanding) -> str:
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
