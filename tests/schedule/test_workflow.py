"""A step that is another recipe: its steps run in their own scope, and it ends when they have."""

import pytest
from msgspec import structs

from stretto.events.model import (
    ApprovalRequested,
    Approved,
    AttemptSucceeded,
    CancelRequested,
    Rejected,
)
from stretto.plan.bound_sets import bind_plan
from stretto.plan.build import Problems, build
from stretto.plan.model import Plan, decode_plan, encode_plan
from stretto.recipe.read import read_recipe
from stretto.schedule.advance import advance
from stretto.schedule.approvals import question_of
from stretto.schedule.outputs import release_output
from stretto.schedule.status import step_word, why_waiting
from stretto.vocabulary.json_value import Json, Large
from stretto.vocabulary.names import StepId
from support.recipes import Shelf
from support.scheduling import AGENTS, Driven, Fail, Give, Hang, Script

INNER = """
name: inner
inputs: {topic: {required: true}, n: {type: number, default: 2}}
steps:
  - {id: a, subagent: worker, prompt: "Look at {{inputs.topic}}, {{inputs.n}} times"}
  - {id: b, subagent: worker, prompt: "Write of {{steps.a.output}}"}
output: "{{steps.b.output}}"
"""
OUTER = """
name: outer
steps:
  - {id: first, subagent: worker, prompt: Begin}
  - {id: sub, workflow: inner, inputs: {topic: "{{steps.first.output}}", n: 3}}
  - {id: last, subagent: worker, prompt: "End with {{steps.sub.output}}"}
"""


def planned(text: str, **inner: str) -> Plan:
    plan = build(read_recipe(text, "outer.yaml"), structs.replace(AGENTS, recipes=Shelf(**inner)))
    assert not isinstance(plan, Problems), "\n".join(f"{p.code} {p.message}" for p in plan.problems)
    # As it is stored and read again by the run.
    return decode_plan(encode_plan(plan))


def drive(
    text: str, script: Script | None = None, /, inputs: dict[str, Json] | None = None, **inner: str
) -> Driven:
    plan, problems = bind_plan(planned(text, **inner), inputs or {})
    assert problems == ()
    return Driven(plan, script or {}, inputs or {}).start().run()


def outer(step: str, rest: str = "") -> str:
    return f"name: outer\nsteps:\n  - {{id: first, subagent: worker, prompt: Begin}}\n  - {step}\n{rest}"


def test_its_steps_run_between_those_around_it_and_give_it_their_output():
    run = drive(OUTER, {"first": "tea", "sub/b": "all of it"}, inner=INNER)
    assert run.started == ["first", "sub/a", "sub/b", "last"]
    assert run.prompt("sub/a") == "Look at tea, 3 times"
    assert run.prompt("sub/b") == "Write of sub/a"
    assert run.prompt("last") == "End with all of it"
    assert run.status == "complete"
    assert set(run.statuses().values()) == {"succeeded"}


def test_an_inner_template_sees_no_step_and_no_input_of_the_outer_recipe():
    same = """
name: inner
inputs: {topic: {default: own}}
steps:
  - {id: first, subagent: worker, prompt: "Inner {{inputs.topic}}"}
  - {id: sub, subagent: worker, prompt: "{{steps.first.output}} {{topic}}"}
"""
    text = OUTER.replace(', inputs: {topic: "{{steps.first.output}}", n: 3}', "").replace(
        "steps:\n  - {id: first", "inputs: {topic: {default: outer}}\nsteps:\n  - {id: first"
    )
    run = drive(text, {"first": "OUTER", "sub/first": "INNER"}, {"topic": "outer"}, inner=same)
    assert run.prompt("sub/first") == "Inner own"
    assert run.prompt("sub/sub") == "INNER own"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("three", "input 'n' must be a number, not \"three\""),
        ("", "missing input: topic"),
    ],
)
def test_what_an_earlier_step_gives_is_checked_when_the_step_starts(given: str, said: str):
    name = "n" if given else "topic"
    step = (
        f'{{id: sub, workflow: inner, inputs: {{topic: x, {name}: "{{{{steps.first.output}}}}"}}}}'
    )
    step = step.replace("topic: x, topic", "topic")
    run = drive(outer(step), {"first": Give(given)}, inner=INNER)
    assert run.state.steps[StepId("sub")].error == f"workflow 'inner' cannot start: {said}"
    assert run.statuses() == {
        "first": "succeeded", "sub": "failed", "sub/a": "cancelled", "sub/b": "cancelled",
    }  # fmt: skip


