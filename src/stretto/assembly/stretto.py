"""The one road to a run, and the public Python API. In: a folder. Out: runs, plans, problems.

    start ─┐
    resume ┼→ RunRequest ─prepare→ PreparedRun ─launch→ Run
    retry ─┘

The command line takes the same road by a Surface, which shows what is private here.
Nothing here prints or ends the process; what a user should read is in values.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from msgspec import structs

from stretto.assembly.arguments import (
    check_budget,
    check_environ,
    check_flags,
    check_folder,
    check_functions,
    check_inputs,
    check_number,
    check_optional_text,
    check_permission,
    check_place,
    check_since,
    check_status,
    check_text,
)
from stretto.assembly.engine import Engine
from stretto.assembly.functions import check_agents, read_tools
from stretto.assembly.playbook_choice import equip_plan
from stretto.assembly.ports import Ports
from stretto.assembly.project import Project, RecipeSource
from stretto.assembly.request import PreparedRun, RunRequest
from stretto.assembly.run import Run
from stretto.lead.drafts import MAX_REPAIRS
from stretto.lead.tasks import AgentTask, batch_inputs, batch_recipe, read_tasks, task_recipe
from stretto.plan.check import Problems
from stretto.problems import Problem
from stretto.problems.errors import InvalidUsage, StrettoError
from stretto.schedule.status import run_word
from stretto.vocabulary.names import RunId

if TYPE_CHECKING:
    from stretto.assembly.chat import Chat, ShowRun
    from stretto.assembly.delegation import ChatHost
    from stretto.assembly.drafts import DraftedRecipe
    from stretto.assembly.goal_executor import RunAccess
    from stretto.assembly.goals import Goals
    from stretto.assembly.playbooks import Playbooks
    from stretto.assembly.saved_workflows import SavedWorkflows
    from stretto.assembly.triggers import Triggers
    from stretto.assembly.views import DryRun, RunReport
    from stretto.execution.driver import Listener
    from stretto.execution.runs import Runs
    from stretto.lead.turn import ChatSummary
    from stretto.ports.journal import RunRow


_MOST_ROWS = 10_000  # that are looked through for those that a filter lets pass


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of a list of runs. Times are seconds since the epoch."""

    id: str
    workflow: str
    status: str
    started_at: float
    ended_at: float | None


