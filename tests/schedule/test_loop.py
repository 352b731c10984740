"""Loops."""

import pytest

from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import RunStatus
from support.scheduling import Fail, drive

LOOP = """
workflow:
  name: t
  agents:
    writer: {{prompt: "{writer}"}}
    judge: {{prompt: You judge.}}
  steps:
    - id: draft
      input: the topic
      {extra}
      loop: {{agent: writer, validator: judge, max_iterations: 3{loop}}}
"""
NO = '{"passed": false, "feedback": ["shorter"], "notes": {"why": "long"}}'
YES = '{"passed": true}'


def loop(loop: str = "", writer: str = "You write.", extra: str = "") -> str:
    return LOOP.format(loop=loop, writer=writer, extra=extra)


def test_a_candidate_that_passes_ends_the_loop() -> None:
    run = drive(loop(), {"writer": "text", "judge": YES})
    assert [start.attempt.part.text for start in run.starts] == ["try.1", "check.1"]
    assert run.output == "text"
    assert run.state.steps[StepId("draft")].validation == {"passed": True}
    assert run.status is RunStatus.COMPLETE


def test_the_validator_gets_the_candidate_as_its_input() -> None:
    run = drive(loop(), {"writer": "text", "judge": YES})
    assert run.prompt("draft", "check.1") == "You judge.\n\n## Input\n\ntext"


def test_the_producer_runs_again_with_the_original_input_its_candidate_and_the_feedback() -> None:
    run = drive(loop(), {"writer": ["one", "two"], "judge": [NO, YES]})
    first = "You write.\n\n## Input\n\nthe topic"
    assert run.prompt("draft", "try.1") == first
    mend = '\n\n## Your last candidate\n\none\n\n## Feedback\n\n["shorter"]'
    assert run.prompt("draft", "try.2") == first + mend
    assert run.prompt("draft", "check.2") == "You judge.\n\n## Input\n\ntwo"
    assert run.output == "two"
    assert run.state.steps[StepId("draft")].iteration == 2


def test_a_producer_that_names_the_feedback_itself_gets_it_there_only() -> None:
    run = drive(
        loop(writer="Try {{iteration}}. Heed: {{feedback}} {{candidate}}"),
        {"writer": ["one", "two"], "judge": [NO, YES]},
    )
    assert run.prompt("draft", "try.1") == "Try 1. Heed:  \n\n## Input\n\nthe topic"
    assert run.prompt("draft", "try.2") == 'Try 2. Heed: ["shorter"] one\n\n## Input\n\nthe topic'
    assert run.warnings() == ""


def test_the_feedback_path_may_name_the_steps_own_output_meaning_the_verdict() -> None:
    recipe = loop(', feedback_path: "{{steps.draft.output.notes.why}}"')
    run = drive(recipe, {"judge": [NO, YES]})
    assert run.prompt("draft", "try.2").endswith("## Feedback\n\nlong")


def test_the_feedback_path_may_be_a_bare_path_in_the_verdict() -> None:
    run = drive(loop(", feedback_path: notes"), {"judge": [NO, YES]})
    assert run.prompt("draft", "try.2").endswith('## Feedback\n\n{"why":"long"}')


def test_without_any_feedback_the_whole_verdict_is_it() -> None:
    run = drive(loop(), {"judge": ['{"passed": false, "score": 2}', YES]})
    assert run.prompt("draft", "try.2").endswith('## Feedback\n\n{"passed":false,"score":2}')


def test_past_max_iterations_the_last_output_is_kept_and_flagged() -> None:
    run = drive(loop(), {"writer": ["one", "two", "three"], "judge": NO})
    assert run.output == "three"
    assert "max iterations reached" in run.warnings()
    assert run.status is RunStatus.COMPLETE


def test_a_verdict_that_cannot_be_read_counts_as_not_passed() -> None:
    run = drive(loop(), {"judge": ["looks fine to me", YES]})
    assert len(run.starts) == 4
    assert "does not say `passed`" in run.warnings()
    assert run.prompt("draft", "try.2").endswith("## Feedback\n\nlooks fine to me")


def test_a_verdict_may_stand_in_a_fence_and_say_true_in_words() -> None:
    run = drive(loop(), {"judge": 'Well:\n```json\n{"passed": "True"}\n```\n'})
    assert len(run.starts) == 2


def test_a_validator_that_fails_fails_the_step() -> None:
    run = drive(loop(), {"judge": Fail("ill")})
    assert run.state.steps[StepId("draft")].error == "ill"
    assert run.ended == [RunStatus.FAILED]


@pytest.mark.parametrize("policy", ["skip", "inline", "block"])
def test_a_run_whose_only_loop_lost_its_judge_has_failed(policy: str) -> None:
    run = drive(loop(extra=f"on_failure: {policy}"), {"writer": "text", "judge": Fail("ill")})
    assert set(run.statuses().values()) == {"failed"}
    assert run.ended == [RunStatus.FAILED]


def test_a_producer_is_retried_within_its_iteration() -> None:
    recipe = loop(extra="retry: {max_attempts: 2}")
    run = drive(recipe, {"writer": [Fail(), "text"], "judge": YES})
    assert [(start.attempt.part.text, start.attempt.number) for start in run.starts] == [
        ("try.1", 1),
        ("try.1", 2),
        ("check.1", 1),
    ]


def test_until_sees_the_candidate_as_the_steps_output() -> None:
    recipe = """
name: t
steps:
  - id: a
    prompt: go
    loop: {agent: worker, until: "{{steps.a.output.n}} > 1", max_iterations: 5}
"""
    run = drive(recipe, {"a": ['{"n": 1}', "no number", '{"n": 2}']})
    assert run.output == '{"n": 2}'
    assert [start.attempt.part.text for start in run.starts] == ["try.1", "try.2", "try.3"]
    assert "'until' is undecided" in run.warnings()


def test_a_loop_with_until_shows_its_agent_the_last_candidate_too() -> None:
    recipe = """
name: t
steps:
  - id: grow
    prompt: Grow.
    loop: {agent: worker, until: "iteration > 1"}
"""
    run = drive(recipe, {"worker": ["seed", "tree"]})
    assert run.prompt("grow", "try.1") == "Grow."
    assert run.prompt("grow", "try.2") == "Grow.\n\n## Your last candidate\n\nseed"


def test_fields_of_the_candidate_can_be_named() -> None:
    recipe = """
name: t
steps:
  - id: grow
    prompt: "From {{candidate.height}} on."
    loop: {agent: worker, until: "iteration > 1"}
"""
    run = drive(recipe, {"worker": ['{"height": 3}', "tree"]})
    assert run.prompt("grow", "try.2") == "From 3 on."
