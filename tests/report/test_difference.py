from stretto.report.difference import difference, difference_as_text
from stretto.report.report import report_of
from support.reported_runs import EVIL, Fail, Give, driven, priced

_RECIPE = """
name: brief
inputs: [{name: topic}]
agents: {writer: {prompt: "You write."}, critic: {prompt: "You judge.", tools: [Read]}}
steps:
  - {id: gather, agent: writer, prompt: "Research {{inputs.topic}}"}
  - {id: angles, agent: writer, prompt: "Angles of {{steps.gather.output}}"}
  - {id: fixed, agent: critic, prompt: "Always the same"}
"""


def _run(recipe=_RECIPE, script=None, topic="looms"):
    return driven(recipe, script, topic=topic).state


def _changes(a, b, step):
    (found,) = [each for each in difference(a, b).steps if each.id == step]
    return {change.what: (change.before, change.after) for change in found.changes}


def test_equal_runs_do_not_differ():
    same = difference(_run(), _run())
    assert same.is_empty
    assert same.same == 3
    assert difference_as_text(same).endswith("The two runs do not differ.")


def test_reports_and_states_are_compared_alike():
    a, b = _run(), _run(topic="mills")
    assert difference(a, b) == difference(report_of(a), report_of(b))


def test_another_input_is_named_where_it_was_read():
    a, b = _run(), _run(topic="mills")
    assert _changes(a, b, "gather") == {"gets other input from": (None, "input topic")}
    assert [step.id for step in difference(a, b).steps] == ["gather"]


def test_another_output_before_it_is_named():
    a, b = _run(script={"gather": "one"}), _run(script={"gather": "two"})
    assert _changes(a, b, "gather") == {"output": ("one", "two")}
    assert _changes(a, b, "angles") == {"gets other input from": (None, "the output of gather")}


def test_another_prompt_agent_tool_and_model_are_named():
    changed = (
        _RECIPE.replace("Always the same", "Now another")
        .replace("You judge.", "You judge well.")
        .replace("tools: [Read]", "tools: [Read, Grep], model: big")
        .replace('id: gather, agent: writer', 'id: gather, agent: critic')
    )  # fmt: skip
    fixed = _changes(_run(), _run(changed), "fixed")
    assert fixed["prompt"] == ("Always the same", "Now another")
    assert fixed["instructions"] == ("You judge.", "You judge well.")
    assert fixed["tools"] == ("Read", "Grep, Read")
    assert fixed["model asked for"] == ("", "big")
    assert _changes(_run(), _run(changed), "gather")["agent"] == ("writer", "critic")


def test_status_error_attempts_duration_and_cost_are_compared():
    flaky = _RECIPE.replace('"You judge.",', '"You judge.", retry: {max_attempts: 2},')
    a = _run(flaky, {"fixed": priced("x", 0.5)})
    b = _run(flaky, {"fixed": [Fail("down", after=9), Fail("down", after=9)]})
    fixed = _changes(a, b, "fixed")
    assert fixed["status"] == ("succeeded", "failed")
    assert fixed["error"] == ("", "down")
    assert fixed["attempts"] == ("1", "2")
    assert fixed["duration"] == ("1s", "18s")
    assert fixed["cost"] == ("$0.5000", "-")


def test_a_duration_that_differs_by_chance_is_not_told():
    assert difference(_run(), _run(script={"fixed": Give("fixed", after=1.4)})).is_empty


def test_steps_of_one_run_only_are_told():
    a, b = _run(), _run(_RECIPE.replace("id: fixed", "id: other"))
    found = {step.id: step.only_in for step in difference(a, b).steps}
    assert found == {"fixed": "a", "other": "b"}
    assert "step other: only in b (succeeded)" in difference_as_text(difference(a, b))


def test_longer_outputs_are_shown_as_a_short_diff():
    a = _run(script={"fixed": "one\ntwo\nthree"})
    b = _run(script={"fixed": "one\n2\nthree"})
    assert "    -two\n    +2\n" in difference_as_text(difference(a, b))
    many = "\n".join(str(number) for number in range(3000))
    long = difference_as_text(difference(a, _run(script={"fixed": many})))
    assert len(long.splitlines()) < 120
    assert "lines more" in long


def test_no_control_character_reaches_the_terminal():
    text = difference_as_text(difference(_run(), _run(script={"fixed": EVIL, "gather": EVIL})))
    assert "\x1b" not in text
    text.encode()
