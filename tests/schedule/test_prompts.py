"""What subagents are told."""

from stretto.schedule.outputs import output_of
from stretto.vocabulary.names import StepId
from support.scheduling import Fail, Give, Hang, drive


def wrapped(steps: str, prompt: str = "You do it.") -> str:
    agents = f"  agents:\n    doer: {{prompt: {prompt!r}}}\n    judge: {{prompt: 'You judge.'}}\n"
    return f"workflow:\n  name: t\n{agents}  steps:\n{steps}"


def test_a_flat_step_is_told_its_prompt_and_the_agent_its_own_as_instructions() -> None:
    recipe = """
name: t
agents: {doer: {prompt: "You do {{inputs.what}}."}}
inputs: [{name: what}]
steps: [{id: a, subagent: doer, prompt: "Now: {{inputs.what}}"}]
"""
    command = drive(recipe, what="sums").command("a")
    assert command.request.prompt == "Now: sums"
    assert command.request.instructions == "You do sums."


def test_a_wrapped_step_is_told_the_agents_prompt_and_then_its_input() -> None:
    command = drive(wrapped("    - {id: a, agent: doer, input: this}")).command("a")
    assert command.request.prompt == "You do it.\n\n## Input\n\nthis"
    assert command.request.instructions == ""


def test_a_wrapped_step_without_input_is_told_the_agents_prompt_alone() -> None:
    assert drive(wrapped("    - {id: a, agent: doer}")).prompt("a") == "You do it."


def test_a_task_is_followed_by_what_its_dependencies_found() -> None:
    recipe = """
steps:
  - {id: a, task: look}
  - {id: b, task: see}
  - {id: c, task: tell, depends_on: [b, a]}
"""
    run = drive(recipe, {"a": "A", "b": {"n": 1}})
    assert run.prompt("a") == "look"
    assert run.prompt("c") == 'tell\n\n## Results so far\n\n### b\n{"n":1}\n\n### a\nA'


def test_all_prior_context_is_every_ended_output_in_listing_order() -> None:
    recipe = wrapped(
        "    - {id: a, agent: doer}\n    - {id: b, agent: doer}\n"
        "    - {id: c, agent: judge, input: all prior context}"
    )
    run = drive(recipe, {"a": "A", "b": "B"})
    assert run.prompt("c") == "You judge.\n\n## Input\n\n### a\nA\n\n### b\nB"


def test_a_retry_is_told_why_the_last_answer_was_not_accepted() -> None:
    recipe = wrapped("    - {id: a, agent: doer, input: x, retry: {max_attempts: 2}}")
    run = drive(recipe, {"a": [Fail("needs a title", kind="validation"), "ok"]})
    said = "\n\n## Your last answer was not accepted\n\nneeds a title"
    assert run.prompt("a", attempt=2) == run.prompt("a") + said


def test_a_retry_after_an_error_is_told_the_same_as_before() -> None:
    recipe = wrapped("    - {id: a, agent: doer, retry: {max_attempts: 2}}")
    run = drive(recipe, {"a": [Fail(), "ok"]})
    assert run.prompt("a", attempt=2) == run.prompt("a")


def test_what_is_missing_renders_empty_with_one_warning() -> None:
    recipe = """
name: t
steps:
  - {id: a, subagent: worker, prompt: go}
  - id: b
    subagent: worker
    prompt: "<{{steps.a.output.title}}{{steps.a.output.title}}>"
    retry: {max_attempts: 2}
"""
    run = drive(recipe, {"b": [Fail(), "ok"]})
    assert run.prompt("b") == "<>"
    assert list(run.state.steps[StepId("b")].warnings) == [
        "{{steps.a.output.title}} is not there and was left empty"
    ]


def test_what_is_inserted_is_never_scanned_again() -> None:
    recipe = """
name: t
steps:
  - {id: a, subagent: worker, prompt: go}
  - {id: b, subagent: worker, prompt: "{{steps.a.output}}"}
"""
    assert drive(recipe, {"a": "{{run.id}}"}).prompt("b") == "{{run.id}}"


