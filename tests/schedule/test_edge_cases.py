"""Failures and edge cases of a wrapped recipe, as the scheduler decides them: one test for each rule."""

from pathlib import Path

from stretto.events.attempts import AttemptId
from stretto.plan.build import Problems, build
from stretto.recipe.read import read_recipe
from stretto.schedule.commands import CancelAttempt
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import RunStatus
from support.scheduling import AGENTS, Driven, Fail, Hang, drive, plan_of

HEAD = """
workflow:
  name: t
  inputs: [{name: topic, default: tea}]
  agents:
    one: {prompt: "You are one."}
    two: {prompt: "You are two."}
    judge: {prompt: "You judge."}
  steps:
"""


def problems(recipe: str) -> list[str]:
    built = build(read_recipe(recipe), AGENTS)
    assert isinstance(built, Problems)
    return [problem.code for problem in built.problems]


def test_sequential_input_resolved_prompt_built_deployed_stored_next() -> None:
    recipe = HEAD + (
        '    - {id: a, agent: one, input: "{{inputs.topic}}", output: {store_as: found}}\n'
        '    - {id: b, agent: two, input: "{{found}}"}\n'
    )
    run = drive(recipe, {"a": "leaves"}, topic="tea")
    assert run.prompt("a") == "You are one.\n\n## Input\n\ntea"
    assert run.prompt("b") == "You are two.\n\n## Input\n\nleaves"
    assert run.started == ["a", "b"]


def test_parallel_all_deployed_at_once_collected_by_key_next() -> None:
    recipe = HEAD + (
        "    - {id: p, parallel: [{agent: one, input: x, output_key: k}, {agent: two, input: y}]}\n"
        '    - {id: b, agent: two, input: "{{steps.p.outputs}}"}\n'
    )
    run = drive(recipe, {"p/k": "K", "p/two": "T"})
    assert run.started == ["p", "p", "b"]
    assert run.prompt("b").endswith('{"k":"K","two":"T"}')


def test_conditional_evaluated_routed_executed_stored() -> None:
    recipe = HEAD + (
        "    - {id: a, agent: one}\n"
        '    - {id: c, condition: {eval: "{{steps.a.output.n}} > 1", true: two, false: judge}}\n'
        '    - {id: z, agent: one, input: "{{steps.c.output}}"}\n'
    )
    run = drive(recipe, {"a": '{"n": 2}', "c": "from two"})
    assert [start.request.agent for start in run.starts] == ["one", "two", "one"]
    assert run.prompt("z").endswith("from two")


def test_loop_executed_judged_fed_back_and_left() -> None:
    recipe = HEAD + "    - {id: l, loop: {agent: one, validator: judge, max_iterations: 2}}\n"
    run = drive(recipe, {"judge": ['{"passed": false, "feedback": "more"}', '{"passed": true}']})
    assert [start.request.agent for start in run.starts] == ["one", "judge", "one", "judge"]
    assert run.prompt("l", "try.2") == (
        "You are one.\n\n## Your last candidate\n\nl/try.1\n\n## Feedback\n\nmore"
    )


def test_map_resolved_deployed_collected_reduced_stored() -> None:
    recipe = HEAD + "    - {id: m, map: {over: '[1, 2]', agent: one, reduce: two}}\n"
    run = drive(recipe, {"one": "r", "two": "sum"})
    assert [start.request.agent for start in run.starts] == ["one", "one", "two"]
    assert run.output == "sum"


def test_a_required_input_that_is_missing_is_known_before_anything_starts() -> None:
    recipe = HEAD.replace("default: tea", "required: true") + "    - {id: a, agent: one}\n"
    (topic,) = plan_of(recipe).inputs
    assert topic.is_required


