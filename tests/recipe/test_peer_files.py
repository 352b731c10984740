"""Files as other products of this field write them load as they are."""

import json

from stretto.recipe.read import read_recipe
from support.recipes import built, plan_of, problems_of, recipe_of

# The shape of a structural template: parameters around an inner workflow whose texts use them.
TEMPLATE = {
    "id": "two_looks",
    "version": 1,
    "name": "Two looks at one topic",
    "description": "Two readers, then one who joins what they saw.",
    "parameters": {
        "topic": {"type": "string", "required": True, "description": "What is looked at."},
        "first": {"type": "string", "default": "form"},
    },
    "workflow": {
        "id": "looks_{{topic}}",
        "name": "Looks at {{topic}}",
        "max_concurrency": 2,
        "steps": [
            {
                "id": "look",
                "agent": "researcher",
                "permission_mode": "read_only",
                "workspace_mode": "shared",
                "read_set": ["**/*"],
                "task": "Look at {{topic}}, above all at its {{first}}.",
            },
            {
                "id": "join",
                "agent": "researcher",
                "permission_mode": "read_only",
                "depends_on": ["look"],
                "task": "Join what was seen of {{topic}}.",
            },
        ],
    },
}


def test_a_template_with_parameters_around_a_workflow_is_read_as_what_it_is():
    plan = plan_of(json.dumps(TEMPLATE), "looks.json")
    assert (plan.name, plan.title) == ("two_looks", "Two looks at one topic")
    assert plan.description.startswith("Two readers")
    assert plan.dialect == "structural"
    assert (plan.width, [each.name for each in plan.inputs]) == (2, ["topic", "first"])
    assert [step.posture for step in plan.steps] == ["read_only", "read_only"]


def test_a_slip_inside_such_a_template_is_found():
    text = json.dumps(TEMPLATE).replace("Join what was seen of {{topic}}", "Join {{topc}}")
    assert [p.code for p in problems_of(text)] == ["RCP207"]


def test_an_inner_name_that_is_a_template_is_no_name():
    outer = {key: value for key, value in TEMPLATE.items() if key not in ("id", "name")}
    assert recipe_of(json.dumps(outer), "looks.json").name == "looks"


FORM = """\
id: fill-form
name: Fill Form
description: Fill in a form.
inputs:
- name: url
  type: string
steps:
- id: open
  subagent: writer
  prompt: 'Open {{inputs.url}}'
- id: submit
  subagent: writer
  depends_on: open
  prompt: Submit it.
"""


def test_with_an_id_the_name_is_the_title():
    plan = plan_of(FORM)
    assert (plan.name, plan.title) == ("fill-form", "Fill Form")


def test_with_one_of_them_it_is_the_name_and_there_is_no_title():
    for line in ("id: fill-form\n", "name: fill-form\n"):
        head = line + FORM.partition("description")[1] + FORM.partition("description")[2]
        assert (plan_of(head).name, plan_of(head).title) == ("fill-form", "")


EMPTY = """\
name: t
id:
description:
version:
inputs:
agents:
timeout:
max_concurrency:
budget:
output:
steps:
  - id: a
    type:
    subagent: writer
    prompt: x
    depends_on:
    when:
    timeout:
    timeout_ms: 500
    retry:
    on_failure:
    gate:
    posture:
    read_set:
    write_set:
    workspace_mode:
    merge_back:
    recovery:
    cache:
    output:
    model:
    wait:
  - id: b
    prompt: x
    loop:
      agent: writer
      until: 1 < 2
      validator:
      max_iterations:
      feedback_path:
"""


def test_a_key_with_nothing_behind_it_is_not_given():
    plan = plan_of(EMPTY)
    step = plan.steps[0]
    assert (plan.name, plan.description, plan.timeout_seconds) == ("t", "", None)
    assert (step.timeout_seconds, step.is_gated, step.when) == (0.5, False, None)


def test_an_empty_key_that_would_hold_a_step_back_is_warned_of():
    warned = [p for p in plan_of(EMPTY).warnings if p.code == "RCP906"]
    assert [p.path for p in warned] == ["steps[0].when", "steps[0].gate"]


def test_an_empty_key_that_must_be_there_is_a_problem():
    for text in (
        "name:\nsteps:\n  - {id: a, subagent: writer, prompt: x}\n",
        "name: t\nsteps:\n",
        "name: t\nsteps:\n  - {id: , subagent: writer, prompt: x}\n",
        "name: t\nsteps:\n  - {id: a, subagent: , prompt: x}\n",
        "name: t\nsteps:\n  - {id: a, subagent: writer, prompt: }\n",
        "name: t\nsteps:\n  - {id: a, loop: }\n",
    ):
        assert len(problems_of(text)) == 1, (text, problems_of(text))
        assert built(text) is not None
        assert read_recipe(text).name
