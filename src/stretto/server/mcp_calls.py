"""Carry out a tool call of an MCP client. In: a tool's name and arguments. Out: JSON, or StrettoError.

Runs start on the one road to a run, and belong to this process, not to the call: a call that is
abandoned leaves its run to go on, and `cancel` ends it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from stretto.assembly.recipe_files import unread_doubts
from stretto.assembly.request import RunRequest
from stretto.assembly.run import user_name
from stretto.assembly.surface import Surface, SurfaceRun
from stretto.events.model import Event
from stretto.lead.tasks import batch_inputs, batch_recipe, results_of, task_recipe
from stretto.problems.errors import InvalidUsage, NotFound, PermissionDenied, StrettoError
from stretto.recipe.model import Recipe
from stretto.report.gate import gate_as_json, gate_of
from stretto.schedule.state import RunState
from stretto.schedule.status import deadline_of
from stretto.server.mcp_catalog import TOOLS, OfferedTool, workflow_tools
from stretto.text.short import did_you_mean, listed
from stretto.validation.schema import BadSchema, schema_errors
from stretto.vocabulary.amounts import iso
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import RunId

_WORK = {tool.name: tool for tool in TOOLS}
_FAILED = ("failed", "cancelled")
_NEEDS_WORKFLOWS = ("list_workflows", "run_workflow", "save_workflow")

GoOn: TypeAlias = Callable[[SurfaceRun], Awaitable[object]]
Progress: TypeAlias = Callable[[float, float, str], None]  # how far, of how much, and what


def _tell_nobody(done: float, total: float, said: str) -> None: ...


@dataclass(slots=True)
class ClientCall:
    """One call of a client, and the run that it has started."""

    name: str
    arguments: Mapping[str, Any]
    client: str = ""  # how the client calls itself
    by: str = ""  # whose token it came with; empty: the user's own
    tell: Progress = _tell_nobody
    run: SurfaceRun | None = None
    is_cancelled: bool = False


@dataclass(frozen=True, slots=True)
class McpOptions:
    """None: as the settings say."""

    permission: str | None = None
    model: str | None = None
    transport: str = "stdio"
    has_approvals: bool = True  # False: only a terminal or the console may approve


async def go_on_here(run: SurfaceRun) -> None:
    """Go on with a run as long as this process does."""
    if not await run.is_driven():
        await run.resume()


class McpCalls:
    def __init__(self, stretto: Surface, options: McpOptions, go_on: GoOn = go_on_here) -> None:
        self._stretto = stretto
        self._options = options
        self._go_on_with = go_on

    @property
    def permission(self) -> str:
        return self._options.permission or self._stretto.project.settings.permission

    async def tools(self) -> tuple[OfferedTool, ...]:
        """All that may be called now."""
        own = [tool for tool in TOOLS if self._is_offered(tool.name)]
        return (*own, *workflow_tools(await self.recipes()))

    def _is_offered(self, name: str) -> bool:
        is_decision = name in ("approve", "reject")
        has_workflows = self._stretto.project.settings.are_workflows_served
        return (self._options.has_approvals or not is_decision) and (
            has_workflows or name not in _NEEDS_WORKFLOWS
        )

    async def recipes(self) -> list[Recipe]:
        """The saved recipes that can run, by name."""
        project = self._stretto.project
        if not project.settings.are_workflows_served:
            return []
        entries = await asyncio.to_thread(project.workflows.entries)
        return [each.recipe for each in entries if not each.problems and not each.is_passed_over]

    async def answer(self, call: ClientCall) -> dict[str, Json]:
        """Raises StrettoError."""
        offered = {tool.name: tool for tool in await self.tools()}
        tool = offered.get(call.name)
        if tool is None:
            hint = did_you_mean(call.name, offered) or f"there are {listed(offered)}"
            raise NotFound(f"there is no tool '{call.name}'", hint=hint)
        if tool.workflow:
            asked: dict[str, Json] = {"name": tool.workflow, "inputs": dict(call.arguments)}
            return await self._run_workflow(call, asked)
        asked = dict(call.arguments)
        faults = schema_errors(cast(Json, asked), _WORK[tool.name].schema)
        if faults and not isinstance(faults, BadSchema):
            raise InvalidUsage(f"{tool.name}: {'; '.join(faults)}")
        work: Callable[[ClientCall, dict[str, Any]], Awaitable[dict[str, Json]]]
        work = getattr(self, f"_{tool.name}")
        return await work(call, asked)

    async def cancel(self, call: ClientCall) -> None:
        """The client wants the call's result no more: what the call has started is stopped."""
        call.is_cancelled = True
        if call.run is not None and not await self._has_ended(call.run):
            with suppress(StrettoError):  # it may end at this moment
                await call.run.cancel("the client cancelled its request")

    async def _has_ended(self, run: SurfaceRun) -> bool:
        return (await run.history()).state.has_ended

    async def _list_workflows(self, call: ClientCall, asked: dict[str, Any]) -> dict[str, Json]:
        recipes = {recipe.name: recipe for recipe in await self.recipes()}
        tools = {tool.workflow: tool for tool in workflow_tools(recipes.values())}
        found: list[Json] = []
        for each in await self._stretto.workflows.list():
            tool = tools.get(each.name)
            found.append(
                {
                    "name": each.name,
                    "description": each.description,
                    "layer": each.layer,
                    "origin": each.origin,
                    "problems": each.problems,
                    "inputs": dict(tool.schema) if tool else None,
                    "tool": tool.name if tool else None,
                }
            )
        return {"ok": True, "workflows": found}

    async def _run_workflow(self, call: ClientCall, asked: dict[str, Any]) -> dict[str, Json]:
        name, inputs = asked["name"], asked.get("inputs") or {}
        # A path or a text would be another recipe than a saved one.
        if self._stretto.project.saved(name) is None:
            known = [recipe.name for recipe in await self.recipes()]
            hint = did_you_mean(name, known) or f"list_workflows shows them: {listed(known)}"
            raise NotFound(f"there is no workflow '{name}'", hint=hint)
        if asked.get("dry_run"):
            found = await self._stretto.plan(name, inputs)
            return {"ok": True, "dry_run": True, **found.json}
        return await self._start(call, RunRequest(name, inputs), asked)

    async def _task(self, call: ClientCall, asked: dict[str, Any]) -> dict[str, Json]:
        agents = self._stretto.project.catalog().agents
        if asked["agent"] not in agents:
            hint = did_you_mean(asked["agent"], agents) or f"there are {listed(agents)}"
            raise NotFound(f"there is no agent '{asked['agent']}'", hint=hint)
        if not asked["prompt"].strip():
            raise InvalidUsage("prompt must say what to do; it is empty")
        request = RunRequest(task_recipe(asked["agent"]), {"prompt": asked["prompt"]})
        return await self._start(call, request, asked)

    async def _task_batch(self, call: ClientCall, asked: dict[str, Any]) -> dict[str, Json]:
        tasks = self._stretto.read_tasks(asked["tasks"])
        request = RunRequest(batch_recipe(tasks), batch_inputs(tasks))
        answer = await self._start(call, request, asked)
        if call.run is not None and asked.get("wait", True):
            results = results_of(await call.run.report())
            answer["results"] = cast(Json, results)
        return answer

    async def _start(
        self, call: ClientCall, request: RunRequest, asked: Mapping[str, Any]
    ) -> dict[str, Json]:
        if self.permission == "read_only":
            raise PermissionDenied(
                f"{call.name} starts work, and the permission is read_only",
                hint="with the permission ask it waits for a person; dry_run shows what it would do",
            )
        request = RunRequest(
            request.recipe,
            request.inputs,
            model=self._options.model,
            permission=self._options.permission,
            is_start_asked=True,
            owner=call.by,
            trigger=f"mcp {self._options.transport}",
        )
        # In a task of its own: a call that is abandoned now must not leave a run half begun.
        await asyncio.shield(asyncio.create_task(self._launch(call, request)))
        assert call.run is not None
        return await self._result(call.run, asked)

    async def _launch(self, call: ClientCall, request: RunRequest) -> None:
        prepared = await self._stretto.prepare(request)
        listener = _Listener(call, len(prepared.plan.steps))
        call.run = await self._stretto.launch(prepared, listener.hear)
        if call.is_cancelled:  # while the run was being prepared
            await self.cancel(call)

    async def _result(self, run: SurfaceRun, asked: Mapping[str, Any]) -> dict[str, Json]:
        if not asked.get("wait", True):
            return {"ok": True, "run_id": run.id, "status": await run.status()}
        await run.wait()
        return _brief(await self._standing(run))

    async def _standing(self, run: SurfaceRun) -> dict[str, Json]:
        """The run's report, and what awaits approval."""
        found = cast(dict[str, Json], (await run.report(wait=False)).json())
        state = (await run.history()).state
        found["ok"] = found["status"] not in (*_FAILED, "partial")
        found["approvals"] = _approvals(state)
        return found

    async def _get_run(self, call: ClientCall, asked: dict[str, Any]) -> dict[str, Json]:
        return await self._standing(self._stretto.open(asked["run_id"]))

    async def _cancel_run(self, call: ClientCall, asked: dict[str, Any]) -> dict[str, Json]:
        self._check_decision(call)
        run = self._stretto.open(asked["run_id"])
        await run.cancel(asked.get("reason", ""))
        return {"ok": True, "run_id": run.id, "status": await run.status()}

    async def _save_workflow(self, call: ClientCall, asked: dict[str, Any]) -> dict[str, Json]:
        self._check_decision(call)
        recipe = asked["recipe"]
        if isinstance(recipe, str):
            recipe = f"{recipe}\n"  # a text, and never the name or the path of a recipe
        saved = await self._stretto.workflows.save(recipe, name=asked.get("name"), emitted=True)
        # A recipe that is saved already, under another name, is not saved again.
        is_known = bool(saved.same_as)
        return {"ok": True, "name": saved.name, "file": str(saved.file), "existed": is_known}

    async def _list_approvals(self, call: ClientCall, asked: dict[str, Any]) -> dict[str, Json]:
        runs = await self._stretto.engine.runs_of()
        ids = [RunId(asked["run_id"])] if "run_id" in asked else []
        if not ids:
            ids = [row.run_id for row in await runs.unended()]
        found: list[Json] = []
        for id in ids:
            try:
                found += _approvals((await runs.history(id)).state)
            except StrettoError:  # one journal that cannot be read must not hide the others
                if "run_id" in asked:
                    raise
        return {"ok": True, "approvals": found}

    async def _approve(self, call: ClientCall, asked: dict[str, Any]) -> dict[str, Json]:
        self._check_decision(call)
        run = self._stretto.open(asked["run_id"])
        await asyncio.to_thread(self._check_read, (await run.history()).state, asked["step"])
        await run.approve(
            asked["step"],
            asked.get("reason", ""),
            edit=asked.get("prompt"),
            key=asked.get("key"),
            by=_who(call),
        )
        return await self._go_on(run, asked)

    def _check_read(self, state: RunState, step: str) -> None:
        """Whoever saved a recipe with commands could allow them itself: only a person does."""
        for each in unread_doubts(self._stretto.project, state.plan):
            if step in each.steps:
                raise PermissionDenied(
                    f"{each.says}; a model wrote this and no person has read it",
                    hint=f"the user decides: stretto approve {state.run_id} {step}, or in the console",
                )

    async def _reject(self, call: ClientCall, asked: dict[str, Any]) -> dict[str, Json]:
        self._check_decision(call)
        run = self._stretto.open(asked["run_id"])
        await run.reject(
            asked["step"], asked.get("reason", ""), key=asked.get("key"), by=_who(call)
        )
        return await self._go_on(run, asked)

    async def _go_on(self, run: SurfaceRun, asked: dict[str, Any]) -> dict[str, Json]:
        if not await self._has_ended(run):
            await self._go_on_with(run)
        return await self._result(run, asked)

    def _check_decision(self, call: ClientCall) -> None:
        if self.permission == "read_only":
            raise PermissionDenied(
                f"{call.name} changes something, and the permission is read_only"
            )


