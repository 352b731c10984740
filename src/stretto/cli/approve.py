"""`stretto approve`: approve a step that awaits approval, and continue its run."""

import asyncio
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import click

from stretto.assembly.request import RunRequest
from stretto.cli.foreground import OpenStretto, drive, prepare
from stretto.cli.handles import find_asking
from stretto.cli.options import accept_option, json_option, model_option, run_before
from stretto.cli.result import ResultOptions
from stretto.cli.terminal import page, print_json, say
from stretto.documents.regular_file import read_regular
from stretto.problems.errors import InvalidUsage
from stretto.report.gate import gate_as_json, gate_as_text, gate_of
from stretto.schedule.state import RunState
from stretto.templates.render import MOST_CHARACTERS
from stretto.text.short import did_you_mean, listed
from stretto.vocabulary.names import RunId, StepId

no_resume_option = click.option(
    "--no-resume", "is_left", is_flag=True, help="Only decide; stretto resume continues the run."
)


@click.command("approve")
@run_before("STEP")
@click.argument("step", metavar="STEP", required=False)
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
    step: str | None,
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
    """Approve a step that awaits approval, and continue its run.

    The approval holds for what would run now: prompts, agents, models, tools and sets. If any of
    that changes before the step starts, it is asked about again.
    """
    handle, named = (run, step) if step is not None else (None, run)
    decision = GateDecision(handle, named, "approved", reason, is_left, model, accepted, as_json)
    return asyncio.run(_approve(decision, show, edit, part, key))


@dataclass(frozen=True, slots=True)
class GateDecision:
    run: str | None  # as it was written
    step: str
    verdict: str  # approved or rejected
    reason: str
    is_left: bool  # the run is not resumed here
    model: str | None
    accepted: str | None
    as_json: bool
    run_id: str = ""


async def with_run(stretto: OpenStretto, decision: GateDecision) -> GateDecision:
    run, step = await find_asking(stretto, decision.run, decision.step, decision.as_json)
    return replace(decision, run_id=run, step=step)


async def _approve(
    decision: GateDecision, show: bool, edit: str | None, part: str, key: str | None
) -> int:
    async with OpenStretto() as stretto:
        decision = await with_run(stretto, decision)
        run, step = stretto.open(decision.run_id), StepId(decision.step)
        state = await run.state()
        if show:
            return _show(state, step, decision.as_json)
        if part and not edit:
            raise InvalidUsage(
                "--part says whose prompt --edit replaces, and there is no --edit",
                hint="an approval is for the whole step: leave --part out, or add --edit FILE",
            )
        prompts = {_part_of(state, step, part): _read_prompt(edit)} if edit else None
        await run.approve(step, decision.reason, edit=prompts, key=key)
        return await go_on(stretto, decision)


async def go_on(stretto: OpenStretto, decision: GateDecision) -> int:
    """Continue the run at once: in the process that drives it, or else here."""
    as_json = decision.as_json
    if as_json:
        said = {"run_id": decision.run_id, "step": decision.step, "decision": decision.verdict}
        print_json({"ok": True, **said})
    else:
        say(f"{decision.verdict} {decision.step}", err=not decision.is_left)
    run = stretto.open(decision.run_id)
    if await run.is_driven():
        return 0
    if decision.is_left:
        if not as_json and not (await run.state()).has_ended:
            say(f"no process drives this run; continue it with: stretto resume {decision.run_id}")
        return 0
    request = RunRequest(
        of=RunId(decision.run_id),
        is_resumed=True,
        model=decision.model,
        accepted=frozenset([decision.accepted] if decision.accepted else []),
    )
    result = ResultOptions(as_json)
    return await drive(stretto, await prepare(stretto, request, result), result)


def _show(state: RunState, step: StepId, as_json: bool) -> int:
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


def _part_of(state: RunState, step: StepId, part: str) -> str:
    found = state.awaiting_approval.get(step)
    parts = [each.part for each in gate_of(state, found).parts] if found else []
    if part or len(parts) <= 1:
        return part or (parts[0] if parts else "")
    raise InvalidUsage(
        f"step '{step}' has {len(parts)} prompts: --part says which one --edit replaces",
        hint=f"its parts: {listed(parts)}",
    )


def _read_prompt(file: str) -> str:
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
