"""Ask a model to decide the rules that code cannot decide."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from msgspec import structs

from stretto.agents.acceptance import Judge, Judgement
from stretto.agents.call_limits import DEFAULT_RETRIES
from stretto.agents.conversation import Conversation, WantedForm
from stretto.agents.tool_calls import ToolCaller
from stretto.events.model import Happening, ModelSpoke
from stretto.ports.model import Models
from stretto.ports.runner import AttemptRequest, Failure, Witness
from stretto.text.redaction import NOTHING_SECRET
from stretto.text.short import shorten
from stretto.validation.judge import VERDICT_SCHEMA, RuleVerdict, judge_prompt, read_verdicts
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import JUDGE_OFF, ModelSelection


def model_judge(
    selection: ModelSelection,
    models: Models,
    retries: int = DEFAULT_RETRIES,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> Judge:
    """A judge that cannot answer lets nothing pass silently: each rule becomes a warning."""

    async def judge(
        rules: Sequence[str], output: Json, request: AttemptRequest, witness: Witness
    ) -> Judgement:
        name = selection.judge_of(request.model or "")
        if name is None:
            return Judgement(warnings=_not_checked(rules, _why_nobody(selection, request.model)))
        quiet = _Quiet(witness)
        quiet.say(request, f"{name} checks {len(rules)} {'rule' if len(rules) == 1 else 'rules'}")
        asked = structs.replace(request, max_turns=1)
        answer = await Conversation(
            request=asked,
            witness=quiet,
            models=models,
            names=(name,),
            tools={},
            tool_calls=ToolCaller(asked, quiet, {}, NOTHING_SECRET),
            wanted=WantedForm(is_json=True, schema=VERDICT_SCHEMA),
            instructions="",
            redactor=NOTHING_SECRET,
            retries=retries,
            sleep=sleep,
        ).hold(judge_prompt(rules, output))
        if isinstance(answer, Failure):
            return Judgement(warnings=_not_checked(rules, answer.error), usage=answer.usage)
        verdicts = await asyncio.to_thread(read_verdicts, str(answer.output), rules)
        if isinstance(verdicts, str):
            return Judgement(warnings=_not_checked(rules, verdicts), usage=answer.usage)
        return Judgement(_tell(verdicts, quiet, request), usage=answer.usage)

    return judge


def _tell(verdicts: Sequence[RuleVerdict], quiet: "_Quiet", request: AttemptRequest) -> str:
    """Says what was decided, and returns why the answer is not accepted."""
    for each in verdicts:
        quiet.say(request, f"{'met' if each.passed else 'not met'}: {each.rule}: {each.reason}")
    return "\n".join(f"{each.rule}: {each.reason}" for each in verdicts if not each.passed)


def _why_nobody(selection: ModelSelection, answered_by: str | None) -> str:
    if selection.judge == JUDGE_OFF:
        return "judge is off"
    who = f"{answered_by} answered, and it cannot judge" if answered_by else "nobody can judge"
    return f"{who}; name a judge: in stretto.yaml"


def _not_checked(rules: Sequence[str], why: str) -> tuple[str, ...]:
    return tuple(f"the rule '{rule}' was not checked: {why}" for rule in rules)


class _Quiet:
    """A witness that leaves out the judge's own words. What it decides is said in brackets."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness

    def say(self, request: AttemptRequest, text: str) -> None:
        said = f"\n[{shorten(text, 500)}]\n"
        self._witness.note(ModelSpoke(self.now(), request.attempt, said))

    def now(self) -> float:
        return self._witness.now()

    def is_followed(self) -> bool:
        return self._witness.is_followed()

    def note(self, event: Happening) -> None:
        if not isinstance(event, ModelSpoke):
            self._witness.note(event)

    async def record(self, event: Happening) -> None:
        await self._witness.record(event)

    async def confirm(self) -> None:
        await self._witness.confirm()

    def spend(self, usage: Usage) -> None:
        self._witness.spend(usage)
