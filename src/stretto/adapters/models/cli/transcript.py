"""What an agent program tells of its work, and the transcript that is made of it.

Every CLI prints lines of its own; each is read into AgentEvents. A TranscriptRecorder takes them one
after the other, journals them, counts tokens and turns, and knows at the end what the result is.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, assert_never

from msgspec import structs

from stretto.agents.live_events import SpeechBuffer
from stretto.events.model import ToolEnded
from stretto.ports.runner import AttemptRequest, Failure, Success, Witness
from stretto.text.redaction import Redactor
from stretto.text.short import shorten, shorten_arguments
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json

MOST_ANSWER_CHARACTERS = 4 * 1024 * 1024
_LONGEST_MESSAGE = 500
_LONGEST = 2_000
_BUSY = frozenset({408, 429, 502, 503, 504, 529})
_NOT_LOGGED_IN = frozenset({401, 403})
_STATUS = re.compile(r"\b(?:status|code|error)\b\D{0,12}\b([45]\d\d)\b|\((4\d\d|5\d\d)\)", re.I)
_BUSY_WORDS = re.compile(
    r"rate.?limit|too many requests|overloaded|quota|usage limit|RESOURCE_EXHAUSTED|UNAVAILABLE"
    r"|stream disconnected|failed to lookup address|connection (?:error|refused)|ECONNREFUSED",
    re.I,
)
_LOGIN_WORDS = re.compile(
    r"not logged in|please (?:run )?/?log ?in|log ?in again|unauthori[sz]ed|authenticat"
    r"|invalid (?:x-)?api.?key|api.?key (?:is |was )?(?:missing|not|required)|auth method"
    r"|specify the \w+_API_KEY|no provider configured",
    re.I,
)
_LATER = re.compile(
    r"(?:retry|again|reset)[^\d\n]{0,24}?(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|sec|seconds?"
    r"|m|min|minutes?|h|hours?)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of a reply."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    id: str
    tool: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class CallEnded:
    id: str
    is_ok: bool
    size: int
    message: str = ""  # how it failed


@dataclass(frozen=True, slots=True)
class UsageDelta:
    """The usage of one more call of a model."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """The CLI's own total. Where it is more than was counted until then, the rest is added."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    text: str


@dataclass(frozen=True, slots=True)
class LimitReached:
    """The agent stopped at a limit. What it has said until then is kept."""

    reason: str
    is_truncated: bool = False  # in the middle of its answer, which is then of no use


@dataclass(frozen=True, slots=True)
class AgentFailed:
    failure: Failure
    is_last: bool = False  # end the agent: its retries would fail too


@dataclass(frozen=True, slots=True)
class Finished:
    """The agent says that it is done. Without that, nobody can tell whether its answer is whole."""


@dataclass(frozen=True, slots=True)
class ModelNamed:
    """The model that answers, as its provider calls it."""

    model: str


AgentEvent: TypeAlias = (
    TextDelta
    | CallStarted
    | CallEnded
    | UsageDelta
    | UsageTotal
    | FinalAnswer
    | LimitReached
    | AgentFailed
    | Finished
    | ModelNamed
)


class _Call(NamedTuple):
    number: int
    began: CallStarted
    at: float


