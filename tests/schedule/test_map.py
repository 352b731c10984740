"""Maps."""

import pytest

from stretto.events.attempts import AttemptId, ItemPart
from stretto.schedule.commands import CancelAttempt
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import RunStatus
from support.scheduling import Driven, Fail, Give, Hang, Reply, Script, drive, plan_of

MAP = """
workflow:
  name: t
  inputs: [{{name: list, type: json}}]
  agents:
    worker: {{prompt: "{worker}"}}
    sum: {{prompt: You sum.}}
  steps:
    - id: each
      {extra}
      map: {{over: "{{{{inputs.list}}}}", agent: worker{map}}}
"""


def each(map: str = "", worker: str = "You work.", extra: str = "") -> str:
    return MAP.format(map=map, worker=worker, extra=extra)


def replies(**by_item: object) -> Script:
    return {f"each/item.{n[1:]}.stage.0": reply for n, reply in by_item.items()}  # type: ignore


def test_every_element_is_one_delegation_and_results_keep_their_order() -> None:
    run = drive(each(), replies(i0=Give("A", after=9), i1="B"), list=["a", "b"])
    assert [start.attempt.part.text for start in run.starts] == ["item.0.stage.0", "item.1.stage.0"]
    assert run.output == ["A", "B"]
    assert run.status is RunStatus.COMPLETE


def test_templates_may_name_the_item_its_fields_and_its_index() -> None:
    recipe = each(', input: "{{index}}: {{item.name}} {{item}}"')
    run = drive(recipe, list=[{"name": "x"}])
    assert run.prompt("each", "item.0.stage.0").endswith('## Input\n\n0: x {"name":"x"}')


def test_without_an_input_the_element_itself_is_the_input() -> None:
    run = drive(each(), list=["a"])
    assert run.prompt("each", "item.0.stage.0") == "You work.\n\n## Input\n\na"


def test_an_agent_whose_own_prompt_names_the_item_gets_it_there_only() -> None:
    run = drive(each(worker="Do {{item}}."), list=["a"])
    assert run.prompt("each", "item.0.stage.0") == "Do a."


def test_at_most_batch_size_elements_are_under_way() -> None:
    run = Driven(plan_of(each(", batch_size: 2")), inputs={"list": [1, 2, 3, 4, 5]}).start()
    most = 0
    while run.step():
        most = max(most, run.state.open_attempts)
    assert most == 2
    assert len(run.starts) == 5


def test_the_reducer_gets_the_collected_list() -> None:
    run = drive(each(", reduce: sum"), {"worker": "r", "sum": "all"}, list=[1, 2])
    assert run.prompt("each", "reduce") == 'You sum.\n\n## Input\n\n["r","r"]'
    assert run.output == "all"


def test_an_empty_list_succeeds_at_once() -> None:
    assert drive(each(), list=[]).output == []


def test_the_reducer_gets_even_an_empty_list() -> None:
    run = drive(each(", reduce: sum"), list=[])
    assert run.prompt("each", "reduce") == "You sum.\n\n## Input\n\n[]"


def test_text_that_holds_a_list_is_read() -> None:
    recipe = """
name: t
steps:
  - {id: split, subagent: worker, prompt: go}
  - {id: each, map: {over: "{{steps.split.output}}", agent: worker}, prompt: "{{item}}"}
"""
    assert drive(recipe, {"split": 'Here: ["x", "y"]', "each": "r"}).output == ["r", "r"]


def test_what_is_no_list_fails_the_step() -> None:
    run = drive(each(), list={"a": 1})
    assert run.state.steps[StepId("each")].error == "{{inputs.list}} is an object, not a list"
    assert run.ended == [RunStatus.FAILED]


def test_more_elements_than_max_items_fail_the_step() -> None:
    run = drive(each(", max_items: 2"), list=[1, 2, 3])
    assert run.starts == []
    assert "more than max_items (2)" in (run.state.steps[StepId("each")].error or "")


def test_a_failed_item_that_is_inlined_leaves_its_error_text() -> None:
    recipe = each(", on_item_failure: inline")
    run = drive(recipe, replies(i1=Fail("bad")), list=[1, 2, 3])
    assert isinstance(run.output, list)
    assert run.output[1] == "Error: step 'each' failed: item 1: bad"
    assert run.ended == [RunStatus.PARTIAL]
    assert "item 1 failed: bad" in run.warnings()


def test_a_failed_item_that_is_skipped_leaves_null() -> None:
    run = drive(each(", on_item_failure: skip"), replies(i1=Fail("bad")), list=[1, 2])
    assert isinstance(run.output, list)
    assert run.output[1] is None
    assert run.ended == [RunStatus.PARTIAL]


AFTER = '    - {id: after, agent: sum, input: "see {{steps.each.output}}"}\n'


