"""`stretto reject`: reject a step that awaits approval, and continue its run."""

import asyncio

import click

from stretto.cli.approve import GateDecision, go_on, no_resume_option, with_run
from stretto.cli.foreground import OpenStretto
from stretto.cli.options import accept_option, json_option, model_option, run_before


@click.command("reject")
@run_before("STEP")
@click.argument("step", metavar="STEP", required=False)
@click.option("--reason", default="", help="Why; kept in the journal.")
@no_resume_option
@model_option
@accept_option
@json_option
def command(
    run: str,
    step: str | None,
    reason: str,
    is_left: bool,
    model: str | None,
    accepted: str | None,
    as_json: bool,
) -> int:
    """Reject a step that awaits approval. Its failure policy decides what follows, at once."""
    handle, named = (run, step) if step is not None else (None, run)
    decision = GateDecision(handle, named, "rejected", reason, is_left, model, accepted, as_json)
    return asyncio.run(_reject(decision))


async def _reject(decision: GateDecision) -> int:
    async with OpenStretto() as stretto:
        decision = await with_run(stretto, decision)
        await stretto.open(decision.run_id).reject(decision.step, decision.reason)
        return await go_on(stretto, decision)
