"""`/api/approvals`, and what people decide: approve, approve with another prompt, reject."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Query

from stretto.events.model import ApprovalRequested
from stretto.execution.history import History
from stretto.problems.errors import NotFound, StrettoError
from stretto.report.gate import gate_as_json, gate_of
from stretto.schedule.state import StepState
from stretto.schedule.status import deadline_of, is_overdue
from stretto.server.answers import JsonAnswer
from stretto.server.bodies import (
    Approval,
    DecidedAnswer,
    EditedApproval,
    GateAnswer,
    GatesAnswer,
    Rejection,
    new_router,
)
from stretto.server.service import OPERATOR, VIEWER, Asker, Service, TheService
from stretto.vocabulary.amounts import iso
from stretto.vocabulary.json_value import loaded
from stretto.vocabulary.names import RunId, StepId

router = new_router("approvals")
_THEN = {
    "inline": "the step fails, and the steps that need it are told so",
    "skip": "the step fails, and the steps that need it go on without its output",
    "block": "the step fails, and the steps that need it are held",
    "abort": "the step fails, and the run with it",
}


@router.get("/api/approvals", dependencies=[VIEWER], response_model=GatesAnswer)
async def list_approvals(
    service: TheService,
    run: Annotated[str | None, Query(max_length=100, description="of this run alone")] = None,
    brief: Annotated[bool, Query(description="only where, since when and until when")] = False,
) -> JsonAnswer:
    """What awaits a person, oldest first: what would run, what came before, until when."""
    found = [each for each in await open_gates(service) if run is None or each["run_id"] == run]
    if brief:
        found = [_in_brief(each) for each in found]
    return JsonAnswer({"ok": True, "approvals": found})


def _in_brief(gate: dict[str, Any]) -> dict[str, Any]:
    """Without what would run and what came before, which may be long."""
    short = {name: value for name, value in gate.items() if name != "uses"}
    return {**short, "parts": [], "later": [], "grounds": []}


async def open_gates(service: Service) -> list[dict[str, Any]]:
    if service.gates is None:
        service.gates = GateList(service)
    gates: GateList = service.gates
    async with service.lock("gates"):
        return await gates.read()


@dataclass(frozen=True, slots=True)
class OpenGate:
    asked_at: float
    due_at: float | None
    shown: dict[str, Any]


class GateList:
    """What awaits a person in all runs. A journal is read again only once it has new events: every
    page of the console asks for this list at each change."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._cursor: int | None = None
        self._gates: dict[RunId, list[OpenGate]] = {}  # of the runs that have not ended

    async def read(self) -> list[dict[str, Any]]:
        engine = self._service.stretto.engine
        # Asked before the journals are read: what comes meanwhile is told the next time.
        news = await (await engine.runs_of()).news(self._cursor)
        known = self._gates if self._cursor is not None and news.is_whole else {}
        changed = set(news.run_ids)
        gates: dict[RunId, list[OpenGate]] = {}
        for row in await self._service.unended():
            is_known = row.run_id in known and row.run_id not in changed
            found = known[row.run_id] if is_known else await self._look(row.run_id)
            if found is not None:  # else it is read again the next time
                gates[row.run_id] = found
        self._gates = gates
        self._cursor = news.cursor
        listed = sorted(
            (gate for found in gates.values() for gate in found),
            key=lambda gate: gate.asked_at,
        )
        now = engine.now()
        return [
            {**gate.shown, "overdue": gate.due_at is not None and gate.due_at <= now}
            for gate in listed
        ]

    async def _look(self, run_id: RunId) -> list[OpenGate] | None:
        """None: its journal could not be read."""
        runs = await self._service.stretto.engine.runs_of()
        try:
            history = await runs.history(run_id)
        except StrettoError:  # one journal that cannot be read must not hide the others
            return None
        return [
            OpenGate(
                _asked_at(history, step.id),
                deadline_of(history.state, step.id),
                await asyncio.to_thread(gate_in, self._service, history, step),
            )
            for step in history.state.awaiting_approval.values()
        ]


