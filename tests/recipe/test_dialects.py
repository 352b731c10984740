"""One model, three ways to write it. Each test is one of their differences."""

import json

import pytest

from stretto.documents.document import read_text
from stretto.documents.node import plain
from stretto.plan.dry_run import dry_run
from stretto.plan.model import Plan, PlannedDelegation
from support.recipes import (
    catalog_of,
    edges_of,
    plan_of,
    problem_of,
    problems_of,
    recipe_of,
    step_of,
)

FLAT = """\
name: three
steps:
  - {id: a, subagent: researcher, prompt: Find}
  - {id: b, subagent: writer, prompt: Write}
"""
WRAPPED = """\
workflow:
  name: three
  agents:
    finder: {prompt: You find things., tools: [Read]}
  steps:
    - {id: a, agent: finder, input: Find}
    - {id: b, agent: writer, input: Write}
"""
STRUCTURAL = """\
steps:
  - {id: a, agent: researcher, task: Find}
  - {id: b, task: Write}
"""


def briefs(plan: Plan) -> list[tuple[str, str, str]]:
    found = []
    for step in plan.steps:
        assert isinstance(step.work, PlannedDelegation)
        brief = step.work.brief
        found.append(
            (brief.agent, brief.style, brief.instruction.text if brief.instruction else "")
        )
    return found


# --- told by -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "dialect"), [(FLAT, "flat"), (WRAPPED, "wrapped"), (STRUCTURAL, "structural")]
)
def test_a_dialect_is_told_by_its_looks(text, dialect):
    assert recipe_of(text).dialect.name == dialect
    assert plan_of(text).dialect == dialect


def test_one_step_with_a_task_makes_a_recipe_structural():
    text = "name: x\nsteps:\n  - {id: a, task: Do}\n  - {id: b, prompt: Do, agent: writer}\n"
    assert plan_of(text).dialect == "structural"


def test_steps_with_tasks_under_workflow_are_structural_too():
    plan = plan_of("workflow:\n  steps:\n    - {id: a, task: Do}\n    - {id: b, task: Do}\n")
    assert plan.dialect == "structural"
    assert edges_of(plan) == {"a": [], "b": []}


# --- file ----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [FLAT, WRAPPED, STRUCTURAL])
def test_every_dialect_may_be_written_in_json(text):
    root = read_text(text).root
    assert root is not None
    in_json = plan_of(json.dumps(plain(root), indent=2), "three.json")
    in_yaml = plan_of(text, "three.yaml")
    assert in_json.dialect == in_yaml.dialect
    assert [step.work for step in in_json.steps] == [step.work for step in in_yaml.steps]
    assert edges_of(in_json) == edges_of(in_yaml)


# --- agent of a step -----------------------------------------------------------------------


def test_a_flat_step_names_its_subagent_and_agent_is_the_same_word():
    assert briefs(plan_of(FLAT)) == briefs(plan_of(FLAT.replace("subagent:", "agent:")))


def test_a_wrapped_step_names_an_agent_of_the_recipe_or_a_registered_one():
    plan = plan_of(WRAPPED)
    assert list(plan.agents) == ["finder", "writer"]


def test_a_structural_step_has_the_role_default_unless_it_names_another():
    assert [agent for agent, _, _ in briefs(plan_of(STRUCTURAL))] == ["researcher", "default"]


def test_a_structural_step_without_a_role_needs_the_default_agent_to_exist():
    problem = problem_of("steps:\n  - {id: a, task: Do}\n", catalog=catalog_of({"writer": []}))
    assert (problem.code, problem.place.line) == ("RCP108", 2)
    assert "'default'" in problem.message


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("name: x\nsteps:\n  - {id: a, prompt: Do}\n", "subagent"),
        ("workflow:\n  name: x\n  steps:\n    - {id: a, input: Do}\n", "agent"),
    ],
)
def test_the_other_dialects_need_an_agent_and_say_so_in_their_own_word(text, key):
    problem = problem_of(text)
    assert problem.code == "RCP102"
    assert problem.message == f"step 'a' needs '{key}'"


# --- what the agent is told ----------------------------------------------------------------


def test_a_dialect_has_its_own_word_for_what_the_agent_is_told():
    assert [style for _, style, _ in briefs(plan_of(FLAT))] == ["prompt", "prompt"]
    assert [style for _, style, _ in briefs(plan_of(WRAPPED))] == ["input", "input"]
    assert [style for _, style, _ in briefs(plan_of(STRUCTURAL))] == ["task", "task"]


def told(text: str, step: int = 0) -> object:
    shown = dry_run(plan_of(text), {})["would_run"]
    assert isinstance(shown, list)
    return shown[step]["prompt"]


