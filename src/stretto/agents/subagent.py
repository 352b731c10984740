"""The one function through which all work goes.

    request ─→ a model, with tools ─┐
            ─→ or another agent ────┴→ Answer ─→ validation, judge ─→ Success | Failure

A step, a branch, an element of a map, a judge: nothing else calls a model.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack
from typing import Protocol, TypeAlias

from msgspec import structs

from stretto.agents.acceptance import Acceptance, Answer
from stretto.agents.call_limits import DEFAULT_RETRIES, delay_before_retry, estimate_of, tokens_in
from stretto.agents.conversation import (
    Conversation,
    LeadTurn,
    WantedForm,
    earlier_text,
    fail_over,
    form_instruction,
    retry_later,
)
from stretto.agents.judge import model_judge
from stretto.agents.live_events import telling_phase
from stretto.agents.redacted import redact_apart, redacted_tools
from stretto.agents.tool_calls import ToolCaller
from stretto.events.model import Happening, ToolEnded, ToolStarted
from stretto.ports.model import ModelFault, Models
from stretto.ports.runner import (
    AttemptRequest,
    AttemptResult,
    Failure,
    NothingLeft,
    Runner,
    Success,
    Witness,
)
from stretto.ports.tool import Toolbox
from stretto.problems.errors import StrettoError
from stretto.text.redaction import NOTHING_SECRET, Redactor
from stretto.text.short import listed
from stretto.validation.implied_schema import implied_schema
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import CLI_MODEL, JUDGE_OFF, ModelSelection, Setup
from stretto.vocabulary.names import tool_name

# Warnings that a report shows for an attempt whatever its result, such as a missing sandbox.
AttemptWarnings: TypeAlias = Callable[[AttemptRequest, str], Iterable[str]]
# What the validator of a loop says.
_VERDICT: dict[str, Json] = {
    "type": "object",
    "properties": {"passed": {"type": "boolean"}, "feedback": {"type": "string"}},
    "required": ["passed", "feedback"],
}


class Identities(Protocol):
    """Which model a name means here and how a tool is configured, to tell equal work from other work."""

    def of_model(self, name: str) -> str: ...

    def of_tool(self, name: str) -> str: ...


class AsNamed:
    """Names that mean the same everywhere."""

    def of_model(self, name: str) -> str:
        return name

    def of_tool(self, name: str) -> str:
        return ""


class Subagents:
    def __init__(
        self,
        selection: ModelSelection,
        models: Models,
        toolbox: Toolbox,
        cli: Runner | None = None,
        redactor: Redactor = NOTHING_SECRET,
        attempt_warnings: AttemptWarnings = lambda request, model: (),
        retries: int = DEFAULT_RETRIES,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        identities: Identities | None = None,
        lead: LeadTurn | None = None,
    ) -> None:
        """`retries`: how often a request is sent again where a provider fails for a moment."""
        self._selection = selection
        self._models = models
        self._toolbox = toolbox
        self._cli = cli
        self._redactor = redactor
        self._attempt_warnings = attempt_warnings
        self._retries = retries
        self._sleep = sleep
        self._lead = lead
        self._identities = identities or AsNamed()
        self.acceptance = Acceptance(model_judge(selection, models, retries, sleep))

    def identify(self, models: Collection[str], tools: Collection[str]) -> Setup:
        asked = {name: self._selection.names_for(name or None)[0] for name in models}
        return Setup(
            {name: self._identities.of_model(model) for name, model in asked.items()},
            {name: self._identities.of_tool(name) for name in map(tool_name, tools)},
            self._judge_identity(),
        )

    def _judge_identity(self) -> str:
        """Empty where whoever answers also judges: that model is known already."""
        judge = self._selection.judge or ""
        return judge if judge in ("", JUDGE_OFF) else self._identities.of_model(judge)

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        result = await self._run(request, witness)
        # The toolbox and the machine may both warn about one tool: say it once.
        warnings = dict.fromkeys((*result.warnings, *self._attempt_warnings(request, result.model)))
        return structs.replace(result, warnings=tuple(warnings))

    async def _run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        given = request
        request = await redact_apart(
            lambda: self._without_secrets(given), given.prompt, given.instructions
        )
        answer = await self._answer(request, witness)
        if isinstance(answer, Failure):
            return structs.replace(answer, error=self._redactor.text(answer.error))
        said = answer.output
        hidden = await redact_apart(lambda: self._redactor.json(said), said)
        answer = structs.replace(answer, output=hidden)
        return await self.acceptance.check(answer, request, witness)

    async def _answer(self, request: AttemptRequest, witness: Witness) -> Answer | Failure:
        spent = Usage()
        asked = _group_models(self._selection.names_for(request.model, request.fallback_models))
        for names, then in zip(asked, (*asked[1:], ()), strict=True):
            answer = await self._ask_models(names, request, witness)
            answer = structs.replace(answer, usage=spent + answer.usage)
            if isinstance(answer, Answer) or not then or answer.kind in ("empty", "budget"):
                return answer
            spent = answer.usage
            fail_over(request, witness, names[-1], then[0], self._redactor.text(answer.error))
        raise AssertionError("at least one model is asked")

    async def _ask_models(
        self, names: Sequence[str], request: AttemptRequest, witness: Witness
    ) -> Answer | Failure:
        if names[0].startswith(CLI_MODEL):
            return await self._ask_program(names[0], request, witness)
        wanted = _wanted_form(request)
        try:
            async with AsyncExitStack() as stack:
                with telling_phase(request.attempt, witness, _opens(request)):
                    opened = self._toolbox.open(structs.replace(request, model=names[0]))
                    made = await stack.enter_async_context(opened)
                tools = redacted_tools(made, self._redactor)
                faults = {
                    name: self._redactor.text(f"{name} cannot be used: {tool.spec.fault}")
                    for name, tool in tools.items()
                    if tool.spec.fault
                }
                if faults and len(faults) == len(tools):
                    # Whatever a model says without them, it made up.
                    said = f"it can use none of its tools ({'; '.join(faults.values())})"
                    return Failure("unavailable", said, model=names[0])
                lead = self._lead_of(request)
                tools.update(lead.delegating(request) if lead else {})
                return await Conversation(
                    request=request,
                    witness=witness,
                    models=self._models,
                    names=names,
                    tools=tools,
                    tool_calls=ToolCaller(request, witness, tools, self._redactor),
                    wanted=wanted,
                    instructions=request.instructions,
                    redactor=self._redactor,
                    warnings=dict.fromkeys(faults.values()),
                    retries=self._retries,
                    sleep=self._sleep,
                    memory=lead.memory if lead else None,
                ).hold(_prompt(request, wanted))
        except StrettoError as error:
            return Failure("error", error.with_hint, model=names[0])

    def _lead_of(self, request: AttemptRequest) -> LeadTurn | None:
        return self._lead if self._lead is not None and self._lead.is_asked(request) else None

    async def _ask_program(
        self, name: str, request: AttemptRequest, witness: Witness
    ) -> Answer | Failure:
        """Another tool's agent, which has a loop and tools of its own."""
        if self._cli is None:
            return Failure(
                "error", f"{name}: agents of other programs cannot be used here", model=name
            )
        prompt = _prompt(request, _wanted_form(request))
        warnings: tuple[str, ...] = ()
        if (lead := self._lead_of(request)) is not None:
            earlier = earlier_text(lead.memory.earlier)
            prompt = f"{earlier}\n\nThe user says now:\n{prompt}" if earlier else prompt
            warnings = (f"{name} has tools of its own, so it cannot use agents and workflows here",)
        asked = structs.replace(request, model=name, prompt=prompt)
        result = await self._run_patiently(self._cli, asked, witness)
        if isinstance(result, Failure):
            return result
        given = (*result.warnings, *warnings)
        return Answer(result.output, result.usage, result.model or name, given)

    async def _run_patiently(
        self, cli: Runner, request: AttemptRequest, witness: Witness
    ) -> AttemptResult:
        """Again where its provider failed for a moment, as long as it has done nothing yet."""
        spent, retried, loop = Usage(), 0, asyncio.get_running_loop()
        left = request.seconds_left
        ends_at = None if left is None else loop.time() + left
        while True:
            await witness.confirm()
            waits = f"waits for the first word of {request.model}"
            with telling_phase(request.attempt, witness, waits) as waiting:
                watched = _Watched(witness, waiting)
                result = await self._run_reserved(cli, request, watched)
            result = structs.replace(result, usage=spent + result.usage)
            if isinstance(result, Success) or watched.has_effects:
                return result
            fault = ModelFault(result.kind, result.error, result.retry_after_seconds)
            seconds_left = None if ends_at is None else ends_at - loop.time()
            delay = delay_before_retry(fault, retried, self._retries, seconds_left)
            if delay is None:
                return result
            spent, retried = result.usage, retried + 1
            name = request.model or ""
            retry_later(request, witness, name, fault, (retried, self._retries), delay)
            await self._sleep(delay)

    async def _run_reserved(
        self, cli: Runner, request: AttemptRequest, witness: Witness
    ) -> AttemptResult:
        """Run a program whose first call is reserved; further calls count as the program reports them."""
        allowance = request.allowance
        if allowance is None:
            return await cli.run(request, witness)
        tokens = tokens_in(request.instructions, request.prompt)
        reserved = await allowance.reserve(estimate_of(self._models, request.model or "", tokens))
        if isinstance(reserved, NothingLeft):
            return Failure("budget", reserved.says, model=request.model or "")
        result = await cli.run(request, witness)
        allowance.settle(reserved, result.usage)
        return result

    def _without_secrets(self, request: AttemptRequest) -> AttemptRequest:
        hide = self._redactor.text
        return structs.replace(
            request, prompt=hide(request.prompt), instructions=hide(request.instructions)
        )


