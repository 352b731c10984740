"""A run as lines: one a change, whatever models say."""

from stretto.cli.progress.lines import Lines
from stretto.events.model import RunResumed
from support.scheduling import Driven, Fail, Hang, plan_of


def steps(*written):
    return "name: test\nsteps:\n" + "".join(f"  - {step}\n" for step in written)


def step(id, *depends_on, more=""):
    return f"{{id: {id}, subagent: worker, prompt: go, posture: read_only, depends_on: [{', '.join(depends_on)}]{more}}}"


def told(recipe, script=None, width=4):
    plan = plan_of(recipe, width=width)
    said: list[str] = []
    lines = Lines(plan, said.append)
    driven = Driven(plan, script or {}).start()
    lines(driven.journal[0], driven.state)
    while driven.step():
        lines(driven.journal[-1], driven.state)
    return said


def test_every_change_is_one_line():
    assert told(steps(step("a"), step("long", "a"))) == [
        "run run-1 of test started",
        "▶ a    running",
        "✓ a    succeeded in 1s",
        "▶ long running",
        "✓ long succeeded in 1s",
    ]


def test_attempts_have_lines_and_their_step_no_more_than_it_needs():
    retry = ", retry: {max_attempts: 2, backoff: linear}"
    assert told(steps(step("a", more=retry)), {"a": [Fail("rate limited"), "x"]})[1:] == [
        "▶ a running",
        "  a: attempt 1 failed: rate limited",
        "  a: attempt 2 by worker",
        "✓ a succeeded in " + told(steps(step("a", more=retry)), {"a": [Fail("r"), "x"]})[-1][17:],
    ]


def test_a_step_that_no_event_names_is_told_of():
    route = "{id: r, condition: {eval: '1 == 1', true: x, false: y}}"
    said = told(steps(step("a"), route, step("x"), step("y")), width=1)
    assert "✓ r succeeded in 0ms" in said
    assert "- y skipped: no condition chose it" in said


def test_a_step_that_waits_for_a_person_is_told_of():
    assert told(steps(step("a", more=", gate: human")))[1:] == ["? a awaiting approval"]


def test_no_line_holds_a_control_character():
    said = told(steps(step("a")), {"a": Fail("bad\x1b[31m\r\n\x07\u202etext" + "x" * 9000)})
    assert all(line.isprintable() for line in said)
    assert max(len(line) for line in said) < 500


def test_a_run_that_goes_on_tells_only_what_is_new():
    driven = Driven(plan_of(steps(step("a"), step("b"))), {"b": Hang()}).start().run()
    driven.see(RunResumed(9.0))
    said: list[str] = []
    Lines(driven.plan, said.append)(driven.journal[-1], driven.state)
    assert said == ["run run-1 of test continues: 1 of 2 steps had ended", "▶ b running"]