class _Listener:
    """How far a run is: a step that has begun counts for half, one that has ended for all of it."""

    def __init__(self, call: ClientCall, total: int) -> None:
        self._call = call
        self._total = total
        self._told = -1.0

    def hear(self, event: Event, state: RunState) -> None:
        begun = len(state.running) + len(state.awaiting_approval)
        done = sum(step.ended_at is not None for step in state.order) + begun / 2
        if done <= self._told:  # a progress must grow with each notification
            return
        self._told = done
        awaited = "".join(f"; {step} awaits approval" for step in state.awaiting_approval)
        self._call.tell(done, self._total, f"run {state.run_id} is {state.status.value}{awaited}")


def _who(call: ClientCall) -> str:
    return f"{call.by or user_name()} by {call.client or 'an MCP client'}"


def _approvals(state: RunState) -> list[Json]:
    if state.has_ended:
        return []
    found: list[Json] = []
    for step in state.awaiting_approval.values():
        shown = gate_as_json(gate_of(state, step))
        shown.pop("ok")
        found.append({**shown, "deadline": iso(deadline_of(state, step.id))})
    return found


def _brief(standing: dict[str, Json]) -> dict[str, Json]:
    """What a model needs of a run; get_run gives all of it."""
    keys = ("ok", "run_id", "workflow", "status", "output", "summary", "warnings", "usage")
    steps = cast(dict[str, dict[str, Json]], standing["steps"])
    found = {key: standing[key] for key in keys}
    found["steps"] = {id: step["status"] for id, step in steps.items()}
    if standing["approvals"]:
        found["approvals"] = standing["approvals"]
    if standing["status"] in _FAILED:
        errors: Json = {id: step["error"] for id, step in steps.items() if step["error"]}
        details: Json = {"run_id": standing["run_id"], "steps": errors}
        kind = f"run_{standing['status']}"
        found["error"] = {"kind": kind, "message": standing["summary"], "details": details}
    return found
