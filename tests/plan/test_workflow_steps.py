"""Recipes that use recipes: what is checked before a run, and what the plan then holds."""

import time
from pathlib import Path

import pytest
from msgspec import structs

from stretto.assembly.project import finder_in
from stretto.plan.bound_sets import bind_plan
from stretto.plan.dry_run import dry_run
from stretto.plan.model import Plan, PlannedWorkflow
from stretto.plan.waves import waves
from stretto.problems import Problem
from stretto.vocabulary.json_value import Json
from support.recipes import CATALOG, Shelf, plan_of, problems_of, step_of, under_caret

INNER = """\
name: inner
version: 2
inputs:
  topic: {required: true}
  n: {type: number, default: 2}
  folder: {default: src}
  file: {type: file_path}
  kind: {enum: [a, b], default: a}
timeout: 5m
steps:
  - id: a
    subagent: worker
    prompt: "{{inputs.topic}} {{inputs.n}} {{inputs.file}}"
    write_set: ["{{inputs.folder}}/**"]
  - {id: b, subagent: writer, prompt: "{{steps.a.output}}"}
"""
HEAD = "name: outer\ninputs: {topic: {default: tea}, folder: {default: docs}, many: {type: json}}\nsteps:\n"
FIRST = "  - {id: first, subagent: writer, prompt: x}\n"


def shelf(**more: str) -> Shelf:
    return Shelf(**{"inner": INNER, **more})


def outer(inputs: str, rest: str = "") -> str:
    return f"{HEAD}{FIRST}  - id: sub\n    workflow: inner\n    inputs: {inputs}\n{rest}"


def found(text: str, **more: str) -> list[Problem]:
    return list(problems_of(text, "outer.yaml", structs.replace(CATALOG, recipes=shelf(**more))))


def planned(text: str, **more: str) -> Plan:
    return plan_of(text, "outer.yaml", structs.replace(CATALOG, recipes=shelf(**more)))


def bound(text: str, inputs: dict[str, Json], **more: str) -> tuple[Plan, tuple[Problem, ...]]:
    return bind_plan(planned(text, **more), {"topic": "tea", "folder": "docs", **inputs})


