"""The tools that only the lead agent has: task, task_batch, run_workflow, save_workflow, list_workflows,
draft_workflow, run_draft.

In: the arguments of a call and its key. Out: what the model is told, as bounded JSON. A call is kept with the
id of the run that it starts before that run starts; the same key finds the same run again after a
crash. `run_workflow`, `run_draft` and `save_workflow` are mutations: refused in a read_only chat, and in an
asking one a person allows each, for exactly its content. What a model wrote and a person should read
first (`lead.drafts.doubts`) is asked about in every chat.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, TypeVar, cast

from msgspec import to_builtins
from pydantic import Field

from stretto.adapters.tools.arguments import Arguments, InvalidArguments, check, standard_schema
from stretto.adapters.tools.outcomes import encodable
from stretto.assembly.drafts import DraftedRecipe, draft_request, prepare_draft, read_draft
from stretto.assembly.recipe_files import SaveOptions, save_workflow, unread_doubts
from stretto.assembly.request import PreparedRun, RunRequest
from stretto.assembly.saved_workflows import SavedWorkflows
from stretto.execution.runs import new_run_id
from stretto.lead.chats import CallQuestion, ChatFile, KeptCall, KeptTurn
from stretto.lead.drafts import MAX_REPAIRS
from stretto.lead.tasks import AgentTask, batch_inputs, batch_recipe, results_of, task_recipe
from stretto.lead.turn import trigger_of
from stretto.plan.catalog import posture_of
from stretto.plan.model import encode_plan
from stretto.ports.runner import AttemptRequest
from stretto.ports.tool import Tool, ToolOutcome, ToolSpec
from stretto.problems.errors import (
    InvalidRecipe,
    InvalidUsage,
    NotFound,
    PermissionDenied,
    StrettoError,
)
from stretto.problems.render import error_as_json
from stretto.recipe.model import Budget, Recipe
from stretto.report.model import Report
from stretto.templates.render import as_text
from stretto.text.short import cut_middle, did_you_mean, listed, shorten
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import LEAD, AgentId, RunId

if TYPE_CHECKING:
    from stretto.assembly.engine import Engine
    from stretto.assembly.project import RecipeSource
    from stretto.assembly.run import Run
    from stretto.assembly.views import DryRun
    from stretto.execution.driver import Listener
    from stretto.plan.model import Plan

_MOST_RESULT = 24_000  # characters of output that one call gives to the model
_LEAST_RESULT = 400  # of one task of a batch
_MOST_AGENTS = 40  # that the description of `task` names
_MOST_DOUBTS = 20  # of a draft that the model is told; as many of its problems
_MOST_WARNINGS = 20  # of one run, that the model is told


class TaskArguments(Arguments):
    description: Annotated[
        str, Field(description="three to six words for people who watch the run")
    ] = ""
    prompt: Annotated[
        str, Field(description="all that the agent needs to know: it sees nothing of this chat")
    ]
    agent: Annotated[str, Field(description="the agent's name")]


class BatchArguments(Arguments):
    tasks: Annotated[
        list[TaskArguments], Field(description="tasks that do not depend on each other")
    ]


class WorkflowArguments(Arguments):
    name: Annotated[str, Field(description="the workflow's name, as list_workflows gives it")]
    inputs: Annotated[dict[str, Any], Field(default_factory=dict, description="its inputs by name")]
    dry_run: Annotated[
        bool, Field(description="only check it, and say what it would do; default false")
    ] = False


class SaveArguments(Arguments):
    recipe: Annotated[str, Field(description="the whole recipe, as YAML, with its name")]


class DraftArguments(Arguments):
    words: Annotated[
        str, Field(description="what is to be done, step by step, with all that matters for it")
    ]


class RunDraftArguments(Arguments):
    draft: Annotated[str, Field(description="the draft, as draft_workflow gives it")]
    inputs: Annotated[dict[str, Any], Field(default_factory=dict, description="its inputs by name")]


class NoArguments(Arguments):
    pass


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


@dataclass(frozen=True, slots=True)
class _Done:
    """What the model is told, and what it cost."""

    told: Mapping[str, object]
    usage: Usage = Usage()
    agents: int = 0


@dataclass(frozen=True, slots=True)
class _WantedRun:
    """A recipe that the lead agent wants to run."""

    recipe: Recipe
    inputs: dict[str, Json]
    subject: tuple[str, str]  # the tool, and what names the recipe in the call
    to_read: tuple[str, ...] = ()  # what a person must have read, whatever the chat may do
    text: str = ""  # of a recipe that is kept nowhere else; a person is shown all of it
    diagram: str = ""


@dataclass(frozen=True, slots=True)
class _DelegatingTool(Generic[ArgumentsT]):
    spec: ToolSpec
    model: type[ArgumentsT]
    work: Callable[[ArgumentsT, str], Awaitable[ToolOutcome]]
    turn: str

    async def call(self, arguments: Mapping[str, Json], key: str) -> ToolOutcome:
        # A call is one of its turn, in whichever attempt: one that failed is retried from the
        # same replies, and what these had started is not started again.
        number = key.rpartition("/")[2]
        try:
            return await self.work(check(self.model, arguments), f"{self.turn}/{number}")
        except InvalidArguments as wrong:
            said = f"{self.spec.name} was not called. What is wrong:\n{wrong}"
            return _outcome(error_as_json(InvalidUsage(said)))


@dataclass(frozen=True, slots=True)
class ChatHost:
    """What of a Stretto a chat needs."""

    engine: "Engine"
    open: "Callable[[RunId], Run]"
    launch: "Callable[[PreparedRun, Listener | None], Awaitable[Run]]"
    plan: "Callable[[RecipeSource, Mapping[str, object]], Awaitable[DryRun]]"
    read_tasks: Callable[[object], tuple[AgentTask, ...]]


class TurnUnderWay(Protocol):
    """The chat, as the calls of its turn see it."""

    @property
    def permission(self) -> str: ...

    @property
    def model(self) -> str | None: ...

    @property
    def owner(self) -> str: ...

    @property
    def counts_agents(self) -> bool: ...

    def show(self, prepared: PreparedRun) -> "AbstractContextManager[Listener]": ...

    async def agents_left(self) -> int | None: ...

    async def stop_turn(self) -> None:
        """Never returns: the turn needs a person, and goes no further in this process."""
        ...


class LeadTools:
    """Of one turn of one chat."""

    def __init__(self, chat: TurnUnderWay, host: ChatHost, file: ChatFile, turn: KeptTurn) -> None:
        self._chat = chat
        self._host = host
        self._engine = host.engine
        self._file = file
        self._turn = turn

    def tools(self, request: AttemptRequest) -> Mapping[str, Tool]:
        """Of one attempt of the turn."""
        work = _Calls(self, request)
        agents = self._agents()
        _tool = partial(_delegating, self._turn.run_id)
        made: list[Tool] = [
            _tool(
                "task",
                f"{_TASK}\n\nAgents:\n{agents}",
                TaskArguments,
                work.task,
                "keyed",
                None if request.allowance or self._chat.counts_agents else self._runs_beside,
            ),
            _tool("task_batch", f"{_BATCH}", BatchArguments, work.task_batch, "keyed"),
            _tool("run_workflow", _WORKFLOW, WorkflowArguments, work.run_workflow, "keyed"),
            _tool("save_workflow", _SAVE, SaveArguments, work.save_workflow, "keyed"),
            _tool("draft_workflow", _DRAFT, DraftArguments, work.draft_workflow, "keyed"),
            _tool("run_draft", _RUN_DRAFT, RunDraftArguments, work.run_draft, "keyed"),
            _tool("list_workflows", _LIST, NoArguments, work.list_workflows, "idempotent"),
        ]
        return {each.spec.name: each for each in made}

    def _agents(self) -> str:
        known = self._engine.project.catalog().agents
        names = [name for name in known if name != LEAD]
        lines = [f"- {name}: {shorten(known[name].role, 160)}" for name in names[:_MOST_AGENTS]]
        more = len(names) - _MOST_AGENTS
        return "\n".join([*lines, f"- and {more} more"] if more > 0 else lines)

    def _runs_beside(self, arguments: Mapping[str, Json]) -> bool:
        """A task that only reads disturbs no other. One after another in a chat with a budget, so that
        each may spend all that is left."""
        catalog = self._engine.project.catalog()
        agent = catalog.agents.get(AgentId(str(arguments.get("agent"))))
        return agent is None or posture_of(agent, catalog.changing_tools) == "read_only"

    async def begin(self, key: str, tool: str, arguments: Arguments, run_id: RunId) -> KeptCall:
        """The call under that key: the one that an interrupted attempt has begun, or a new one."""
        written = cast("dict[str, Json]", arguments.model_dump(mode="json"))
        place = int(key.rpartition("/")[2])
        new = KeptCall(
            key, self._turn.run_id, place, tool, written, run_id, None, False, Usage(), 0
        )

        def begin(store: Any) -> KeptCall:
            store.begin_call(new)
            return cast(KeptCall, store.call(key))

        call = await self._file.use(begin)
        if (call.tool, dict(call.arguments)) != (tool, written):
            raise InvalidUsage(f"call {place} of this turn was begun with other arguments")
        return call

    async def end(self, key: str, done: _Done) -> ToolOutcome:
        text = encodable(json.dumps(done.told, ensure_ascii=False))
        is_ok = done.told.get("ok") is True
        await self._file.use(
            lambda store: store.end_call(key, text, is_ok, done.usage, done.agents)
        )
        return ToolOutcome(text, "ok" if is_ok else _verdict(done.told))

    async def drive(self, call: KeptCall, request: RunRequest) -> "Run":
        """The run of a call, at its end. A turn whose run waits for a person stops here."""
        run = self._host.open(call.run_id)
        runs = await self._engine.runs_of()
        while True:
            is_known = await runs.is_known(call.run_id)
            if is_known and await run._is_driven():
                await run.wait()  # another process drives it: a person resumed it there
            elif is_known and (await runs.history(call.run_id)).state.has_ended:
                return run
            else:
                prepared = await self._prepare(call, request, is_known)
                with self._chat.show(prepared) as listener:
                    await self._host.launch(prepared, listener)
                    await run.wait()
            status = await run.status()
            if status in ("waiting", "overdue"):
                await self._chat.stop_turn()
            if status == "interrupted":
                raise StrettoError(f"run {call.run_id} was stopped before its end")

    async def _prepare(self, call: KeptCall, request: RunRequest, is_known: bool) -> PreparedRun:
        permission = request.permission or self._chat.permission
        if is_known:
            request = RunRequest(of=call.run_id, is_resumed=True, model=request.model)
        request = replace(
            request,
            run_id=call.run_id,
            permission=permission,
            is_delegated=True,
            owner=self._chat.owner,
            trigger=trigger_of(self._turn),
        )
        if call.tool == "draft_workflow" and not is_known:
            return await prepare_draft(self._engine, request)
        return await self._engine.prepare(request)

    async def has_drafted(self, run_id: str) -> bool:
        """Whether the lead agent drafted it in this chat."""

        def find(store: Any) -> bool:
            call = store.call_of(run_id)
            turn = store.turn_of(run_id)
            is_ours = turn is not None and turn.chat == self._turn.chat
            return is_ours and call is not None and call.tool == "draft_workflow"

        return bool(run_id) and await self._file.use(find)

    @property
    def permission(self) -> str:
        return self._chat.permission

    async def consent(
        self, key: str, digest: str, shown: str, *, is_always_asked: bool = False
    ) -> None:
        """Returns when a person has allowed the call with exactly this content. Raises PermissionDenied.
        Where nobody has decided, the turn stops here."""
        permission = self._chat.permission
        if permission == "auto" and not is_always_asked:
            return
        if permission == "read_only":
            hint = (
                "tell the user what you would have done; they can run it, or change the permission"
            )
            raise PermissionDenied("this chat may only read", hint=hint)
        decided = await self._file.use(lambda store: store.decision(key, digest))
        if decided is None:
            question = CallQuestion(key, self._turn.run_id, digest, shown)
            await self._file.use(lambda store: store.ask(question))
            await self._chat.stop_turn()
        elif decided.verdict != "approved":
            said = f": {decided.reason}" if decided.reason else ""
            raise PermissionDenied(f"the user does not allow it{said}")


class _Calls:
    """The calls of one attempt: each is a method with the arguments and the key."""

    def __init__(self, delegation: LeadTools, request: AttemptRequest) -> None:
        self._delegation = delegation
        self._host = delegation._host
        self._project = delegation._engine.project
        self._request = request
        self._width = asyncio.Semaphore(self._project.settings.max_concurrency)

    async def task(self, arguments: TaskArguments, key: str) -> ToolOutcome:
        async def work(call: KeptCall) -> _Done:
            self._check_agents([arguments])
            if not arguments.prompt.strip():
                raise InvalidUsage("the prompt is empty", hint="say all that the agent must know")
            given: dict[str, Json] = {"prompt": arguments.prompt}
            async with self._width:  # as many at once as steps of one recipe
                report = await self._run(call, RunRequest(task_recipe(arguments.agent), given))
            return _make_done(report, _task_result(report))

        return await self._call_once("task", arguments, key, work, starts_run=True)

    async def task_batch(self, arguments: BatchArguments, key: str) -> ToolOutcome:
        async def work(call: KeptCall) -> _Done:
            self._check_agents(arguments.tasks)
            tasks = self._host.read_tasks([each.model_dump() for each in arguments.tasks])
            request = RunRequest(batch_recipe(tasks), batch_inputs(tasks))
            report = await self._run(call, request)
            most = max(_LEAST_RESULT, _MOST_RESULT // len(tasks))
            results: list[dict[str, object]] = [
                {
                    "index": each["index"],
                    "status": each["status"],
                    "output": _shorten_output(each["output"], most),
                    "error": _shorten_output(each["error"], most),
                }
                for each in results_of(report)
            ]
            told: dict[str, object] = {"run_id": report.run_id, "status": report.status}
            return _make_done(
                report, {"ok": report.is_ok, **told, "results": results, **_list_warnings(report)}
            )

        return await self._call_once("task_batch", arguments, key, work, starts_run=True)

    async def run_workflow(self, arguments: WorkflowArguments, key: str) -> ToolOutcome:
        async def work(call: KeptCall) -> _Done:
            inputs = cast("dict[str, Json]", arguments.inputs)
            recipe = await asyncio.to_thread(self._find_recipe, arguments.name)
            if arguments.dry_run:
                return _Done(_dry_run((await self._host.plan(recipe, inputs)).json))
            subject = ("run_workflow", arguments.name)
            wanted = _WantedRun(recipe, inputs, subject)
            plan = await asyncio.to_thread(self._project.plan, recipe)
            unread = await asyncio.to_thread(unread_doubts, self._project, plan)
            wanted = replace(wanted, to_read=tuple(each.says for each in unread))
            return await self._run_allowed(call, wanted)

        starts_run = not arguments.dry_run
        return await self._call_once("run_workflow", arguments, key, work, starts_run=starts_run)

    async def draft_workflow(self, arguments: DraftArguments, key: str) -> ToolOutcome:
        async def work(call: KeptCall) -> _Done:
            report = await self._run(
                call, draft_request(self._project, arguments.words, MAX_REPAIRS)
            )
            try:
                return _make_done(report, _draft_as_json(await read_draft(self._project, report)))
            except StrettoError as error:  # the model gave no answer, which has cost something
                return _make_done(report, error_as_json(error))

        return await self._call_once("draft_workflow", arguments, key, work, starts_run=True)

    async def run_draft(self, arguments: RunDraftArguments, key: str) -> ToolOutcome:
        async def work(call: KeptCall) -> _Done:
            if not await self._delegation.has_drafted(arguments.draft):
                hint = "draft_workflow gives the name of its draft"
                raise NotFound(f"there is no draft '{arguments.draft}' in this chat", hint=hint)
            report = await self._host.open(RunId(arguments.draft)).report()
            draft = await read_draft(self._project, report)
            if not draft.is_sound:
                said = f"draft {draft.id} cannot run: it has problems"
                raise InvalidRecipe(said, draft.problems, hint="say it in other words")
            recipe = self._project.recipe_from_text(draft.recipe, "draft.yaml")
            inputs = cast("dict[str, Json]", arguments.inputs)
            subject = ("run_draft", draft.id)
            wanted = _WantedRun(recipe, inputs, subject, draft.to_read, draft.recipe, draft.diagram)
            return await self._run_allowed(call, wanted)

        return await self._call_once("run_draft", arguments, key, work, starts_run=True)

    async def _run_allowed(self, call: KeptCall, wanted: _WantedRun) -> _Done:
        """The run, once it is allowed. One that has begun was allowed before."""
        runs = await self._delegation._engine.runs_of()
        if not await runs.is_known(call.run_id):
            plan = await asyncio.to_thread(self._project.plan, wanted.recipe)
            bound = self._project.inputs(plan, wanted.inputs)
            tool, name = wanted.subject
            digest = _digest(tool, f"{name}\n{wanted.text}" if wanted.text else name, bound, plan)
            await self._delegation.consent(
                call.key,
                digest,
                _show_run(plan, bound, wanted),
                is_always_asked=bool(wanted.to_read),
            )
        is_read = bool(wanted.to_read)  # for then a person was asked, whatever the permission is
        request = RunRequest(wanted.recipe, wanted.inputs, is_read=is_read)
        report = await self._run(call, request)
        return _make_done(report, _task_result(report))

    async def save_workflow(self, arguments: SaveArguments, key: str) -> ToolOutcome:
        async def work(call: KeptCall) -> _Done:
            recipe = await asyncio.to_thread(self._project.recipe_from_text, arguments.recipe)
            plan = await asyncio.to_thread(self._project.plan, recipe)
            digest = _digest("save_workflow", plan.name, {"recipe": arguments.recipe}, plan)
            # Nobody is asked about what is refused anyway.
            trial = SaveOptions(
                None, "emitted", "tried", False, self._host.engine.now(), is_trial=True
            )
            await asyncio.to_thread(save_workflow, self._project, arguments.recipe, trial)
            shown = f"Save the workflow '{plan.name}':\n\n{arguments.recipe.rstrip()}"
            await self._delegation.consent(key, digest, shown)
            is_asked = self._delegation.permission == "ask"  # then a person has seen all of it
            saved = await SavedWorkflows(self._host.engine).save(
                arguments.recipe, emitted=True, read=is_asked, why="saved by the lead agent"
            )
            told: dict[str, object] = {"ok": True, "name": saved.name, "version": saved.version}
            return _Done({**told, "origin": saved.origin, "same_as": saved.same_as or None})

        return await self._call_once("save_workflow", arguments, key, work)

    async def list_workflows(self, arguments: NoArguments, key: str) -> ToolOutcome:
        found = [
            {
                "name": each.name,
                "description": shorten(" ".join(each.description.split()), 300),
                "inputs": list(each.inputs),
                "origin": each.origin,
            }
            for each in await SavedWorkflows(self._host.engine).list()
            if not each.problems
        ]
        told: dict[str, object] = {"ok": True, "workflows": found}
        while len(json.dumps(told)) > _MOST_RESULT:
            found = found[: len(found) * 3 // 4]
            told = {"ok": True, "workflows": found, "note": "there are more than fit here"}
        return _outcome(told)

    async def _call_once(
        self,
        tool: str,
        arguments: Arguments,
        key: str,
        work: Callable[[KeptCall], Awaitable[_Done]],
        starts_run: bool = False,
    ) -> ToolOutcome:
        """The result of the call under that key, which is carried out once."""
        new = new_run_id() if starts_run else RunId("")
        try:
            call = await self._delegation.begin(key, tool, arguments, new)
        except StrettoError as error:
            return _outcome(error_as_json(error))
        if call.result is not None:
            self._charge(call.usage)
            return ToolOutcome(
                call.result, "ok" if call.is_ok else _verdict(json.loads(call.result))
            )
        try:
            done = await work(call)
        except StrettoError as error:
            done = _Done(error_as_json(error))
        outcome = await self._delegation.end(key, done)
        self._charge(done.usage)
        return outcome

    async def _run(self, call: KeptCall, request: RunRequest) -> Report:
        """A run within what the turn may still spend."""
        left = await self._budget_left()
        model = self._delegation._chat.model
        run = await self._delegation.drive(call, replace(request, model=model, budget=left))
        return await run.report()

    async def _budget_left(self) -> Budget:
        allowance = self._request.allowance
        tokens, usd = allowance.left() if allowance is not None else (None, None)
        return Budget(
            None if tokens is None else max(0, tokens),
            None if usd is None else max(0.0, usd),
            await self._delegation._chat.agents_left(),
        )

    def _charge(self, usage: Usage) -> None:
        """What a run has cost is spent of the turn's budget as well."""
        if self._request.allowance is not None:
            self._request.allowance.charge(usage)

    def _check_agents(self, tasks: list[TaskArguments]) -> None:
        known = self._project.catalog().agents
        for task in tasks:
            if task.agent == LEAD:
                said = "the lead agent cannot be given a task: delegation is one level deep"
                raise PermissionDenied(said)
            if task.agent not in known:
                names = [each for each in known if each != LEAD]
                hint = did_you_mean(task.agent, names) or f"agents: {listed(names, _MOST_AGENTS)}"
                raise NotFound(f"there is no agent '{task.agent}'", hint=hint)

    def _find_recipe(self, name: str) -> Recipe:
        """A saved recipe. A path is not taken: the model reads files with its file tools only."""
        entry = self._project.saved(name)
        if entry is None:
            known = [each.name for each in self._project.workflows.entries()]
            hint = did_you_mean(name, known) or f"list_workflows shows them: {listed(known)}"
            raise NotFound(f"there is no workflow '{name}'", hint=hint)
        return entry.recipe


