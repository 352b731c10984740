"""A chat with the lead agent: `Stretto.chat`.

    send ─→ KeptTurn ─→ a run of one step, by the agent `lead` ─→ ChatTurn
                              │ task, task_batch, run_workflow (assembly.delegation)
                              └→ runs that it starts, each under the key of its call

A turn is a run like any other, and what it starts are runs. All that a turn needs to go on after a crash is
in `lead.chats`, written before it has its effect. A turn that needs a person stops, and `go_on` continues it
once the person has decided: nothing waits in memory.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from stretto.agents.conversation import LeadTurn
from stretto.assembly.arguments import check_text
from stretto.assembly.delegation import ChatHost, LeadTools, read_warnings
from stretto.assembly.engine import Engine
from stretto.assembly.request import PreparedRun, RunRequest
from stretto.events.model import Event
from stretto.execution.runs import Resume, new_run_id
from stretto.lead.chats import ChatFile, ChatStore, KeptCall, KeptChat, KeptTurn
from stretto.lead.turn import (
    AwaitedDecision,
    ChatSummary,
    ChatTurn,
    earlier_messages,
    trigger_of,
    turn_of,
    turn_recipe,
)
from stretto.ports.model import ChatMessage, ModelReply
from stretto.problems.errors import AlreadyDecided, InvalidUsage, NotFound, StrettoError
from stretto.recipe.model import Budget
from stretto.report.gate import gate_as_text, gate_of
from stretto.report.report import report_of
from stretto.schedule.recovery import usage_with_interrupted
from stretto.templates.render import as_text
from stretto.text.redaction import MASK
from stretto.text.short import counted, listed, shorten
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import RunId
from stretto.vocabulary.statuses import StepStatus

if TYPE_CHECKING:
    from stretto.assembly.run import Run
    from stretto.execution.driver import Listener
    from stretto.plan.model import Plan
    from stretto.schedule.state import RunState

_TITLE = 60
# A turn is one step, however much it delegates, and a person resumes it each time.
_MOST_CRASHES = 50
_GATE_LINES = 12  # of each text that a person is shown before they decide
# What shows a run that a turn has started, while it is driven.
ShowRun: TypeAlias = "Callable[[Plan], AbstractContextManager[Listener]]"


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Which chat, and how: what `Stretto.chat` takes."""

    resume: str | None = None
    model: str | None = None
    permission: str | None = None
    budget: Mapping[str, float] | None = None
    owner: str = ""  # of a new one


class BudgetSpent(StrettoError):
    kind = "budget"


@dataclass(frozen=True, slots=True)
class ChatEvent:
    """Something that happened in the run of a turn, or in a run that it started."""

    run_id: str
    event: Event


class _EventQueue(asyncio.Queue["ChatEvent | None"]):
    """The events that one reader has not read yet. None comes last."""

    def stop(self) -> None:
        """For when nothing more can happen: this Stretto is being closed."""
        self.put_nowait(None)


