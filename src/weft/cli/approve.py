"""`weft approve` and `weft reject`: a person's word on a step that waits for it."""

import asyncio
import getpass

import click

from weft.cli.opening import open_weft
from weft.cli.options import json_option
from weft.cli.printing import print_json, say
from weft.vocabulary.ids import RunId, StepId


@click.command("approve")
@click.argument("run")
@click.argument("step")
@json_option
def command(run: str, step: str, as_json: bool) -> None:
    """Let a step go on that awaits approval."""
    decide(run, step, True, "", as_json)


def decide(run: str, step: str, is_allowed: bool, reason: str, as_json: bool) -> None:
    is_driven = asyncio.run(_decide(RunId(run), StepId(step), is_allowed, reason))
    word = "approved" if is_allowed else "rejected"
    if as_json:
        print_json({"ok": True, "run_id": run, "step": step, "decision": word})
        return
    say(f"{word} {step}")
    if not is_driven:
        say(f"nobody drives this run now; it goes on with: weft resume {run}")


async def _decide(run_id: RunId, step: StepId, is_allowed: bool, reason: str) -> bool:
    async with open_weft().runs() as runs:
        await runs.decide(run_id, step, is_allowed, who(), reason)
        return await runs.is_driven(run_id)


def who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        return ""
