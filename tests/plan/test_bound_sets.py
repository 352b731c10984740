"""Sets and timeouts that are made from inputs, before the run exists."""

import pytest

from stretto.globs.glob import parse_globs
from stretto.plan.bound_sets import bind_plan
from stretto.plan.model import Plan, decode_plan, encode_plan
from stretto.plan.waves import waves
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import AgentId
from support.recipes import plan_of, problem_of

RECIPE = """
name: t
inputs:
  - {name: a}
  - {name: b, default: docs}
  - {name: files, type: json}
  - {name: limit, default: 3m}
TIMEOUT
steps:
  - {id: one, subagent: writer, prompt: x, posture: writer, write_set: SET}
  - {id: two, subagent: writer, prompt: x, posture: writer, write_set: ["{{inputs.b}}/**"]}
"""


def planned(written: str = '["{{inputs.a}}"]', timeout: str = "") -> Plan:
    return plan_of(plan_text(timeout, written))


def plan_text(timeout: str, written: str = "[x]") -> str:
    return RECIPE.replace("SET", written).replace("TIMEOUT", timeout)


def bound(plan: Plan, **inputs: Json) -> Plan:
    result, problems = bind_plan(plan, {"b": "docs", "limit": "3m", **inputs})
    assert problems == ()
    return result


def refusals(plan: Plan, **inputs: Json) -> list[str]:
    _, problems = bind_plan(plan, {"b": "docs", "limit": "3m", **inputs})
    return [problem.code for problem in problems]


def test_a_set_is_made_from_inputs_and_conflicts_are_planned_with_it() -> None:
    plan = planned()
    assert waves(plan) == (("one",), ("two",))  # until it is known, everything is claimed
    apart = bound(plan, a="src/a.py")
    assert apart.steps[0].write_set == ("src/a.py",)
    assert waves(apart) == (("one", "two"),)
    assert waves(bound(plan, a="docs/a.md")) == (("one",), ("two",))


def test_a_stored_plan_can_be_bound_again_with_other_inputs() -> None:
    plan = decode_plan(encode_plan(bound(planned(), a="src")))
    assert bound(plan, a="lib").steps[0].write_set == ("lib",)


def test_a_list_stands_for_its_elements() -> None:
    plan = planned('"{{inputs.files}}"')
    assert bound(plan, files=["x.py", "y/z.py"]).steps[0].write_set == ("x.py", "y/z.py")
    assert refusals(plan, files=[]) == ["RCP122"]
    assert refusals(plan, files=["x", ["y"]]) == ["RCP122"]


@pytest.mark.parametrize(
    ("value", "path", "other"),
    [
        ("**", "any/where.py", "/outside"),
        ("src/*.py", "src/a.py", "src/a.md"),
        ("{a,b}/x", "b/x", "c/x"),
        ("src", "src/deep/a.py", "srcx/a.py"),
    ],
)
def test_text_is_a_glob_once_it_is_filled_in(value: str, path: str, other: str) -> None:
    (glob,) = parse_globs(bound(planned(), a=value).steps[0].write_set)
    assert glob.matches(path)
    assert not glob.matches(other)


@pytest.mark.parametrize(
    "value", ["app/[id]/page.tsx", "a*b.py", "{a,b}.md", "x?.md", "a,b.md", "!x.md", "a!(b).md"]
)
def test_the_path_of_a_file_is_that_file_and_no_pattern(value: str) -> None:
    text = RECIPE.replace("{name: a}", "{name: a, type: file_path}")
    plan = plan_of(text.replace("SET", '["{{inputs.a}}"]').replace("TIMEOUT", ""))
    (glob,) = parse_globs(bound(plan, a=value).steps[0].write_set)
    assert glob.matches(value)
    for other in ("app/i/page.tsx", "axb.py", "a.md", "xy.md", "b.md", "x.md", "other/file.py"):
        assert not glob.matches(other)


