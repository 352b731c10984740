"""`stretto task`: one agent, one task, no recipe."""

import asyncio
import sys

import click

from stretto.assembly.request import RunRequest
from stretto.cli.foreground import OpenStretto, drive, prepare
from stretto.cli.options import model_option, permission_option
from stretto.cli.result import ResultOptions, result_options
from stretto.lead.tasks import task_recipe
from stretto.problems.errors import InvalidUsage, NotFound
from stretto.text.short import did_you_mean


@click.command("task")
@click.argument("agent")
@click.argument("prompt")
@model_option
@permission_option
@result_options
def command(
    agent: str, prompt: str, model: str | None, permission: str | None, result: ResultOptions
) -> int:
    """Give one agent one task: a run of one step. '-' as the PROMPT reads it from stdin."""
    told = sys.stdin.buffer.read().decode("utf-8", "replace") if prompt == "-" else prompt
    if not told.strip():
        raise InvalidUsage("the prompt is empty", hint='stretto task writer "Say hello."')
    stretto = OpenStretto()
    agents = stretto.project.catalog().agents
    if agent not in agents:
        hint = did_you_mean(agent, agents) or "stretto agents lists them"
        raise NotFound(f"there is no agent '{agent}'", hint=hint)
    request = RunRequest(task_recipe(agent), {"prompt": told}, model=model, permission=permission)
    return asyncio.run(_run(stretto, request, result))


async def _run(stretto: OpenStretto, request: RunRequest, result: ResultOptions) -> int:
    async with stretto:
        return await drive(stretto, await prepare(stretto, request, result), result)
