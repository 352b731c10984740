"""One turn of a chat: the recipe that it runs as, the turns before it as messages, and its result.

In: what a person said, and KeptTurns. Out: a recipe of one step, ChatMessages, ChatTurn.

    /brief depth=deep what's new in tea     runs the workflow `brief`: SlashCommand, and its inputs
    //etc/hosts                             says "/etc/hosts": two slashes are no command

Only what a person typed is read as a command, never what a model said. A quotation mark means something
only where a value begins, so that "what's new" needs none.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from msgspec import to_builtins

from stretto.lead.chats import KeptCall, KeptTurn
from stretto.ports.model import ChatMessage, ModelReply, UserMessage
from stretto.problems.errors import InvalidUsage
from stretto.recipe.model import Input
from stretto.text.short import closest, counted, listed, shorten
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import LEAD, is_id

CHAT = "chat"  # the name of the recipe that a turn runs as
_MOST_HISTORY = 60_000  # characters of earlier turns
_LONGEST_ANSWER = 12_000  # of one earlier turn
_PAIR = re.compile(r"(?:(?<=\s)|\A)([A-Za-z0-9][A-Za-z0-9_-]*)=")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ChatCall:
    """Something that the lead agent did in a turn."""

    tool: str  # task, task_batch, run_workflow, save_workflow, draft_workflow or run_draft
    arguments: Mapping[str, Json]
    run_id: str  # of the run that it started; empty: it started none
    ok: bool
    result: str | None  # what the model was told; None: the call has not ended


@dataclass(frozen=True, slots=True)
class AwaitedDecision:
    """What a turn waits for: a person allows a call of the lead agent, or a step of a run."""

    # Stands for the call and its content, for `Chat.approve`. Empty: it is a step, decided about by its run.
    key: str
    shown: str  # what would happen
    run_id: str = ""
    step: str = ""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    id: str  # of the run that the turn is
    chat: str
    number: int  # from 1
    status: str  # complete, failed, cancelled, waiting (for a person) or open (interrupted)
    said: str  # by the person
    text: str  # the answer
    error: str  # why there is none
    calls: tuple[ChatCall, ...]
    usage: Usage  # with that of the runs it started
    awaits: tuple[AwaitedDecision, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The runs that the turn started."""
        return tuple(each.run_id for each in self.calls if each.run_id)

    @property
    def ok(self) -> bool:
        return self.status == "complete"

    def json(self) -> dict[str, Json]:
        return {
            "id": self.id,
            "number": self.number,
            "status": self.status,
            "said": self.said,
            "text": self.text,
            "error": self.error or None,
            "calls": [
                {
                    "tool": each.tool,
                    "arguments": dict(each.arguments),
                    "run_id": each.run_id or None,
                    "ok": each.ok,
                }
                for each in self.calls
            ],
            "run_ids": list(self.run_ids),
            "usage": cast(Json, to_builtins(self.usage)),
            "awaits": [
                {
                    "key": each.key or None,
                    "run_id": each.run_id or None,
                    "step": each.step or None,
                    "shown": each.shown,
                }
                for each in self.awaits
            ],
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class ChatSummary:
    """One line of a list of chats. Times are seconds since the epoch."""

    id: str
    started_at: float
    last_at: float
    turns: int
    title: str  # how it began
    status: str  # of its last turn
    owner: str = ""  # who began it over HTTP


def turn_recipe(number: int) -> dict[str, Json]:
    step: dict[str, Json] = {
        "id": f"turn-{number}",
        "subagent": LEAD,
        "prompt": "{{inputs.message}}",
    }
    return {"name": CHAT, "inputs": {"message": {"type": "string"}}, "steps": [step]}


def trigger_of(turn: KeptTurn) -> str:
    """What the run of a turn, and every run that it starts, has on record about where it comes from."""
    return f"chat {turn.chat}, turn {turn.number}"


def turn_of(kept: KeptTurn, calls: Sequence[KeptCall], awaits: Sequence[AwaitedDecision],
            warnings: Sequence[str] = ()) -> ChatTurn:  # fmt: skip
    made = (ChatCall(e.tool, e.arguments, e.run_id, e.is_ok, e.result) for e in calls)
    return ChatTurn(
        kept.run_id, kept.chat, kept.number, kept.status, kept.said, kept.answer, kept.error,
        tuple(made), kept.usage, tuple(awaits), tuple(warnings),
    )  # fmt: skip


def earlier_messages(turns: Sequence[KeptTurn]) -> tuple[ChatMessage, ...]:
    """What was said before, for the model. Of a long chat the oldest turns are left out, and the
    first message that is left says so."""
    ended = [each for each in turns if each.has_ended]
    kept: list[KeptTurn] = []
    room = _MOST_HISTORY
    for turn in reversed(ended):
        room -= len(turn.said) + min(len(turn.answer), _LONGEST_ANSWER)
        if room < 0 and kept:
            break
        kept.insert(0, turn)
    messages: list[ChatMessage] = []
    left_out = len(ended) - len(kept)
    for place, turn in enumerate(kept):
        note = f"[{counted(left_out, 'earlier turn')} left out]\n\n"
        said = shorten(turn.said, _MOST_HISTORY)
        messages.append(UserMessage(f"{note}{said}" if left_out and not place else said))
        messages.append(ModelReply(_answer(turn)))
    return tuple(messages)


def _answer(turn: KeptTurn) -> str:
    if turn.status == "cancelled":
        return "(The user stopped this turn before it was answered.)"
    if not turn.answer:
        return f"(There was no answer: {turn.error or 'it failed'}.)"
    return shorten(turn.answer, _LONGEST_ANSWER)


@dataclass(frozen=True, slots=True)
class SlashCommand:
    name: str
    rest: str


def read_slash(text: str) -> SlashCommand | None:
    """None: it is something to say. A path such as /etc/hosts is no command."""
    line = text.strip()
    if not line.startswith("/") or line.startswith("//"):
        return None
    if line[1:2].isspace():  # `/ 2` goes on with a sum
        return None
    word = line[1:].split(None, 1)[0] if line[1:] else ""
    if word and not is_id(word):
        return None
    return SlashCommand(word, line[1 + len(word) :].strip())


def plain_text(text: str) -> str:
    """What is said, where it is no command: of two slashes at the beginning one is dropped."""
    return text.replace("//", "/", 1) if text.lstrip().startswith("//") else text


def workflow_inputs(rest: str, declared: Sequence[Input]) -> dict[str, Json]:
    """`key=value` for declared inputs; all other text is the first required one that is not set.

    Raises InvalidUsage.
    """
    names = [each.name for each in declared]
    given: dict[str, Json] = {}
    if (whole := _strip_quotes(rest)) != rest:
        return {_first_unset(declared, ()): whole}
    free, at = "", 0
    while (found := _PAIR.search(rest, at)) is not None:
        key = found[1]
        if key not in names:
            _refuse_slip(key, names)
            free, at = free + rest[at : found.end()], found.end()
            continue
        if key in given:
            raise InvalidUsage(f"input '{key}' is given twice")
        free += rest[at : found.start()]
        given[key], at = _value(rest, found.end(), key)
    free = _strip_quotes((free + rest[at:]).strip())
    if free:
        given[_first_unset(declared, given)] = free
    return given


def _value(rest: str, at: int, key: str) -> tuple[str, int]:
    """The value that begins there, and where it ends."""
    mark = rest[at : at + 1]
    if mark in ("[", "{") and (ends := _json_end(rest, at)) is not None:
        return rest[at:ends], ends
    if mark not in ('"', "'") or not mark:
        end = re.compile(r"\S*").match(rest, at)
        assert end is not None
        return end[0], end.end()
    closing = re.compile(r'(?:\\.|[^"\\])*"' if mark == '"' else r"[^']*'", re.DOTALL)
    found = closing.match(rest, at + 1)
    if found is None:
        hint = f"{key}={mark}…{mark}"
        raise InvalidUsage(f"the quotation mark of '{key}' is not closed", hint=hint)
    text = found[0][:-1]
    return (_ESCAPED.sub(r"\1", text) if mark == '"' else text), found.end()


def _json_end(text: str, at: int) -> int | None:
    """Where the JSON ends that begins there, blanks and all; None: it is none, or goes on in a word."""
    try:
        _, end = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return end if end == len(text) or text[end].isspace() else None


def _strip_quotes(text: str) -> str:
    """Quotation marks around all of the text are no part of it."""
    if len(text) < 2 or text[0] != text[-1] or text[0] not in "\"'":
        return text
    inside = text[1:-1]
    return text if text[0] in inside else inside


def _refuse_slip(key: str, names: Collection[str]) -> None:
    if meant := closest(key, names):
        raise InvalidUsage(
            f"there is no input '{key}'",
            hint=f"did you mean '{meant}'? Quotation marks around all of it make it plain text",
        )


def _first_unset(declared: Sequence[Input], given: Collection[str]) -> str:
    unset = (each.name for each in declared if each.is_required and each.name not in given)
    found = next(unset, None)
    if found is None:
        names = listed([each.name for each in declared]) or "none"
        said = "every required input is set, so it is not clear what the rest of the text is"
        raise InvalidUsage(said, hint=f"its inputs: {names}; write key=value")
    return found
