"""`stretto resume`: runs that were cut off go on."""

import asyncio
import os

import click

from stretto.assembly.project import open_runs
from stretto.cli.foreground import drive
from stretto.cli.options import accept_option, json_option, model_option
from stretto.cli.project import project_of
from stretto.cli.terminal import say
from stretto.config.settings import home_of
from stretto.execution.history import History
from stretto.execution.runs import Runs
from stretto.problems.errors import InvalidUsage, PlanNotAccepted, StrettoError
from stretto.vocabulary.ids import RunId


@click.command("resume")
@click.argument("run", required=False)
@model_option
@accept_option
@json_option
def command(run: str | None, model: str | None, accepted: str | None, as_json: bool) -> int:
    """Go on with a run that was cut off. Without a RUN: with every one, oldest first.

    What had ended is never run again; an attempt that was under way follows its step's recovery.
    The settings of the run's own folder count, with the permission and the trust of today.
    """
    histories = asyncio.run(_find(run, frozenset([accepted] if accepted else [])))
    return max(resume(history, model, accepted, as_json) for history in histories)


def resume(history: History, model: str | None, accepted: str | None, as_json: bool) -> int:
    run_id = RunId(history.started.run_id)
    project = project_of(history, accepted)
    permission = "auto" if history.state.has_ended else project.readmit(history)
    return drive(
        project,
        history.state.plan,
        project.model(model) if model else history.started.model,
        as_json,
        lambda runs, runner, listener: runs.resume(run_id, runner, listener, permission),
        permission,
    )


async def _find(run: str | None, accepted: frozenset[str]) -> list[History]:
    async with open_runs(home_of(os.environ), accepted) as runs:
        if run is not None:
            history = await runs.history(RunId(run))
            if not history.state.is_recorded:
                runs.check(history)
            return [history]
        rows = [row for row in await runs.recent(500) if runs.is_interrupted(row)]
        found = await _readable(runs, [row.run_id for row in reversed(rows)])
        # Those that wait for a person were not cut off, and go on once one has decided.
        decided = await runs.addressed()
        cut_off = [h for h in found if not h.state.awaiting_approval or h.started.run_id in decided]
        if not cut_off:
            raise InvalidUsage("no run was cut off", hint="stretto runs lists all of them")
        return cut_off


async def _readable(runs: Runs, run_ids: list[RunId]) -> list[History]:
    found = []
    for run_id in run_ids:
        try:
            history = await runs.history(run_id)
            runs.check(history)
            found.append(history)
        except PlanNotAccepted as error:
            say(f"run {run_id} is left alone: {error.with_hint}", err=True)
        except StrettoError as error:
            say(f"run {run_id} is left alone: {error.message}", err=True)
    return found
