"""The loop of one subagent: ask the model, carry out its tool calls, ask again.

The loop is our own and not pydantic-ai's, which costs 3 ms of CPU a run, against 0.3 for all of
this, and has no place where a record could be made before an effect (docs/decisions/0006).

A turn of the lead agent has tools that delegate, earlier turns and a memory besides. Assembly makes one
LeadTurn for one run, and hands it to the runner of that run alone, so no other agent can have these tools.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from json import dumps
from typing import Protocol

from stretto.agents.acceptance import Answer
from stretto.agents.call_limits import (
    DEFAULT_RETRIES,
    delay_before_retry,
    estimate_call,
    tokens_in,
    tokens_of,
)
from stretto.agents.live_events import (
    EVERY_SECONDS,
    READ_ALONG_SECONDS,
    SpeechBuffer,
    telling_phase,
)
from stretto.agents.redacted import redact_apart
from stretto.agents.tool_calls import CallOutcome, ToolCaller, looks_like_call
from stretto.events.model import ModelFailedOver, ModelRetried, UsageNoted
from stretto.ports.model import (
    ChatMessage,
    Model,
    ModelFailed,
    ModelFault,
    ModelQuestion,
    ModelReply,
    Models,
    RequestedCall,
    TokenCounts,
    ToolResult,
    UserMessage,
)
from stretto.ports.runner import AttemptRequest, Failure, NothingLeft, Reservation, Witness
from stretto.ports.tool import Tool
from stretto.problems.errors import StrettoError
from stretto.text.redaction import Redactor
from stretto.text.short import counted, shorten
from stretto.text.visible import one_line
from stretto.validation.blank import says_nothing
from stretto.validation.talk import what_instead
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import LEAD, tool_name

DEFAULT_TURNS = 25
# A model that is silent for so long will not answer; slow models think for minutes.
_SILENCE_SECONDS = 300.0
_MOST_WORD = 60  # of a provider's reason
_MOST_TALK = 120
_JSON_ONLY = "Answer with JSON alone: no words before or after it, no code fence."


class Memory(Protocol):
    """What was said. Whoever repeats an interrupted turn is given the same replies again, so the same
    calls are made under the same keys, and none of them has its effect twice."""

    @property
    def earlier(self) -> Sequence[ChatMessage]:
        """The turns before this one."""
        ...

    async def recall(self, number: int) -> ModelReply | None:
        """The reply of that number in this turn, from 0; None: the model has yet to be asked."""
        ...

    async def keep(self, number: int, reply: ModelReply) -> None:
        """Returns when it is durable."""
        ...


@dataclass(frozen=True, slots=True)
class LeadTurn:
    run_id: str
    delegating: Callable[[AttemptRequest], Mapping[str, Tool]]
    memory: Memory

    def is_asked(self, request: AttemptRequest) -> bool:
        return request.run_id == self.run_id and request.agent == LEAD


def earlier_text(earlier: Sequence[ChatMessage]) -> str:
    """Earlier turns for an agent of another program, which takes one prompt; empty without any."""
    told = []
    for each in earlier:
        if isinstance(each, UserMessage):
            told.append(f"The user said:\n{each.text}")
        elif isinstance(each, ModelReply):
            told.append(f"You answered:\n{each.text}")
    return "\n\n".join(told)


@dataclass(frozen=True, slots=True)
class WantedForm:
    """The form that the answer should have."""

    is_json: bool = False
    schema: Mapping[str, Json] | None = None
    implied: Mapping[str, Json] | None = None  # what the rules imply; only for local models


@dataclass(slots=True)
class Conversation:
    """The conversation of one attempt. The next model goes on with it where one cannot answer."""

    request: AttemptRequest
    witness: Witness
    models: Models
    names: Sequence[str]  # of models; each is asked where those before it could not answer
    tools: Mapping[str, Tool]
    tool_calls: ToolCaller
    wanted: WantedForm
    instructions: str
    redactor: Redactor
    retries: int = DEFAULT_RETRIES  # of one request, where its provider fails for a moment
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    usage: Usage = Usage()
    asked: int = 0  # the index in `names` of the model that is asked
    warnings: dict[str, None] = field(default_factory=dict)  # a set that keeps its order
    messages: list[ChatMessage] = field(default_factory=list)
    is_tiny: bool = False  # the model that was asked last
    left: int | None = None  # tokens that a budget leaves for an answer, where that is little
    heard_bytes: int | None = None  # of the last call; None: its model has yet to begin
    memory: Memory | None = None  # of a turn of the lead agent
    ends_at: float | None = None  # by the loop's clock, when a timeout ends the attempt

    async def hold(self, prompt: str) -> Answer | Failure:
        if self.request.seconds_left is not None:
            self.ends_at = asyncio.get_running_loop().time() + self.request.seconds_left
        self.messages += self.memory.earlier if self.memory else ()
        asked_at = len(self.messages)
        self.messages.append(UserMessage(prompt))
        turns = self.request.max_turns or DEFAULT_TURNS
        for turn in range(turns):
            response = await self._next_reply(turn)
            if isinstance(response, Failure):
                return response
            if response.finish == "content_filter":
                said = f"{self.names[self.asked]} will not answer this"
                return Failure("refused", said, self.usage, model=self.names[self.asked])
            if not response.calls:
                return self._answer(response.text, *self._doubts(response))
            self.messages.append(await self._hide_secrets(response))
            if turn + 1 == turns:
                return self._cut_off(response.calls, turns, self.messages[asked_at:])
            self._tell(await self.tool_calls.carry_out(response.calls))
        raise AssertionError("an agent has at least one turn")

    async def _next_reply(self, number: int) -> ModelReply | Failure:
        """A reply that an earlier attempt got is used again, and that attempt's usage pays for it. A
        final answer after which the attempt failed is not: the model may now give a better one."""
        recalled = await self.memory.recall(number) if self.memory else None
        if recalled is not None and (recalled.calls or self.request.repeats is not None):
            return recalled
        response = await self._ask()
        if self.memory is not None and isinstance(response, ModelReply):
            # First what it took: an attempt that recalls the reply does not count it.
            noted = UsageNoted(self.witness.now(), self.request.attempt, self.usage)
            await self.witness.record(noted)
            await self.memory.keep(number, await self._hide_secrets(response))
        return response

    async def _ask(self) -> ModelReply | Failure:
        while True:
            name = self.names[self.asked]
            response = await self._ask_patiently(name)
            fault = response if isinstance(response, ModelFault) else self._cut_fault(response)
            if fault is None:
                assert isinstance(response, ModelReply)
                return response
            if fault.kind == "budget":
                return Failure("budget", fault.message, self.usage, model=name)
            if self.asked + 1 == len(self.names):
                said = f"{name}: {fault.message}"
                return Failure(fault.kind, said, self.usage, fault.retry_after_seconds, name)
            self.asked += 1
            fail_over(self.request, self.witness, name, self.names[self.asked], fault.message)

    def _cut_fault(self, response: ModelReply) -> ModelFault | None:
        """Why the reply is incomplete; None: it is complete. Half a call is never carried out."""
        if response.finish != "length":
            return None
        limit = self.request.max_output_tokens
        why = f"the limit (max_output_tokens: {limit})" if limit else "its own limit"
        if self.left is not None:
            why = f"what the budget has left ({self.left:,} tokens)"
        spoken = response.tokens.output_tokens if response.tokens else 0
        said = f"the answer was cut off at {why}, after {spoken:,} tokens"
        is_text = not (self.wanted.is_json or self.wanted.schema)
        # A tiny model talks until it is stopped; its text is kept, since it only demonstrates a run.
        if self.is_tiny and is_text and response.text.strip():
            self.warnings[f"{said}, and the part that came was kept"] = None
            return None
        return ModelFault("truncated", f"{said}; raise max_output_tokens, or ask for less")

    async def _ask_patiently(self, name: str) -> ModelReply | ModelFault:
        """Ask one model, and again if its provider failed for a moment."""
        try:
            with telling_phase(self.request.attempt, self.witness, f"loads the model {name}"):
                model = await self.models.model(name)
        except StrettoError as error:  # no key, no such model, no weights: retrying would not help
            return ModelFault("permanent", error.with_hint)
        retried = 0
        while True:
            await self.witness.confirm()
            response = await self._ask_once(name, model)
            if isinstance(response, ModelReply):
                if response.finish != "error":
                    return response
                # The provider stumbled over it: its network, a call that it could not write.
                response = ModelFault("unavailable", "its answer ended with an error")
            has_another = self.asked + 1 < len(self.names)
            delay = delay_before_retry(
                response, retried, self.retries, self._seconds_left(), has_another
            )
            if delay is None:
                return _with_retry_count(response, retried)
            retried += 1
            retry_later(self.request, self.witness, name, response, (retried, self.retries), delay)
            await self.sleep(delay)

    async def _ask_once(self, name: str, model: Model) -> ModelReply | ModelFault:
        allowance = self.request.allowance
        if allowance is None:
            return await self._request(name, model)
        tools = self.tools.values()
        size = estimate_call(self.models, name, self.messages, self.instructions, tools)
        if self.request.max_output_tokens is not None:
            size = replace(size, output_tokens=self.request.max_output_tokens)
        reserved = await allowance.reserve(size)
        if isinstance(reserved, NothingLeft):
            return ModelFault("budget", reserved.says)
        before = self.usage
        response = await self._request(name, model, reserved)
        allowance.settle(reserved, self.usage - before)
        return response

    async def _request(
        self, name: str, model: Model, reserved: Reservation | None = None
    ) -> ModelReply | ModelFault:
        try:
            self.left = reserved.output_tokens if reserved and reserved.is_cut else None
            response = await self._reply(model, self.left or self.request.max_output_tokens)
            self._count(name, response, reserved)
            return response
        except asyncio.CancelledError:
            self._count_unfinished(name, is_paid=True)
            raise
        except TimeoutError:
            self._count_unfinished(name, is_paid=True)
            return ModelFault("timeout", f"said nothing for {_SILENCE_SECONDS:.0f} s")
        except ModelFailed as error:
            fault = replace(error.fault, message=self.redactor.text(error.fault.message))
        except StrettoError as error:
            fault = ModelFault("error", error.with_hint)
        self._count_unfinished(name, is_paid=self.heard_bytes is not None)
        return fault

    def _seconds_left(self) -> float | None:
        if self.ends_at is None:
            return None
        return self.ends_at - asyncio.get_running_loop().time()

    async def _reply(self, model: Model, most_tokens: int | None = None) -> ModelReply:
        self.is_tiny = model.traits.is_local and not model.traits.takes_tools
        question = self._question(model, most_tokens)
        every = READ_ALONG_SECONDS if self.memory is not None else EVERY_SECONDS
        speech = SpeechBuffer(self.request, self.witness, self.redactor, every)
        self.heard_bytes = None
        loop = asyncio.get_running_loop()
        waits = f"waits for the first word of {self.names[self.asked]}"
        waiting = telling_phase(self.request.attempt, self.witness, waits)
        try:
            async with asyncio.timeout(_SILENCE_SECONDS) as silence:

                def hear(piece: str) -> None:
                    timer.cancel()
                    self.heard_bytes = (self.heard_bytes or 0) + len(
                        piece.encode("utf-8", "replace")
                    )
                    silence.reschedule(loop.time() + _SILENCE_SECONDS)
                    if piece:
                        speech.add(piece)

                with waiting as timer:
                    return await model.ask(question, hear)
        finally:
            speech.flush()

    def _question(self, model: Model, most_tokens: int | None) -> ModelQuestion:
        schema = self._enforced_schema(model)
        return ModelQuestion(
            tuple(self.messages),
            self.instructions,
            tuple(tool.spec for tool in self._tools_for(model)),
            schema,
            is_json=schema is None and self.wanted.is_json and model.traits.is_local,
            max_tokens=most_tokens,
            searches=self._searches_itself(model),
        )

    def _tools_for(self, model: Model) -> Sequence[Tool]:
        if model.traits.takes_tools:
            return tuple(self.tools.values())
        if self.tools:
            said = f"{self.names[self.asked]} is too small for tools and was given none"
            self.warnings[said] = None
        return ()

    def _enforced_schema(self, model: Model) -> Mapping[str, Json] | None:
        """The schema that the provider enforces while the model speaks."""
        if not model.traits.takes_schema:
            return None
        if model.traits.is_local:
            return self.wanted.schema or self.wanted.implied
        # Other providers enforce only schemas whose top level is an object.
        schema = self.wanted.schema
        return schema if schema and schema.get("type") == "object" else None

    def _searches_itself(self, model: Model) -> bool:
        """An agent that lists WebSearch but was given no such tool relies on its provider."""
        is_listed = any(tool_name(tool) == "WebSearch" for tool in self.request.tools)
        return is_listed and "WebSearch" not in self.tools and model.traits.can_search

    def _count(self, name: str, response: ModelReply, reserved: Reservation | None = None) -> None:
        used = response.tokens or TokenCounts()
        if reserved is not None and not (used.input_tokens or used.output_tokens):
            self.warnings[f"{name} does not say what a call takes: it was estimated"] = None
            used = TokenCounts(reserved.input_tokens, tokens_in(response.text))
        usd = self.models.usd(name, used)
        usage = Usage(used.input_tokens, used.output_tokens, usd, model_calls=1)
        self._spend(usage)

    def _count_unfinished(self, name: str, *, is_paid: bool) -> None:
        """A call that failed counts as a call. A provider that was stopped, or broke off in the middle,
        never says what that took, and takes its price all the same: so it is estimated."""
        used = TokenCounts()
        if is_paid:
            tools = self.tools.values()
            sent = estimate_call(self.models, name, self.messages, self.instructions, tools)
            used = TokenCounts(sent.input_tokens, tokens_of(self.heard_bytes or 0))
        usd = self.models.usd(name, used) if is_paid else 0.0
        self._spend(Usage(used.input_tokens, used.output_tokens, usd, model_calls=1))

    def _spend(self, usage: Usage) -> None:
        self.usage += usage
        self.witness.spend(usage)

    def _tell(self, outcomes: Sequence[CallOutcome]) -> None:
        for each in outcomes:
            tool = self.redactor.text(each.call.tool)
            self.messages.append(ToolResult(each.call.id, tool, each.outcome.text))

    async def _hide_secrets(self, reply: ModelReply) -> ModelReply:
        texts = (reply.text, *(call.text for call in reply.calls))
        return await redact_apart(lambda: _without_secrets(reply, self.redactor), *texts)

    def _answer(self, text: str, *warnings: str) -> Answer:
        return Answer(text, self.usage, self.names[self.asked], (*self.warnings, *warnings))

    def _doubts(self, response: ModelReply) -> Iterator[str]:
        """Why the last reply may not be the answer that it is taken for."""
        name = self.names[self.asked]
        if response.odd_finish:
            odd = self.redactor.text(shorten(response.odd_finish, _MOST_WORD))
            yield f"{name} stopped for the reason '{odd}', so its answer may not be whole"
        elif response.finish is None:
            yield f"{name} did not say why it stopped, so its answer may not be whole"
        if response.finish == "tool_call":
            yield f"{name} stopped to call a tool, but called none"
        is_answer = self.wanted.is_json or self.wanted.schema is not None
        if is_answer:
            return
        if looks_like_call(response.text, self.tools):
            yield f"{name} wrote a tool call as text, and it was not made"
        elif says_nothing(response.text):
            yield f"{name} answered only '{one_line(response.text, _MOST_WORD)}', which says nothing"
        elif self.memory is None and (instead := what_instead(response.text, bool(self.tools))):
            # In a chat, a person reads the answer and says more.
            yield f"{name} {instead}: '{one_line(response.text, _MOST_TALK)}'"

    def _cut_off(
        self, calls: Sequence[RequestedCall], turns: int, since_asked: Sequence[ChatMessage]
    ) -> Answer | Failure:
        """The text so far is the answer, with a warning. Of a chat only that of this turn."""
        said = f"max turns ({turns}) reached"
        self.tool_calls.refuse(calls, said)
        replies = (each.text for each in since_asked if isinstance(each, ModelReply))
        if text := "\n\n".join(text for text in replies if text.strip()):
            return self._answer(text, f"{said}; the answer is the text so far")
        return Failure(
            "empty", f"{said} before any text came", self.usage, model=self.names[self.asked]
        )


def fail_over(request: AttemptRequest, witness: Witness, name: str, to: str, why: str) -> None:
    at = witness.now()
    witness.note(ModelFailedOver(at, request.attempt, name, to, why))


def retry_later(
    request: AttemptRequest,
    witness: Witness,
    name: str,
    fault: ModelFault,
    count: tuple[int, int],  # which retry of how many
    delay: float,
) -> None:
    at = witness.now()
    witness.note(ModelRetried(at, request.attempt, name, fault.message, *count, delay))


def _with_retry_count(fault: ModelFault, retried: int) -> ModelFault:
    if not retried:
        return fault
    times = counted(retried, "retry")
    return replace(fault, message=f"{fault.message} (after {times})")


def form_instruction(wanted: WantedForm) -> str:
    """Told to every model, also where the schema is enforced: it makes the answers better."""
    if wanted.schema is not None:
        return f"{_JSON_ONLY} It must match this JSON schema:\n{dumps(wanted.schema)}"
    return _JSON_ONLY if wanted.is_json else ""


def _without_secrets(reply: ModelReply, redactor: Redactor) -> ModelReply:
    """The reply is sent again with the next question, perhaps to another provider."""
    if not redactor.has_secrets:
        return reply
    calls = tuple(
        replace(call, tool=redactor.text(call.tool), text=redactor.text(call.text))
        for call in reply.calls
    )
    own = None if redactor.named(repr(reply.own)) else reply.own
    return replace(reply, text=redactor.text(reply.text), calls=calls, own=own)