def test_text_becomes_a_value_of_the_type_that_the_inner_recipe_declares():
    inner = """
name: inner
inputs: {n: {type: number}, on: {type: boolean}, items: {type: json}}
steps:
  - {id: a, subagent: worker, prompt: "{{inputs.n}} {{inputs.on}} {{inputs.items[1]}}"}
"""
    step = '{id: sub, workflow: inner, inputs: {n: "{{steps.first.output.n}}", on: "{{steps.first.output.on}}", items: "{{steps.first.output.all}}"}}'
    first = {"n": "3", "on": "true", "all": 'These: ```json\n["x", "y"]\n```'}
    run = drive(outer(step), {"first": Give(first)}, inner=inner)
    assert run.prompt("sub/a") == "3 true y"


def test_a_step_that_is_skipped_skips_all_in_it():
    inner = INNER.replace("{id: b,", "{id: mid, workflow: deep}\n  - {id: b,")
    deep = "name: deep\nsteps: [{id: x, subagent: worker, prompt: x}]"
    text = outer("{id: sub, workflow: inner, inputs: {topic: x}, when: '1 > 2', depends_on: first}")
    run = drive(text, inner=inner, deep=deep)
    assert run.started == ["first"]
    ended = run.statuses()
    assert ended.pop("first") == "succeeded"
    assert ended == dict.fromkeys(("sub", "sub/a", "sub/mid", "sub/mid/x", "sub/b"), "skipped")
    assert run.status == "complete"


def test_a_condition_may_choose_a_workflow_and_has_its_output():
    text = """
name: outer
steps:
  - {id: route, condition: {eval: "1 < 2", "true": yes-way, "false": no-way}}
  - {id: yes-way, workflow: inner, inputs: {topic: x}}
  - {id: no-way, workflow: inner, inputs: {topic: y}}
  - {id: last, subagent: worker, prompt: "{{steps.route.output}} by {{steps.route.chosen}}"}
"""
    run = drive(text, {"yes-way/b": "taken"}, inner=INNER)
    assert run.prompt("last") == "taken by yes-way"
    assert run.statuses()["no-way/a"] == "skipped"


def test_a_condition_inside_names_what_it_chose_as_its_own_recipe_does():
    inner = """
name: inner
steps:
  - {id: route, condition: {eval: "1 < 2", "true": x, "false": y}}
  - {id: x, subagent: worker, prompt: x}
  - {id: y, subagent: worker, prompt: y}
  - {id: z, subagent: worker, prompt: "{{steps.route.chosen}}: {{steps.route.output}}"}
"""
    run = drive(outer("{id: sub, workflow: inner}"), inner=inner)
    assert run.prompt("sub/z") == "x: sub/x"


WRAPPED = """
workflow:
  name: wrapped
  agents: {local: {prompt: You are inner.}}
  steps:
    - {id: one, agent: local}
    - {id: two, agent: local}
    - {id: three, agent: local}
"""


@pytest.mark.parametrize(
    ("policy", "status", "later"),
    [("inline", "partial", "succeeded"), ("skip", "partial", "succeeded"), ("block", "partial", "held"), ("abort", "failed", "cancelled")],
)  # fmt: skip
def test_a_failure_that_ends_the_inner_recipe_fails_the_step_and_its_policy_decides(
    policy, status, later
):
    rest = '  - {id: last, subagent: worker, prompt: "{{steps.sub.output}}"}\n'
    text = outer(f"{{id: sub, workflow: wrapped, on_failure: {policy}}}", rest)
    run = drive(text, {"sub/two": Fail("no")}, wrapped=WRAPPED)
    assert run.status == status
    ended = run.statuses()
    assert (ended["sub"], ended["sub/one"], ended["sub/three"]) == (
        "failed",
        "succeeded",
        "cancelled",
    )
    assert ended["last"] == later
    assert run.state.steps[StepId("sub")].error == "step 'sub/two' failed: no"


