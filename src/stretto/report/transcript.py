"""What was said and done in each attempt. In: a plan and its events. Out: LogEntries, in order.

Prompts are in no event: they follow from the plan and the events before, so the fold renders them
again. Words, tool calls and their results are as the journal keeps them: shortened, redacted.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from stretto.events.attempts import AttemptId
from stretto.events.model import (
    AttemptCancelled,
    AttemptFailed,
    AttemptStarted,
    AttemptSucceeded,
    CommandEnded,
    Event,
    ModelFailedOver,
    ModelRetried,
    ModelSpoke,
    ToolEnded,
)
from stretto.plan.model import Plan
from stretto.schedule.advance import advance
from stretto.schedule.commands import StartAttempt
from stretto.schedule.state import begin
from stretto.schedule.tool_calls import fault_of
from stretto.templates.render import as_text
from stretto.vocabulary.json_value import loaded

TranscriptKind: TypeAlias = Literal[
    "instructions", "prompt", "words", "tool", "model", "answer", "rejected", "failed", "cancelled"
]


# Of one entry; `stretto logs` shows all of it.
_MOST_CHARACTERS = 4_000
_LEAST_CHARACTERS = 400
_MOST_CHARACTERS_IN_ALL = 4_000_000


@dataclass(frozen=True, slots=True)
class LogEntry:
    at: float
    step: str
    part: str
    attempt: int
    agent: str
    kind: TranscriptKind
    text: str
    verdict: str = ""  # of a tool call: ok, error or refused

    @property
    def place(self) -> tuple[str, str, int]:
        return (self.step, self.part, self.attempt)


class Log:
    """Fed with a run's events from the first one on."""

    def __init__(self, plan: Plan) -> None:
        self._state = begin(plan)
        self._told: dict[AttemptId, StartAttempt] = {}
        self._agents: dict[AttemptId, str] = {}

    def read(self, event: Event) -> Iterator[LogEntry]:
        for command in advance(self._state, event)[1]:
            if isinstance(command, StartAttempt):
                self._told[command.attempt] = command
        for kind, text in self._entries(event):
            if text and isinstance(event, _OF_AN_ATTEMPT):
                id = event.attempt
                place = (id.step, id.part.text, id.number)
                verdict = event.verdict if isinstance(event, ToolEnded) else ""
                yield LogEntry(event.at, *place, self._agents.get(id, ""), kind, text, verdict)

    def _entries(self, event: Event) -> Iterator[tuple[TranscriptKind, str]]:
        match event:
            case AttemptStarted():
                yield from self._begin(event)
            case ModelSpoke():
                yield "words", event.text
            case ModelFailedOver():
                yield (
                    "model",
                    f"{event.model} could not answer, {event.to} was asked: {event.error}",
                )
            case ModelRetried():
                yield "model", f"{event.error}; asked again ({event.retry} of {event.most})"
            case ToolEnded():
                said = fault_of(event) or event.result or f"{event.result_bytes:,} bytes"
                yield (
                    "tool",
                    f"{event.tool} {json.dumps(event.arguments, ensure_ascii=False)}\n{said}",
                )
            case CommandEnded():
                limit = f" (stopped at its limit: {event.limit})" if event.limit else ""
                stderr = f"\n{event.stderr}" if event.stderr else ""
                yield "tool", f"exit code {event.exit_code}{limit}{stderr}"
            case AttemptSucceeded():
                reused = f"(reused from run {event.reused_from})\n" if event.reused_from else ""
                yield "answer", reused + as_text(loaded(event.output))
            case AttemptFailed(kind="validation" | "truncated"):
                yield "rejected", event.error
            case AttemptFailed():
                yield "failed", f"{event.kind}: {event.error}"
            case AttemptCancelled():
                yield "cancelled", "it was told to stop"

    def _begin(self, event: AttemptStarted) -> Iterator[tuple[TranscriptKind, str]]:
        self._agents[event.attempt] = event.agent
        told = self._told.pop(event.attempt, None)
        if told is not None:
            yield "instructions", told.request.instructions
            yield "prompt", told.request.prompt


_OF_AN_ATTEMPT = (
    AttemptStarted
    | AttemptSucceeded
    | AttemptFailed
    | AttemptCancelled
    | ModelSpoke
    | ModelFailedOver
    | ModelRetried
    | ToolEnded
    | CommandEnded
)


class WholeWords:
    """Joins the pieces in which a model spoke. Words that the answer repeats are left out."""

    def __init__(self) -> None:
        self._pieces: dict[tuple[str, str, int], list[LogEntry]] = {}

    def read(self, entry: LogEntry) -> Iterator[LogEntry]:
        if entry.kind == "words":
            self._pieces.setdefault(entry.place, []).append(entry)
            return
        if pieces := self._pieces.pop(entry.place, None):
            words = _join(pieces)
            # An answer that was read as JSON has other blanks than its words.
            if entry.kind != "answer" or not _are_alike(words.text, entry.text):
                yield words
        yield entry

    def rest(self) -> Iterator[LogEntry]:
        """What is said by attempts that have not ended."""
        yield from map(_join, self._pieces.values())


class LastWords:
    """What an attempt has said since its last call or answer: its answer is told again as an event."""

    def __init__(self) -> None:
        self._pieces: dict[tuple[str, str, int], list[LogEntry]] = {}

    def are_repeated_by(self, entry: LogEntry) -> bool:
        """Whether this is an answer that was heard as words. To be asked of every entry, in order."""
        if entry.kind == "words":
            self._pieces.setdefault(entry.place, []).append(entry)
            return False
        pieces = self._pieces.pop(entry.place, None)
        return (
            entry.kind == "answer"
            and pieces is not None
            and _are_alike(_join(pieces).text, entry.text)
        )


def _are_alike(one: str, other: str) -> bool:
    return "".join(one.split()) == "".join(other.split())


def _join(pieces: Sequence[LogEntry]) -> LogEntry:
    return replace(pieces[0], text="".join(piece.text for piece in pieces))


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The beginning of an entry: those of all attempts together may not fit into memory."""

    kind: TranscriptKind
    step: str
    text: str
    left_out: int  # characters
    verdict: str = ""  # of a tool call


def transcripts(plan: Plan, events: Iterable[Event]) -> dict[tuple[str, str, int], list[Excerpt]]:
    """By step, part and attempt."""
    log, found = Log(plan), dict[tuple[str, str, int], list[Excerpt]]()
    share = _MOST_CHARACTERS_IN_ALL // max(1, len(plan.steps))
    share, kept = max(_LEAST_CHARACTERS, min(_MOST_CHARACTERS, share)), 0
    for entry in _whole_entries(log, events):
        # A map has few steps and thousands of attempts.
        most = share if kept < _MOST_CHARACTERS_IN_ALL else _LEAST_CHARACTERS
        kept += min(most, len(entry.text))
        left_out = max(0, len(entry.text) - most)
        excerpt = Excerpt(entry.kind, entry.step, entry.text[:most], left_out, entry.verdict)
        found.setdefault(entry.place, []).append(excerpt)
    return found


def _whole_entries(log: Log, events: Iterable[Event]) -> Iterator[LogEntry]:
    words = WholeWords()
    for event in events:
        for entry in log.read(event):
            yield from words.read(entry)
    yield from words.rest()
