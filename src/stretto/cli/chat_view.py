"""What a chat shows and asks. In: events of a turn, and how it came out. Out: words on the terminal.

stdout   the answers, word by word on a terminal where somebody talks; or JSON
stderr   what the lead agent delegates, what went wrong, how to go on
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stretto.cli.result import print_answer
from stretto.cli.streams import woken_by_signals
from stretto.cli.terminal import ask, print_json, say, say_piece
from stretto.events.model import (
    Event,
    ModelRetried,
    ModelSpoke,
    PhaseLasted,
    RunResumed,
    RunStarted,
    ToolEnded,
    ToolStarted,
)
from stretto.lead.turn import AwaitedDecision, ChatTurn
from stretto.schedule.state import RunState
from stretto.text.short import counted, describe_call
from stretto.text.visible import one_line

if TYPE_CHECKING:
    from stretto.assembly.chat import Chat

_PROMPT = "> "
_QUESTION = "[y]es, [n]o, [l]ater (yes and no may be followed by a reason)"
_LONGEST = 300


class ChatView:
    """Hears the events of a turn, and prints it when it has ended."""

    def __init__(self, as_json: bool, is_quiet: bool, is_talk: bool) -> None:
        """`is_talk`: somebody reads along. Other answers are rendered, as those of all commands are."""
        self._as_json = as_json
        self._is_quiet = is_quiet or as_json
        is_dumb = os.environ.get("TERM") == "dumb"
        self._is_streamed = is_talk and sys.stdout.isatty() and not is_dumb
        self._reply = ""  # what was shown of the reply that is being said
        self._told: set[str] = set()  # notices and warnings, each said once in a chat
        self.chat: Chat | None = None

    def begin(self) -> None:
        self._reply = ""

    def __call__(self, event: Event, state: RunState) -> None:
        match event:
            case RunStarted() | RunResumed():
                for notice in self.chat.notices if self.chat else ():
                    self._tell(notice)
            case ModelSpoke():
                self._speak(event.text)
            case ModelRetried():
                self._end_line()
                self._say(f"{one_line(event.error, _LONGEST)}; asking again")
            case ToolStarted():
                self._end_line()
                self._say(f"→ {one_line(_call(event), _LONGEST)}")
            case ToolEnded():
                self._end_line()
                if event.verdict != "ok":
                    self._say(f"  {event.tool}: {one_line(_reason(event.message), _LONGEST)}")
            case PhaseLasted() if not event.phase.startswith("calls "):
                self._end_line()
                self._say(f"  {one_line(event.phase, _LONGEST)}")
            case _:
                pass

    def pause(self) -> None:
        """Something else is printed now."""
        self._end_line()

    def finish(self, turn: ChatTurn) -> None:
        if self._as_json:
            print_json(_as_json(turn))
            return
        if turn.ok or turn.text:
            self._print_answer(turn.text)
        else:
            self._end_line()
        for warning in turn.warnings:
            self._tell(f"warning: {warning}")
        if turn.status == "failed":
            say(f"there is no answer: {one_line(turn.error, 1_000)}", err=True)
        elif turn.status == "cancelled":
            say("the turn is cancelled", err=True)
        elif turn.status == "open":
            say(f"interrupted; to go on: stretto chat --resume {turn.chat}", err=True)
        elif turn.status == "waiting":
            _say_awaited(turn)

    def _print_answer(self, text: str) -> None:
        if self._is_streamed and self._reply.strip() == text.strip():
            self._end_line()
            return
        self._end_line()
        print_answer(text)
        sys.stdout.flush()

    def _speak(self, piece: str) -> None:
        if self._is_streamed:
            self._reply += piece
            say_piece(piece)

    def _end_line(self) -> None:
        if self._reply and not self._reply.endswith("\n"):
            say()
        self._reply = ""

    def _tell(self, said: str) -> None:
        if said and said not in self._told:
            self._told.add(said)
            self._say(said)

    def _say(self, said: str) -> None:
        if not self._is_quiet:
            say(said, err=True)


def _call(event: ToolStarted) -> str:
    given = event.arguments
    match event.tool:
        case "task":
            about = given.get("description") or given.get("prompt")
            return f"task {given.get('agent')}: {about}"
        case "task_batch":
            tasks = given.get("tasks")
            return f"task_batch: {counted(len(tasks) if isinstance(tasks, list) else 0, 'task')}"
        case "draft_workflow":
            return f"draft_workflow: {given.get('words')}"
        case "save_workflow":
            return "save_workflow"
        case _:
            return describe_call(event.tool, given)


def _reason(message: str) -> str:
    """Why a call failed, in words; what the model is told is JSON."""
    try:
        return str(json.loads(message)["error"]["message"])
    except (ValueError, TypeError, LookupError):  # another tool's text, or JSON that was cut
        return message


def _as_json(turn: ChatTurn) -> dict[str, object]:
    found: dict[str, object] = {"ok": turn.ok, "chat": turn.chat, "turn": turn.json()}
    if not turn.ok:
        message = turn.error or f"the turn is {turn.status}"
        details = {"hint": f"stretto chat --resume {turn.chat}"}
        found["error"] = {"kind": turn.status, "message": message, "details": details}
    return found


def _say_awaited(turn: ChatTurn) -> None:
    say("the turn waits for you:", err=True)
    for each in turn.awaits:
        say(f"\n{each.shown}\n", err=True)
        if each.key:
            resume = f"stretto chat --resume {turn.chat}"
            say(f"allow exactly this:\n  {resume} --approve {each.key}", err=True)
            say(f"forbid it:\n  {resume} --reject {each.key}", err=True)
        else:
            say(f"allow it (or reject):\n  stretto approve {each.run_id} {each.step}", err=True)
            say(f"then go on:\n  stretto chat --resume {turn.chat}", err=True)


@dataclass(frozen=True, slots=True)
class CallVerdict:
    is_approved: bool
    reason: str


def ask_about_call(awaited: AwaitedDecision) -> CallVerdict | None:
    """None: the person decides later. Enter asks again. Raises click.Abort or KeyboardInterrupt."""
    say(f"\n{awaited.shown}\n", err=True)
    while True:
        word, _, reason = ask(_QUESTION).partition(" ")
        answer = word.lower()
        if answer and "yes".startswith(answer):
            return CallVerdict(True, reason.strip())
        if answer and "no".startswith(answer):
            return CallVerdict(False, reason.strip() or ask("Why not? (Enter: no reason)"))
        if answer and "later".startswith(answer):
            return None


def read_typed(earlier: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """What a person types, until Ctrl-D. Ctrl-C drops the line."""
    _prepare_editing(earlier, names)
    lines: list[str] = []
    while True:
        try:
            with woken_by_signals():
                line = _read_line("… " if lines else _PROMPT)
        except KeyboardInterrupt as error:
            if type(error) is not KeyboardInterrupt:
                raise  # a Terminated: SIGTERM or SIGHUP ends the process
            lines = []
            say(err=True)
            continue
        except EOFError:
            say(err=True)
            return
        lines.append(line.removesuffix("\\"))
        if line.endswith("\\"):
            continue
        text, lines = "\n".join(lines), []
        if text.strip():
            yield text


def _read_line(prompt: str) -> str:
    if sys.stdout.isatty():
        return input(prompt)
    # stdout is redirected, so the prompt goes to stderr.
    say_piece(prompt, err=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


def _prepare_editing(earlier: Sequence[str], names: Sequence[str]) -> None:
    try:
        import readline
    except ImportError:  # a Python without it still reads lines
        return
    for said in earlier:
        readline.add_history(" ".join(said.split()))
    words = sorted({f"/{name}" for name in names})

    def complete(text: str, state: int) -> str | None:
        found = [each for each in words if each.startswith(text)] if text.startswith("/") else []
        return f"{found[state]} " if state < len(found) else None

    readline.set_completer_delims(" \t\n")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")
