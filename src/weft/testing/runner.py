"""The scripted runner: the port that models use, answered from a script."""

from collections.abc import Collection

from weft.ports.clock import Clock
from weft.ports.runner import AttemptRequest, AttemptResult, Failure, Success, Witness
from weft.testing.script import Reply, Script, digest_of
from weft.vocabulary.setup import Setup
from weft.vocabulary.usage import Usage

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
        if reply.delay_seconds:
            await self._clock.sleep_until(self._clock.now() + reply.delay_seconds)
        return _result(reply)


def _result(reply: Reply) -> AttemptResult:
    usage = Usage(output_tokens=reply.tokens, model_calls=1)
    if reply.error is not None:
        return Failure(reply.kind, reply.error, usage, reply.retry_after_seconds, MODEL)
    if reply.output is None or (isinstance(reply.output, str) and not reply.output.strip()):
        return Failure("empty", "the answer is empty", usage, model=MODEL)
    return Success(reply.output, usage, model=MODEL)