class _Watched:
    """A witness that knows whether an agent has called a tool: that is not done twice."""

    def __init__(self, witness: Witness, waiting: asyncio.TimerHandle) -> None:
        """`waiting`: is cancelled at the first event."""
        self._witness = witness
        self._waiting = waiting
        self.has_effects = False
        self.now, self.spend, self.confirm = witness.now, witness.spend, witness.confirm
        self.is_followed = witness.is_followed

    def note(self, event: Happening) -> None:
        self._see(event)
        self._witness.note(event)

    async def record(self, event: Happening) -> None:
        self._see(event)
        await self._witness.record(event)

    def _see(self, event: Happening) -> None:
        self._waiting.cancel()
        self.has_effects |= isinstance(event, ToolStarted | ToolEnded)


def _opens(request: AttemptRequest) -> str:
    """What an attempt does before it can ask a model, in words."""
    prefixed = (name for name in map(tool_name, request.tools) if name.startswith("mcp__"))
    servers = dict.fromkeys(name.split("__")[1] for name in prefixed)
    if not servers:
        return "opens its tools"
    return f"starts the MCP server{'s' if len(servers) > 1 else ''} {listed(servers)}"


def _wanted_form(request: AttemptRequest) -> WantedForm:
    implied = implied_schema(request.rules) if request.rules else None
    if implied is None and request.is_verdict:
        implied = _VERDICT
    return WantedForm(request.format == "json", request.schema, implied)


def _prompt(request: AttemptRequest, wanted: WantedForm) -> str:
    """What was rendered, byte for byte; where JSON is wanted, that is said after it."""
    hint = form_instruction(wanted)
    if not hint:
        return request.prompt
    return f"{request.prompt}\n\n{hint}" if request.prompt.strip() else hint


def _group_models(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Models that take over from each other share one conversation; other tools' agents cannot."""
    groups: list[tuple[str, ...]] = []
    for name in names:
        is_alone = name.startswith(CLI_MODEL) or not groups or groups[-1][0].startswith(CLI_MODEL)
        if is_alone:
            groups.append((name,))
        else:
            groups[-1] = (*groups[-1], name)
    return groups