@router.get(
    "/api/runs/{run_id}/approvals/{step:path}", dependencies=[VIEWER], response_model=GateAnswer
)
async def show_approval(run_id: str, step: str, service: TheService) -> JsonAnswer:
    """What awaits approval at one step. 404 where nothing does."""
    history = await service.history(run_id)
    history.step(step)  # raises NotFound with the nearest name
    found = history.state.awaiting_approval.get(StepId(step))
    if found is None:
        word = history.state.steps[StepId(step)].status.value
        raise NotFound(f"step '{step[:100]}' does not await approval: it is {word}")
    return JsonAnswer(await asyncio.to_thread(gate_in, service, history, found))


def gate_in(service: Service, history: History, step: StepState) -> dict[str, Any]:
    """In a thread: the outputs on whose grounds a person decides may have megabytes."""
    state, now = history.state, service.stretto.engine.now()
    shown = dict(gate_as_json(gate_of(state, step)))
    del shown["ok"]
    grounds: Any = shown["grounds"]
    for ground in grounds:
        ground["output"] = loaded(ground["output"])
    safe: Any = service.stretto.project.redactor.json(shown)
    return {
        **safe,
        "owner": history.started.owner,
        "asked_at": iso(_asked_at(history, step.id)),
        "deadline": iso(deadline_of(state, step.id)),
        "then": _THEN.get(step.planned.on_failure, "the step fails"),
        "overdue": is_overdue(state, step.id, now),
    }


def _asked_at(history: History, step: StepId) -> float:
    asked = (
        event.at
        for event in reversed(history.events)
        if isinstance(event, ApprovalRequested) and event.step == step
    )
    return next(asked, history.started.at)


_DECIDE = "/api/runs/{run_id}/steps/{step:path}"


@router.post(_DECIDE + "/approve", dependencies=[OPERATOR], response_model=DecidedAnswer)
async def approve(
    run_id: str, step: str, service: TheService, asker: Asker, body: Approval | None = None
) -> JsonAnswer:
    """Let a step go on. 409 already_decided where somebody was quicker, with what stands."""
    given = body or Approval()
    return await _approve(service, asker, run_id, step, given, None)


@router.post(_DECIDE + "/edit", dependencies=[OPERATOR], response_model=DecidedAnswer)
async def edit(
    run_id: str, step: str, body: EditedApproval, service: TheService, asker: Asker
) -> JsonAnswer:
    """Let a step go on with another prompt."""
    return await _approve(service, asker, run_id, step, body, body.prompt)


async def _approve(
    service: Service,
    asker: Asker,
    run_id: str,
    step: str,
    body: Approval,
    prompt: str | Mapping[str, str] | None,
) -> JsonAnswer:
    run = await service.own_run(run_id, asker)
    async with service.lock(f"run {run_id}"):
        await run.approve(step, body.reason, edit=prompt, key=body.key, by=asker.name)
    return await _answer_decision(service, run_id, step, "approved")


@router.post(_DECIDE + "/reject", dependencies=[OPERATOR], response_model=DecidedAnswer)
async def reject(
    run_id: str, step: str, service: TheService, asker: Asker, body: Rejection | None = None
) -> JsonAnswer:
    """Fail a step that awaits approval."""
    given = body or Rejection()
    run = await service.own_run(run_id, asker)
    async with service.lock(f"run {run_id}"):
        await run.reject(step, given.reason, key=given.key, by=asker.name)
    return await _answer_decision(service, run_id, step, "rejected")


async def _answer_decision(service: Service, run_id: str, step: str, word: str) -> JsonAnswer:
    await service.resume(run_id)
    status = await service.stretto.open(run_id).status()
    return JsonAnswer(
        {"ok": True, "run_id": run_id, "step": step, "decision": word, "status": status}
    )
