"""Ask the person at the terminal about steps that wait for one. In: a run's state. Out: their word."""

import sys

from weft.assembly import Weft
from weft.cli.approve import who
from weft.cli.live.rows import one_line
from weft.cli.printing import confirm
from weft.schedule.state import RunState, StepState
from weft.vocabulary.ids import RunId


def can_ask(as_json: bool) -> bool:
    return not as_json and sys.stdin.isatty() and sys.stdout.isatty()


async def decide_here(weft: Weft, state: RunState) -> None:
    async with weft.runs() as runs:
        for step in list(state.awaiting_approval.values()):
            is_allowed = confirm(_question(step), default=False)
            reason = "" if is_allowed else "not allowed at the terminal"
            await runs.decide(RunId(state.run_id), step.id, is_allowed, who(), reason)


def _question(step: StepState) -> str:
    if step.is_merge_held:
        return f"Step '{step.id}' is done, but {one_line(step.question)}. Merge it all the same?"
    if any(part.status == "asking" for part in step.parts.values()):
        return f"Step '{step.id}' was interrupted, and nobody knows what it had done. Do it again?"
    writes = one_line(", ".join(step.planned.write_set))
    what = f"It writes {writes}. " if step.planned.posture == "writer" else ""
    return f"Step '{step.id}' waits for you. {what}Let it start?"
