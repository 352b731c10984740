"""Follow an agent at work. In: what it says, one after the other. Out: events, and how it ended."""

from typing import NamedTuple, assert_never

from msgspec import structs

from stretto.adapters.models.cli.said import (
    Answered,
    CallBegan,
    CallEnded,
    Capped,
    Failed,
    Named,
    Said,
    Spent,
    SpentInAll,
    Spoke,
)
from stretto.agents.speaking import Speaking
from stretto.events.model import ToolEnded
from stretto.ports.runner import AttemptRequest, Failure, Success, Witness
from stretto.text.redaction import Redactor
from stretto.text.short import shorten, shorten_arguments
from stretto.vocabulary.usage import Usage

MOST_ANSWER_CHARACTERS = 4 * 1024 * 1024
_LONGEST_MESSAGE = 500


class _Call(NamedTuple):
    number: int
    began: CallBegan
    at: float


class Hearing:
    def __init__(
        self, request: AttemptRequest, witness: Witness, redactor: Redactor, max_turns: int | None
    ) -> None:
        """`max_turns`: when to say that it is enough; None where the agent counts itself."""
        self._request = request
        self._witness = witness
        self._redactor = redactor
        self._max_turns = max_turns
        self._speaking = Speaking(request, witness, redactor)
        self._made = 0
        self._open: dict[str, _Call] = {}
        self._said: list[str] = []  # since the last call of a tool
        self._said_before: list[str] = []
        self._kept_characters = 0
        self._answer: str | None = None
        self._counted = Usage()
        self._turns = 0
        self._is_its_turn = False
        self._cut = ""  # why the last reply is not whole
        self.model = ""
        self.cap: str | None = None
        self.failure: Failure | None = None
        self.is_over = False  # whatever it still does is of no use

    def hear(self, said: Said) -> None:
        match said:
            case Spoke(text):
                self._cut = ""  # it went on by itself
                self._count_turn()
                self._keep(text)
            case CallBegan(id):
                self._cut = ""
                self._count_turn()
                self._begin(id, said)
            case CallEnded(id):
                self._is_its_turn = False
                self._end(id, said.is_ok, said.size, said.message)
            case Spent(usage):
                self._spend(usage)
            case SpentInAll(usage):
                self._settle(usage)
            case Answered(text):
                self._answer = text
            case Capped(reason, is_truncated=True):
                self._cut = f"{reason}: the answer was cut off"
            case Capped(reason):
                self.cap = reason
            case Failed(failure):
                self.failure, self.is_over = failure, said.is_last
            case Named(model):
                self.model = model
            case _:
                assert_never(said)

    def close(self) -> None:
        self._speaking.tell()
        for id in list(self._open):
            self._end(id, False, 0, "the agent stopped before it ended")
        if not self._counted.model_calls and self._turns:
            self._spend(Usage(model_calls=self._turns))

    @property
    def usage(self) -> Usage:
        return self._counted

    @property
    def text(self) -> str:
        """The answer: what it said last, or all it said if it ended with a call."""
        if self._answer is not None and self._answer.strip():
            return self._answer
        last = "".join(self._said)
        return last if last.strip() else "".join(self._said_before).strip()

    def result(self, name: str, warnings: tuple[str, ...] = ()) -> Success | Failure:
        model = self._model(name)
        if self.cap is not None and self.text.strip():
            capped = f"{self.cap}; the answer is what there was"
            return Success(self.text, self.usage, (*warnings, capped), model)
        if self.cap is not None:
            return Failure(
                "error", f"{self.cap} before there was an answer", self.usage, None, model
            )
        if self.failure is not None:
            return structs.replace(self.failure, usage=self.usage, model=model)
        if self._cut:
            return Failure("truncated", self._cut, self.usage, None, model)
        if not self.text.strip():
            return Failure("empty", "the answer is empty", self.usage, None, model)
        return Success(self.text, self.usage, warnings, model)

    def _model(self, name: str) -> str:
        return f"{name} ({self.model})" if self.model and self.model not in name else name

    def _count_turn(self) -> None:
        if self._is_its_turn:
            return
        self._is_its_turn = True
        self._turns += 1
        if self._max_turns is not None and self._turns > self._max_turns:
            self.cap, self.is_over = "max turns reached", True

    def _keep(self, text: str) -> None:
        self._speaking.hear(text)
        self._kept_characters += len(text)
        if self._kept_characters <= MOST_ANSWER_CHARACTERS:
            self._said.append(text)

    def _begin(self, id: str, began: CallBegan) -> None:
        if id in self._open:
            # Told a second time, and perhaps better.
            kept = self._open[id]
            self._open[id] = _Call(kept.number, began if began.arguments else kept.began, kept.at)
            return
        self._speaking.tell()
        self._said_before += [*self._said, "\n\n"] if self._said else []
        self._said = []
        self._made += 1
        self._open[id] = _Call(self._made, began, self._witness.now())

    def _end(self, id: str, is_ok: bool, size: int, message: str) -> None:
        call = self._open.pop(id, None)
        if call is None:
            return
        request, now = self._request, self._witness.now()
        # First redacted, then shortened: half a secret would not be known as one.
        shown = shorten_arguments(self._redactor.arguments(call.began.arguments))
        self._witness.note(
            ToolEnded(
                now,
                request.step,
                request.part,
                request.attempt,
                call.number,
                shorten(self._redactor.text(call.began.tool or "?"), 100),
                shown,
                "ok" if is_ok else "error",
                size,
                max(0.0, now - call.at),
                "" if is_ok else shorten(self._redactor.text(message), _LONGEST_MESSAGE),
            )
        )

    def _spend(self, usage: Usage) -> None:
        self._counted += usage
        self._witness.spend(usage)
        allowance = self._request.allowance
        if allowance is not None and (why := allowance.overspent(self._counted)):
            self.failure, self.is_over = Failure("budget", why), True

    def _settle(self, in_all: Usage) -> None:
        known = self._counted
        self._spend(
            Usage(
                max(0, in_all.input_tokens - known.input_tokens),
                max(0, in_all.output_tokens - known.output_tokens),
                max(0.0, in_all.usd - known.usd),
                max(0, (in_all.model_calls or self._turns) - known.model_calls),
            )
        )
