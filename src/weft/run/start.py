"""Start a run and see it to its end. In: Plan, inputs, a store, a runner. Out: RunState."""

import os
import secrets
import time
from collections.abc import Mapping

from weft.events.model import RunStarted
from weft.plan.codec import plan_to_json
from weft.plan.model import Plan
from weft.ports.clock import Clock
from weft.ports.journal import Journal
from weft.ports.runner import Runner
from weft.run.driver import Driver, Listener
from weft.run.journaling import RunJournal
from weft.schedule.state import RunState, begin
from weft.vocabulary.ids import RunId
from weft.vocabulary.values import Json

_LEASE_SECONDS = 30.0


def new_run_id() -> RunId:
    """Sorts by time, reads aloud, and no two are alike: `20261115-214107-7f3a9c`."""
    return RunId(f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(3)}")


async def start_run(
    plan: Plan,
    inputs: Mapping[str, Json],
    store: Journal,
    runner: Runner,
    clock: Clock,
    listener: Listener | None = None,
    run_id: RunId | None = None,
) -> RunState:
    run_id = run_id or new_run_id()
    fence = await store.lease(run_id, f"pid {os.getpid()}", _LEASE_SECONDS)
    try:
        journal = RunJournal(store, run_id, fence)
        driver = Driver(begin(plan), journal, runner, clock, listener)
        return await driver.drive(
            RunStarted(
                at=clock.now(),
                run_id=run_id,
                workflow=plan.name,
                digest=plan.digest,
                plan=plan_to_json(plan),
                inputs=dict(inputs),
                seed=secrets.randbits(48),
            )
        )
    finally:
        await store.release(run_id, fence=fence)
