"""A run as it goes, one line a change. In: events and the state after them. Out: lines."""

import click

from weft.events.codec import encode
from weft.events.model import AttemptFailed, AttemptStarted, Event, RunStarted
from weft.plan.model import Plan
from weft.schedule.state import RunState, StepState
from weft.vocabulary.durations import format_duration
from weft.vocabulary.statuses import StepStatus

# A word with every sign: colour and shape alone tell nothing to a screen reader or a log.
_SIGNS = {
    StepStatus.RUNNING: "▶",
    StepStatus.SUCCEEDED: "✓",
    StepStatus.FAILED: "✗",
    StepStatus.SKIPPED: "-",
    StepStatus.HELD: "-",
    StepStatus.CANCELLED: "-",
}


class JsonLines:
    def __call__(self, event: Event, state: RunState) -> None:
        print(encode(event), flush=True)


class Lines:
    def __init__(self, plan: Plan) -> None:
        self._told = dict.fromkeys((step.id for step in plan.steps), StepStatus.WAITING)
        self._width = max((len(step.id) for step in plan.steps), default=0)

    def __call__(self, event: Event, state: RunState) -> None:
        match event:
            case RunStarted():
                self._say(f"run {event.run_id} of {event.workflow} started")
            case AttemptStarted() if event.attempt > 1:
                self._say(f"  {event.step}: attempt {event.attempt} by {event.agent}")
            case AttemptFailed():
                self._say(f"  {event.step}: attempt {event.attempt} failed: {event.error}")
            case _:
                pass
        for step in state.order:
            if step.status != self._told[step.id]:
                self._told[step.id] = step.status
                self._say(self._line(step))

    def _line(self, step: StepState) -> str:
        line = f"{_SIGNS.get(step.status, '·')} {step.id.ljust(self._width)} {step.status.value}"
        if step.status is StepStatus.SUCCEEDED and step.started_at is not None:
            line += f" in {format_duration((step.ended_at or step.started_at) - step.started_at)}"
        if step.error:
            line += f": {step.error}"
        return f"{line}: {step.reason}" if step.reason and not step.error else line

    def _say(self, line: str) -> None:
        click.echo(line)
