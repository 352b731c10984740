"""`stretto chat`: talk with the lead agent, which delegates to agents and workflows."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from stretto.assembly.chat import Chat, ChatOptions
from stretto.cli import streams
from stretto.cli.chat_view import ChatView
from stretto.cli.foreground import (
    FAILED,
    INTERRUPTED,
    WAITING,
    OpenStretto,
    is_terminated,
    open_progress,
    stop_signals,
)
from stretto.cli.options import json_option, model_option, permission_option
from stretto.cli.progress.lines import Lines
from stretto.cli.result import ResultOptions
from stretto.cli.terminal import columns, local_time, print_json, say
from stretto.lead.turn import (
    AwaitedDecision,
    ChatTurn,
    SlashCommand,
    plain_text,
    read_slash,
    workflow_inputs,
)
from stretto.plan.inputs import missing
from stretto.problems.errors import InvalidInputs, InvalidUsage, NotFound, StrettoError
from stretto.problems.render import error_as_text
from stretto.text.short import did_you_mean, listed

if TYPE_CHECKING:
    from stretto.execution.driver import Listener
    from stretto.plan.model import Plan

_CODES = {"complete": 0, "waiting": WAITING, "open": INTERRUPTED}
# Slash commands that are commands of their own, with the words that they stand for.
_LISTS = {
    "agents": ["agents"],
    "workflows": ["list"],
    "playbooks": ["playbooks"],
    "runs": ["runs"],
    "goal": ["goal"],
    "draft": ["draft"],
    "capture": ["capture"],
}
_OWN = ("help", "exit", "cancel")
_HELP = (
    (
        "/NAME key=value text",
        "run a workflow; the text is its first required input that is not set",
    ),
    ("/workflows", "which there are"),
    ('/goal set "…" --verify V', "run again until V passes, such as test:; also /goal list, show"),
    ("/agents  /playbooks  /runs", "what there is"),
    ("/draft first …, then …", "words become a recipe, which you approve; then it runs"),
    ("/capture NAME", "what was delegated in this chat becomes a workflow of that name"),
    ("/cancel", "end the turn that waits for you"),
    ("/exit", "leave; so does Ctrl-D"),
    ("//…", "say something that begins with a slash"),
)
_HELP_OF_LINES = (
    "A line that ends with \\ goes on in the next one. Ctrl-C ends the turn, not the chat."
)


@click.command("chat")
@click.option("-p", "--print", "said", metavar="TEXT", help="One turn: say this, print the answer; '-' reads stdin.")  # fmt: skip
@click.option("--resume", metavar="CHAT", help="Go on with a chat: its id, a part of it, or 'last'.")  # fmt: skip
@click.option("--list", "is_listed", is_flag=True, help="List the chats, and do nothing else.")
@click.option(
    "--approve",
    metavar="KEY",
    help="Allow the call with this key, for which the chat waits, and go on.",
)
@click.option(
    "--reject",
    metavar="KEY",
    help="Forbid the call with this key, for which the chat waits, and go on.",
)
@click.option("--reason", default="", help="Why; the lead agent is told.")
@click.option("--budget", multiple=True, metavar="BUDGET", help="What the chat may cost with all that it starts, such as tokens=200k,usd=5.")  # fmt: skip
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="The answers and nothing else.")
@model_option
@permission_option
@json_option
def command(
    said: str | None,
    resume: str | None,
    is_listed: bool,
    approve: str | None,
    reject: str | None,
    reason: str,
    budget: tuple[str, ...],
    is_quiet: bool,
    model: str | None,
    permission: str | None,
    as_json: bool,
) -> int:
    """Talk with the lead agent, which gives work to agents and runs workflows.

    On a terminal it is a conversation. Where stdin is piped, each line is a turn. /help shows what can be
    typed besides. A chat is kept: --resume goes on with it, also after a crash.
    """
    if is_listed:
        return asyncio.run(_list(as_json))
    if approve is not None and reject is not None:
        raise InvalidUsage("--approve and --reject exclude each other")
    decided = approve or reject
    if decided is not None and said is not None:
        raise InvalidUsage("decide first, then send a message: leave out -p")
    text = sys.stdin.buffer.read().decode("utf-8", "replace") if said == "-" else said
    if text is not None and not text.strip():
        raise InvalidUsage("the text is empty", hint='stretto chat -p "What does Acme sell?"')
    options = ChatOptions(
        resume or ("last" if decided else None), model, permission, _read_budget(budget)
    )
    is_typed = text is None and decided is None and sys.stdin.isatty() and sys.stderr.isatty()
    is_talk = is_typed and not as_json
    with _Session(OpenStretto(), options, ResultOptions(as_json, is_quiet), is_talk) as session:
        if decided is not None:
            return session.decide(decided, approve is not None, reason)
        if text is not None:
            return session.say_once(text)
        return session.talk() if is_talk else session.read_lines()


def _read_budget(written: tuple[str, ...]) -> "dict[str, float] | None":
    if not written:
        return None
    from stretto.cli.goal import read_budget  # few name one

    return dict(read_budget(written) or {})


async def _list(as_json: bool) -> int:
    async with OpenStretto() as stretto:
        found = await stretto.chats()
    if as_json:
        rows = [
            {"id": e.id, "started_at": e.started_at, "turns": e.turns, "title": e.title,
             "status": e.status}
            for e in found
        ]  # fmt: skip
        print_json({"ok": True, "chats": rows})
        return 0
    if not found:
        say("no chats yet; stretto chat begins one")
        return 0
    cells = [("CHAT", "LAST", "TURNS", "STATUS", "BEGAN WITH")]
    for each in found:
        last = local_time(each.last_at)
        cells.append((each.id, last, str(each.turns), each.status, each.title))
    say("\n".join(columns(cells)))
    return 0


def _is_terminated(error: BaseException | None) -> bool:
    """Whether SIGTERM or SIGHUP was the cause, which click hides: it makes an Abort of all that
    interrupts a question."""
    while error is not None and not isinstance(error, streams.Terminated):
        error = error.__context__
    return error is not None


@dataclass(slots=True)
class _Signals:
    is_cancelled: bool = False
    is_stopped: bool = False


class _Session:
    """One process at one chat. The loop runs while a turn does; between turns a person types."""

    def __init__(
        self, stretto: OpenStretto, options: ChatOptions, result: ResultOptions, is_talk: bool
    ) -> None:
        self._stretto = stretto
        self._is_talk = is_talk  # somebody is there to answer
        self._as_json = result.as_json
        self._view = ChatView(result.as_json, result.is_quiet, is_talk)
        shown = ResultOptions(result.as_json, result.is_quiet, is_streamed=False)
        self._chat: Chat = stretto.open_chat(
            options,
            lambda plan: self._show_run(plan, shown),
            self._view,
        )
        self._view.chat = self._chat
        self._runner = asyncio.Runner()
        self._signals = _Signals()
        self._is_drawn = False  # a run of the turn is shown
        self._has_turns = options.resume is not None

    @contextmanager
    def _show_run(self, plan: "Plan", shown: ResultOptions) -> "Iterator[Listener]":
        """A live view has the screen for itself: runs beside it are told in lines."""
        if self._is_drawn and not (shown.is_quiet or shown.as_json):
            yield Lines(plan)
            return
        self._is_drawn = True
        try:
            with open_progress(plan, shown, self._stretto.engine.now) as listener:
                yield listener
        finally:
            self._is_drawn = False

    def __enter__(self) -> "_Session":
        self._runner.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._runner.run(self._stretto.close())
        finally:
            self._runner.close()

    def decide(self, key: str, is_approved: bool, reason: str) -> int:
        """Decide the call that the chat waits for, and let its turn go on."""

        async def work() -> ChatTurn:
            verb = self._chat.approve if is_approved else self._chat.reject
            await verb(key, reason)
            return await self._chat.go_on()

        return self._finish(self._drive(work))

    def say_once(self, text: str) -> int:
        code = self._continue()
        return code if code not in (None, 0, FAILED) else self._turn(text)

    def read_lines(self) -> int:
        """Each line of stdin is a turn, until one needs a person."""
        code = self._continue()
        worst = code or 0
        lines = (line for line in sys.stdin.buffer if line.strip())
        for line in lines if code not in (WAITING, INTERRUPTED) else ():
            code = self._turn(line.decode("utf-8", "replace").strip())
            worst = max(worst, code)
            if code in (WAITING, INTERRUPTED) or not streams.has_reader():
                break
        if code is None:
            hint = 'type at a terminal, pipe lines, or: stretto chat -p "…"'
            raise InvalidUsage("nothing was said", hint=hint)
        return worst

    def talk(self) -> int:
        """Until the person leaves."""
        from stretto.cli.chat_view import read_typed

        say("Ctrl-D leaves, Ctrl-C ends a turn, /help shows more.", err=True)
        earlier = [each.said for each in self._runner.run(self._chat.turns())] \
            if self._has_turns else []  # fmt: skip
        names = [*_LISTS, *_OWN, *(e.name for e in self._stretto.project.workflows.entries())]
        typed = read_typed(earlier, names)
        code = self._catch_mistakes(self._continue)
        while code != INTERRUPTED:
            text = next(typed, None)
            if text is None:
                break
            if (command := read_slash(text)) is not None and command.name in ("exit", "quit"):
                break
            code = self._catch_mistakes(partial(self._turn, text))
        self._leave()
        return INTERRUPTED if code == INTERRUPTED else 0

    def _catch_mistakes(self, work: Callable[[], int | None]) -> int | None:
        """Say what was wrong, and let the chat go on, also after Ctrl-C at a question."""
        try:
            return work()
        except (click.Abort, KeyboardInterrupt) as error:
            if _is_terminated(error):
                raise
            say("\ninterrupted; the chat goes on", err=True)
            return FAILED
        except StrettoError as error:
            say(error_as_text(error), err=True)
            return error.exit_code
        except click.UsageError as error:
            say(error.format_message(), err=True)
            return 2

    def _leave(self) -> None:
        if self._has_turns:
            say(f"to go on: stretto chat --resume {self._chat.id}", err=True)

    def _continue(self) -> int | None:
        """Finish a turn that an earlier process has left. None: there was none."""
        if not self._has_turns:
            return None
        turns = self._runner.run(self._chat.turns())
        if not turns or turns[-1].status not in ("open", "waiting"):
            return None
        said = " ".join(turns[-1].said.split())
        if not self._as_json:
            say(f"going on with: {said[:200]}", err=True)
        return self._finish(self._drive(self._chat.go_on))

    def _turn(self, text: str) -> int:
        if (command := read_slash(text)) is None:
            return self._finish(self._drive(lambda: self._chat.send(plain_text(text))))
        if command.name in _LISTS:
            return self._run_command(command)
        if command.name in ("help", ""):
            say("\n".join(columns(_HELP)))
            say(_HELP_OF_LINES)
            return 0
        if command.name == "cancel":
            return self._finish(self._drive(self._chat.cancel))
        if command.name in ("exit", "quit"):
            return 0
        return self._run_workflow(command, text)

    def _run_workflow(self, command: SlashCommand, text: str) -> int:
        project = self._stretto.project
        entry = project.saved(command.name)
        if entry is None:
            known = [*_LISTS, *_OWN, *(each.name for each in project.workflows.entries())]
            hint = (
                did_you_mean(command.name, known)
                or f"/help shows them; //{command.name} sends it as text"
            )
            raise NotFound(f"there is no /{command.name}", hint=hint)
        inputs = workflow_inputs(command.rest, entry.recipe.inputs)
        name = command.name
        if lacks := [each.name for each in missing(entry.recipe.inputs, inputs)]:
            hint = f"/{name} {' '.join(f'{each}=…' for each in lacks)}"
            raise InvalidInputs(f"/{name} needs {listed(lacks)}", hint=hint)
        return self._finish(
            self._drive(lambda: self._chat.run_workflow(name, inputs, said=text.strip()))
        )

    def _run_command(self, command: SlashCommand) -> int:
        from stretto.cli.commands import commands

        form = ["--json"] if self._as_json else []
        words = [*_LISTS[command.name], *form, *self._words(command)]
        code = commands.main(words, prog_name="stretto", standalone_mode=False)
        if code == INTERRUPTED and self._is_talk and not is_terminated():
            say("the chat goes on", err=True)
            return FAILED
        return code if isinstance(code, int) else 0

    def _words(self, command: SlashCommand) -> list[str]:
        """What is typed after the name, as the command takes it."""
        if command.name == "draft":  # all of it is one text, quotation marks and all
            return [*self._own_options(), "--", command.rest]
        if command.name == "capture":
            if not self._has_turns:
                raise InvalidUsage("this chat has no messages yet: there is nothing to capture")
            return [self._chat.id, *(["--save", command.rest] if command.rest else [])]
        import shlex

        try:
            words = shlex.split(command.rest)
        except ValueError as error:
            raise InvalidUsage(f"/{command.name}: {error}") from None
        if command.name in ("agents", "playbooks") and (not words or words[0].startswith("-")):
            return ["list", *words]
        if command.name == "goal" and words[:1] == ["set"]:
            return ["set", *self._own_options(), *words[1:]]  # typed options override them
        return words

    def _own_options(self) -> list[str]:
        """The chat's own model and permission, for a command that is typed in it."""
        model = ["--model", self._chat.model] if self._chat.model else []
        return ["--permission", self._chat.permission, *model]

    def _drive(self, work: Callable[[], Awaitable[ChatTurn]]) -> ChatTurn:
        async def driven() -> ChatTurn:
            with self._on_signals():
                return await work()

        self._signals = _Signals()
        self._view.begin()
        turn = self._runner.run(driven())
        self._has_turns = True
        while turn.status == "waiting" and self._is_talk and self._ask(turn):
            turn = self._drive(self._chat.go_on)
        return turn

    def _finish(self, turn: ChatTurn) -> int:
        self._view.finish(turn)
        return _CODES.get(turn.status, FAILED)

    @contextmanager
    def _on_signals(self) -> Iterator[None]:
        """In a talk, the first Ctrl-C cancels the turn. Any other signal (a second Ctrl-C, SIGTERM,
        a closed terminal), or Ctrl-C outside a talk, stops the turn so that it can be resumed."""
        loop = asyncio.get_running_loop()
        tasks: list[asyncio.Task[None]] = []

        async def cancel() -> None:
            with suppress(StrettoError):
                await self._chat.cancel("at the terminal")

        async def stop() -> None:
            (await self._stretto.engine.runs_of()).stop()

        def on_signal(number: int) -> None:
            if number == signal.SIGINT and self._is_talk and not self._signals.is_cancelled:
                self._signals.is_cancelled = True
                tasks.append(loop.create_task(cancel()))
            else:
                self._signals.is_stopped = True
                tasks.append(loop.create_task(stop()))

        numbers = stop_signals()
        for number in numbers:
            loop.add_signal_handler(number, on_signal, number)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)
            streams.end_on_signals()

    def _ask(self, turn: ChatTurn) -> bool:
        """Whether something was decided, so that the turn can go on."""
        self._view.pause()
        has_decided = False
        try:
            for awaited in turn.awaits:
                has_decided |= self._ask_about(awaited)
        except (click.Abort, KeyboardInterrupt) as error:
            if _is_terminated(error):
                raise
            say("\nnothing is decided: it still waits", err=True)
        return has_decided

    def _ask_about(self, awaited: AwaitedDecision) -> bool:
        from stretto.cli.chat_view import ask_about_call
        from stretto.cli.gate import ask_at_gates

        if awaited.key:
            verdict = ask_about_call(awaited)
            if verdict is None:
                return False
            verb = self._chat.approve if verdict.is_approved else self._chat.reject
            self._runner.run(verb(awaited.key, verdict.reason))
            return True

        async def at_gate() -> bool:
            run = self._stretto.open(awaited.run_id)
            state = await run.state()
            prepared = await self._stretto.prepare_again(self._chat, awaited.run_id)
            others = {step for step in state.awaiting_approval if step != awaited.step}
            return await ask_at_gates(self._stretto, prepared, state, others)

        return self._runner.run(at_gate())