class Stretto:
    """One project as one user sees it: its recipes, and the runs of this user.

    `folder`: where the project is; the nearest folder upwards that has a stretto.yaml counts, and
    the current folder without it. `tools`: functions that agents may call (see `tool`). `agents`:
    functions that do the work of a step without a model, by the name that recipes use. `model` and
    `permission` come before the settings, `home` in place of ~/.stretto; `store` keeps the journals:
    sqlite, memory, or one of an installed package. `trust` uses what the folder brings along, as
    --trust does. `environ` stands for the environment, also for the keys of providers.

    Use it as an `async with` block. Leaving the block stops the runs that are driven here; each can
    be resumed. Several instances may live in one process, each in one event loop.
    """

    _run_type: type[Run] = Run

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        tools: Iterable[Callable[..., object]] = (),
        agents: Mapping[str, Callable[..., object]] | None = None,
        model: str | None = None,
        permission: str | None = None,
        home: str | Path | None = None,
        store: str | None = None,
        trust: bool = False,
        environ: Mapping[str, str] | None = None,
        _open_project: Callable[[Path | None], Project] | None = None,
        _ports: Ports | None = None,
    ) -> None:
        check_functions(tools, agents)
        if home is not None:
            check_place(home=home)
        check_flags(trust=trust)
        check_environ(environ)
        check_optional_text(model=model, store=store)
        self._folder = check_folder(folder)
        self._tools, self._agents = read_tools(tools), dict(agents or {})
        check_agents(self._agents)
        self._overrides = {"model": model, "permission": check_permission(permission)}
        self._environ = _environment(environ, home, store, trust)
        self._engine = Engine(_open_project or self._read_project, self._folder, _ports or Ports())

    def __repr__(self) -> str:
        return f"<stretto.Stretto of {self._folder or 'the current folder'}>"

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
        await self._engine.close()

    @property
    def playbooks(self) -> "Playbooks":
        """The methods that steps are given: found, added, pinned, curated."""
        from stretto.assembly.playbooks import Playbooks

        return Playbooks(self._engine)

    @property
    def triggers(self) -> "Triggers":
        """What starts runs by itself: schedules, webhooks, watched folders."""
        from stretto.assembly.triggers import Triggers

        return Triggers(self._engine, self._launch, self._open)

    @property
    def workflows(self) -> "SavedWorkflows":
        """The saved recipes: listed, saved, with their versions."""
        from stretto.assembly.saved_workflows import SavedWorkflows

        return SavedWorkflows(self._engine)

    def chat(
        self,
        resume: str | None = None,
        *,
        model: str | None = None,
        permission: str | None = None,
        budget: Mapping[str, float] | None = None,
    ) -> "Chat":
        """A chat with the lead agent, which delegates to agents and workflows: a new one, or the one
        that `resume` names (an id, the beginning or the end of one, or `last`).

        `model`, `permission` and `budget` are those of the whole chat, and of every run that it
        starts. Raises NotFound and InvalidUsage.
        """
        return self._chat(resume, model, permission, budget)

    def _chat(
        self,
        resume: str | None,
        model: str | None,
        permission: str | None,
        budget: Mapping[str, float] | None,
        show: "ShowRun | None" = None,
        hear: "Listener | None" = None,
        owner: str = "",
    ) -> "Chat":
        from stretto.assembly.chat import open_chat
        from stretto.execution.runs import new_run_id
        from stretto.lead.chats import KeptChat

        check_optional_text(resume=resume, model=model)
        project, now = self._engine.project, self._engine.now()
        named = project.model(model) if model else None
        wanted = KeptChat(
            new_run_id(),
            now,
            str(project.settings.project),
            named,
            check_permission(permission),
            check_budget(budget),
            owner,
        )
        return open_chat(self._chat_host(), resume, wanted, show, hear)

    def _chat_host(self) -> "ChatHost":
        from stretto.assembly.delegation import ChatHost

        return ChatHost(self._engine, self._open, self._launch, self.plan, self._read_tasks)

    async def chats(self, *, limit: int = 50) -> list["ChatSummary"]:
        """The chats of this user; the one that was spoken to last comes first."""
        from stretto.assembly.chat import list_chats

        check_number("limit", limit)
        return await list_chats(self._engine, limit)

    @property
    def goals(self) -> "Goals":
        """What is run again until a verifier passes: set, resumed, cleared."""
        from stretto.assembly.goals import Goals

        return Goals(self._engine, self._run_access())

    def _run_access(self) -> "RunAccess":
        from stretto.assembly.goal_executor import RunAccess

        return RunAccess(self._launch, self._open, self._chat_host)

    async def start(
        self,
        recipe: RecipeSource,
        inputs: Mapping[str, object] | None = None,
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
        check_optional_text(model=model)
        request = RunRequest(
            recipe,
            check_inputs(inputs),
            model=model,
            permission=check_permission(permission),
            budget=check_budget(budget),
        )
        return await self._launch(await self._engine.prepare(request))

    def open(self, run_id: str) -> Run:
        """A recorded run, by its id; the same value while it is driven here.

        Whether there is such a run shows in the first use: NotFound.
        """
        check_text(run_id=run_id)
        return self._open(RunId(run_id))

    def _open(self, id: RunId) -> Run:
        found: Run = self._engine.driven.get(id) or self._run_type(self._engine, id)
        return found

    async def _launch(self, prepared: PreparedRun, listener: "Listener | None" = None) -> Run:
        run = self._open(prepared.run_id)
        await run._drive(prepared, listener)
        return run

    async def validate(self, recipe: RecipeSource) -> tuple[Problem, ...]:
        """All that must be fixed before the recipe can run; nothing when it is sound.

        Raises NotFound for a name that no recipe has.
        """
        project = self._engine.project
        read, _ = await asyncio.to_thread(project.read, recipe)
        checked = await asyncio.to_thread(project.check, read)
        return checked.problems if isinstance(checked, Problems) else ()

    async def plan(
        self,
        recipe: RecipeSource,
        inputs: Mapping[str, object] | None = None,
        *,
        model: str | None = None,
        permission: str | None = None,
    ) -> "DryRun":
        """What a run would do: inputs, prompts, order and cost. No model is asked. `model` and
        `permission`: as in `start`; without a permission, the plan as it is written.

        Raises NotFound, InvalidRecipe, InvalidInputs and PermissionDenied.
        """
        from stretto.assembly.views import DryRun
        from stretto.plan.dry_run import dry_run
        from stretto.plan.prepare import RunPolicy, prepare

        check_optional_text(model=model)
        policy = RunPolicy(check_permission(permission) or "auto")
        project = self._engine.project
        override = project.model(model)
        plan, _ = await asyncio.to_thread(project.open_plan, recipe)
        given = project.inputs(plan, check_inputs(inputs))
        plan = await asyncio.to_thread(project.bind, plan, given)
        plan = await asyncio.to_thread(project.with_copy_warnings, plan, override)
        plan = prepare(plan, policy)
        plan = await asyncio.to_thread(project.tell_of_secrets, plan, given)
        plan, given = await asyncio.to_thread(project.without_secrets, plan, given)
        now = self._engine.now
        plan, _ = await asyncio.to_thread(equip_plan, plan, given, project.settings, now, True)
        found = dry_run(plan, given, project.named_models(override))
        waves = tuple(map(tuple, cast(list[list[str]], found["waves"])))
        return DryRun(plan.name, given, plan.warnings, waves, found, plan)

    async def runs(
        self,
        *,
        status: str | None = None,
        workflow: str | None = None,
        since: float | datetime | None = None,
        limit: int = 50,
    ) -> list["RunSummary"]:
        """The recorded runs of this user, newest first. `since`: those that started later."""
        start = check_since(since)
        check_number("limit", limit)
        check_status(status)
        check_optional_text(workflow=workflow)
        is_filtered = status is not None or workflow is not None
        found: list[RunSummary] = []
        runs = await self._engine.runs_of()
        for row in await runs.recent(_MOST_ROWS if is_filtered else limit):
            if len(found) == limit:
                break
            if row.started_at < start:
                continue
            if workflow is not None and row.workflow != workflow:
                continue
            word = await self._status(runs, row)
            if status is None or word == status:
                found.append(
                    RunSummary(row.run_id, row.workflow, word, row.started_at, row.ended_at)
                )
        return found

    async def _status(self, runs: "Runs", row: "RunRow") -> str:
        if not runs.is_interrupted(row):
            return row.status
        try:
            state = (await runs.history(row.run_id)).state
        except StrettoError:  # one journal that cannot be read must not hide the others
            return "unreadable"
        word = run_word(state, is_driven=False, now=self._engine.now())
        return await self._engine.word_of(row.run_id, row.workflow, word)

    async def task(
        self,
        agent: str,
        prompt: str,
        *,
        model: str | None = None,
        permission: str | None = None,
        budget: Mapping[str, float] | None = None,
    ) -> Run:
        """Give one agent one task, as a run of one step. Raises as `start` does."""
        check_text(agent=agent, prompt=prompt)
        if not prompt.strip():
            raise InvalidUsage("prompt must say what to do; it is empty")
        return await self.start(
            task_recipe(agent),
            {"prompt": prompt},
            model=model,
            permission=permission,
            budget=budget,
        )

    async def batch(
        self,
        tasks: Sequence[Mapping[str, str]],
        *,
        model: str | None = None,
        permission: str | None = None,
        budget: Mapping[str, float] | None = None,
    ) -> Run:
        """Give several agents tasks that do not depend on each other: one run of one step a task.

        A task: {"agent", "prompt", "description"}. `report.steps` is in the order of the tasks, and
        one that fails loses no other. Raises as `start` does, and InvalidUsage for a bad task.
        """
        read = self._read_tasks(tasks)
        return await self.start(
            batch_recipe(read),
            batch_inputs(read),
            model=model,
            permission=permission,
            budget=budget,
        )

    async def draft(
        self,
        words: str,
        *,
        model: str | None = None,
        max_repairs: int = MAX_REPAIRS,
        budget: Mapping[str, float] | None = None,
    ) -> "DraftedRecipe":
        """Turn words into a recipe: a model writes it, it is checked, and repaired from its own problems.

        Nothing of it runs and nothing is saved: read `draft.recipe` and `draft.to_read`, then
        `start(draft.recipe)` or `workflows.save(draft.recipe, emitted=True)`. `max_repairs`: how
        often the model may fix it. Problems that are left are in `draft.problems`.

        Raises as `start` does, and StrettoError where the model gave no answer.
        """
        from stretto.assembly.drafts import draft_request, prepare_draft, read_draft

        check_text(words=words)
        check_optional_text(model=model)
        check_number("max_repairs", max_repairs, 0)
        project = self._engine.project
        limits = check_budget(budget)
        request = draft_request(project, words, max_repairs, model=model, budget=limits)
        run = await self._launch(await prepare_draft(self._engine, request))
        return await read_draft(project, await run.report())

    def _read_tasks(self, tasks: object) -> tuple[AgentTask, ...]:
        if isinstance(tasks, str) or not isinstance(tasks, Sequence):
            raise InvalidUsage("tasks must be a list of dicts: [{'agent': …, 'prompt': …}]")
        project = self._engine.project
        try:
            text = json.dumps(list(tasks), indent=1, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidUsage(f"a task holds a value that is not JSON: {error}") from error
        return read_tasks(text, "", project.catalog().agents, project.settings.limits)

    def _read_project(self, folder: Path | None) -> Project:
        project = Project(folder, self._environ, None, self._tools, self._agents)
        given: dict[str, Any] = {
            name: value for name, value in self._overrides.items() if value is not None
        }
        project.settings = structs.replace(project.settings, **given)
        return project


def _environment(
    environ: Mapping[str, str] | None, home: str | Path | None, store: str | None, trust: bool
) -> Mapping[str, str] | None:
    if home is None and store is None and not trust:
        return environ
    import os

    changed = dict(os.environ if environ is None else environ)
    if home is not None:
        changed["STRETTO_HOME"] = str(home)
    if store is not None:
        changed["STRETTO_STORE"] = store
    if trust:
        changed["STRETTO_TRUST"] = "1"
    return changed


def run(
    recipe: RecipeSource,
    inputs: Mapping[str, object] | None = None,
    *,
    folder: str | Path | None = None,
    tools: Iterable[Callable[..., object]] = (),
    agents: Mapping[str, Callable[..., object]] | None = None,
    model: str | None = None,
    permission: str | None = None,
    budget: Mapping[str, float] | None = None,
    home: str | Path | None = None,
    store: str | None = None,
    trust: bool = False,
    environ: Mapping[str, str] | None = None,
) -> "RunReport":
    """Run a recipe to its report, and return then; for scripts. The options are those of `Stretto`
    and of `Stretto.start`.

    Raises InvalidUsage inside a running event loop, which it would stop: use `Stretto.start` there.
    """
    _check_no_loop()

    async def start() -> "RunReport":
        stretto = Stretto(
            folder,
            tools=tools,
            agents=agents,
            home=home,
            store=store,
            trust=trust,
            environ=environ,
        )
        async with stretto:
            started = await stretto.start(
                recipe, inputs, model=model, permission=permission, budget=budget
            )
            return await started.report()

    return asyncio.run(start())


def _check_no_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    hint = "async with stretto.Stretto() as w: run = await w.start(…); report = await run.report()"
    raise InvalidUsage("stretto.run cannot be used inside a running event loop", hint=hint)
