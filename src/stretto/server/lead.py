"""`/api/goals` and `/api/chats`: what is run again until a verifier passes, and talks with the lead agent.

A goal may name a command of the server's machine as its verifier, so only an admin sets one.
"""

import asyncio
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from stretto.assembly.arguments import check_inputs
from stretto.assembly.chat import Chat, ChatOptions
from stretto.assembly.goal_requests import GoalRequest, read_limits
from stretto.goals.goal import DEFAULT_STALL, GoalLimits
from stretto.server.answers import JsonAnswer
from stretto.server.bodies import (
    ApiAnswer,
    BodyText,
    ListAnswer,
    Permission,
    RunBudget,
    ShortText,
    StrictBody,
    new_router,
)
from stretto.server.service import ADMIN, AUTHOR, VIEWER, Asker, Service, TheService
from stretto.server.tokens import Identity
from stretto.server.workflows import saved_entry

router = new_router("lead")
Wait = Annotated[bool, Field(description="Answer once it has ended, or waits for a person")]


class GoalBody(StrictBody):
    """As `stretto goal set`: `verify` is KIND:SPEC, such as `command:make test`."""

    text: BodyText
    verify: Annotated[str, Field(min_length=1, max_length=10_000)]
    workflow: ShortText | None = None
    inputs: dict[str, Any] = Field(default_factory=dict)
    evidence_input: ShortText | None = None
    max_iterations: int = Field(10, ge=1, le=10_000)
    budget: RunBudget | None = None
    timeout: ShortText | None = None
    model: ShortText | None = None
    permission: Permission | None = None
    wait: Wait = False


class ChatBody(StrictBody):
    text: Annotated[str, Field(min_length=1, max_length=100_000)]
    model: ShortText | None = None
    permission: Permission | None = None
    budget: RunBudget | None = None


class ChatDecision(StrictBody):
    """`key`: of what the turn awaits."""

    key: ShortText
    reason: BodyText = ""


@router.get("/api/goals", dependencies=[VIEWER], response_model=ListAnswer)
async def list_goals(service: TheService) -> JsonAnswer:
    """The goals, newest first: `goals`."""
    found = await service.stretto.goals.list()
    return JsonAnswer({"ok": True, "goals": [each.json() for each in found]})


@router.get("/api/goals/{goal}", dependencies=[VIEWER], response_model=ApiAnswer)
async def show_goal(goal: str, service: TheService) -> JsonAnswer:
    """One goal, with its history: `goal`."""
    found = await service.stretto.goals.show(goal)
    return JsonAnswer({"ok": True, "goal": found.json()})


@router.post("/api/goals", dependencies=[ADMIN], response_model=ApiAnswer, status_code=202)
async def set_goal(body: GoalBody, service: TheService, asker: Asker) -> JsonAnswer:
    """Set a goal, driven by this server: `goal`."""
    workflow = None
    if body.workflow is not None:
        service.check_workflows()
        workflow = (await asyncio.to_thread(saved_entry, service, body.workflow)).recipe
    service.check_serving()
    limits = read_limits(
        GoalLimits(),
        body.max_iterations,
        body.budget.limits() if body.budget else None,
        body.timeout,
        None,
        DEFAULT_STALL,
    )
    request = GoalRequest(
        body.text, body.verify, workflow, check_inputs(body.inputs), body.evidence_input, limits,
        service.named_model(asker, body.model), body.permission,
    )  # fmt: skip
    goal = await service.drive_goal(await service.stretto.goals.record(request))
    has_ended = body.wait and await service.until(goal.wait())
    report = await goal.report()
    is_ok = report.is_ok if has_ended else True
    return JsonAnswer({"ok": is_ok, "goal": report.json()}, 200 if has_ended else 202)


@router.post("/api/goals/{goal}/clear", dependencies=[ADMIN], response_model=ApiAnswer)
async def clear_goal(goal: str, service: TheService) -> JsonAnswer:
    """End a goal, and the run that works on it."""
    await service.stretto.goals.show(goal)  # raises NotFound
    found = await service.stretto.goals.open(goal).clear()
    return JsonAnswer({"ok": True, "goal": found.json()})