def test_equal_work_has_equal_keys_and_other_work_has_others() -> None:
    recipe = """
name: t
steps:
  - {id: a, subagent: worker, prompt: same}
  - {id: b, subagent: worker, prompt: same}
  - {id: c, subagent: worker, prompt: other}
  - {id: d, subagent: other, prompt: same}
  - {id: e, subagent: worker, prompt: same, model: m}
  - {id: f, subagent: worker, prompt: same, output: {format: json}}
  - {id: g, subagent: worker, prompt: same, output: {schema: {type: object}}}
"""
    run = drive(recipe, width=9)
    keys = [run.command(step).key for step in "abcdefg"]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 6
    assert all(len(key) == 32 for key in keys)


def test_the_step_chooses_the_model_before_the_agent() -> None:
    recipe = """
name: t
agents: {doer: {prompt: p, model: small}, saver: {prompt: p, model: large}}
steps:
  - {id: a, subagent: doer, prompt: go}
  - {id: b, subagent: doer, prompt: go, model: huge}
  - {id: c, subagent: doer, prompt: go, on_failure: "fallback:saver"}
  - {id: d, subagent: doer, prompt: go, model: huge, on_failure: "fallback:saver"}
"""
    run = drive(recipe, {"doer": Fail(), "saver": Hang()})
    models = [run.command(step).request.model for step in "ab"]
    fallen = [run.command(step, attempt=2).request.model for step in "cd"]
    assert models + fallen == ["small", "huge", "large", "huge"]


def test_a_prompt_that_nobody_could_read_is_refused_before_it_is_made() -> None:
    text = """
name: t
steps:
  - {id: a, subagent: worker, prompt: go}
  - {id: b, subagent: worker, prompt: "%s", depends_on: [a]}
  - {id: c, subagent: worker, prompt: "%s", depends_on: [a]}
  - {id: d, subagent: worker, prompt: still, depends_on: [a]}
output: "%s"
""" % (("{{steps.a.output}}" * 3,) * 3)
    run = drive(text, {"a": Give("x" * 4_000_000)})
    assert run.statuses() == {"a": "succeeded", "b": "failed", "c": "failed", "d": "succeeded"}
    said = "'{{steps.a.output}}{{steps.a.output}}{{steps.a.output}}' comes to more than 10,000,000"
    assert said in str(run.state.steps[StepId("b")].error)
    assert said in str(run.state.steps[StepId("c")].error)
    assert said in str(output_of(run.state))


CHECKED = """
name: t
agents:
  own:
    prompt: You score.
    validation:
      schema: {type: object, properties: {score: {type: number}}, required: [score]}
      rules: [Score must be between 1 and 5, Be kind]
  judge: {prompt: You judge.}
steps:
  - id: a
    PROMPT
    output: {format: json, schema: {type: object, required: [title]}}
"""


def test_both_the_schema_of_a_step_and_that_of_its_agent_hold() -> None:
    run = drive(CHECKED.replace("PROMPT", "subagent: own\n    prompt: Score it."))
    schema = run.starts[0].request.schema
    assert schema is not None
    assert schema["required"] == ["score", "title"]
    assert schema["properties"] == {"score": {"type": "number"}}


def test_what_a_step_s_output_must_be_is_not_asked_of_who_only_helps() -> None:
    looped = "prompt: Score it.\n    loop: {agent: own, validator: judge}"
    run = drive(CHECKED.replace("PROMPT", looped), {"judge": '{"passed": true}'})
    made, judged = (start.request for start in run.starts)
    assert (made.format, judged.format, judged.schema) == ("json", None, None)
    mapped = 'map: {over: "[1]", stages: [{agent: judge}, {agent: judge}], reduce: own}'
    run = drive(CHECKED.replace("PROMPT", mapped))
    *elements, reduced = (start.request for start in run.starts)
    assert [(each.format, each.schema) for each in elements] == [(None, None)] * 2
    assert reduced.format == "json"


def test_the_rules_are_told_before_the_first_attempt_beside_the_prompt() -> None:
    run = drive(CHECKED.replace("PROMPT", "subagent: own\n    prompt: Score it."))
    request = run.starts[0].request
    assert request.prompt == "Score it."
    assert request.instructions == (
        "You score.\n\n## Rules for your answer\n\n- Score must be between 1 and 5\n- Be kind"
    )
