"""Decide whether an answer is accepted: of a model, a program, a script or a Python function.

    Answer ─→ not empty, format, schema, rules ─→ the judge, for rules that code cannot decide
           ─→ Success | Failure

This module does not import pydantic-ai, because answers of scripts and of Python functions are
accepted here too, and they need no model. `agents.judge` makes the judge.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct, structs

from stretto.events.model import FailureKind
from stretto.ports.runner import AttemptRequest, AttemptResult, Failure, Success, Witness
from stretto.validation.answer import Accepted, AnswerCheck, NotAccepted, check_answer, check_value
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json

_SMALL_ANSWER = 10_000  # characters; checking a smaller answer is faster than starting a thread


class Answer(Struct, frozen=True):
    output: Json  # a text is read as `format` and schema ask; any other value is checked as it is
    usage: Usage
    model: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    failed: str = ""  # why the answer is not accepted; empty: it is accepted
    warnings: tuple[str, ...] = ()
    usage: Usage = Usage()


# Decides the rules that code could not decide about this output. `model` of the request is whoever
# gave the answer.
Judge: TypeAlias = Callable[[Sequence[str], Json, AttemptRequest, Witness], Awaitable[Judgement]]


class Acceptance:
    def __init__(self, judge: Judge | None = None, *, may_use_threads: bool = True) -> None:
        """Under a virtual clock no thread may be used: time would go on while it works."""
        self._judge = judge
        self._may_use_threads = may_use_threads

    async def check(
        self, answer: Answer, request: AttemptRequest, witness: Witness
    ) -> AttemptResult:
        checked = await self._check(answer.output, request)
        if isinstance(checked, NotAccepted):
            # If no answer could pass, the model is not asked again.
            kind = checked.kind if checked.can_retry else "refused"
            return _not_accepted(kind, checked.reason, answer.usage, answer)
        asked = structs.replace(request, model=answer.model)
        judgement = await self._judgement(checked, asked, witness)
        usage = answer.usage + judgement.usage
        if judgement.failed:
            return _not_accepted("validation", judgement.failed, usage, answer)
        warnings = (*answer.warnings, *judgement.warnings)
        return Success(checked.output, usage, warnings, answer.model)

    async def _check(self, output: Json, request: AttemptRequest) -> AnswerCheck:
        is_small = isinstance(output, str) and len(output) <= _SMALL_ANSWER
        if not self._may_use_threads or (is_small and not request.schema):
            return _check(output, request)
        # How long checking takes depends on the answer, and other attempts wait for the loop.
        return await asyncio.to_thread(_check, output, request)

    async def _judgement(
        self, checked: Accepted, request: AttemptRequest, witness: Witness
    ) -> Judgement:
        rules = checked.undecided
        if not rules:
            return Judgement()
        if self._judge is None:
            return Judgement(warnings=tuple(f"the rule '{rule}' was not checked" for rule in rules))
        return await self._judge(rules, checked.output, request, witness)


def _check(output: Json, request: AttemptRequest) -> AnswerCheck:
    if isinstance(output, str):
        return check_answer(output, request.format, request.schema, request.rules)
    return check_value(output, request.schema, request.rules)


def _not_accepted(kind: FailureKind, why: str, usage: Usage, answer: Answer) -> Failure:
    return Failure(kind, why, usage, model=answer.model, warnings=answer.warnings)