class Chat:
    """A chat with the lead agent. It is recorded when something is first said in it.

    `send` returns when the turn has ended, or waits for a person; `turn.awaits` then says for what, and
    after `approve` or `reject` `go_on` continues it. A turn that a crash has interrupted is `open`, and
    goes on with `go_on` as well: no run that it had started is started twice.
    """

    def __init__(
        self,
        host: ChatHost,
        kept: KeptChat,
        show: "ShowRun | None" = None,
        hear: "Listener | None" = None,
    ) -> None:
        """`show`: shows the runs that a turn starts. `hear`: hears the events of the turn itself."""
        self._host = host
        self._engine = host.engine
        self._file = ChatFile(self._engine.project.settings.home)
        self._kept = kept
        self._show: ShowRun = show or (lambda plan: nullcontext(_ignore))
        self._hear = hear or _ignore
        self._is_called_off = False
        self._notices: tuple[str, ...] = ()
        self._replaced: tuple[str, ...] = ()  # the secrets in what was said in the turn under way
        self._turn: Run | None = None  # the run of the turn under way
        self._under_way = asyncio.Lock()
        self._queues: list[_EventQueue] = []

    def __repr__(self) -> str:
        return f"<stretto.Chat {self.id}>"

    @property
    def id(self) -> str:
        return self._kept.id

    @property
    def permission(self) -> str:
        """read_only, ask or auto: of every turn, and of all that it starts."""
        return self._kept.permission or self._engine.project.settings.permission

    @property
    def owner(self) -> str:
        """Who began it, and whose its runs are; empty: the user at a terminal."""
        return self._kept.owner

    @property
    def notices(self) -> tuple[str, ...]:
        """Which model the last turn asks and why, and what its agents go without."""
        return self._notices

    @property
    def model(self) -> str | None:
        """What overrides the model of every agent; None: nothing does."""
        return self._kept.model

    async def send(self, text: str) -> ChatTurn:
        """Say something, and return when it is answered, or waits for a person.

        Raises InvalidUsage while an earlier turn has not ended, and as `Stretto.start` does.
        """
        check_text(text=text)
        if not text.strip():
            raise InvalidUsage("a turn must say something; the text is empty")
        return await self._take_turn("lead", text, {})

    async def _send_once(self, text: str, run_id: RunId) -> ChatTurn:
        """`send`, as the run of this id: said once, however often a caller that was killed repeats it."""
        known = await self._file.use(lambda store: store.turns(self.id))
        if any(each.run_id == run_id for each in known):
            return await self.go_on()
        return await self._take_turn("lead", text, {}, run_id)

    async def stop(self) -> None:
        """Leave the turn under way where it is; `go_on` continues it."""
        if self._turn is not None:
            await self._turn.stop()

    async def run_workflow(
        self, name: str, inputs: "dict[str, Json] | None" = None, *, said: str = ""
    ) -> ChatTurn:
        """Run a saved workflow as a turn, because a person wants it: the lead agent is not asked, and
        knows of it afterwards. `said`: what the person typed."""
        check_text(name=name, said=said)
        request: dict[str, Json] = {"name": name, "inputs": dict(inputs or {})}
        return await self._take_turn("workflow", said or f"/{name}", request)

    async def go_on(self) -> ChatTurn:
        """Continue the last turn, if it has not ended: after a decision, or an interruption.

        Raises InvalidUsage where there is no turn.
        """
        async with self._alone():
            return await self._carry_out(await self._last())

    async def cancel(self, reason: str = "") -> ChatTurn:
        """End the turn that has not ended, and what it has started."""
        check_text(reason=reason)
        turn = await self._last()
        if turn.has_ended:
            raise InvalidUsage(f"turn {turn.number} has ended: {turn.status}")
        self._is_called_off = True
        if await (await self._engine.runs_of()).is_known(turn.run_id):
            with suppress(InvalidUsage):  # it has ended meanwhile
                await self._host.open(turn.run_id).cancel(reason)
        else:
            turn = replace(turn, status="cancelled", ended_at=self._engine.now())
            await self._file.use(lambda store: store.change_turn(turn))
        return await self._conclude(turn)

    async def approve(self, key: str, reason: str = "", *, by: str | None = None) -> None:
        """Allow a call that a turn waits for (`turn.awaits`). It counts for exactly what was shown.
        `by`: who says so; the user of this process by default."""
        await self._decide(key, "approved", reason, by)

    async def reject(self, key: str, reason: str = "", *, by: str | None = None) -> None:
        """Forbid a call that a turn waits for. The lead agent is told why."""
        await self._decide(key, "rejected", reason, by)

    async def turns(self) -> tuple[ChatTurn, ...]:
        """All turns, the first one first."""
        found = await self._file.use(
            lambda store: [(e, store.calls(e.run_id)) for e in store.turns(self.id)]
        )
        return tuple(
            [turn_of(e, calls, await self._find_decisions(e, calls)) for e, calls in found]
        )

    def events(self) -> AsyncGenerator[ChatEvent, None]:
        """What happens in the turn under way, or in the next one, until it ends. Raises InvalidUsage
        when this Stretto is closed meanwhile."""
        queue = _EventQueue()
        self._queues.append(queue)

        async def given() -> AsyncGenerator[ChatEvent, None]:
            self._engine.stoppable.add(queue)  # from now on: what nobody reads needs no end
            try:
                if queue.empty():
                    self._engine.check_open()
                while (event := await queue.get()) is not None:
                    yield event
                self._engine.check_open()
            finally:
                self._engine.stoppable.discard(queue)
                if queue in self._queues:  # left before the turn has ended
                    self._queues.remove(queue)

        return given()

    def _listener(self, run_id: str, show: "Listener") -> "Listener":
        def hear(event: Event, state: "RunState") -> None:
            for queue in self._queues:
                queue.put_nowait(ChatEvent(run_id, event))
            show(event, state)

        return hear

    def _alone(self) -> asyncio.Lock:
        if self._under_way.locked():
            raise InvalidUsage("a turn of this chat is under way", hint="await it, or cancel() it")
        return self._under_way

    async def _take_turn(
        self, kind: str, said: str, request: dict[str, Json], run_id: RunId | None = None
    ) -> ChatTurn:
        async with self._alone():
            redactor = self._engine.project.redactor
            self._replaced = redactor.named(said)
            said = redactor.text(said)
            now = self._engine.now()

            def begin(store: ChatStore) -> KeptTurn:
                turns = store.turns(self.id)
                if not turns and all(each.id != self.id for each in store.chats()):
                    store.add_chat(replace(self._kept, at=now))
                if turns and not turns[-1].has_ended:
                    raise _unfinished_turn(turns[-1])
                self._check_budget(turns)
                turn = KeptTurn(
                    self.id, len(turns) + 1, run_id or new_run_id(), "lead" if kind == "lead" else "workflow",
                    said, request, "open", "", "", Usage(), 0, now, None,
                )  # fmt: skip
                store.add_turn(turn)
                return turn

            return await self._carry_out(await self._file.use(begin), is_new=True)

    async def _carry_out(self, turn: KeptTurn, is_new: bool = False) -> ChatTurn:
        if turn.has_ended:
            return await self._conclude(turn)
        try:
            self._is_called_off = False
            prepared = await self._prepare(turn)
            if turn.status == "waiting":  # from here on it does not, also if this process is killed
                turn = replace(turn, status="open")
                await self._keep(turn)
            if self._is_called_off:  # before it had begun
                return turn_of(await self._last(), (), ())
            self._turn = self._host.open(turn.run_id)
            with self._show_turn(turn, prepared) as listener:
                await self._host.launch(prepared, listener)
                await self._turn.wait()
        except StrettoError:
            if is_new and not await (await self._engine.runs_of()).is_known(turn.run_id):
                # It never began, so it is no turn that somebody would have to go on with.
                await self._file.use(lambda store: store.remove_turn(turn.run_id))
            raise
        finally:
            self._turn = None
            queues, self._queues = self._queues, []
            for queue in queues:
                queue.put_nowait(None)
        return await self._conclude(turn)

    async def _keep(self, turn: KeptTurn) -> None:
        await self._file.use(lambda store: store.change_turn(turn))

    def _show_turn(
        self, turn: KeptTurn, prepared: PreparedRun
    ) -> "AbstractContextManager[Listener]":
        if turn.kind == "workflow":
            return _TurnUnderWay(self).show(prepared)
        return nullcontext(self._listener(turn.run_id, self._hear))

    async def _prepare_again(self, run_id: str) -> PreparedRun:
        """A run of this chat, for whoever asks a person about its steps."""
        request = RunRequest(of=RunId(run_id), is_resumed=True, permission=self.permission)
        return await self._engine.prepare(replace(request, is_delegated=True))

    async def _prepare(self, turn: KeptTurn) -> PreparedRun:
        chat = self._kept
        is_known = await (await self._engine.runs_of()).is_known(turn.run_id)
        if is_known:
            request = RunRequest(of=turn.run_id, is_resumed=True, permission=self.permission)
            request = replace(request, model=chat.model)
        else:
            spent = await self._file.use(lambda store: store.turns(self.id))
            request = RunRequest(run_id=turn.run_id, permission=self.permission, model=chat.model)
            request = replace(request, budget=self._budget_left(spent), owner=chat.owner)
            if turn.kind == "lead":
                given: dict[str, Json] = {"message": turn.said}
                request = replace(request, recipe=turn_recipe(turn.number), inputs=given)
            else:
                inputs = turn.request["inputs"]
                assert isinstance(inputs, dict)
                request = replace(request, recipe=str(turn.request["name"]), inputs=inputs)
        prepared = await self._engine.prepare(
            replace(request, is_delegated=True, trigger=trigger_of(turn))
        )
        self._notices = prepared.notices
        if turn.kind == "workflow":
            return prepared
        if isinstance(prepared.beginning, Resume):
            beginning = replace(prepared.beginning, most_crashes=_MOST_CRASHES)
            prepared = replace(prepared, beginning=beginning)
        return replace(prepared, lead=await self._lead(turn))

    async def _lead(self, turn: KeptTurn) -> LeadTurn:
        before = await self._file.use(lambda store: store.turns(self.id)[: turn.number - 1])
        memory = _TurnMemory(self._file, turn.run_id, earlier_messages(before))
        delegation = LeadTools(_TurnUnderWay(self), self._host, self._file, turn)
        return LeadTurn(turn.run_id, delegation.tools, memory)

    async def _conclude(self, turn: KeptTurn) -> ChatTurn:
        """The turn as it stands now, and as it is kept from here on."""
        runs = await self._engine.runs_of()
        if not await runs.is_known(turn.run_id):
            return turn_of(turn, (), ())
        state = (await runs.history(turn.run_id)).state
        if state.has_ended and turn.kind == "lead":
            await self._end_children(turn)
        calls = await self._file.use(lambda store: store.calls(turn.run_id))
        awaits = await self._find_decisions(turn, calls)
        if not turn.has_ended:
            turn = _end_turn(turn, state, calls) if state.has_ended else replace(
                turn,
                status="waiting" if awaits else "open",
                usage=sum((each.usage for each in calls), usage_with_interrupted(state)),
            )  # fmt: skip
            await self._keep(turn)
        warnings = list(_warnings(turn, state, calls))
        if self._replaced and MASK in turn.said:
            named = f"your message holds the value of {listed(self._replaced)}"
            warnings.insert(0, f"{named}: {MASK} stands in its place")
        return turn_of(turn, calls, awaits, tuple(dict.fromkeys(warnings)))

    async def _end_children(self, turn: KeptTurn) -> None:
        """Whatever a turn that was cancelled had under way ends with it."""
        runs = await self._engine.runs_of()
        for call in await self._file.use(lambda store: store.calls(turn.run_id)):
            if call.run_id and call.result is None and await runs.is_known(call.run_id):
                run = self._host.open(call.run_id)
                with suppress(StrettoError):  # it has ended, or another process ends it
                    await run.cancel("its turn has ended")
                # The lead agent is never told of it, and it was paid for all the same.
                report = await run.report(wait=False)
                note = partial(ChatStore.note_spent, key=call.key, usage=report.usage)
                await self._file.use(partial(note, agents=report.agents_deployed))

    async def _find_decisions(
        self, turn: KeptTurn, calls: Sequence[KeptCall]
    ) -> tuple[AwaitedDecision, ...]:
        if turn.has_ended:
            return ()
        asked = await self._file.use(lambda store: store.questions(turn.run_id))
        found = [AwaitedDecision(each.token, each.shown) for each in asked]
        runs = await self._engine.runs_of()
        under_way = [each.run_id for each in calls if each.run_id and each.result is None]
        for run_id in [turn.run_id, *under_way]:
            if not await runs.is_known(run_id):
                continue
            state = (await runs.history(run_id)).state
            found += [
                AwaitedDecision("", gate_as_text(gate_of(state, step), _GATE_LINES), run_id, id)
                for id, step in state.awaiting_approval.items()
            ]
        return tuple(found)

    async def _decide(self, key: str, verdict: str, reason: str, by: str | None) -> None:
        from stretto.assembly.run import user_name

        who = user_name() if by is None else by
        check_text(key=key, reason=reason, by=who)
        turn = await self._last()

        def decide(store: ChatStore) -> None:
            asked = store.questions(turn.run_id)
            found = next((e for e in store.all_questions(turn.run_id) if e.token == key), None)
            if found is None:
                hint = f"it asks for {listed([each.token for each in asked])}" if asked else ""
                said = f"turn {turn.number} of chat {self.id} does not ask for '{key}'"
                raise InvalidUsage(said, hint=hint or "it asks for nothing")
            if not store.decide(replace(found, verdict=verdict, by=who, reason=reason)):
                stands = next(e for e in store.all_questions(turn.run_id) if e.key == found.key)
                said = f"'{key}' has been {stands.verdict} by {stands.by or 'somebody'}"
                raise AlreadyDecided(said, hint="that counts; say what you want in the chat")

        await self._file.use(decide)

    async def _last(self) -> KeptTurn:
        turns = await self._file.use(lambda store: store.turns(self.id))
        if not turns:
            raise InvalidUsage(f"chat {self.id} has no messages yet")
        return turns[-1]

    def _budget_left(self, turns: Sequence[KeptTurn]) -> Budget:
        """What the turns so far leave of the chat's budget."""
        budget = self._kept.budget
        tokens = sum(each.usage.tokens for each in turns)
        usd, agents = sum(e.usage.usd for e in turns), sum(each.agents for each in turns)
        return Budget(
            None if budget.tokens is None else max(0, budget.tokens - tokens),
            None if budget.usd is None else max(0.0, budget.usd - usd),
            None if budget.agents is None else max(0, budget.agents - agents),
        )

    def _check_budget(self, turns: Sequence[KeptTurn]) -> None:
        left, budget = self._budget_left(turns), self._kept.budget
        for name in ("tokens", "usd", "agents"):
            if getattr(budget, name) is not None and getattr(left, name) <= 0:
                said = f"the budget of chat {self.id} is spent: {getattr(budget, name)} {name}"
                raise BudgetSpent(said, hint="begin another chat, or resume it with a larger one")