def test_empty_output_is_a_failure_that_triggers_retry_and_fallback() -> None:
    recipe = HEAD + (
        "    - {id: a, agent: one, retry: {max_attempts: 2}, on_failure: 'fallback:two'}\n"
    )
    run = drive(recipe, {"one": Fail("no output", kind="empty"), "two": "words"})
    assert [start.request.agent for start in run.starts] == ["one", "one", "two"]
    assert run.output == "words"


def test_a_circle_is_rejected_before_the_run() -> None:
    recipe = HEAD + (
        "    - {id: a, agent: one, depends_on: [b]}\n    - {id: b, agent: one, depends_on: [a]}\n"
    )
    assert problems(recipe) != []


def test_one_failed_branch_follows_its_agents_policy_and_the_others_continue() -> None:
    recipe = HEAD.replace('"You are two."', '"You are two.", retry: {on_failure: skip}') + (
        "    - {id: p, parallel: [{agent: one, input: x}, {agent: two, input: y}]}\n"
    )
    run = drive(recipe, {"p/two": Fail()})
    assert run.output == {"one": "p/one", "two": None}
    assert run.ended == [RunStatus.PARTIAL]


def test_a_loop_past_its_limit_stores_the_last_output_and_is_flagged() -> None:
    recipe = HEAD + "    - {id: l, loop: {agent: one, validator: judge, max_iterations: 2}}\n"
    run = drive(recipe, {"one": ["first", "last"], "judge": '{"passed": false}'})
    assert run.output == "last"
    assert "max iterations reached" in run.warnings()


def test_the_global_timeout_aborts_the_running_and_keeps_partial_results() -> None:
    recipe = HEAD.replace("workflow:", "workflow:\n  timeout: 5s") + (
        "    - {id: a, agent: one}\n    - {id: b, agent: two}\n"
    )
    run = drive(recipe, {"b": Hang()})
    assert CancelAttempt(AttemptId(StepId("b"), 1)) in run.commands
    assert run.state.steps[StepId("a")].output == "a"
    assert run.ended == [RunStatus.PARTIAL]


def test_a_syntax_error_is_reported_with_its_line() -> None:
    recipe = read_recipe("workflow:\n  name: [t\n")
    assert [problem.place is not None for problem in recipe.problems] == [True]


def test_an_undefined_variable_is_reported_before_the_run() -> None:
    assert problems(HEAD + '    - {id: a, agent: one, input: "{{inputs.nothing}}"}\n') != []


def test_an_ambiguous_condition_takes_the_false_branch_and_is_logged() -> None:
    recipe = HEAD + (
        "    - {id: a, agent: one}\n"
        '    - {id: c, condition: {eval: "{{steps.a.output.n}} > 1", true: two, false: judge}}\n'
    )
    run = drive(recipe, {"a": "who knows"})
    assert run.starts[-1].request.agent == "judge"
    assert "undecided" in run.warnings()


def test_a_fallback_that_fails_too_is_an_abort_of_that_step() -> None:
    recipe = HEAD + (
        "    - {id: a, agent: one, on_failure: 'fallback:two'}\n    - {id: b, agent: one}\n"
    )
    run = drive(recipe, {"a": Fail("both")})
    assert run.statuses() == {"a": "failed", "b": "cancelled"}
    assert run.ended == [RunStatus.FAILED]


def test_the_seeds_own_recipes_run_from_end_to_end() -> None:
    examples = Path(__file__).parents[2] / "examples"
    warnings = {  # their agents can write, and the script calls no tool
        "multi-criteria-lead-scoring": "parallel_scoring: made no tool call, though it can write: intent",
        "research-to-proposal": "review: made no tool call, though it can write: try.1",
    }
    for name, warning in warnings.items():
        plan = plan_of((examples / f"{name}.yaml").read_text())
        given: dict[str, Json] = {input.name: {"name": "Ann"} for input in plan.inputs}
        run = Driven(plan, {"reviewer": '{"passed": true}'}, given).start().run()
        assert run.ended == [RunStatus.COMPLETE]
        assert run.warnings() == warning