def test_a_failure_that_the_inner_recipe_lets_pass_leaves_the_step_its_output():
    text = outer("{id: sub, workflow: inner, inputs: {topic: x}}")
    run = drive(text, {"sub/a": Fail("no"), "sub/b": "done"}, inner=INNER)
    assert (run.statuses()["sub"], run.status, run.output) == ("succeeded", "partial", "done")
    run = drive(text, {"sub/b": Fail("no")}, inner=INNER)
    assert run.statuses()["sub"] == "failed"
    assert "workflow 'inner' gave no output: step 'sub/b' failed: no" in str(
        run.state.steps[StepId("sub")].error
    )


def test_the_timeout_of_the_step_and_that_of_the_recipe_both_count():
    hang: Script = {"sub/a": Hang()}
    run = drive(
        outer("{id: sub, workflow: inner, inputs: {topic: x}, timeout: 5s}"), hang, inner=INNER
    )
    assert run.state.steps[StepId("sub")].error == "the step timed out after 5s"
    assert run.statuses()["sub/a"] == run.statuses()["sub/b"] == "cancelled"
    timed = INNER + "timeout: 3s\n"
    run = drive(
        outer("{id: sub, workflow: inner, inputs: {topic: x}, timeout: 5s}"), hang, inner=timed
    )
    assert run.state.steps[StepId("sub")].error == "the step timed out after 3s"
    run = drive(outer("{id: sub, workflow: inner, inputs: {topic: x}}"), hang, inner=timed)
    assert run.state.steps[StepId("sub")].error == "the step timed out after 3s"


def asked(run: Driven) -> list[str]:
    return [str(step) for step in run.state.awaiting_approval]


def test_a_gate_inside_waits_for_a_person_and_so_does_the_step():
    inner = INNER.replace("{id: b,", "{id: b, gate: human,")
    text = outer(
        "{id: sub, workflow: inner, inputs: {topic: x}}",
        '  - {id: last, subagent: worker, prompt: "{{steps.sub.output}}"}\n',
    )
    run = drive(text, inner=inner)
    assert (asked(run), run.status) == (["sub/b"], "waiting")
    sub = run.state.steps[StepId("sub")]
    assert step_word(sub) == "waiting"
    assert why_waiting(run.state, StepId("sub")) == "waits for approval of sub/b"
    answer(run, "sub/b")
    assert run.status == "complete"


def answer(run: Driven, step: str, *, is_approved: bool = True) -> None:
    """As the driver does: the question is put on record, then a person decides about it."""
    question = question_of(run.state, run.state.steps[StepId(step)])
    run.see(ApprovalRequested(run.now, StepId(step), question.key, question.about))
    decision = Approved if is_approved else Rejected
    run.see(decision(run.now, StepId(step), key=question.key))
    run.run()


def test_a_gate_of_the_step_holds_all_that_is_in_it():
    text = outer("{id: sub, workflow: inner, gate: human, inputs: {topic: x}}")
    run = drive(text, inner=INNER)
    assert (asked(run), run.started) == (["sub"], ["first"])
    answer(run, "sub")
    assert run.started == ["first", "sub/a", "sub/b"]
    run = drive(text, inner=INNER)
    answer(run, "sub", is_approved=False)
    assert run.statuses()["sub/a"] == "cancelled"
    assert run.statuses()["sub"] == "failed"


def test_an_approval_of_the_step_is_for_its_inputs_and_for_the_recipe_as_it_was():
    def key(inner: str, first: str = "x") -> str:
        text = outer(
            '{id: sub, workflow: inner, gate: human, inputs: {topic: "{{steps.first.output}}"}}'
        )
        run = drive(text, {"first": first}, inner=inner)
        return question_of(run.state, run.state.steps[StepId("sub")]).key

    assert key(INNER) == key(INNER)
    assert key(INNER) != key(INNER, "y")
    assert key(INNER) != key(INNER.replace("Write of", "Tell of"))


def test_a_run_that_is_cancelled_ends_the_step_and_those_in_it():
    plan, _ = bind_plan(planned(OUTER, inner=INNER), {})
    run = Driven(plan, {"sub/a": Hang()}).start().run()
    run.see(CancelRequested(run.now, "enough"))
    run.run()
    assert run.status == "cancelled"
    assert run.statuses() == {
        "first": "succeeded", "sub": "cancelled", "sub/a": "cancelled", "sub/b": "cancelled",
        "last": "cancelled",
    }  # fmt: skip