def test_a_flat_agent_is_told_the_prompt():
    assert told(FLAT) == "Find"


def test_a_wrapped_agent_is_told_its_own_prompt_and_then_the_input_under_a_heading():
    assert told(WRAPPED) == "You find things.\n\n## Input\n\nFind"


def test_a_structural_agent_is_told_the_task_and_then_what_its_dependencies_found():
    text = STRUCTURAL.replace("task: Write", "task: Write, depends_on: a")
    assert told(text, 1) == "Write\n\n## Results so far\n\n### a\n{{steps.a.output}}"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("name: x\nsteps:\n  - {id: a, subagent: writer}\n", "prompt"),
        ("steps:\n  - {id: a, task: Do}\n  - {id: b}\n", "task"),
        (
            "workflow:\n  name: x\n  agents: {mute: {tools: [Read]}}\n"
            "  steps:\n    - {id: a, agent: mute}\n",
            "input",
        ),
    ],
)
def test_an_agent_that_is_told_nothing_is_a_problem_in_the_dialect_s_own_word(text, key):
    problem = problem_of(text)
    assert problem.code == "RCP102"
    assert f"needs '{key}'" in problem.message


def test_a_wrapped_step_needs_no_input_when_its_agent_has_a_prompt():
    assert problems_of(WRAPPED.replace(", input: Find", "")) == ()


# --- edges of a step without depends_on ----------------------------------------------------


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        (FLAT, {"a": [], "b": []}),
        (WRAPPED, {"a": [], "b": [("a", "listed before")]}),
        (STRUCTURAL, {"a": [], "b": []}),
    ],
)
def test_only_wrapped_steps_follow_the_one_listed_before(text, edges):
    assert edges_of(plan_of(text)) == edges


@pytest.mark.parametrize("nothing", ["[]", ""])
def test_a_wrapped_step_that_writes_no_dependencies_has_none(nothing):
    text = WRAPPED.replace(
        "- {id: b, agent: writer, input: Write}",
        f"- id: b\n      agent: writer\n      input: Write\n      depends_on: {nothing}",
    )
    assert edges_of(plan_of(text))["b"] == []


# --- failure policy when none is written ---------------------------------------------------


@pytest.mark.parametrize(
    ("text", "policy"), [(FLAT, "inline"), (WRAPPED, "abort"), (STRUCTURAL, "block")]
)
def test_each_dialect_has_its_failure_policy(text, policy):
    assert [step.on_failure for step in plan_of(text).steps] == [policy, policy]


# --- default width -------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "width"), [(FLAT, 4), (WRAPPED, 4), (STRUCTURAL, 6)])
def test_each_dialect_has_its_default_width(text, width):
    assert plan_of(text).width == width


@pytest.mark.parametrize(("text", "width"), [(FLAT, 9), (WRAPPED, 9), (STRUCTURAL, 6)])
def test_the_user_s_width_is_the_default_of_flat_and_wrapped_recipes(text, width):
    assert plan_of(text, width=9).width == width


@pytest.mark.parametrize("text", [FLAT, STRUCTURAL])
def test_the_recipe_s_own_width_comes_before_both(text):
    assert plan_of(f"max_concurrency: 2\n{text}", width=9).width == 2


# --- result when no output is written ------------------------------------------------------


@pytest.mark.parametrize("text", [FLAT, WRAPPED, STRUCTURAL])
def test_a_result_that_is_not_written_is_left_to_the_dialect(text):
    assert plan_of(text).output is None


@pytest.mark.parametrize("text", [FLAT, STRUCTURAL])
def test_any_dialect_may_write_its_output(text):
    plan = plan_of(f'{text}output: "{{{{steps.a.output}}}}"\n')
    assert plan.output is not None
    assert plan.output.text == "{{steps.a.output}}"


# --- a dialect only chooses defaults -------------------------------------------------------

ANY_STEP = """\
id: any
agent: worker
{instruction}: Do it
depends_on: []
when: "1 < 2"
retry: {{max_attempts: 2}}
on_failure: skip
gate: human
posture: writer
read_set: [docs]
write_set: [src]
workspace_mode: shared
merge_back: manual
recovery: skip
timeout: 1m
output: {{store_as: found, format: json}}
cache: true
"""
OTHERS = """\
- {{id: mapped, map: {{over: "{{{{found}}}}", agent: writer, input: "{{{{item}}}}"}}}}
- {{id: fanned, parallel: [{{agent: writer, {instruction}: x}}], wait: any}}
- {{id: looped, {instruction}: x, loop: {{agent: own, until: "iteration > 1"}}}}
"""


