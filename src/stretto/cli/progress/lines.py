"""A run as it goes, one line a change. In: events and the state after them. Out: lines."""

import sys
from collections.abc import Callable
from itertools import islice

from stretto.cli.progress.rows import one_line
from stretto.cli.progress.stages import ChangedSteps, signs_for
from stretto.cli.terminal import print_json_text, say
from stretto.events.codec import encode_ascii
from stretto.events.model import (
    AttemptFailed,
    AttemptStarted,
    Event,
    ModelRetried,
    RunResumed,
    RunStarted,
    ToolEnded,
)
from stretto.plan.model import Plan
from stretto.schedule.state import RunState, StepState
from stretto.schedule.status import step_word
from stretto.schedule.tool_calls import fault_of
from stretto.vocabulary.durations import format_duration
from stretto.vocabulary.ids import StepId
from stretto.vocabulary.statuses import StepWord

_MOST_WARNINGS = 5  # of one step; the report has them all
_RETRYING: tuple[StepWord, ...] = ("running", "retrying", "merging")


class JsonLines:
    def __call__(self, event: Event, state: RunState) -> None:
        print_json_text(encode_ascii(event))


class Lines:
    def __init__(self, plan: Plan, say: Callable[[str], None] = say) -> None:
        self._write = say
        self._changes = ChangedSteps()
        self._told: dict[StepId, StepWord] = {}  # nobody needs to be told that a step waits
        self._width = max((len(step.id) for step in plan.steps), default=0)
        self._encoding = sys.stdout.encoding or "ascii"
        self._signs = signs_for(self._encoding)

    def __call__(self, event: Event, state: RunState) -> None:
        match event:
            case RunStarted():
                self._say(f"run {one_line(event.run_id)} of {one_line(event.workflow)} started")
            case RunResumed():
                self._resume(event, state)
            case AttemptStarted() if event.attempt.number > 1:
                self._say(
                    f"  {event.step}: attempt {event.attempt.number} by {one_line(event.agent)}"
                )
            case AttemptFailed():
                error = one_line(event.error)
                self._say(f"  {event.step}: attempt {event.attempt.number} failed: {error}")
            case ToolEnded() if said := fault_of(event):
                self._say(f"  {event.step}: {one_line(said)}")
            case ModelRetried():
                delay = format_duration(event.delay_seconds)
                said = f"{one_line(event.error)}, retry {event.retry}/{event.most} in {delay}"
                self._say(f"  {event.step}: {one_line(event.model)}: {said}")
            case _:
                pass
        for step in self._changes.after(event, state):
            self._tell(step)

    def _resume(self, event: RunResumed, state: RunState) -> None:
        before = [s for s in state.order if s.ended_at is not None and s.ended_at < event.at]
        self._told.update((step.id, step_word(step)) for step in before)
        ended = f"{len(before)} of {len(state.order)} steps had ended"
        self._say(f"run {one_line(state.run_id)} of {one_line(state.plan.name)} continues: {ended}")

    def _tell(self, step: StepState) -> None:
        stage, told = step_word(step), self._told.get(step.id, "waiting")
        self._told[step.id] = stage
        # That an attempt failed and that another began have lines of their own.
        if stage != told and not (stage in _RETRYING and told in _RETRYING):
            self._say(self._line(step, stage))
        if stage != told and step.ended_at is not None:
            # Of its tool calls each had a line when it ended.
            for text in islice(step.warnings, _MOST_WARNINGS):
                self._say(f"  {step.id}: warning: {one_line(text)}")

    def _line(self, step: StepState, stage: StepWord) -> str:
        line = f"{self._signs[stage]} {step.id.ljust(self._width)} {stage}"
        if stage == "succeeded" and step.started_at is not None:
            line += f" in {format_duration((step.ended_at or step.started_at) - step.started_at)}"
        why = one_line(step.error or step.reason)
        return f"{line}: {why}" if why else line

    def _say(self, line: str) -> None:
        self._write(line.encode(self._encoding, "replace").decode(self._encoding))