def test_an_inner_recipe_keeps_its_own_agents_and_those_of_the_outer_one_stay_apart():
    text = """
workflow:
  name: outer
  agents: {local: {prompt: You are outer.}}
  steps:
    - {id: first, agent: local}
    - {id: sub, workflow: wrapped}
"""
    run = drive(text, wrapped=WRAPPED)
    assert run.prompt("first") == "You are outer."
    assert run.prompt("sub/one") == "You are inner."
    assert run.command("sub/one").request.agent == "local"


def test_all_prior_context_and_results_of_dependencies_are_those_of_the_inner_recipe():
    inner = """
name: inner
steps:
  - {id: a, agent: worker, task: Look}
  - {id: b, agent: worker, task: Write, depends_on: a}
  - {id: c, agent: worker, input: all prior context}
"""
    run = drive(
        outer("{id: sub, workflow: inner}"), {"first": "OUTER", "sub/a": "found"}, inner=inner
    )
    assert "### a\nfound" in run.prompt("sub/b")
    assert "### b" in run.prompt("sub/c")
    assert "OUTER" not in run.prompt("sub/b") + run.prompt("sub/c")
    assert run.output == {"a": "found", "b": "sub/b", "c": "sub/c"}


def test_loops_and_maps_inside_see_their_own_recipe():
    inner = """
name: inner
inputs: {all: {type: json}}
steps:
  - id: each
    map: {over: "{{inputs.all}}", agent: worker, prompt: "{{item}} of {{inputs.all}}"}
  - id: again
    prompt: Try
    loop: {agent: worker, until: "steps.again.output == 'good'", max_iterations: 3}
  - id: judged
    prompt: Try
    loop: {agent: worker, validator: other, feedback_path: "{{steps.judged.output.note}}"}
"""
    text = outer('{id: sub, workflow: inner, inputs: {all: "{{steps.first.output}}"}}')
    script: Script = {
        "first": Give([1, 2]),
        "sub/again": ["bad", "good"],
        "sub/judged/check.1": Give({"passed": False, "note": "more"}),
        "sub/judged/check.2": Give({"passed": True}),
    }
    run = drive(text, script, inner=inner)
    assert run.prompt("sub/each", "item.1.stage.0") == "2 of [1,2]"
    assert run.started.count("sub/again") == 2
    assert "more" in run.prompt("sub/judged", "try.2")
    assert run.status == "complete", run.warnings()


def test_the_width_and_the_budget_are_those_of_the_run():
    many = "name: many\nmax_concurrency: 50\nbudget: {agents: 1}\nsteps:\n" + "".join(
        f"  - {{id: s{i}, subagent: worker, prompt: x}}\n" for i in range(6)
    )
    plan, _ = bind_plan(
        planned("max_concurrency: 2\n" + outer("{id: sub, workflow: many}"), many=many), {}
    )
    run = Driven(plan).start()
    most = 0
    while run.step():
        most = max(most, run.state.open_attempts)
    assert (most, run.status, run.state.deployed) == (2, "complete", 7)
    spent = drive("budget: {agents: 3}\n" + outer("{id: sub, workflow: many}"), many=many)
    assert spent.status == "failed"
    assert spent.statuses()["sub"] == "cancelled"


def test_a_folded_journal_gives_the_same_run():
    run = drive(OUTER, inner=INNER)
    again = Driven(run.plan)
    for event in run.journal:
        advance(again.state, event)
    assert again.statuses() == run.statuses()
    assert again.output == run.output


def test_what_is_given_is_inserted_once_and_never_scanned_again():
    sly = "{{inputs.n}} {{steps.a.output}} {{run.id}}"
    run = drive(OUTER, {"first": sly}, inner=INNER)
    assert run.prompt("sub/a") == f"Look at {sly}, 3 times"


def test_a_large_output_leaves_memory_wherever_it_is_the_output():
    run = drive(OUTER, {"sub/b": "much"}, inner=INNER)
    event = next(e for e in run.journal if isinstance(e, AttemptSucceeded) and e.step == "sub/b")
    large = Large("digest", 4, lambda digest: "much")
    release_output(run.state, event, large)
    assert [run.state.steps[StepId(id)].kept_output for id in ("sub/b", "sub")] == [large, large]
    assert run.state.steps[StepId("sub")].output == "much"
