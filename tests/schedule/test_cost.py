"""An event costs what it changes, never the size of the plan."""

from collections.abc import Callable

import pytest

from stretto.events.model import AttemptSucceeded, RunStarted
from stretto.plan.model import Plan
from stretto.schedule.advance import advance
from stretto.schedule.commands import StartAttempt
from stretto.schedule.state import begin
from stretto.vocabulary.amounts import Limits
from support.operations import count_operations
from support.scheduling import NO_PLAN, plan_of

SMALL, LARGE = 50, 800
# A scheduler that looks at every step would do sixteen times as much for each.
MOST_TIMES_MORE = 1.5


def step(number: int, before: str = "", more: str = "") -> str:
    return f"  - {{id: s{number}, subagent: worker, prompt: go, depends_on: [{before}]{more}}}\n"


def chain(count: int) -> list[str]:
    return [step(number, f"s{number - 1}" if number else "") for number in range(count)]


def reverse_chain(count: int) -> list[str]:
    return chain(count)[::-1]


def independent(count: int) -> list[str]:
    return [step(number) for number in range(count)]


def writers_of_everything(count: int) -> list[str]:
    return [step(number, more=", posture: writer") for number in range(count)]


def writers_of_their_own(count: int) -> list[str]:
    sets = (f", posture: writer, write_set: [f{number}.md]" for number in range(count))
    return [step(number, more=more) for number, more in enumerate(sets)]


NARROW = [chain, reverse_chain, independent, writers_of_everything]
WIDE = [independent, writers_of_their_own]


def built(steps: list[str], width: int) -> Plan:
    limits = Limits(text_bytes=1 << 24, nodes=1_000_000, steps=LARGE)
    return plan_of("name: t\nsteps:\n" + "".join(steps), limits, width)


def operations_per_step(plan: Plan) -> float:
    state = begin(plan)

    def run() -> None:
        _, commands = advance(state, RunStarted(0.0, "run", "t", "", NO_PLAN, {}, 0))
        due = [command for command in commands if isinstance(command, StartAttempt)]
        for start in due:  # it grows while it is read
            event = AttemptSucceeded(1.0, start.attempt, "done")
            due += [c for c in advance(state, event)[1] if isinstance(c, StartAttempt)]

    operations = count_operations(run)
    assert state.has_ended
    return operations / len(plan.steps)


@pytest.mark.parametrize(
    ("shape", "width"), [*((shape, 4) for shape in NARROW), *((shape, LARGE) for shape in WIDE)]
)
def test_a_step_of_a_large_plan_costs_as_much_as_one_of_a_small_plan(
    shape: Callable[[int], list[str]], width: int
) -> None:
    small, large = (operations_per_step(built(shape(count), width)) for count in (SMALL, LARGE))
    assert large < MOST_TIMES_MORE * small
