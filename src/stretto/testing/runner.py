"""The scripted runner: the port that models use, answered from a script."""

from collections.abc import Collection
from dataclasses import replace

from stretto.ports.allowance import CallEstimate, NothingLeft
from stretto.ports.clock import Clock
from stretto.ports.runner import AttemptRequest, AttemptResult, Failure, Success, Witness
from stretto.testing.script import Reply, Script, digest_of
from stretto.validation.validate import NotAccepted, check_answer, check_value
from stretto.vocabulary.setup import Setup
from stretto.vocabulary.usage import Usage

MODEL = "scripted"


class ScriptedRunner:
    def __init__(self, script: Script, clock: Clock) -> None:
        self._script = script
        self._clock = clock

    def identify(self, models: Collection[str], tools: Collection[str]) -> Setup:
        return Setup(dict.fromkeys(models, f"{MODEL}:{digest_of(self._script)}"))

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        reply = self._script.reply(request.step, request.part, request.attempt)
        if reply is None:
            name = f"{request.step}/{request.part}" if request.part else request.step
            return Failure("error", f"the script has no reply for {name}", model=MODEL)
        if request.allowance is None:
            return await self._replied(reply, request)
        # A script knows what its answer takes: all of that is reserved, and nothing can be cut.
        reserved = await request.allowance.reserve(CallEstimate(reply.tokens, 0, _is_free))
        if isinstance(reserved, NothingLeft):
            return Failure("budget", reserved.says, model=MODEL)
        result = await self._replied(reply, request)
        request.allowance.settle(reserved, result.usage)
        return result

    async def _replied(self, reply: Reply, request: AttemptRequest) -> AttemptResult:
        if reply.delay_seconds:
            await self._clock.sleep_until(self._clock.now() + reply.delay_seconds)
        result = _result(reply)
        if isinstance(result, Failure) or reply.is_raw:
            return result
        return _validated(result, request)


def _is_free(input_tokens: int, output_tokens: int) -> float:
    return 0.0


def _result(reply: Reply) -> AttemptResult:
    usage = Usage(output_tokens=reply.tokens, model_calls=1)
    if reply.error is not None:
        return Failure(reply.kind, reply.error, usage, reply.retry_after_seconds, MODEL)
    if reply.output is None or (isinstance(reply.output, str) and not reply.output.strip()):
        return Failure("empty", "the answer is empty", usage, model=MODEL)
    return Success(reply.output, usage, model=MODEL)


def _validated(given: Success, request: AttemptRequest) -> AttemptResult:
    """As the answer of any model is, but for the judge: nobody asks one about a script."""
    output = given.output
    if isinstance(output, str):
        checked = check_answer(output, request.format, request.schema, request.rules)
    else:
        checked = check_value(output, request.schema, request.rules)
    if isinstance(checked, NotAccepted):
        kind = checked.kind if checked.is_mendable else "refused"
        return Failure(kind, checked.reason, given.usage, model=given.model)
    warnings = tuple(f"nobody checked the rule '{rule}'" for rule in checked.undecided)
    return replace(given, output=checked.output, warnings=warnings)
