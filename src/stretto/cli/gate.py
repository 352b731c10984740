"""Ask the person at the terminal about steps that await approval.

Nothing is decided by accident: Enter asks again, and Ctrl-C leaves the step as it is.
"""

import os
from dataclasses import dataclass, field, replace

import click

from stretto.assembly.request import PreparedRun
from stretto.assembly.run import user_name
from stretto.assembly.surface import Surface
from stretto.cli.terminal import ask, ask_line, page, say
from stretto.problems.errors import InvalidUsage
from stretto.processes.programs import find_program
from stretto.report.gate import Gate, gate_as_text, gate_of
from stretto.schedule.state import RunState
from stretto.vocabulary.names import StepId

_QUESTION = "[y]es, [n]o, [e]dit, [v]iew, [l]ater"
_HOW_TO_ANSWER = "answer with one of these words, or its letter; a reason may follow yes and no"
_WORDS = {"y": "yes", "n": "no", "e": "edit", "v": "view", "l": "later"}
_MOST_LINES = 12
_END = "."


async def ask_at_gates(
    stretto: Surface, prepared: PreparedRun, state: RunState, postponed: set[StepId]
) -> bool:
    """Whether something was decided, so that the run can go on.

    Steps that the person leaves for later are put into `postponed` and not asked about again.
    The questions block the event loop, which has nothing else to do: nothing of the run is under
    way. Raises click.Abort or KeyboardInterrupt.
    """
    runs = await stretto.engine.runs_of(prepared.project, prepared.accepted)
    has_decided = False
    for step in list(state.awaiting_approval.values()):
        if step.id in postponed:
            continue
        said = _ask(gate_of(state, step))
        if said is None:
            postponed.add(step.id)
            continue
        try:
            await runs.decide(
                prepared.run_id,
                step.id,
                said.is_approved,
                user_name(),
                said.reason,
                said.prompts,
                said.key,
            )
        except InvalidUsage as error:
            # Somebody else has decided meanwhile: that counts, and the run goes on.
            _tell(error.with_hint)
        has_decided = True
    return has_decided


def _tell(text: str) -> None:
    say(text, err=True)  # stdout is for the answer


@dataclass(slots=True)
class _Verdict:
    key: str
    is_approved: bool = False
    reason: str = ""
    prompts: dict[str, str] = field(default_factory=dict)


def _ask(gate: Gate) -> _Verdict | None:
    """None: the person decides later."""
    _tell(f"\n{gate_as_text(gate, _MOST_LINES)}\n")
    said = _Verdict(gate.key)
    while True:
        try:
            word, reason = _answer()
            if word == "view":
                page(gate_as_text(_put_prompts(gate, said.prompts)))
            elif word == "edit":
                _edit(gate, said.prompts)
            elif word in ("yes", "no"):
                said.is_approved = word == "yes"
                said.reason = reason or ("" if said.is_approved else _why())
                return said
            elif word == "later":
                return None
            else:
                _tell(_HOW_TO_ANSWER)
        except (click.Abort, KeyboardInterrupt):
            _tell("\nnothing is decided: it still awaits approval")
            raise


def _put_prompts(gate: Gate, prompts: dict[str, str]) -> Gate:
    parts = (replace(each, prompt=prompts.get(each.part, each.prompt)) for each in gate.parts)
    return replace(gate, parts=tuple(parts))


def _answer() -> tuple[str, str]:
    typed = ask(_QUESTION)
    word, _, reason = typed.partition(" ")
    return _WORDS.get(word.lower()[:1], "") if _is_answer(word) else "", reason.strip()


def _is_answer(word: str) -> bool:
    return any(meant.startswith(word.lower()) for meant in _WORDS.values()) and bool(word)


def _why() -> str:
    return ask("Why not? (Enter: no reason)")


def _edit(gate: Gate, prompts: dict[str, str]) -> None:
    part = _which(gate)
    if part is None:
        _tell("there is no prompt to edit here")
        return
    before = prompts.get(part, next(each.prompt for each in gate.parts if each.part == part))
    after = edit_text(before)
    if after is None or after == before:
        _tell("the prompt is unchanged")
    elif not after.strip():
        _tell("an empty prompt cannot run; the prompt is unchanged")
    else:
        prompts[part] = after
        _tell(f"\nThis would run instead:\n\n{after}\n")


def _which(gate: Gate) -> str | None:
    parts = [each.part for each in gate.parts if not each.is_command]
    if len(parts) <= 1:
        return parts[0] if parts else None
    _tell(f"its prompts: {', '.join(parts)}")
    typed = ask("Which one?")
    return typed if typed in parts else None


def edit_text(text: str, kind: str = "prompt", extension: str = ".md") -> str | None:
    """In the user's editor, else line by line. None: nothing was saved."""
    named = (os.environ.get(name, "").strip() for name in ("VISUAL", "EDITOR"))
    editor = next(filter(None, named), "")
    if editor and find_program(editor.split()[0]):
        # An editor ends a file with a line break; the prompt had none.
        given = text if text.endswith("\n") else f"{text}\n"
        try:
            saved = click.edit(given, editor=editor, extension=extension)
        except (click.ClickException, ValueError) as error:
            # It failed, as vim does at :cq, or its command or its file cannot be read.
            _tell(f"nothing was saved: {error}")
            return None
        return saved.removesuffix("\n") if saved and not text.endswith("\n") else saved
    _tell(f"Write the whole {kind}. A line with a single {_END} ends it (or set EDITOR).")
    lines: list[str] = []
    while (line := ask_line("", "> ")).strip() != _END:
        lines.append(line)
    return "\n".join(lines)
