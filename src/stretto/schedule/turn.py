"""One event being worked off. In: RunState, which it changes. Out: the commands that follow."""

from dataclasses import dataclass, field

from stretto.schedule.commands import ClearTimer, Command, SetTimer
from stretto.schedule.state import RunState, StepState, Timer
from stretto.vocabulary.ids import StepId


@dataclass(slots=True, eq=False)
class Turn:
    state: RunState
    at: float  # when the event happened: the only time there is
    commands: list[Command] = field(default_factory=list)
    asking: dict[StepId, None] = field(default_factory=dict)  # who asks a person from now on
    # Steps that may have nothing left to do but to wait for a retry.
    idle: dict[StepId, StepState] = field(default_factory=dict)

    def say(self, command: Command) -> None:
        self.commands.append(command)

    def set_timer(self, name: str, timer: Timer) -> None:
        self.state.timers[name] = timer
        self.say(SetTimer(name, timer.due_at))

    def clear_timer(self, name: str) -> None:
        if self.state.timers.pop(name, None) is not None:
            self.say(ClearTimer(name))