@pytest.mark.parametrize(
    ("policy", "seen"),
    [
        ("skip", "see "),
        ("inline", "see Error: step 'each' failed: 2 of 2 items failed: item 0: bad; item 1: ill"),
    ],
)
@pytest.mark.parametrize("reducer", ["", ", reduce: sum"])
def test_a_map_all_of_whose_items_failed_has_failed_and_its_dependents_run(
    policy: str, seen: str, reducer: str
) -> None:
    recipe = each(f", on_item_failure: {policy}{reducer}")
    script = replies(i0=Fail("bad"), i1=Fail("ill"))
    alone = drive(recipe, script, list=[1, 2])
    assert alone.statuses() == {"each": "failed"}
    assert alone.output is None
    assert alone.ended == [RunStatus.FAILED]
    followed = drive(recipe + AFTER, script, list=[1, 2])
    assert followed.statuses() == {"each": "failed", "after": "succeeded"}
    assert followed.prompt("after").endswith(seen)
    assert followed.ended == [RunStatus.PARTIAL]


def test_a_run_whose_only_step_failed_has_failed_though_an_item_was_answered() -> None:
    run = drive(each(extra="on_failure: block"), replies(i1=Fail("bad")), list=[1, 2])
    assert run.statuses() == {"each": "failed"}
    assert run.ended == [RunStatus.FAILED]


def test_a_failed_item_that_aborts_fails_the_step_at_once() -> None:
    script = replies(i0=Hang(), i1=Fail("bad"))
    run = drive(each(", on_item_failure: abort"), script, list=[1, 2])
    assert CancelAttempt(AttemptId(StepId("each"), 1, ItemPart(0, 0))) in run.commands
    assert run.state.steps[StepId("each")].error == "item 1 failed: bad"
    assert run.ended == [RunStatus.FAILED]


def test_without_a_word_the_step_fails_after_all_items_have_ended() -> None:
    script = replies(i0=Fail("bad"), i1=Give("late", after=30))
    run = drive(each(), script, list=[1, 2])
    assert run.state.steps[StepId("each")].ended_at == 30
    assert run.state.steps[StepId("each")].error == "1 of 2 items failed: item 0: bad"


def test_the_item_agents_own_policy_counts_when_the_map_says_nothing() -> None:
    recipe = each().replace('You work."', 'You work.", retry: {on_failure: skip}')
    run = drive(recipe, replies(i0=Fail("bad")), list=[1, 2])
    assert run.output == [None, "each/item.1.stage.0"]


def test_five_equal_failures_in_a_row_stop_the_map() -> None:
    recipe = each(", on_item_failure: skip, batch_size: 1")
    run = drive(recipe, {"each": Fail("no key")}, list=list(range(50)))
    assert len(run.starts) == 5
    error = run.state.steps[StepId("each")].error
    assert error == "stopped after 5 equal failures: no key"
    assert run.ended == [RunStatus.FAILED]


def test_failures_that_differ_or_do_not_follow_each_other_stop_nothing() -> None:
    failures: list[Reply] = [
        Fail("a"),
        Fail("a"),
        Fail("a"),
        Fail("a"),
        "fine",
        Fail("a"),
        Fail("b"),
    ]
    recipe = each(", on_item_failure: skip, batch_size: 1")
    run = drive(recipe, {"each": failures}, list=list(range(8)))
    assert len(run.starts) == 8


STAGES = """
name: t
inputs: [{name: list, type: json}]
steps:
  - id: each
    map:
      over: "{{inputs.list}}"
      stages:
        - {agent: worker, prompt: "read {{item}}"}
        - {agent: other, prompt: "sum {{item}} ({{index}})"}
"""


def test_an_element_enters_its_next_stage_without_waiting_for_the_others() -> None:
    script: Script = {
        "each/item.0.stage.0": Give("slow", after=50),
        "each/item.1.stage.0": "quick",
        "each/item.1.stage.1": "done",
    }
    run = drive(STAGES, script, list=["a", "b"])
    assert [start.attempt.part.text for start in run.starts] == [
        "item.0.stage.0",
        "item.1.stage.0",
        "item.1.stage.1",
        "item.0.stage.1",
    ]
    assert run.prompt("each", "item.1.stage.1") == "sum quick (1)"
    assert run.output == ["each/item.0.stage.1", "done"]


def test_a_stage_that_is_told_nothing_gets_the_previous_output_as_its_input() -> None:
    recipe = """
workflow:
  name: t
  agents: {a: {prompt: First.}, b: {prompt: Second.}}
  steps: [{id: each, map: {over: '["x"]', stages: [{agent: a}, {agent: b}]}}]
"""
    run = drive(recipe, {"a": "from a"})
    assert run.prompt("each", "item.0.stage.0") == "First.\n\n## Input\n\nx"
    assert run.prompt("each", "item.0.stage.1") == "Second.\n\n## Input\n\nfrom a"


def test_a_map_over_text_says_that_it_is_text() -> None:
    run = drive(
        """
name: t
steps:
  - {id: list, subagent: worker, prompt: go}
  - {id: each, map: {over: "{{steps.list.output}}", agent: worker}}
""",
        {"list": "Tea, coffee and water."},
    )
    assert run.state.steps["each"].error is not None
    assert (
        '{{steps.list.output}} is text without a JSON list in it ("Tea, coffee and water."), not a list'
        in run.state.steps["each"].error
    )
