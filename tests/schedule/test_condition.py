"""Conditions, and skips that travel."""

import pytest

from stretto.vocabulary.amounts import Limits
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import RunStatus
from support.scheduling import Fail, drive, plan_of

ROUTE = """
name: t
steps:
  - {id: score, subagent: worker, prompt: go}
  - id: gate
    condition: {eval: "{{steps.score.output.n}} >= 80", true: hot, false: cold}
  - {id: hot, subagent: worker, prompt: go}
  - {id: cold, subagent: worker, prompt: go}
  - {id: after-hot, subagent: worker, prompt: go, depends_on: [hot]}
  - id: join
    subagent: worker
    prompt: "h={{steps.hot.output}} c={{steps.cold.output}}"
"""
SWITCH = """
name: t
steps:
  - {id: kind, subagent: worker, prompt: go}
  - id: pick
    switch: {value: "{{steps.kind.output}}", cases: {Bug: fix, "1": one}, default: other-step}
  - {id: fix, subagent: worker, prompt: go}
  - {id: one, subagent: worker, prompt: go}
  - {id: other-step, subagent: worker, prompt: go}
"""


def test_a_true_condition_runs_its_step_and_skips_the_other() -> None:
    run = drive(ROUTE, {"score": '{"n": 90}'})
    assert run.state.steps[StepId("gate")].chosen == "hot"
    assert run.statuses()["cold"] == "skipped"
    assert run.prompt("join") == "h=hot c="
    assert run.status is RunStatus.COMPLETE
    assert run.warnings() == ""


def test_skips_travel_until_a_join_with_a_live_dependency() -> None:
    run = drive(ROUTE, {"score": '{"n": 10}'})
    statuses = run.statuses()
    assert (statuses["hot"], statuses["after-hot"]) == ("skipped", "skipped")
    assert (statuses["cold"], statuses["join"]) == ("succeeded", "succeeded")
    assert run.status is RunStatus.COMPLETE


def test_an_undecided_condition_takes_the_false_branch_with_a_warning() -> None:
    run = drive(ROUTE, {"score": "no number here"})
    assert run.state.steps[StepId("gate")].chosen == "cold"
    assert "undecided" in run.warnings()


def test_a_missing_target_means_nothing() -> None:
    recipe = """
name: t
steps:
  - {id: gate, condition: {eval: "1 > 2", true: hot}}
  - {id: hot, subagent: worker, prompt: go}
"""
    run = drive(recipe)
    gate = run.state.steps[StepId("gate")]
    assert (gate.output, gate.chosen) == (None, None)
    assert run.statuses() == {"gate": "succeeded", "hot": "skipped"}
    assert run.status is RunStatus.PARTIAL  # it has no output


def test_an_agent_runs_in_place_and_gives_the_steps_output() -> None:
    recipe = """
name: t
steps:
  - {id: gate, condition: {eval: "2 > 1", true: worker, false: other}, prompt: "do it"}
"""
    run = drive(recipe, {"worker": "done"})
    assert (run.started, run.prompt("gate"), run.output) == (["gate"], "do it", "done")


def test_an_agent_in_place_that_fails_fails_the_step() -> None:
    recipe = """
name: t
steps:
  - {id: gate, condition: {eval: "2 > 1", true: worker}, prompt: go, on_failure: block}
  - {id: next, subagent: worker, prompt: go, depends_on: [gate]}
"""
    assert drive(recipe, {"gate": Fail()}).statuses() == {"gate": "failed", "next": "held"}


def test_a_target_that_also_writes_its_dependency_still_needs_to_be_chosen() -> None:
    recipe = """
name: t
steps:
  - {id: gate, condition: {eval: "1 > 2", true: hot, false: cold}}
  - {id: hot, subagent: worker, prompt: go, depends_on: [gate]}
  - {id: cold, subagent: worker, prompt: go, depends_on: [gate]}
"""
    assert drive(recipe).started == ["cold"]


def test_a_step_that_any_route_chose_runs() -> None:
    recipe = """
name: t
steps:
  - {id: slow, subagent: worker, prompt: go}
  - {id: no, condition: {eval: "1 > 2", true: shared}}
  - {id: yes, condition: {eval: "steps.slow.output == 'slow'", true: shared}}
  - {id: shared, subagent: worker, prompt: go}
"""
    assert drive(recipe).started == ["slow", "shared"]


def test_a_target_that_was_not_chosen_is_skipped_once_everything_before_it_has_ended() -> None:
    recipe = """
name: t
steps:
  - {id: slow, subagent: worker, prompt: go}
  - {id: gate, condition: {eval: "1 > 2", true: shared}}
  - {id: shared, subagent: worker, prompt: go, depends_on: [slow]}
"""
    run = drive(recipe)
    assert run.statuses()["shared"] == "skipped"
    assert run.state.steps[StepId("shared")].ended_at == 1


def test_a_target_that_is_held_is_held_whatever_the_condition_says() -> None:
    recipe = """
name: t
steps:
  - {id: slow, subagent: worker, prompt: go, on_failure: block}
  - {id: gate, condition: {eval: "1 > 2", true: shared}}
  - {id: shared, subagent: worker, prompt: go, depends_on: [slow]}
"""
    assert drive(recipe, {"slow": Fail()}).statuses()["shared"] == "held"


def test_the_targets_of_a_skipped_condition_are_skipped() -> None:
    recipe = """
name: t
steps:
  - {id: gate, when: "false", condition: {eval: "2 > 1", true: hot}}
  - {id: hot, subagent: worker, prompt: go}
"""
    assert drive(recipe).statuses() == {"gate": "skipped", "hot": "skipped"}


