"""A gate whose deadline has passed while nobody drove its run."""

import asyncio
import time

import pytest

from stretto.assembly.run_list import read_run
from stretto.cli.foreground import explain_gates
from stretto.problems.errors import InvalidUsage
from stretto.vocabulary.names import StepId
from support.driven_runs import RUN, Stage

GATE = "name: t\nsteps: [{id: g, subagent: worker, prompt: go, gate: human%s}]\n"


@pytest.mark.parametrize(("timeout", "word"), [("", "waiting"), (", timeout: 10s", "overdue")])
def test_runs_says_that_a_deadline_has_passed(
    timeout: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = Stage(GATE % timeout)  # its clock stands long before today's
    state = stage.start()
    assert state.awaiting_approval
    row = stage.do(stage.store.run(RUN))
    assert row is not None
    listed = stage.do(read_run(stage.runs(), row, time.time()))
    assert listed is not None
    assert listed.status == word
    assert explain_gates(state, time.time()) == 3
    said = capsys.readouterr().err
    assert ("deadline of g has passed" in said) == (word == "overdue")
    assert ("stretto approve" in said) == (word == "waiting")


def test_a_decision_after_the_deadline_is_refused() -> None:
    stage = Stage(GATE % ", timeout: 10s")
    stage.start()
    stage.do(asyncio.sleep(11))
    with pytest.raises(InvalidUsage, match="ran out before anybody decided"):
        stage.do(stage.runs().decide(RUN, StepId("g"), True, "ada"))
