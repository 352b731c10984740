"""`stretto resume`: continue runs that were interrupted."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import click

from stretto.assembly.request import RunRequest
from stretto.assembly.surface import Surface
from stretto.cli.foreground import INTERRUPTED, OpenStretto, drive, exit_code, prepare, print_end
from stretto.cli.handles import MOST_ROWS, find_run
from stretto.cli.options import accept_option, model_option
from stretto.cli.result import ResultOptions, result_options
from stretto.cli.terminal import print_json, print_problems, say
from stretto.problems.errors import InvalidUsage, StrettoError
from stretto.problems.render import error_as_json
from stretto.schedule.state import RunState
from stretto.vocabulary.names import RunId


@click.command("resume")
@click.argument("run", required=False)
@model_option
@accept_option
@result_options
def command(run: str | None, model: str | None, accepted: str | None, result: ResultOptions) -> int:
    """Continue a run that was interrupted. Without a RUN: every one of them, oldest first.

    What had ended is never run again; an attempt that was under way follows its step's recovery.
    The settings of the run's own folder count, with the permission and the trust of today.
    """
    marks = frozenset([accepted] if accepted else [])
    return asyncio.run(_resume(run, model, marks, result))


async def _resume(
    run: str | None, model: str | None, accepted: frozenset[str], result: ResultOptions
) -> int:
    async with OpenStretto() as stretto:
        if run is None:
            return await _resume_all(stretto, RunRequest(model=model, accepted=accepted), result)
        found = await find_run(stretto, run, result.as_json)
        history = await stretto.open(found).history()
        if history.state.is_recorded:
            return await _show_finished(stretto, history.state, result)
        request = RunRequest(of=found, is_resumed=True, model=model, accepted=accepted)
        return await drive(stretto, await prepare(stretto, request, result), result)


async def _resume_all(stretto: Surface, options: RunRequest, result: ResultOptions) -> int:
    """The worst code. A run that cannot go on keeps no other from it."""
    code = 0
    for run_id in await _find_interrupted(stretto):
        request = replace(options, of=run_id, is_resumed=True)
        try:
            prepared = await prepare(stretto, request, result)
            code = max(code, await drive(stretto, prepared, result))
        except StrettoError as error:
            say(f"run {run_id} is not resumed: {error.with_hint}", err=True)
            if result.as_json:
                print_json(error_as_json(error))
            else:
                print_problems(error.problems, to_stderr=True)
            code = max(code, error.exit_code)
        if code == INTERRUPTED:
            break
    return code


async def _show_finished(stretto: Surface, state: RunState, result: ResultOptions) -> int:
    """Print what the run gave; no model is needed for that."""
    if not result.as_json:
        again = f"stretto retry {state.run_id} runs it again"
        say(f"run {state.run_id} is finished, there is nothing to resume; {again}", err=True)
    with suppress(OSError):  # its driver may have died while it tidied up
        await (await stretto.engine.runs_of()).sweep()
    await print_end(stretto, state, result)
    return exit_code(state)


async def _find_interrupted(stretto: Surface) -> list[RunId]:
    """The runs that no process drives and that can be continued, oldest first."""
    runs = await stretto.engine.runs_of()
    rows = [row for row in await runs.recent(MOST_ROWS) if runs.is_interrupted(row)]
    # A run that waits for a person was not interrupted: it continues once somebody has decided.
    decided = await runs.addressed()
    found = []
    for row in reversed(rows):
        try:
            history = await runs.history(row.run_id)
            runs.check(history)
        except StrettoError as error:
            say(f"run {row.run_id} is not resumed: {error.with_hint}", err=True)
            continue
        if not history.state.awaiting_approval or row.run_id in decided:
            found.append(row.run_id)
    if not found:
        raise InvalidUsage("no run was interrupted", hint="stretto runs lists all of them")
    return found
