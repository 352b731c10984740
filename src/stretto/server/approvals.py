"""`/api/approvals`, and what people decide: approve, approve with another prompt, reject."""

from collections.abc import Mapping
from typing import Any

from stretto.events.attempts import RunTimer, StepTimer
from stretto.events.model import ApprovalRequested
from stretto.execution.history import History
from stretto.problems.errors import NotFound, StrettoError
from stretto.report.gate import gate_as_json, gate_of
from stretto.report.json_form import iso
from stretto.schedule.state import RunState, StepState
from stretto.schedule.status import is_overdue
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
from stretto.vocabulary.ids import StepId
from stretto.vocabulary.json_value import loaded

router = new_router("approvals")
_THEN = {
    "inline": "the step fails, and the steps that need it are told so",
    "skip": "the step is skipped",
    "block": "the step fails, and the steps that need it are held",
    "abort": "the step fails, and the run with it",
}


@router.get("/api/approvals", dependencies=[VIEWER], response_model=GatesAnswer)
async def list_approvals(service: TheService) -> JsonAnswer:
    """What awaits a person, oldest first: what would run, what came before, until when."""
    return JsonAnswer({"ok": True, "approvals": await open_gates(service)})


async def open_gates(service: Service) -> list[dict[str, Any]]:
    runs = await service.stretto.engine.runs_of()
    found: list[tuple[float, dict[str, Any]]] = []
    for row in await service.unended():
        try:
            history = await runs.history(row.run_id)
        except StrettoError:  # one journal that cannot be read must not hide the others
            continue
        for step in history.state.awaiting_approval.values():
            found.append((_asked_at(history, step.id), gate_in(service, history, step)))
    return [gate for _, gate in sorted(found, key=lambda each: each[0])]


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
    return JsonAnswer(gate_in(service, history, found))


def gate_in(service: Service, history: History, step: StepState) -> dict[str, Any]:
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
        "deadline": iso(_deadline(state, step.id)),
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


def _deadline(state: RunState, step: StepId) -> float | None:
    due = [
        at
        for timer, at in state.timers.items()
        if isinstance(timer, RunTimer) or (isinstance(timer, StepTimer) and timer.step == step)
    ]
    return min(due, default=None)


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
    return await _decided(service, run_id, step, "approved")


@router.post(_DECIDE + "/reject", dependencies=[OPERATOR], response_model=DecidedAnswer)
async def reject(
    run_id: str, step: str, service: TheService, asker: Asker, body: Rejection | None = None
) -> JsonAnswer:
    """Fail a step that awaits approval."""
    run = await service.own_run(run_id, asker)
    async with service.lock(f"run {run_id}"):
        await run.reject(step, body.reason if body else "", by=asker.name)
    return await _decided(service, run_id, step, "rejected")


async def _decided(service: Service, run_id: str, step: str, word: str) -> JsonAnswer:
    await service.resume(run_id)
    status = await service.stretto.open(run_id).status()
    return JsonAnswer(
        {"ok": True, "run_id": run_id, "step": step, "decision": word, "status": status}
    )
