"""`stretto batch`: many tasks side by side, no recipe."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import click

from stretto.assembly.request import RunRequest
from stretto.cli.foreground import (
    INTERRUPTED,
    OpenStretto,
    drive_with_progress,
    exit_code,
    prepare,
    print_end,
)
from stretto.cli.options import model_option, permission_option
from stretto.cli.result import ResultOptions, print_result, result_options
from stretto.cli.terminal import print_json
from stretto.lead.tasks import (
    AgentTask,
    batch_as_json,
    batch_inputs,
    batch_recipe,
    read_tasks,
)
from stretto.problems.errors import InvalidUsage
from stretto.report.report import report_of
from stretto.schedule.state import RunState


@click.command("batch")
@click.argument("tasks_file", metavar="FILE|-")
@model_option
@permission_option
@result_options
def command(
    tasks_file: str, model: str | None, permission: str | None, result: ResultOptions
) -> int:
    """Give agents tasks that do not depend on each other, side by side.

    FILE is a YAML or JSON list of {agent, prompt, description}, or one JSON object a line; '-'
    reads stdin. The answers come in the order of the tasks, and a task that fails loses no other.
    It is a run like any other: stretto report, retry and resume know it.
    """
    stretto = OpenStretto()
    tasks = _read(stretto, tasks_file)
    request = RunRequest(
        batch_recipe(tasks), batch_inputs(tasks), model=model, permission=permission
    )
    return asyncio.run(_run(stretto, request, replace(result, is_streamed=False)))


def _read(stretto: OpenStretto, file: str) -> tuple[AgentTask, ...]:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        text = raw.decode("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        hint = "a YAML list of tasks, or JSON lines: {agent, prompt, description}"
        raise InvalidUsage(f"{file} cannot be read: {reason}", hint=hint) from error
    shown = "<stdin>" if file == "-" else file
    project = stretto.project
    return read_tasks(text, shown, project.catalog().agents, project.settings.limits)


async def _run(stretto: OpenStretto, request: RunRequest, result: ResultOptions) -> int:
    async with stretto:
        prepared = await prepare(stretto, request, result)
        state, was_stopped = await drive_with_progress(stretto, prepared, result)
        if result.as_json:
            _print_results(stretto, state, result)
        else:
            await print_end(stretto, state, result, was_stopped)
        return INTERRUPTED if was_stopped else exit_code(state)


def _print_results(stretto: OpenStretto, state: RunState, result: ResultOptions) -> None:
    report = report_of(state, is_interrupted=not state.has_ended, now=stretto.engine.now())
    if result.file is not None:
        print_result(report, replace(result, as_json=False, is_quiet=True))
    print_json(batch_as_json(report))