@pytest.mark.parametrize(
    ("inputs", "code", "said", "caret"),
    [
        ("{topc: x}", "RCP147", "workflow 'inner' has no input 'topc'", "x"),
        ("{n: 3}", "RCP147", "workflow 'inner' needs the input 'topic'", "{n: 3}"),
        ("{topic: x, n: many}", "RCP147", "input 'n' must be a number, not \"many\"", "many"),
        ("{topic: x, kind: c}", "RCP147", "input 'kind' cannot be \"c\"", "c"),
        ("{topic: ['{{steps.first.output}}']}", "RCP147", "a template inside a list or a mapping of input 'topic' is not filled in", "['{{steps.first.output}}']"),
        ('{topic: x, folder: "{{steps.first.output}}"}', "RCP148", "input 'folder' is used in a set of files or a timeout of that recipe, and {{steps.first.output}} is not known before the run", '"{{steps.first.output}}"'),
        ('{topic: x, folder: "{{run.id}}"}', "RCP148", "input 'folder' is used in a set of files or a timeout of that recipe, and {{run.id}} is not known before the run", '"{{run.id}}"'),
        ('{topic: "{{inputs.no}}"}', "RCP202", "unknown input 'no'", "no"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_inner_recipe_is_a_problem(
    inputs: str, code: str, said: str, caret: str
):
    (problem,) = found(outer(inputs))
    assert (problem.code, problem.message, under_caret(problem)) == (code, said, caret)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("retry: {max_attempts: 3}", "a workflow step has no 'retry': the steps of that recipe say it"),
        ("prompt: x", "a workflow step has no 'prompt': the steps of that recipe say it"),
        ("agent: writer", "a workflow step has no 'agent': the steps of that recipe say it"),
        ("write_set: [x]", "a workflow step has no 'write_set': the steps of that recipe say it"),
        ("cache: true", "a workflow step has no 'cache': the steps of that recipe say it"),
        ("on_failure: fallback:writer", "a workflow step has no fallback agent: there is no prompt that the agent could get"),
        ("output: {format: json}", "a workflow step has no 'format' of its own: its output is that of the recipe"),
        ("run: ls", "a step cannot have both 'run' and 'workflow'"),
        ("map: {over: '[1]', agent: writer}", "a step cannot have both 'map' and 'workflow'"),
    ],
)  # fmt: skip
def test_what_belongs_to_the_steps_of_the_other_recipe_is_refused(line: str, said: str):
    problems = found(outer("{topic: x}", f"    {line}\n"))
    assert {each.code for each in problems} == {"RCP113"}
    assert said in [each.message for each in problems]


def test_inputs_without_a_workflow_and_ids_with_a_slash_are_refused():
    (problem,) = found(f"{HEAD}  - {{id: a, subagent: writer, prompt: x, inputs: {{a: b}}}}\n")
    assert (problem.code, problem.message) == (
        "RCP113",
        "'inputs' belongs to a step with 'workflow:'",
    )
    (problem,) = found(f"{HEAD}  - {{id: a/b, subagent: writer, prompt: x}}\n")
    assert problem.code == "RCP107"
    (problem,) = found(
        outer("{topic: x}", '  - {id: z, subagent: writer, prompt: "{{steps.sub/a.output}}"}\n')
    )
    assert problem.code == "RCP201"


def test_the_early_inputs_of_a_recipe_further_in_count_too():
    mid = 'name: mid\ninputs: {where: {}}\nsteps: [{id: m, workflow: inner, inputs: {topic: x, folder: "{{inputs.where}}"}}]'
    text = f"{HEAD}{FIRST}  - {{id: sub, workflow: mid, inputs: {{where: '{{{{steps.first.output}}}}'}}}}\n"
    (problem,) = found(text, mid=mid)
    assert (problem.code, problem.message[:13]) == ("RCP148", "input 'where'")
    plan, problems = bound(text.replace("steps.first.output", "inputs.folder"), {}, mid=mid)
    assert problems == ()
    assert step_of(plan, "sub/m/a").write_set == ("docs/**",)


def test_sets_and_timeouts_inside_are_filled_in_from_what_the_step_is_given():
    plan, problems = bound(outer('{topic: x, folder: "{{inputs.folder}}/api"}'), {"folder": "lib"})
    assert problems == ()
    assert step_of(plan, "sub/a").write_set == ("lib/api/**",)
    again, _ = bind_plan(plan, {"topic": "tea", "folder": "other"})
    assert step_of(again, "sub/a").write_set == ("other/api/**",)
    _, problems = bound(outer('{topic: x, folder: "{{inputs.folder}}"}'), {"folder": "../up"})
    assert [each.code for each in problems] == ["RCP121"]
    _, problems = bound(outer('{topic: x, n: "{{inputs.many}}"}'), {"many": ["no"]})
    assert [each.path for each in problems] == ["steps.sub.inputs.n"]


def test_a_file_that_is_known_before_the_run_must_be_there(tmp_path: Path):
    (tmp_path / "a.txt").write_text("x")
    plan = planned(outer('{topic: x, file: "{{inputs.many}}"}'))
    given: dict[str, Json] = {"topic": "tea", "folder": "docs"}
    good, problems = bind_plan(plan, {**given, "many": "./a.txt"}, finder_in(tmp_path))
    assert problems == ()
    work = step_of(good, "sub").work
    assert isinstance(work, PlannedWorkflow)
    assert work.known["file"] == "a.txt"
    for wrong in ("no.txt", "../a.txt"):
        _, problems = bind_plan(plan, {**given, "many": wrong}, finder_in(tmp_path))
        assert [each.code for each in problems] == ["RCP305"]


def test_the_plan_says_which_recipe_each_workflow_step_is():
    plan = planned(outer("{topic: x}"))
    work = step_of(plan, "sub").work
    assert isinstance(work, PlannedWorkflow)
    assert (work.name, work.file, work.version, len(work.digest)) == (
        "inner",
        "inner.yaml",
        "2",
        64,
    )
    assert work.timeout_seconds == 300
    assert [step.id for step in plan.steps] == ["first", "sub", "sub/a", "sub/b"]
    assert waves(plan) == (("first", "sub", "sub/a"), ("sub/b",))
    shown = dry_run(plan, {"topic": "tea"})
    assert [step["id"] for step in shown["would_run"]] == ["first", "sub", "sub/a", "sub/b"]  # type: ignore[attr-defined]


def test_a_workflow_that_is_chosen_is_a_rival_of_the_other_way_with_all_its_steps():
    text = f"""{HEAD}  - {{id: pick, condition: {{eval: "1 > 2", "true": sub, "false": other}}}}
  - {{id: sub, workflow: inner, inputs: {{topic: x}}}}
  - {{id: other, subagent: worker, prompt: x, write_set: ["src/**"]}}
"""
    assert waves(planned(text)) == (("pick",), ("sub", "sub/a", "other"), ("sub/b",))


def test_warnings_of_the_inner_recipe_are_warnings_of_the_plan():
    unused = "name: inner\ninputs: {never: {}}\nsteps: [{id: a, subagent: writer, prompt: x}]"
    plan = planned(
        f"{HEAD}  - {{id: sub, workflow: inner}}\n  - {{id: again, workflow: inner}}\n",
        inner=unused,
    )
    assert [w.file for w in plan.warnings if w.file == "inner.yaml"] == ["inner.yaml"]


_SCHEMA = "{type: object, properties: {title: {type: string}, tags: {type: array, items: {type: string}}}}"
_GIVES = f"  - {{id: a, run: ls, output: {{schema: {_SCHEMA}}}}}\n"


@pytest.mark.parametrize(
    ("inner", "reference", "said"),
    [
        (f"name: x\nsteps:\n{_GIVES}", "title", None),
        (f"name: x\nsteps:\n{_GIVES}", "titel", "did you mean 'title'?"),
        (f"name: x\nsteps:\n{_GIVES}", "title.first", "is text: it has no fields"),
        (f"name: x\noutput: '{{{{steps.a.output}}}}'\nsteps:\n{_GIVES}", "titel", "has no field"),
        (f"name: x\noutput: '{{{{steps.a.output.tags}}}}'\nsteps:\n{_GIVES}", "title", "is a list"),
        (f"name: x\noutput: 'It is {{{{steps.a.output}}}}'\nsteps:\n{_GIVES}", "titel", None),
        ("name: x\nsteps:\n  - {id: a, subagent: writer, prompt: x}\n", "whatever", None),
        # Which step gives the output is not known, and so neither are its fields.
        (f"name: x\nsteps:\n{_GIVES}  - {{id: b, run: ls, when: 'false'}}\n", "titel", None),
        ("steps:\n  - {id: a, task: Read it.}\n  - {id: b, task: Sum it up.}\n", "b", None),
        ("steps:\n  - {id: a, task: Read it.}\n  - {id: b, task: Sum it up.}\n", "c", "has no field"),
        ("name: x\nsteps:\n  - {id: a, workflow: deep}\n", "titel", "did you mean 'title'?"),
        (
            "name: x\nsteps:\n  - id: a\n    parallel:\n      - {agent: writer, input: x, output_key: one}\n",
            "two",
            "has no field 'two'",
        ),
    ],
)  # fmt: skip
def test_a_field_of_the_output_of_a_workflow_step_is_checked_where_it_is_known(
    inner: str, reference: str, said: str | None
):
    text = (
        "name: outer\nsteps:\n  - {id: sub, workflow: used}\n"
        f"  - {{id: last, subagent: writer, prompt: '{{{{steps.sub.output.{reference}}}}}'}}\n"
    )
    problems = found(text, used=inner, deep=f"name: deep\nsteps:\n{_GIVES}")
    if said is None:
        assert problems == []
    else:
        (problem,) = problems
        assert problem.code == "RCP205"
        assert said in f"{problem.message} {problem.hint}"


def test_a_budget_and_a_width_of_an_inner_recipe_are_told_to_have_no_effect():
    inner = "name: x\nbudget: {tokens: 9}\nmax_concurrency: 2\nsteps:\n  - {id: a, run: ls}\n"
    middle = "name: middle\nsteps:\n  - {id: b, workflow: used}\n"
    plan = planned(
        "name: outer\nsteps:\n  - {id: c, workflow: middle}\n", used=inner, middle=middle
    )
    told = [each for each in plan.warnings if each.code == "RCP909"]
    assert [each.message for each in told] == [
        "the budget of workflow 'x' has no effect here",
        "the max_concurrency of workflow 'x' has no effect here",
    ]


def test_an_output_whose_schema_is_joined_at_every_reference_is_read_once():
    def both(n: int) -> str:
        rest = f"{{allOf: [{{$ref: '#/$defs/d{n + 1}'}}, {{properties: {{a: {{properties: {{x{n}: {{}}}}}}}}}}]}}"
        return f"d{n}: {{anyOf: [{{$ref: '#/$defs/d{n + 1}'}}, {rest}]}}"

    last = "d25: {properties: {a: {properties: {z: {}}}}}"
    schema = f"{{$ref: '#/$defs/d0', $defs: {{{', '.join(map(both, range(25)))}, {last}}}}}"
    inner = (
        "name: x\noutput: '{{steps.a.output.a}}'\nsteps:\n"
        f"  - {{id: a, run: ls, output: {{schema: {schema}}}}}\n"
    )
    text = (
        "name: outer\nsteps:\n  - {id: sub, workflow: used}\n"
        "  - {id: last, subagent: writer, prompt: '{{steps.sub.output.z}}'}\n"
    )
    began = time.process_time()
    assert found(text, used=inner) == []
    assert time.process_time() - began < 5.0


def test_an_input_of_a_workflow_step_that_is_too_long_is_told_before_the_run():
    text = outer("{topic: '" + "{{inputs.topic}}" * 20 + "'}")
    inner = "name: inner\ninputs: {topic: {}}\nsteps:\n  - {id: a, run: ls}\n"
    (problem,) = bound(text, {"topic": "t" * 1_000_000}, inner=inner)[1]
    assert (problem.code, problem.path) == ("RCP147", "steps.sub.inputs")
    assert "comes to more than 10,000,000 characters" in problem.message