@router.post(
    "/api/goals/{goal}/resume", dependencies=[ADMIN], response_model=ApiAnswer, status_code=202
)
async def resume_goal(goal: str, service: TheService) -> JsonAnswer:
    """Go on with a goal that was interrupted or waited."""
    service.check_serving()
    await service.stretto.goals.show(goal)  # raises NotFound
    found = await service.drive_goal(goal)
    return JsonAnswer({"ok": True, "goal": (await found.report()).json()}, 202)


@router.get("/api/chats", dependencies=[VIEWER], response_model=ListAnswer)
async def list_chats(
    service: TheService, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> JsonAnswer:
    """The chats, the one spoken to last first: `chats`."""
    found = await service.stretto.chats(limit=limit)
    return JsonAnswer({"ok": True, "chats": [asdict(each) for each in found]})


@router.get("/api/chats/{chat}", dependencies=[VIEWER], response_model=ApiAnswer)
async def show_chat(chat: str, service: TheService) -> JsonAnswer:
    """All turns of a chat: `turns`."""
    found = service.stretto.chat(resume=chat)
    turns = [turn.json() for turn in await found.turns()]
    return JsonAnswer({"ok": True, "chat": found.id, "turns": turns})


@router.post("/api/chats", dependencies=[AUTHOR], response_model=ApiAnswer)
async def begin_chat(body: ChatBody, service: TheService, asker: Asker) -> JsonAnswer:
    """Say something in a new chat; answered with the turn: `chat`, `turn`."""
    return await _say(service, asker, body, None)


@router.post("/api/chats/{chat}", dependencies=[AUTHOR], response_model=ApiAnswer)
async def say_in_chat(chat: str, body: ChatBody, service: TheService, asker: Asker) -> JsonAnswer:
    """Say something in a chat; answered with the turn: `turn`."""
    return await _say(service, asker, body, chat)


async def _say(service: Service, asker: Identity, body: ChatBody, chat: str | None) -> JsonAnswer:
    service.check_serving()
    budget = body.budget.limits() if body.budget else None
    model = service.named_model(asker, body.model)
    found = service.own_chat(asker, ChatOptions(chat, model, body.permission, budget))
    turn = await found.send(body.text)
    return JsonAnswer({"ok": turn.ok, "chat": found.id, "turn": turn.json()})


async def _go_on(service: Service, chat: Chat) -> JsonAnswer:
    # One at a time: whoever comes second finds the turn as the first one has left it.
    async with service.lock(f"chat {chat.id}"):
        turn = await chat.go_on()
    return JsonAnswer({"ok": turn.ok, "chat": chat.id, "turn": turn.json()})


@router.post("/api/chats/{chat}/approve", dependencies=[AUTHOR], response_model=ApiAnswer)
async def approve_call(
    chat: str, body: ChatDecision, service: TheService, asker: Asker
) -> JsonAnswer:
    """Allow a call that a turn waits for, and go on with the turn."""
    found = service.own_chat(asker, ChatOptions(chat))
    await found.approve(body.key, body.reason, by=asker.name)
    return await _go_on(service, found)


@router.post("/api/chats/{chat}/reject", dependencies=[AUTHOR], response_model=ApiAnswer)
async def reject_call(
    chat: str, body: ChatDecision, service: TheService, asker: Asker
) -> JsonAnswer:
    """Forbid a call that a turn waits for, and go on with the turn."""
    found = service.own_chat(asker, ChatOptions(chat))
    await found.reject(body.key, body.reason, by=asker.name)
    return await _go_on(service, found)


@router.post("/api/chats/{chat}/resume", dependencies=[AUTHOR], response_model=ApiAnswer)
async def resume_chat(chat: str, service: TheService, asker: Asker) -> JsonAnswer:
    """Go on with the last turn, once a step that its run waited for was decided about, or after an
    interruption."""
    service.check_serving()
    found = service.own_chat(asker, ChatOptions(chat))
    return await _go_on(service, found)


@router.post("/api/chats/{chat}/cancel", dependencies=[AUTHOR], response_model=ApiAnswer)
async def cancel_turn(chat: str, service: TheService, asker: Asker) -> JsonAnswer:
    """End the turn that has not ended, and what it has started."""
    found = service.own_chat(asker, ChatOptions(chat))
    turn = await found.cancel(f"{asker.name} ended it")
    return JsonAnswer({"ok": True, "chat": found.id, "turn": turn.json()})
