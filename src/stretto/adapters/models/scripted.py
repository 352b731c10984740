"""A model that answers from a YAML file, for trying and testing recipes without any provider.

default: "An answer from the script."     # for every step that is not named below
replies:
  gather: "Three sources: …"               # a step, whatever the attempt
  score/firmographic: {reply: {score: 80}} # a branch, an iteration, an element
  brief:                                   # attempt by attempt; the last one stays
    - {fail: "rate limited", delay: 200ms}
    - {reply: "A brief.", tokens: 120}
  plan: {reply: "no JSON at all", raw: true}  # not checked against format, schema and rules
  turn-1:                                  # a turn of the lead agent: calls of tools, then its words
    calls: [{tool: task, arguments: {agent: writer, prompt: "Say hello."}}]
    reply: "Done."
draft:                                     # what `stretto draft` is answered, round by round
  - "name: greet"
  - {reply: {name: greet, steps: [{id: greet, subagent: writer, prompt: Greet.}]}}
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import cast

from stretto.agents.acceptance import Acceptance, Answer
from stretto.agents.conversation import Conversation, LeadTurn, WantedForm
from stretto.agents.tool_calls import ToolCaller
from stretto.documents.document import Document, read_file, read_text
from stretto.documents.kinds import AnyMap, Anything, Choice as OneOf, Count, Duration, Flag, Text
from stretto.documents.node import ListNode, MapNode, Node, Path as NodePath, ScalarNode, plain
from stretto.documents.shapes import Key, Reading, Shape
from stretto.events.model import FailureKind
from stretto.plan.model import (
    Plan,
    PlannedCondition,
    PlannedDelegation,
    PlannedLoop,
    PlannedMap,
    PlannedParallel,
    PlannedSwitch,
    PlannedWork,
    PlannedWorkflow,
)
from stretto.ports.clock import Clock
from stretto.ports.model import (
    Model,
    ModelQuestion,
    ModelReply,
    ModelTraits,
    RequestedCall,
    TokenCounts,
    UserMessage,
)
from stretto.ports.runner import (
    AttemptRequest,
    AttemptResult,
    CallEstimate,
    Failure,
    NothingLeft,
    Success,
    Witness,
)
from stretto.problems.errors import InvalidUsage
from stretto.registry.folders import signature
from stretto.text.redaction import NOTHING_SECRET, Redactor
from stretto.text.short import did_you_mean, listed
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import Setup
from stretto.vocabulary.names import StepId

MODEL = "scripted"
_DRAFT, _ROUND = "draft", "try."  # the step of `stretto draft`, and the parts of a loop
_KINDS = ("error", "timeout", "empty", "truncated", "validation", "unavailable", "refused",
          "permanent")  # fmt: skip
REPLY = Shape("a reply", "What one attempt answers.", (
    Key("reply", Anything(), "the answer: text or any JSON"),
    Key("fail", Text("an error"), "fail with this error instead"),
    Key("kind", OneOf(*_KINDS), "how it fails; error by default"),
    Key("delay", Duration(), "how long it takes"),
    Key("tokens", Count(0, 10**9), "tokens it reports"),
    Key("retry_after", Duration(), "what a provider asks for"),
    Key("calls", Anything(), "tools that the lead agent calls before it answers; those of one inner list at once"),
    Key("raw", Flag(), "is the answer given as it is, whatever the step's schema and rules say?"),
))  # fmt: skip
CALL = Shape("a call", "A tool that the lead agent calls.", (
    Key("tool", Text("a tool"), "its name", is_required=True),
    Key("arguments", AnyMap(), "what it is given"),
))  # fmt: skip
SCRIPT = Shape("a script", "What a scripted model answers.", (
    Key("default", Anything(), "the answer for steps that are not named"),
    Key("replies", AnyMap(), "answers by step, or step/part"),
    Key("draft", Anything(), "answers to stretto draft, round by round"),
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    tool: str
    arguments: str  # a JSON object


@dataclass(frozen=True, slots=True)
class Reply:
    output: Json = ""
    error: str | None = None
    kind: FailureKind = "error"
    delay_seconds: float = 0.0
    tokens: int = 0
    retry_after_seconds: float | None = None
    is_raw: bool = False  # given as it is, without validation
    calls: tuple[tuple[ScriptedCall, ...], ...] = ()  # those of one tuple at once


@dataclass(frozen=True, slots=True)
class Script:
    default: tuple[Reply, ...] = ()
    replies: Mapping[str, tuple[Reply, ...]] = field(default_factory=dict)
    drafts: tuple[Reply, ...] = ()  # of the drafter, round by round; the last one stays

    def reply(self, step: str, part: str, attempt: int, is_turn: bool = False) -> Reply | None:
        """The most specific reply: for step/part, else for the step (`turn` for any turn of a chat),
        else the default."""
        if self.drafts and step == _DRAFT and part.startswith(_ROUND):
            return self.drafts[min(int(part.removeprefix(_ROUND)), len(self.drafts)) - 1]
        named = self.replies.get(f"{step}/{part}") or self.replies.get(step)
        written = named or (self.replies.get("turn") if is_turn else None) or self.default
        return written[min(attempt, len(written)) - 1] if written else None

    def digest(self) -> str:
        """A script with other replies counts as another model when results are reused."""
        written = repr((self.default, sorted(self.replies.items()), *self.drafts))
        return sha256(written.encode("utf-8", "surrogatepass")).hexdigest()


class ScriptedRunner:
    """A Runner whose attempts are answered by a script instead of a model."""

    def __init__(
        self,
        script: Script,
        clock: Clock,
        lead: LeadTurn | None = None,
        redactor: Redactor = NOTHING_SECRET,
    ) -> None:
        self._script = script
        self._clock = clock
        self._lead = lead
        self._redactor = redactor
        self.acceptance = Acceptance(may_use_threads=False)

    def identify(self, models: Collection[str], tools: Collection[str]) -> Setup:
        return Setup(dict.fromkeys(models, f"{MODEL}:{self._script.digest()}"))

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        is_turn = self._lead is not None and self._lead.is_asked(request)
        reply = self._script.reply(
            request.step, request.attempt.part.text, request.attempt.number, is_turn
        )
        if reply is None:
            name = request.attempt.text.rpartition("/")[0].rstrip("/")
            return Failure("error", f"the script has no reply for {name}", model=MODEL)
        if self._lead is not None and is_turn and reply.error is None:
            return await self._hold_turn(reply, self._lead, request, witness)
        if request.allowance is None:
            return await self._give(reply, request, witness)
        # A script knows what its answer takes, so the reservation is exact and nothing is cut.
        reserved = await request.allowance.reserve(CallEstimate(reply.tokens, 0, _price_nothing))
        if isinstance(reserved, NothingLeft):
            return Failure("budget", reserved.says, model=MODEL)
        result = await self._give(reply, request, witness)
        request.allowance.settle(reserved, result.usage)
        return result

    async def _hold_turn(
        self, reply: Reply, lead: LeadTurn, request: AttemptRequest, witness: Witness
    ) -> AttemptResult:
        """As a model would: its calls are carried out, and its words come piece by piece."""
        tools = dict(lead.delegating(request))
        answer = await Conversation(
            request=request,
            witness=witness,
            models=_ScriptedModels(ScriptedModel(reply, self._clock)),
            names=(MODEL,),
            tools=tools,
            tool_calls=ToolCaller(request, witness, tools, self._redactor),
            wanted=WantedForm(),
            instructions=request.instructions,
            redactor=self._redactor,
            memory=lead.memory,
        ).hold(request.prompt)
        if isinstance(answer, Failure):
            return answer
        return await self.acceptance.check(answer, request, witness)

    async def _give(self, reply: Reply, request: AttemptRequest, witness: Witness) -> AttemptResult:
        if reply.delay_seconds:
            await self._clock.sleep_until(self._clock.now() + reply.delay_seconds)
        result = _result(reply)
        if isinstance(result, Failure) or reply.is_raw:
            return result
        # Like the answer of any model, except that no judge is asked about a script.
        answer = Answer(result.output, result.usage, MODEL)
        return await self.acceptance.check(answer, request, witness)


class ScriptedModel:
    """The model of a turn of the lead agent. What it says depends only on what was said before, so an
    interrupted turn goes on where it was."""

    traits = ModelTraits()

    def __init__(self, reply: Reply, clock: Clock) -> None:
        self._reply = reply
        self._clock = clock

    async def ask(
        self, question: ModelQuestion, hear: Callable[[str], None] = lambda piece: None
    ) -> ModelReply:
        if self._reply.delay_seconds:
            await self._clock.sleep_until(self._clock.now() + self._reply.delay_seconds)
        said = 0
        for message in reversed(question.messages):
            if isinstance(message, UserMessage):
                break
            said += isinstance(message, ModelReply)
        if said < len(self._reply.calls):
            calls = (
                RequestedCall(f"call-{said}-{i}", each.tool, each.arguments)
                for i, each in enumerate(self._reply.calls[said])
            )
            return ModelReply(calls=tuple(calls), tokens=TokenCounts(), finish="tool_call")
        text = self._reply.output
        text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
        for piece in re.findall(r"\S*\s*", text):
            hear(piece)
        return ModelReply(text, tokens=TokenCounts(0, self._reply.tokens), finish="stop")

    async def close(self) -> None:
        pass


class _ScriptedModels:
    def __init__(self, model: ScriptedModel) -> None:
        self._model = model

    async def model(self, name: str) -> Model:
        return self._model

    def usd(self, name: str, tokens: TokenCounts) -> float:
        return 0.0


def _price_nothing(input_tokens: int, output_tokens: int) -> float:
    return 0.0


def _result(reply: Reply) -> AttemptResult:
    usage = Usage(output_tokens=reply.tokens, model_calls=1)
    if reply.error is not None:
        return Failure(reply.kind, reply.error, usage, reply.retry_after_seconds, MODEL)
    if reply.output is None or (isinstance(reply.output, str) and not reply.output.strip()):
        return Failure("empty", "the answer is empty", usage, model=MODEL)
    return Success(reply.output, usage, model=MODEL)


def check_names(script: Script, plan: Plan) -> None:
    """Raise InvalidUsage for a reply that names no step or part of the plan: it is a typing error."""
    if script.drafts and plan.name == _DRAFT:
        return  # the replies are for the recipe that is drafted, which does not exist yet
    parts = {str(step.id): _parts(step.work) for step in plan.steps}
    for name in script.replies:
        step, part = _split(name, parts)
        if step not in parts:
            hint = did_you_mean(step, parts) or f"its steps: {listed(parts)}"
            raise InvalidUsage(
                f"the script names '{name}', but {plan.name} has no step '{step}'", hint=hint
            )
        if plan.step(StepId(step)).is_command:
            said = f"the script names '{name}', but step '{step}' runs a command"
            raise InvalidUsage(said, hint="remove that reply: a command runs whatever the model is")
        if isinstance(plan.step(StepId(step)).work, PlannedWorkflow):
            said = f"the script names '{name}', but step '{step}' is a workflow"
            raise InvalidUsage(said, hint=f"name a step in it, such as {step}/…")
        if part and not any(re.fullmatch(known, part) for known in parts[step]):
            known = [each.replace(r"\d+", "N").replace("\\", "") for each in parts[step]]
            hint = did_you_mean(part, known) or f"its parts: {listed(known) or 'none'}"
            raise InvalidUsage(
                f"the script names '{name}', but step '{step}' has no such part", hint=hint
            )


def _split(name: str, steps: Collection[str]) -> tuple[str, str]:
    """The step and the part that a reply names. The id of a step may have slashes."""
    step, part = name, ""
    while step not in steps and "/" in step:
        step, _, last = step.rpartition("/")
        part = f"{last}/{part}" if part else last
    return (step, part) if step in steps else (name, "")


def _parts(work: PlannedWork) -> list[str]:
    """The names of the parts of a step, as regular expressions."""
    match work:
        case PlannedParallel():
            return [re.escape(branch.key) for branch in work.branches]
        case PlannedLoop():
            return [r"try\.\d+", *([r"check\.\d+"] if work.validator else [])]
        case PlannedMap():
            return [r"item\.\d+\.stage\.\d+", *(["reduce"] if work.reducer else [])]
        case PlannedDelegation() | PlannedCondition() | PlannedSwitch() | PlannedWorkflow():
            return []


_read: dict[Path, tuple[object, Script]] = {}
_MOST_READ = 100


def read_script(file: Path | str) -> Script:
    """Read a script: a Path names its file, a str is the script itself."""
    if not isinstance(file, Path):
        return _parse(file)
    now, known = signature(file), _read.get(file)
    if known is not None and known[0] == now:
        return known[1]
    script = _parse(file)
    if now is not None:
        while len(_read) >= _MOST_READ:
            _read.pop(next(iter(_read)), None)
        _read[file] = (now, script)
    return script


def _parse(file: Path | str) -> Script:
    document = read_file(file) if isinstance(file, Path) else read_text(file)
    reading = Reading(document.source, list(document.problems))
    script = _script(document, reading)
    if reading.problems:
        named = f"the script {file}" if isinstance(file, Path) else "the script"
        raise InvalidUsage(f"{named} cannot be used", reading.problems)
    return script


def _script(document: Document, reading: Reading) -> Script:
    root = document.root
    if root is None or SCRIPT.read(root, (), reading) is None:
        return Script()
    assert isinstance(root, MapNode)
    replies = root.entries.get("replies")
    named = replies.entries if isinstance(replies, MapNode) else {}
    default, draft = root.entries.get("default"), root.entries.get("draft")
    return Script(
        _attempts(default, ("default",), reading) if default else (),
        {name: _attempts(node, ("replies", name), reading) for name, node in named.items()},
        _attempts(draft, ("draft",), reading) if draft else (),
    )


def _attempts(node: Node, at: NodePath, reading: Reading) -> tuple[Reply, ...]:
    if isinstance(node, ListNode):
        return tuple(_reply(item, (*at, i), reading) for i, item in enumerate(node.items))
    return (_reply(node, at, reading),)


def _reply(node: Node, at: NodePath, reading: Reading) -> Reply:
    if isinstance(node, ScalarNode):
        return Reply(node.value)
    fields = REPLY.read(node, at, reading)
    if fields is None:
        return Reply()
    answer, calls = fields.node.entries.get("reply"), fields.node.entries.get("calls")
    return Reply(
        output=plain(answer) if answer else "",
        error=fields.get("fail", str),
        kind=cast(FailureKind, fields.get("kind", str) or "error"),
        delay_seconds=fields.get("delay", float) or 0.0,
        tokens=fields.get("tokens", int) or 0,
        retry_after_seconds=fields.get("retry_after", float),
        is_raw=fields.get("raw", bool) or False,
        calls=_calls(calls, (*at, "calls"), reading) if calls else (),
    )


def _calls(node: Node, at: NodePath, reading: Reading) -> tuple[tuple[ScriptedCall, ...], ...]:
    rounds = node.items if isinstance(node, ListNode) else [node]
    return tuple(
        tuple(
            _call(each, at, reading)
            for each in (written.items if isinstance(written, ListNode) else [written])
        )
        for written in rounds
    )


def _call(node: Node, at: NodePath, reading: Reading) -> ScriptedCall:
    fields = CALL.read(node, at, reading)
    arguments = fields.node.entries.get("arguments") if fields is not None else None
    tool = fields.get("tool", str) if fields is not None else None
    return ScriptedCall(tool or "", json.dumps(plain(arguments) if arguments else {}))