class _TurnUnderWay:
    """What the calls of a turn may do with its chat."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    @property
    def permission(self) -> str:
        return self._chat.permission

    @property
    def model(self) -> str | None:
        return self._chat.model

    @property
    def owner(self) -> str:
        return self._chat.owner

    @property
    def counts_agents(self) -> bool:
        return self._chat._kept.budget.agents is not None

    @contextmanager
    def show(self, prepared: PreparedRun) -> "Iterator[Listener]":
        """What hears and shows a run that a turn has started."""
        with self._chat._show(prepared.plan) as show:
            yield self._chat._listener(prepared.run_id, show)

    async def agents_left(self) -> int | None:
        """How many agents the turn under way may still set to work; None: there is no limit."""
        most = self._chat._kept.budget.agents
        if most is None:
            return None

        def used(store: ChatStore) -> int:
            turns = store.turns(self._chat.id)
            calls = store.calls(turns[-1].run_id)
            # The turn under way is not counted yet, neither the lead agent nor what it called.
            return 1 + sum(e.agents for e in turns) + sum(e.agents for e in calls)

        return max(0, most - await self._chat._file.use(used))

    async def stop_turn(self) -> None:
        """For a call that needs a person: the turn goes no further in this process. Never returns."""
        if self._chat._turn is not None and self._chat._turn._runs is not None:
            self._chat._turn._runs.stop(self._chat._turn._id)
        await asyncio.Event().wait()  # until the driver cancels the attempt


class _TurnMemory:
    def __init__(self, file: ChatFile, run_id: RunId, earlier: tuple[ChatMessage, ...]) -> None:
        self._file = file
        self._run_id = run_id
        self.earlier = earlier

    async def recall(self, number: int) -> ModelReply | None:
        return await self._file.use(lambda store: store.reply(self._run_id, number))

    async def keep(self, number: int, reply: ModelReply) -> None:
        await self._file.use(lambda store: store.keep_reply(self._run_id, number, reply))


def open_chat(
    host: ChatHost,
    resume: str | None,
    wanted: KeptChat,
    show: "ShowRun | None" = None,
    hear: "Listener | None" = None,
) -> Chat:
    """A new one, or the one that `resume` names: an id, the beginning or the end of one, or `last`.

    What `wanted` says of model, permission and budget counts before what the chat began with. Raises
    NotFound and InvalidUsage.
    """
    if resume is None:
        return Chat(host, wanted, show, hear)
    file = ChatFile(host.engine.project.settings.home)
    known = file.use_now(lambda store: store.chats()) if file.is_there else []
    found = known[:1] if resume == "last" else [each for each in known if each.id == resume]
    if not found and resume:
        found = [e for e in known if e.id.startswith(resume) or e.id.endswith(resume)]
    if len(found) > 1:
        raise InvalidUsage(f"'{resume}' may be {counted(len(found), 'chat')}; write more of its id")
    if not found:
        hint = "stretto chat --list shows them" if known else "there is none yet: stretto chat"
        raise NotFound(f"there is no chat '{resume}'", hint=hint)
    kept = found[0]
    changed = replace(
        kept,
        model=wanted.model or kept.model,
        permission=wanted.permission or kept.permission,
        budget=kept.budget if wanted.budget == Budget() else wanted.budget,
    )
    if changed != kept:
        file.use_now(lambda store: store.change_chat(changed))
    return Chat(host, changed, show, hear)


async def list_chats(engine: Engine, limit: int) -> list[ChatSummary]:
    file = ChatFile(engine.project.settings.home)
    if not file.is_there:
        return []

    def read(store: ChatStore) -> list[ChatSummary]:
        return [_summary(each, store.turns(each.id)) for each in store.chats()[:limit]]

    return await file.use(read)


def _summary(chat: KeptChat, turns: Sequence[KeptTurn]) -> ChatSummary:
    last = turns[-1] if turns else None
    title = shorten(" ".join(turns[0].said.split()), _TITLE) if turns else ""
    status = last.status if last else "open"
    at = last.at if last else chat.at
    return ChatSummary(chat.id, chat.at, at, len(turns), title, status, chat.owner)


def _end_turn(turn: KeptTurn, state: "RunState", calls: Sequence[KeptCall]) -> KeptTurn:
    report = report_of(state)
    # An answer counts, though none of the calls before it may have worked: the warnings say that.
    is_answered = turn.kind == "lead" and report.steps[0].status == StepStatus.SUCCEEDED
    is_ok = report.is_ok or is_answered
    errors = [step.error or step.reason for step in report.steps if step.error or step.reason]
    usage = sum((each.usage for each in calls), report.usage)
    return replace(
        turn,
        status="complete" if is_ok else "cancelled" if report.status == "cancelled" else "failed",
        answer=as_text(report.output) if is_ok or report.status == "partial" else "",
        error="" if is_ok else shorten("; ".join(errors) or f"it ended {report.status}", 2_000),
        usage=usage,
        agents=report.agents_deployed + sum(each.agents for each in calls),
        ended_at=state.ended_at,
    )


def _warnings(turn: KeptTurn, state: "RunState", calls: Sequence[KeptCall]) -> Iterator[str]:
    """Of the turn, and of the runs that it started: the lead agent may leave them out."""
    if turn.kind == "workflow":
        yield from (each.text for each in report_of(state).issues if each.kind == "warning")
        return
    yield from (said for step in state.order for said in step.warnings)
    for call in calls:
        if call.result is not None:
            yield from (f"{call.tool}: {said}" for said in read_warnings(call.result))


def _unfinished_turn(turn: KeptTurn) -> InvalidUsage:
    waits = "waits for a person" if turn.status == "waiting" else "has not ended"
    hint = f"go on with it (stretto chat --resume {turn.chat}), or end it: /cancel, chat.cancel()"
    return InvalidUsage(f"turn {turn.number} of chat {turn.chat} {waits}", hint=hint)


def _ignore(event: Event, state: "RunState") -> None:
    pass