@pytest.mark.parametrize("instruction", ["prompt", "input", "task"])
@pytest.mark.parametrize("is_wrapped", [False, True])
def test_any_key_of_one_dialect_may_be_used_in_another(instruction, is_wrapped):
    first, *rest = ANY_STEP.format(instruction=instruction).splitlines()
    steps = "\n".join([f"- {first}", *(f"  {line}" for line in rest)])
    head = "name: x\nagents: {own: {prompt: Be yourself}}\nmax_concurrency: 2\nsteps:\n"
    text = f"{head}{steps}\n{OTHERS.format(instruction=instruction)}"
    if is_wrapped:
        text = "workflow:\n" + "".join(f"  {line}\n" for line in text.splitlines())
    plan = plan_of(text)
    expected = "structural" if instruction == "task" else "wrapped" if is_wrapped else "flat"
    assert plan.dialect == expected
    any_step = step_of(plan, "any")
    assert any_step.depends_on == ()
    assert any_step.on_failure == "skip"
    assert any_step.write_set == ("src",)
    assert any_step.workspace_mode == "shared"
    assert any_step.is_gated
    assert [step.type for step in plan.steps] == ["sequential", "map", "parallel", "loop"]
    assert plan.width == 2


# --- names and versions --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("1", "1"),
        ("2.5", "2.5"),
        ("1.10", "1.10"),
        ('"1.0.0"', "1.0.0"),
        ("1.2.3", "1.2.3"),
        ("v2", "v2"),
        ("1.0.0-rc.1", "1.0.0-rc.1"),
        ('"1.0.0+build.5"', "1.0.0+build.5"),
    ],
)
def test_a_version_is_a_number_or_a_semver_text(written, read):
    assert recipe_of(f"version: {written}\n{FLAT}").version == read


@pytest.mark.parametrize("written", ["true", "latest", "[1]", '""', "1.x", "1.2.3.4", "-1"])
def test_anything_else_is_no_version(written):
    problem = problem_of(f"version: {written}\n{FLAT}")
    assert (problem.code, problem.place.line, problem.place.column) == ("RCP103", 1, 10)


@pytest.mark.parametrize("text", [FLAT, WRAPPED])
def test_flat_and_wrapped_recipes_need_a_name(text):
    problem = problem_of(text.replace("name: three\n", "description: three\n"))
    assert (problem.code, problem.message) == ("RCP102", "a recipe needs 'name'")


def test_a_structural_recipe_without_a_name_is_called_after_its_file():
    assert recipe_of(STRUCTURAL, "plans/review.yaml").name == "review"
    assert recipe_of(STRUCTURAL).name == "workflow"


def test_id_is_another_word_for_the_recipe_s_name():
    assert recipe_of(f"id: review\n{STRUCTURAL}").name == "review"


def test_the_head_of_a_wrapped_recipe_may_stand_beside_workflow():
    recipe = recipe_of(
        "name: three\ndescription: Threefold\nversion: 3\ninputs: [{name: topic}]\n"
        + WRAPPED.replace("  name: three\n", "")
    )
    assert (recipe.name, recipe.description, recipe.version) == ("three", "Threefold", "3")
    assert [each.name for each in recipe.inputs] == ["topic"]


@pytest.mark.parametrize("key", ["agents: {}", "output: x", "timeout: 3m", "budget: {tokens: 1}"])
def test_the_body_of_a_wrapped_recipe_may_not_stand_beside_workflow(key):
    problem = problem_of(f"{key}\n{WRAPPED}")
    assert (problem.code, problem.place.line) == ("RCP101", 1)
    assert problem.hint == "indent it, to stand under workflow:"


def test_all_that_stands_beside_workflow_is_one_slip():
    text = "workflow: {name: w}\nagents: {x: {prompt: y}}\nsteps:\n  - {id: a, agent: x}\n"
    problem = problem_of(text)
    assert (problem.code, problem.place.line) == ("RCP101", 2)
    assert problem.message == "the root has no keys 'agents' and 'steps'"
    assert problem.hint == "indent them, to stand under workflow:"


def test_a_name_behind_workflow_is_one_slip():
    problem = problem_of("workflow: brief\nsteps:\n  - {id: a, subagent: writer, prompt: y}\n")
    assert (problem.code, problem.hint) == ("RCP103", "write name: brief")


def test_steps_beside_workflow_are_two_recipes_in_one():
    problem = problem_of(f"{WRAPPED}steps: []\n")
    assert (problem.code, problem.place.line) == ("RCP114", 8)


@pytest.mark.parametrize("written", ["", "[]", "hello", "7"])
def test_workflow_holds_a_mapping(written):
    problem = problem_of(f"workflow: {written}\n")
    assert (problem.code, problem.place.line) == ("RCP103", 1)
    assert "must be a mapping" in problem.message
