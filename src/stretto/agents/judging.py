"""Rules that code cannot decide go to a judge. In: rules and an answer. Out: Judgement."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from stretto.agents.calling import Calling
from stretto.agents.conversation import Conversation, Wanted
from stretto.agents.provider_retry import DEFAULT_RETRIES
from stretto.events.model import Happening, ModelSpoke
from stretto.ports.model import Models
from stretto.ports.runner import AttemptRequest, Failure, Witness
from stretto.text.redaction import NOTHING_SECRET
from stretto.validation.judge import VERDICT_SCHEMA, judge_prompt, read_verdicts
from stretto.vocabulary.usage import Usage
from stretto.vocabulary.values import Json


@dataclass(frozen=True, slots=True)
class Judgement:
    failed: str = ""  # why the answer is not accepted; empty: it is
    warnings: tuple[str, ...] = ()
    usage: Usage = Usage()


async def judged(
    judge: str,
    models: Models,
    rules: Sequence[str],
    output: Json,
    request: AttemptRequest,
    witness: Witness,
    retries: int = DEFAULT_RETRIES,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> Judgement:
    """A judge that cannot answer passes nothing in silence: each rule is then a warning."""
    quiet = _Quiet(witness)
    asked = replace(request, max_turns=1)
    answer = await Conversation(
        request=asked,
        witness=quiet,
        models=models,
        names=(judge,),
        tools={},
        calling=Calling(asked, quiet, {}, NOTHING_SECRET),
        wanted=Wanted(is_json=True, schema=VERDICT_SCHEMA),
        instructions="",
        redactor=NOTHING_SECRET,
        retries=retries,
        sleep=sleep,
    ).hold(judge_prompt(rules, output))
    if isinstance(answer, Failure):
        return Judgement(warnings=_unjudged(rules, answer.error), usage=answer.usage)
    verdicts = await asyncio.to_thread(read_verdicts, answer.text, rules)
    if isinstance(verdicts, str):
        return Judgement(warnings=_unjudged(rules, verdicts), usage=answer.usage)
    failed = [f"{each.rule}: {each.reason}" for each in verdicts if not each.passed]
    return Judgement("\n".join(failed), usage=answer.usage)


def _unjudged(rules: Sequence[str], why: str) -> tuple[str, ...]:
    return tuple(f"nobody checked the rule '{rule}': {why}" for rule in rules)


class _Quiet:
    """What a judge says is not what the subagent says."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness

    def now(self) -> float:
        return self._witness.now()

    def note(self, event: Happening) -> None:
        if not isinstance(event, ModelSpoke):
            self._witness.note(event)

    async def record(self, event: Happening) -> None:
        await self._witness.record(event)

    async def confirm(self) -> None:
        await self._witness.confirm()

    def spend(self, usage: Usage) -> None:
        self._witness.spend(usage)
