"""Why a run that was followed goes no further. In: its state. Out: a word on stderr, an exit code."""

from stretto.adapters.clock import SystemClock
from stretto.cli.foreground import WAITING
from stretto.cli.terminal import say
from stretto.schedule.state import RunState
from stretto.schedule.status import is_overdue

LEFT = 1


def say_why_left(state: RunState) -> int:
    """Nobody drives the run, so nothing more will come."""
    if state.has_ended:
        return 0
    now = SystemClock().now()
    for step in state.awaiting_approval:
        place = f"{state.run_id} {step}"
        if is_overdue(state, step, now):
            say(
                f"the deadline of {step} has passed: stretto resume {state.run_id} goes on",
                err=True,
            )
        else:
            say(f"{step} awaits approval: stretto approve {place} --show", err=True)
    if state.awaiting_approval:
        return WAITING
    say(f"nobody drives this run: stretto resume {state.run_id} goes on", err=True)
    return LEFT