def _delegating(
    turn: str,
    name: str,
    description: str,
    model: type[ArgumentsT],
    work: Callable[[ArgumentsT, str], Awaitable[ToolOutcome]],
    recovery: Any,
    runs_beside: Callable[[Mapping[str, Json]], bool] | None = None,
) -> Tool:
    schema = standard_schema(model)
    spec = ToolSpec(name, description, schema, recovery=recovery, runs_beside=runs_beside)
    return _DelegatingTool(spec, model, work, turn)


def _make_done(report: Report, told: Mapping[str, object]) -> _Done:
    return _Done(told, report.usage, report.agents_deployed)


def _task_result(report: Report) -> dict[str, object]:
    told: dict[str, object] = {"run_id": report.run_id, "status": report.status}
    output = _shorten_output(report.output, _MOST_RESULT)
    if report.is_ok:
        return {"ok": True, **told, "output": output, **_list_warnings(report)}
    errors = [
        f"{step.id}: {step.error or step.reason}" for step in report.steps
        if step.error or step.reason
    ]  # fmt: skip
    message = shorten("; ".join(errors) or f"the run ended {report.status}", 2_000)
    kept = output if report.status == "partial" else None
    details = {**told, "output": kept, **_list_warnings(report)}
    return {"ok": False, "error": {"kind": report.status, "message": message, "details": details}}


