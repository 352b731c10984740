"""`stretto approve` and `stretto reject`: decide about a step that awaits approval, and go on."""

import asyncio
import getpass
import shutil
import sys
from pathlib import Path

import click

from stretto.cli.options import accept_option, json_option, model_option
from stretto.cli.project import history_of, open_project
from stretto.cli.terminal import page, print_json, say
from stretto.documents.regular_file import read_regular
from stretto.execution.history import History
from stretto.problems.errors import InvalidUsage
from stretto.report.gate import gate_as_json, gate_as_text, gate_of
from stretto.templates.render import MOST_CHARACTERS
from stretto.vocabulary.ids import RunId, StepId
from stretto.vocabulary.names import did_you_mean, listed

no_resume_option = click.option(
    "--no-resume", "is_left", is_flag=True, help="Only decide; stretto resume goes on."
)


@click.command("approve")
@click.argument("run")
@click.argument("step")
@click.option(
    "--show", is_flag=True, help="Show what would run and on what grounds; decide nothing."
)
@click.option("--reason", default="", help="Why; kept in the journal.")
@click.option("--edit", metavar="FILE", help="Run this prompt instead; '-' reads stdin.")
@click.option(
    "--part", default="", help="Whose prompt --edit replaces, where the step has several."
)
@click.option("--key", help="Approve only what --show gave this key for.")
@no_resume_option
@model_option
@accept_option
@json_option
def command(
    run: str,
    step: str,
    show: bool,
    reason: str,
    edit: str | None,
    part: str,
    key: str | None,
    is_left: bool,
    model: str | None,
    accepted: str | None,
    as_json: bool,
) -> int:
    """Let a step go on that awaits approval, and go on with its run.

    The approval holds for what would run now: prompts, agents, models, tools and sets. If any of
    that changes before the step starts, it is asked about again.
    """
    history = history_of(open_project(), run)
    if show:
        return _show(history, StepId(step), as_json)
    if part and not edit:
        raise InvalidUsage(
            "--part says whose prompt --edit replaces, and there is no --edit",
            hint="an approval is for the whole step: leave --part out, or add --edit FILE",
        )
    prompts = {_part_of(history, StepId(step), part): _text(edit)} if edit else {}
    asyncio.run(_decide(RunId(run), StepId(step), True, reason, prompts, key))
    return go_on(run, step, "approved", is_left, model, accepted, as_json)


async def _decide(
    run_id: RunId,
    step: StepId,
    is_approved: bool,
    reason: str,
    prompts: dict[str, str],
    key: str | None,
) -> None:
    async with open_project().runs() as runs:
        await runs.decide(run_id, step, is_approved, who(), reason, prompts, key)


def reject(
    run: str,
    step: str,
    reason: str,
    is_left: bool,
    model: str | None,
    accepted: str | None,
    as_json: bool,
) -> int:
    asyncio.run(_decide(RunId(run), StepId(step), False, reason, {}, None))
    return go_on(run, step, "rejected", is_left, model, accepted, as_json)


def go_on(
    run: str,
    step: str,
    decision: str,
    is_left: bool,
    model: str | None,
    accepted: str | None,
    as_json: bool,
) -> int:
    """The run goes on at once: in the process that drives it, or else here."""
    from stretto.cli.resume import resume  # it asks at the terminal, and that needs this module

    if as_json:
        print_json({"ok": True, "run_id": run, "step": step, "decision": decision})
    else:
        say(f"{decision} {step}", err=not is_left)
    is_driven, history = asyncio.run(_standing(RunId(run)))
    if is_driven:
        return 0
    if is_left:
        if not as_json and not history.state.has_ended:
            say(f"nobody drives this run now; it goes on with: stretto resume {run}")
        return 0
    return resume(history, model, accepted, as_json)


async def _standing(run_id: RunId) -> tuple[bool, History]:
    async with open_project().runs() as runs:
        return await runs.is_driven(run_id), await runs.history(run_id)


def _show(history: History, step: StepId, as_json: bool) -> int:
    state = history.state
    found = state.awaiting_approval.get(step)
    if found is None:
        waiting = listed(state.awaiting_approval) or "none"
        hint = (
            did_you_mean(step, state.awaiting_approval) or f"steps that await approval: {waiting}"
        )
        raise InvalidUsage(f"step '{step}' does not await approval", hint=hint)
    gate = gate_of(state, found)
    if as_json:
        print_json(gate_as_json(gate))
        return 0
    text = gate_as_text(gate)
    if sys.stdout.isatty() and text.count("\n") > shutil.get_terminal_size().lines:
        page(text)
    else:
        say(text)
    return 0


def _part_of(history: History, step: StepId, part: str) -> str:
    found = history.state.awaiting_approval.get(step)
    parts = [each.part for each in gate_of(history.state, found).parts] if found else []
    if part or len(parts) <= 1:
        return part or (parts[0] if parts else "")
    raise InvalidUsage(
        f"step '{step}' has {len(parts)} prompts: --part says which one --edit replaces",
        hint=f"its parts: {listed(parts)}",
    )


def _text(file: str) -> str:
    """Byte for byte: line ends are part of a prompt."""
    most = MOST_CHARACTERS
    try:
        raw = sys.stdin.buffer.read(most + 1) if file == "-" else read_regular(Path(file), most)
        text = raw.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidUsage(f"--edit {file} cannot be read: {error}") from error
    if len(raw) > most:
        raise InvalidUsage(f"--edit {file} cannot be read: it has more than {most:,} bytes")
    if "\0" in text:
        raise InvalidUsage(f"--edit {file} cannot be read: it is no text (it has a zero byte)")
    return text


def who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        return ""