@pytest.mark.parametrize(
    ("said", "chosen"),
    [
        ("Bug", "fix"),
        (" Bug\n", "fix"),
        (1, "one"),
        ("1", "one"),
        (1.0, "one"),
        ("else", "other-step"),
    ],
)
def test_a_switch_takes_the_case_that_means_the_same(said: str | float, chosen: str) -> None:
    run = drive(SWITCH, {"kind": said})
    assert run.started == ["kind", chosen]
    assert run.warnings() == ""


@pytest.mark.parametrize("said", ["bug", "**Bug**", '"Bug".'])
def test_a_case_that_is_nearly_the_value_is_warned_of(said: str) -> None:
    run = drive(SWITCH, {"kind": said})
    assert run.started == ["kind", "other-step"]
    assert "differ only in capitals or punctuation" in run.warnings()


def test_an_undecided_switch_takes_the_default_with_a_warning() -> None:
    run = drive(SWITCH.replace("{{steps.kind.output}}", "{{steps.kind.output.type}}"))
    assert run.started == ["kind", "other-step"]
    assert "undecided" in run.warnings()


def test_thousands_of_skips_need_no_stack() -> None:
    steps = "".join(
        f"  - {{id: s{n}, subagent: worker, prompt: go, depends_on: [s{n - 1}]}}\n"
        for n in range(1, 2_000)  # twice what the stack would hold
    )
    recipe = 'name: t\nsteps:\n  - {id: s0, subagent: worker, prompt: go, when: "false"}\n' + steps
    limits = Limits(text_bytes=1 << 24, nodes=1_000_000, steps=10_000)
    run = drive(plan_of(recipe, limits))
    assert set(run.statuses().values()) == {"skipped"}
    assert run.ended == [RunStatus.PARTIAL]  # it has no output


WRAPPED = """
workflow:
  name: t
  agents: {one: {prompt: go}}
  steps:
    - {id: score, agent: one}
    - {id: route, condition: {eval: "{{steps.score.output.n}} >= 80", true: hot, false: cold}}
    - {id: hot, agent: one}
    - {id: cold, agent: one}
"""


@pytest.mark.parametrize(("score", "chosen"), [(90, "hot"), (10, "cold")])
def test_the_output_of_a_condition_is_that_of_the_step_it_chose(score: int, chosen: str) -> None:
    use = "    - {id: use, agent: one, input: '{{steps.route.chosen}}: {{steps.route.output}}'}\n"
    script = {"score": f'{{"n": {score}}}', "hot": "hot words", "cold": "cold words"}
    run = drive(WRAPPED + use, script)
    assert run.prompt("use") == f"go\n\n## Input\n\n{chosen}: {chosen} words"
    assert run.state.steps[StepId("route")].output == f"{chosen} words"
    assert run.started == ["score", chosen, "use"]


def test_an_agent_in_place_is_what_the_condition_chose() -> None:
    recipe = """
name: t
steps:
  - {id: gate, condition: {eval: "2 > 1", true: worker, false: other}, prompt: "do it"}
  - {id: use, subagent: worker, prompt: "{{steps.gate.chosen}}: {{steps.gate.output}}"}
"""
    assert drive(recipe, {"gate": "done"}).prompt("use") == "worker: done"


def test_a_condition_that_chose_a_condition_has_the_output_of_the_last() -> None:
    recipe = """
name: t
steps:
  - {id: first, condition: {eval: "2 > 1", true: second}}
  - {id: second, condition: {eval: "2 > 1", true: hot}}
  - {id: hot, subagent: worker, prompt: go}
  - {id: use, subagent: worker, prompt: "{{steps.first.output}} {{steps.first.chosen}}"}
"""
    assert drive(recipe, {"hot": "words"}).prompt("use") == "words second"


def test_the_error_of_a_chosen_step_is_no_output_of_the_run() -> None:
    recipe = """
name: t
steps:
  - {id: look, subagent: worker, prompt: go}
  - {id: hot, subagent: worker, prompt: go}
  - {id: route, condition: {eval: "steps.look.output == 'look'", true: hot}}
"""
    run = drive(recipe, {"hot": Fail("it broke")})
    assert "it broke" in str(run.state.steps[StepId("route")].output)
    assert (run.output, run.status) == ("look", RunStatus.PARTIAL)
    named = drive(recipe + 'output: "{{steps.route.output}}"\n', {"hot": Fail("it broke")})
    assert named.output is None


def test_all_prior_context_has_the_output_of_a_chosen_step_once() -> None:
    last = "    - {id: last, agent: one, input: all prior context}\n"
    run = drive(WRAPPED + last, {"score": '{"n": 90}', "hot": "hot words"})
    assert run.prompt("last").endswith('### score\n{"n": 90}\n\n### hot\nhot words')


def test_a_step_that_needs_only_a_skipped_one_is_skipped_whatever_stands_before_it() -> None:
    rest = """
    - {id: between, agent: one, depends_on: [score]}
    - {id: mail, agent: one, input: "{{steps.cold.output}}"}
    - {id: end, agent: one}
"""
    run = drive(WRAPPED + rest, {"score": '{"n": 90}'})
    statuses = run.statuses()
    assert (statuses["between"], statuses["cold"]) == ("succeeded", "skipped")
    assert statuses["mail"] == "skipped"
    assert statuses["end"] == "succeeded"  # it only stands behind others in the list
    assert run.status is RunStatus.COMPLETE


@pytest.mark.parametrize("use", ["hot", "cold"])
def test_a_step_inside_a_way_runs_only_with_its_way(use: str) -> None:
    rest = f"    - {{id: more, agent: one, input: '{{{{steps.{use}.output}}}}'}}\n"
    run = drive(WRAPPED + rest, {"score": '{"n": 90}'})
    assert run.statuses()["more"] == ("succeeded" if use == "hot" else "skipped")
