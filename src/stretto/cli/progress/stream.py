"""What each step has said and done since the view opened. In: events. Out: lines of one step.

Bounded: of a step that says much the beginning is dropped, and of many steps those that were heard
longest ago. `stretto logs` has all of it, with the prompts.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import TypeAlias

from stretto.events.attempts import AttemptId
from stretto.events.model import (
    AttemptCancelled,
    AttemptFailed,
    AttemptStarted,
    AttemptSucceeded,
    Event,
    ModelFailedOver,
    ModelRetried,
    ModelSpoke,
    PhaseLasted,
    ToolEnded,
)
from stretto.schedule.tool_calls import fault_of
from stretto.text.short import describe_call, wrap
from stretto.text.visible import one_line, visible
from stretto.vocabulary.amounts import format_duration
from stretto.vocabulary.names import StepId

_MOST_CHARACTERS = 24_000  # of one step
_MOST_STEPS = 200
_LONGEST_RESULT = 200

Words: TypeAlias = tuple[str, str]  # text, style


class _Heard:
    def __init__(self) -> None:
        self.pieces: deque[Words] = deque()
        self.size = 0
        self.is_cut = False
        self.place: AttemptId | None = None

    def add(self, text: str, style: str) -> None:
        self.size += len(text)
        if self.pieces and style == "" == self.pieces[-1][1]:
            text = self.pieces.pop()[0] + text  # an answer comes in pieces
        self.pieces.append((text, style))
        while self.size > _MOST_CHARACTERS:
            self.is_cut = True
            first, style = self.pieces.popleft()
            over = self.size - _MOST_CHARACTERS
            if len(first) > over:
                self.pieces.appendleft((first[over:], style))
            self.size -= min(over, len(first))


class StepStreams:
    def __init__(self) -> None:
        self._heard: OrderedDict[StepId, _Heard] = OrderedDict()

    def note(self, event: Event) -> None:
        for text, style in _describe(event):
            assert isinstance(event, _OF_AN_ATTEMPT)
            heard = self._heard.setdefault(event.step, _Heard())
            self._heard.move_to_end(event.step)
            if heard.place != event.attempt:
                heard.place = event.attempt
                heard.add(_heading(event.attempt), "bold")
            heard.add(text, style)
        while len(self._heard) > _MOST_STEPS:
            self._heard.popitem(last=False)

    def lines(self, step: StepId, width: int) -> list[Words]:
        """Wrapped to the width, oldest first."""
        heard = self._heard.get(step)
        if heard is None:
            return [("it has sent nothing since this view opened", "dim")]
        found = [("(more before this: stretto logs)", "dim")] if heard.is_cut else []
        for text, style in heard.pieces:
            for line in visible(text).expandtabs(4).split("\n"):
                found += [(part, style) for part in wrap(line, width, breaks_words=True)]
        return found


def _describe(event: Event) -> Iterator[Words]:
    match event:
        case AttemptStarted():
            yield f"{one_line(event.agent)} begins", "dim"
        case ModelSpoke():
            yield event.text, ""
        case ToolEnded():
            fault = fault_of(event)
            yield f"called {describe_call(event.tool, event.arguments)}", "cyan"
            said = fault or event.result or f"{event.result_bytes:,} bytes"
            yield (
                f"  {one_line(said[: 4 * _LONGEST_RESULT], _LONGEST_RESULT)}",
                ("yellow" if fault else "dim"),
            )
        case PhaseLasted():
            yield event.phase, "dim"
        case ModelRetried():
            delay = format_duration(event.delay_seconds)
            said = f"{event.error}, retry {event.retry}/{event.most} in {delay}"
            yield one_line(said, 400), "yellow"
        case ModelFailedOver():
            yield one_line(f"{event.error}; {event.to} is asked instead", 400), "yellow"
        case AttemptSucceeded():
            yield "succeeded", "green"
        case AttemptFailed():
            yield f"failed: {one_line(event.error, 400)}", "red"
        case AttemptCancelled():
            yield "was told to stop", "dim"


_OF_AN_ATTEMPT = (
    AttemptStarted
    | AttemptSucceeded
    | AttemptFailed
    | AttemptCancelled
    | ModelSpoke
    | ModelFailedOver
    | ModelRetried
    | PhaseLasted
    | ToolEnded
)


def _heading(attempt: AttemptId) -> str:
    part = f" {attempt.part.text}," if attempt.part.text else ""
    return f"--{part} attempt {attempt.number}"