def test_an_element_of_a_list_can_be_named() -> None:
    plan = planned('["{{inputs.files[1]}}"]')
    assert bound(plan, files=["x.py", "y.py"]).steps[0].write_set == ("y.py",)
    assert refusals(plan, files=["x.py"]) == ["RCP122"]


def test_every_glob_that_is_wrong_is_told() -> None:
    plan = planned('["{{inputs.a}}", "x/{{inputs.b}}"]')
    assert refusals(plan, a="!src", b="[z-a]") == ["RCP122", "RCP122", "RCP122"]


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("../x", "RCP121"),
        ("x/../../y", "RCP121"),
        ("/etc", "RCP121"),
        ("x//y", "RCP121"),
        ("x/./y", "RCP121"),
        ("~/x", "RCP121"),
        ("c:/x", "RCP121"),
        ("", "RCP122"),
        ("  ", "RCP122"),
        (None, "RCP122"),
        ("a\nb", "RCP122"),
        ("a\x00b", "RCP122"),
        ("a\\b", "RCP122"),
        ("x" * 2000, "RCP122"),
        ({"x": 1}, "RCP122"),
    ],
)
def test_a_value_that_leads_elsewhere_or_nowhere_is_refused(value: Json, code: str) -> None:
    assert refusals(planned(), a=value) == [code]


@pytest.mark.parametrize("value", [".", "..", "/", "./x", ""])
def test_a_value_behind_a_folder_cannot_widen_it(value: str) -> None:
    assert refusals(planned('["out/{{inputs.a}}"]'), a=value) != []


def test_a_value_that_begins_a_set_may_be_the_workspace_itself() -> None:
    plan = planned('["{{inputs.a}}/**"]')
    assert waves(bound(plan, a=".")) == (("one",), ("two",))
    assert bound(plan, a="./src").steps[0].write_set == ("./src/**",)


def test_timeouts_are_made_from_inputs_too() -> None:
    plan = planned('["x"], timeout: "{{inputs.limit}}"', 'timeout: "{{inputs.limit}}"')
    made = bound(plan)
    assert (made.timeout_seconds, made.steps[0].timeout_seconds) == (180, 180)
    assert refusals(plan, limit="soon") == ["RCP110", "RCP110"]
    assert refusals(plan, limit="-3") == ["RCP110", "RCP110"]


def test_so_is_the_timeout_of_an_agent_of_the_recipe() -> None:
    agents = 'agents: {writer: {prompt: x, timeout: "{{inputs.limit}}"}}'
    plan = planned('["x"]', agents)
    assert bound(plan, limit="90").agents[AgentId("writer")].timeout_seconds == 90
    assert refusals(plan, limit="soon") == ["RCP110"]
    assert problem_of(plan_text(agents.replace("inputs.limit", "item"))).code == "RCP206"


@pytest.mark.parametrize("path", ["steps.two.output", "item", "a", "run.id"])
@pytest.mark.parametrize("key", ["write_set: [x], timeout", "read_set"])
def test_nothing_but_inputs_is_known_before_the_run(key: str, path: str) -> None:
    text = RECIPE.replace("write_set: SET", f'{key}: "{{{{{path}}}}}"').replace("TIMEOUT", "")
    problem = problem_of(text)
    assert problem.code == "RCP206"
    assert "may name inputs only" in (problem.hint or "")


def test_an_unknown_input_in_a_set_is_a_problem() -> None:
    assert (
        problem_of(RECIPE.replace("SET", '["{{inputs.z}}"]').replace("TIMEOUT", "")).code
        == "RCP202"
    )


def test_a_reference_cannot_stand_in_a_character_class() -> None:
    text = RECIPE.replace("SET", '["x[{{inputs.a}}]"]').replace("TIMEOUT", "")
    assert problem_of(text).code == "RCP122"


def test_what_comes_to_more_than_a_prompt_may_hold_is_told_before_the_run() -> None:
    many = "{{inputs.a}}" * 20
    plan = planned(f"['{many}']", f"timeout: '{many}'")
    assert refusals(plan, a="x" * 1_000_000) == ["RCP122", "RCP110"]
