"""What a run gives, and why steps wait."""

from stretto.schedule.status import why_waiting
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import RunStatus
from support.scheduling import Driven, Fail, Hang, drive, plan_of

TWO = """
name: t
steps:
  - {id: a, subagent: worker, prompt: go}
  - {id: b, subagent: worker, prompt: go}
"""


def test_without_a_word_the_output_is_the_last_listed_steps() -> None:
    assert drive(TWO, {"b": {"n": 1}}).output == {"n": 1}


def test_an_output_that_is_one_reference_is_the_value_itself() -> None:
    run = drive(TWO + 'output: " {{steps.a.output}} "\n', {"a": {"n": [1]}})
    assert run.output == {"n": [1]}


def test_any_other_output_is_text() -> None:
    run = drive(TWO + 'output: "A: {{steps.a.output}}"\n', {"a": {"n": [1]}})
    assert run.output == 'A: {"n":[1]}'


def test_an_output_that_is_missing_is_null_and_the_run_is_not_complete() -> None:
    run = drive(TWO + 'output: "{{steps.a.output.x}}"\n')
    assert run.output is None
    assert run.state.status is RunStatus.PARTIAL
    assert run.state.all_warnings == (
        "the run has no output: nothing is there for {{steps.a.output.x}}",
    )


ROUTED = """
name: t
steps:
  - {id: look, subagent: worker, prompt: go}
  - {id: route, condition: {eval: "steps.look.output == 'hot'", true: hot, false: cold}}
  - {id: hot, subagent: worker, prompt: go}
  - {id: cold, subagent: worker, prompt: go}
"""


def test_the_output_is_that_of_the_last_step_that_was_not_routed_away() -> None:
    run = drive(ROUTED, {"look": "hot", "hot": "hot words"})
    assert run.output == "hot words"
    assert run.state.status is RunStatus.COMPLETE


def test_an_output_of_which_one_way_was_taken_is_complete() -> None:
    output = 'output: "{{steps.hot.output}}{{steps.cold.output}}"\n'
    run = drive(ROUTED + output, {"look": "hot", "hot": "hot words"})
    assert (run.output, run.state.status) == ("hot words", RunStatus.COMPLETE)


def test_an_output_all_of_which_was_routed_away_is_told_and_not_complete() -> None:
    for output in ("{{steps.cold.output}}", "Here: {{steps.cold.output}}!"):
        run = drive(ROUTED + f'output: "{output}"\n', {"look": "hot"})
        assert run.state.status is RunStatus.PARTIAL
        assert "nothing is there for {{steps.cold.output}}" in run.state.all_warnings[0]


def test_what_a_condition_chose_is_no_output_of_the_run() -> None:
    recipe = """
name: t
steps:
  - {id: route, condition: {eval: "1 == 1", true: hot}}
  - {id: hot, subagent: worker, prompt: go, when: "1 == 2"}
"""
    run = drive(recipe)
    assert (run.output, run.state.status) == (None, RunStatus.PARTIAL)


def test_a_run_all_of_whose_steps_were_skipped_is_not_complete() -> None:
    recipes = (
        "name: t\nsteps: [{id: a, subagent: worker, prompt: go, when: '1 == 2'}]",
        "steps: [{id: a, task: go, when: '1 == 2'}]",
    )
    for recipe in recipes:
        run = drive(recipe)
        assert run.state.status is RunStatus.PARTIAL
        assert run.state.all_warnings == ("the run has no output: none of its steps gave one",)


def test_a_structural_run_gives_every_steps_output_by_id() -> None:
    run = drive("steps: [{id: a, task: go}, {id: b, task: go}]", {"a": "A", "b": "B"})
    assert run.output == {"a": "A", "b": "B"}


def test_a_step_says_what_it_waits_for() -> None:
    recipe = """
name: t
steps:
  - {id: fix-a, subagent: worker, prompt: go, posture: writer, write_set: ["src/**"]}
  - {id: fix-b, subagent: worker, prompt: go, posture: writer, write_set: [src/b.py]}
  - {id: sum, subagent: worker, prompt: go, depends_on: [fix-a, fix-b]}
  - {id: sign, subagent: worker, prompt: go, gate: human}
"""
    run = Driven(plan_of(recipe)).start()
    said = {step: why_waiting(run.state, StepId(step)) for step in run.state.steps}
    assert said == {
        "fix-a": "",
        "fix-b": "waits for the files of fix-a (src/**)",
        "sum": "waits for fix-a, fix-b",
        "sign": "awaits approval",
    }


def test_a_step_says_that_all_places_are_taken() -> None:
    run = Driven(plan_of(TWO, width=1)).start()
    assert why_waiting(run.state, StepId("b")) == "waits for a free slot (1 of 1 running)"


def test_a_step_says_when_it_retries() -> None:
    recipe = TWO.replace("prompt: go}", "prompt: go, retry: {max_attempts: 2}}", 1)
    run = Driven(plan_of(recipe), {"a": [Fail(retry_after=4), "x"], "b": Hang()}).start()
    while not run.state.retrying:
        run.step()
    assert why_waiting(run.state, StepId("a")) == "retries in 4s"


def test_who_does_not_wait_says_nothing() -> None:
    run = drive(TWO)
    assert why_waiting(run.state, StepId("a")) == ""
    assert why_waiting(run.state, StepId("nobody")) == ""