def _list_warnings(report: Report) -> dict[str, object]:
    """What was amiss in a run: an agent may claim what did not happen."""
    said = [shorten(each, 400) for each in report.warnings[:_MOST_WARNINGS]]
    if (more := len(report.warnings) - len(said)) > 0:
        said.append(f"and {more} more: stretto report {report.run_id}")
    return {"warnings": said} if said else {}


def read_warnings(result: str) -> Iterator[str]:
    """The warnings in what the model was told about a call."""
    told = json.loads(result)
    error = told.get("error")
    found = told if not isinstance(error, dict) else error.get("details") or {}
    said = found.get("warnings")
    yield from (each for each in said if isinstance(each, str)) if isinstance(said, list) else ()


def _draft_as_json(draft: DraftedRecipe) -> dict[str, object]:
    told: dict[str, object] = {
        "draft": draft.id,
        "recipe": _shorten_output(draft.recipe, _MOST_RESULT // 2),
        "diagram": _shorten_output(draft.diagram, _MOST_RESULT // 4),
        "rounds": draft.rounds,
        "to_read": [shorten(each, 400) for each in draft.to_read[:_MOST_DOUBTS]],
    }
    if draft.is_sound:
        return {"ok": True, **told, "problems": []}
    said = "the draft cannot run: it has problems" if draft.recipe else "the draft holds no recipe"
    failed = error_as_json(InvalidRecipe(said, draft.problems[:_MOST_DOUBTS]))
    return {**failed, **told}


def _dry_run(found: Mapping[str, object]) -> dict[str, object]:
    text = json.dumps(found, ensure_ascii=False)
    if len(text) <= _MOST_RESULT:
        return dict(found)
    kept = ("ok", "mode", "workflow", "inputs", "waves", "summary", "warnings")
    short = {name: found[name] for name in kept if name in found}
    return {**short, "note": "the prompts are too long to be shown here"}


def _shorten_output(output: Json, most: int) -> Json:
    if output is None:
        return None
    text = as_text(output)
    if len(text) <= most:
        return output
    return cut_middle(text, most)


def _digest(tool: str, name: str, given: Mapping[str, Json], plan: "Plan") -> str:
    """Of all that a person allows: the tool, the name, the inputs, the recipe and its agents."""
    head = json.dumps([tool, name, to_builtins(dict(given))], sort_keys=True)
    return sha256(head.encode() + b"\n" + bytes(encode_plan(plan))).hexdigest()


def _show_run(plan: "Plan", inputs: Mapping[str, Json], wanted: _WantedRun) -> str:
    what = "the drafted workflow" if wanted.text else "the workflow"
    lines = [f"Run {what} '{plan.name}' (recipe {plan.digest[:12]})"]
    lines += [f"  read this: {each}" for each in wanted.to_read]
    lines += [f"  {name} = {shorten(as_text(value), 400)}" for name, value in inputs.items()]
    if wanted.text:  # nothing is cut off: what is not shown was not allowed
        return "\n".join([*lines, "", wanted.text.rstrip(), "", wanted.diagram])
    lines += ["Its steps:"]
    lines += [f"  {step.id} ({step.posture})" for step in plan.steps[:30]]
    return "\n".join(lines)


def _outcome(told: Mapping[str, object]) -> ToolOutcome:
    text = encodable(json.dumps(told, ensure_ascii=False))
    return ToolOutcome(text, "ok" if told.get("ok") is True else _verdict(told))


def _verdict(told: Mapping[str, Any]) -> Any:
    """A batch of which some tasks failed is an answer; what a rule forbids is refused."""
    if "results" in told:
        return "ok"
    return "refused" if told["error"]["kind"] == "permission_denied" else "error"


_TASK = (
    "Give one agent one task, and get its answer. For work that is needed once. The agent starts with "
    "nothing but your prompt, so put into it all that it needs."
)
_BATCH = (
    "Give agents several tasks that do not depend on each other; they run side by side. The results come "
    "in the order of the tasks, and one that fails loses no other. The agents are those of `task`."
)
_WORKFLOW = (
    "Run a saved workflow: steps that depend on each other, in a fixed order. It counts as a change, so it "
    "may need the user's consent; with dry_run it only says what it would do."
)
_SAVE = (
    "Save a recipe under its name, so that it can be run again with other inputs. It never replaces "
    "what a person wrote."
)
_DRAFT = (
    "Turn words into a workflow that is used once: a model writes the recipe, it is checked, and fixed where "
    "it has problems. Nothing of it runs and nothing is saved. You get the draft's name, the recipe as YAML and its "
    "diagram: show both to the user. run_draft runs it, save_workflow saves it."
)
_RUN_DRAFT = (
    "Run a draft that draft_workflow gave in this chat. It counts as a change, so it may need the user's consent; "
    "one with commands or other programs always does."
)
_LIST = "List the saved workflows: names, descriptions, inputs."