class TranscriptRecorder:
    def __init__(
        self, request: AttemptRequest, witness: Witness, redactor: Redactor, max_turns: int | None
    ) -> None:
        """`max_turns`: after how many turns it is ended; None: the agent counts them itself."""
        self._request = request
        self._witness = witness
        self._redactor = redactor
        self._max_turns = max_turns
        self._speech = SpeechBuffer(request, witness, redactor)
        self._made = 0
        self._open: dict[str, _Call] = {}
        self._said: list[str] = []  # since the last call of a tool
        self._said_before: list[str] = []
        self._kept_characters = 0
        self._left_out = 0  # characters of what it said since its last call
        self._answer: str | None = None
        self._counted = Usage()
        self._turns = 0
        self._is_its_turn = False
        self._cut = ""  # why the last reply is not whole
        self._has_finished = False
        self.model = ""
        self.cap: str | None = None
        self.failure: Failure | None = None
        self.is_over = False  # whatever the agent still does is of no use

    def record(self, event: AgentEvent) -> None:
        match event:
            case TextDelta(text):
                self._cut = ""  # the agent went on by itself
                self._count_turn()
                self._keep(text)
            case CallStarted(id):
                self._cut = ""
                self._count_turn()
                self._begin(id, event)
            case CallEnded(id):
                self._is_its_turn = False
                self._end(id, event.is_ok, event.size, event.message)
            case UsageDelta(usage):
                self._spend(usage)
            case UsageTotal(usage):
                self._settle(usage)
            case FinalAnswer(text):
                self._answer = text
            case LimitReached(reason, is_truncated=True):
                self._cut = f"{reason}: the answer was cut off"
            case LimitReached(reason):
                self.cap = reason
            case AgentFailed(failure):
                self.failure, self.is_over = failure, event.is_last
            case Finished():
                self._has_finished = True
            case ModelNamed(model):
                self.model = model
            case _:
                assert_never(event)

    def close(self) -> None:
        self._speech.flush()
        for id in list(self._open):
            self._end(id, False, 0, "the agent stopped before it ended")
        if not self._counted.model_calls and self._turns:
            self._spend(Usage(model_calls=self._turns))

    @property
    def usage(self) -> Usage:
        return self._counted

    @property
    def text(self) -> str:
        """The answer: the one that the agent calls final, else what it said after its last call,
        else all that it had said before."""
        if self._answer is not None and self._answer.strip():
            return self._answer
        last = "".join(self._said)
        return last if last.strip() else "".join(self._said_before).strip()

    def result(self, name: str, warnings: tuple[str, ...] = ()) -> Success | Failure:
        model = self._model(name)
        if self.cap is not None and self.text.strip():
            capped = f"{self.cap}; the answer so far was kept"
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
        return Success(self.text, self.usage, (*warnings, *self._doubts(name)), model)

    def _doubts(self, name: str) -> Iterator[str]:
        """Why its answer may not be what was asked for, though it ended well."""
        if not self._has_finished:
            yield f"{name} ended without saying that it was done, so its answer may not be whole"
        is_final = self._answer is not None and self._answer.strip()
        if self._left_out and not is_final:
            yield f"the last {self._left_out:,} characters of its answer were left out: it is too long"
        if not is_final and not "".join(self._said).strip():
            yield f"{name} ended with a tool call: its answer is what it had said before"

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
        self._speech.add(text)
        room = MOST_ANSWER_CHARACTERS - self._kept_characters
        if len(text) > room and self._said_before:
            # What it said before its last call is not its answer, unless it says nothing more.
            room += sum(map(len, self._said_before))
            self._said_before = []
        kept = text[: max(0, room)]
        self._left_out += len(text) - len(kept)
        self._said.append(kept)
        self._kept_characters = MOST_ANSWER_CHARACTERS - room + len(kept)

    def _begin(self, id: str, began: CallStarted) -> None:
        if id in self._open:
            # The same call is reported again, perhaps with its arguments.
            kept = self._open[id]
            self._open[id] = _Call(kept.number, began if began.arguments else kept.began, kept.at)
            return
        self._speech.flush()
        self._said_before += [*self._said, "\n\n"] if self._said else []
        self._said, self._left_out = [], 0
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


def failure(
    who: str,
    words: str,
    login: str,
    status: int | None = None,
    retry_after_seconds: float | None = None,
) -> Failure:
    words = words.strip()[-_LONGEST:] or "it gave no reason"
    status = status or _status_in(words)
    later = retry_after_seconds if retry_after_seconds is not None else _later_in(words)
    if status in _NOT_LOGGED_IN or (status is None and _LOGIN_WORDS.search(words)):
        return Failure("permanent", f"{who} is not logged in: {words} ({login})")
    if status in _BUSY or (status is None and _BUSY_WORDS.search(words)):
        return Failure("unavailable", f"{who}: {words}", retry_after_seconds=later)
    return Failure("error", f"{who}: {words}")


def _status_in(words: str) -> int | None:
    found = _STATUS.search(words)
    return int(found[1] or found[2]) if found else None


def _later_in(words: str) -> float | None:
    found = _LATER.search(words)
    if found is None:
        return None
    unit = found[2].lower()
    factor = 0.001 if unit.startswith(("ms", "mil")) else {"s": 1, "m": 60, "h": 3600}[unit[0]]
    return float(found[1]) * factor
