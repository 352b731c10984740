"""Every key of the grammar is read into the model."""

import json

import pytest
from jsonschema import Draft7Validator
from msgspec import structs

from stretto.documents.document import read_file, read_text
from stretto.documents.node import ListNode, MapNode, Node, plain
from stretto.documents.shapes import Shape
from stretto.recipe import grammar
from stretto.recipe.grammar import recipe_schema
from stretto.recipe.model import (
    Agent,
    Branch,
    Budget,
    Condition,
    Delegation,
    Input,
    Loop,
    Map,
    OnFailure,
    Output,
    Parallel,
    Retry,
    Stage,
    Step,
    Switch,
    Validation,
)
from stretto.recipe.read import read_recipe
from support.recipes import CATALOG, RECIPES, Shelf, problem_of, problems_of, recipe_of

EVERYTHING = """\
$schema: https://example.org/stretto.json
name: everything
description: All keys at once
version: 2
timeout: 1h
max_concurrency: 7
budget: {tokens: 5000, usd: 1.5, agents: 20}
inputs:
  - name: topic
    type: number
    required: true
    default: 5
    description: What it is about
    enum: [5, 6]
agents:
  critic:
    name: The Critic
    role: Judges
    prompt: Be strict
    tools: [Read, "Bash(git diff:*)"]
    disallowed_tools: [Write]
    model: anthropic:claude
    fallback_models: [openai:gpt, local]
    max_turns: 9
    max_output_tokens: 900
    timeout: 90s
    retry: {max_attempts: 3, backoff: exponential, on_failure: fallback:writer}
    validation:
      schema: {type: object}
      rules: [Must include passed boolean]
    posture: read_only
  described: {description: Described elsewhere, timeout_ms: 1500}
steps:
  - id: one
    type: sequential
    agent: writer
    prompt: Do {{inputs.topic}}
    depends_on: []
    when: inputs.topic > 1
    output: {store_as: first, format: json, schema: {type: object}}
    model: openai:gpt
    timeout: 5m
    retry: {max_attempts: 2, backoff: linear, on_failure: skip}
    on_failure: inline
    gate: human
    posture: writer
    read_set: [docs]
    write_set: [src, "*.md"]
    workspace_mode: shared
    merge_back: after two
    merge_when: steps.two.status == "succeeded"
    recovery: skip
    cache: true
    max_output_tokens: 800
    ui: {x: 10, y: 20}
  - id: two
    depends_on: one
    parallel:
      - {agent: writer, input: A, output_key: left}
      - {subagent: critic, prompt: B}
    wait: any
    timeout_ms: 2500
  - id: three
    prompt: x
    condition: {eval: "1 < 2", true: four, false: writer}
  - id: four
    prompt: x
    switch: {value: first, cases: {a: five, 7: writer}, default: critic}
  - id: five
    input: x
    loop: {agent: writer, validator: critic, max_iterations: 4, feedback_path: "{{steps.five.output.why}}"}
  - id: six
    prompt: x
    loop: {agent: writer, until: iteration > 2}
  - id: seven
    map: {over: "{{first}}", agent: writer, input: "{{item}}", reduce: critic, batch_size: 5, max_items: 50, on_item_failure: skip}
  - id: eight
    map:
      over: "{{first}}"
      stages:
        - {agent: writer, input: "{{item}}"}
        - {subagent: critic, prompt: "{{index}}"}
  - {id: nine, subagent: writer, input: x, permission_mode: read_only}
output: "{{steps.one.output}}"
"""  # fmt: skip
# The same words in another dialect, or instead of others in the same step.
OTHER_WORDS = """\
id: other
parameters: {topic: }
timeout_ms: 9000
steps:
  - {id: a, task: x}
  - {id: b, map: {over: "[1]", agent: writer, prompt: x}}
  - {id: c, map: {over: "[1]", agent: writer, task: x}}
  - {id: d, parallel: [{agent: writer, task: x}]}
  - {id: e, map: {over: "[1]", stages: [{agent: writer, task: x}]}}
  - {id: f, run: ls, env: {A: x}, stdin: x, effect: idempotent}
  - {id: g, loop: {agent: writer, validator: {run: ls, env: {A: x}, stdin: x, effect: in_doubt}}}
  - {id: h, workflow: other, inputs: {a: x, b: [1]}}
"""
ENVELOPE = """\
$schema: x
name: wrapped
id: other-name
description: Head
version: 1.0.0
inputs: [{name: a}]
parameters: [{name: b}]
workflow:
  steps: [{id: a, agent: writer, input: x}]
"""


def steps() -> dict[str, Step]:
    return {step.id: step for step in recipe_of(EVERYTHING).steps}


def test_the_head_of_a_recipe_is_read():
    recipe = recipe_of(EVERYTHING)
    assert recipe.name == "everything"
    assert recipe.description == "All keys at once"
    assert recipe.version == "2"
    assert recipe.timeout_seconds == 3600
    assert recipe.max_concurrency == 7
    assert recipe.budget == Budget(5000, 1.5, 20)
    assert recipe.output == "{{steps.one.output}}"


def test_an_input_is_read():
    assert recipe_of(EVERYTHING).inputs == (
        Input(
            name="topic",
            at=("inputs", 0),
            type="number",
            is_required=True,
            has_default=True,
            default=5,
            description="What it is about",
            enum=(5, 6),
        ),
    )


def test_an_agent_is_read():
    agents = recipe_of(EVERYTHING).agents
    assert agents["critic"] == Agent(
        id="critic",
        at=("agents", "critic"),
        name="The Critic",
        role="Judges",
        prompt="Be strict",
        tools=("Read", "Bash(git diff:*)"),
        disallowed_tools=("Write",),
        model="anthropic:claude",
        fallback_models=("openai:gpt", "local"),
        max_turns=9,
        max_output_tokens=900,
        timeout_seconds=90,
        retry=Retry(3, "exponential", OnFailure(fallback="writer")),
        validation=Validation({"type": "object"}, ("Must include passed boolean",)),
        posture="read_only",
        is_local=True,
    )
    assert agents["described"].role == "Described elsewhere"
    assert agents["described"].timeout_seconds == 1.5


def test_the_common_keys_of_a_step_are_read():
    assert steps()["one"] == Step(
        id="one",
        at=("steps", 0),
        work=Delegation("writer"),
        instruction="Do {{inputs.topic}}",
        instruction_at=("steps", 0, "prompt"),
        depends_on=(),
        when="inputs.topic > 1",
        model="openai:gpt",
        timeout_seconds=300,
        retry=Retry(2, "linear", OnFailure("skip")),
        on_failure=OnFailure("inline"),
        is_gated=True,
        posture="writer",
        read_set=("docs",),
        write_set=("src", "*.md"),
        workspace_mode="shared",
        merge_back="after",
        merge_after="two",
        merge_when='steps.two.status == "succeeded"',
        recovery="skip",
        output=Output("first", "json", {"type": "object"}),
        is_cached=True,
        max_output_tokens=800,
    )


def test_a_parallel_step_is_read():
    two = steps()["two"]
    at = ("steps", 1, "parallel")
    assert two.work == Parallel(
        (
            Branch((*at, 0), "writer", "A", (*at, 0, "input"), "left"),
            Branch((*at, 1), "critic", "B", (*at, 1, "prompt")),
        ),
        "any",
    )
    assert two.depends_on == ("one",)
    assert two.timeout_seconds == 2.5


def test_conditions_switches_and_loops_are_read():
    read = steps()
    assert read["three"].work == Condition("1 < 2", "four", "writer")
    assert read["four"].work == Switch("first", {"a": "five", "7": "writer"}, "critic")
    assert read["five"].work == Loop("writer", "critic", None, 4, "{{steps.five.output.why}}")
    assert read["six"].work == Loop("writer", None, "iteration > 2")


def test_maps_are_read():
    read = steps()
    assert read["seven"].work == Map(
        over="{{first}}",
        agent="writer",
        reduce="critic",
        instruction="{{item}}",
        instruction_at=("steps", 6, "map", "input"),
        batch_size=5,
        max_items=50,
        on_item_failure="skip",
    )
    work = read["eight"].work
    assert isinstance(work, Map)
    at = ("steps", 7, "map", "stages")
    assert work.stages == (
        Stage((*at, 0), "writer", "{{item}}", (*at, 0, "input")),
        Stage((*at, 1), "critic", "{{index}}", (*at, 1, "prompt")),
    )


@pytest.mark.parametrize(
    ("mode", "posture"),
    [("read_only", "read_only"), ("read-only", "read_only"), ("auto", "writer"), ("ask", "writer")],
)
def test_permission_mode_is_posture_in_other_words(mode, posture):
    text = EVERYTHING.replace("permission_mode: read_only", f"permission_mode: {mode}")
    assert recipe_of(text).steps[-1].posture == posture


def test_other_words_for_the_same_are_read_the_same():
    recipe = recipe_of(OTHER_WORDS)
    assert recipe.name == "other"
    assert recipe.timeout_seconds == 9
    assert [each.name for each in recipe.inputs] == ["topic"]
    assert [step.instruction for step in recipe.steps] == ["x", *[None] * 7]
    recipe = recipe_of(ENVELOPE)
    assert (recipe.name, recipe.description, recipe.version) == ("other-name", "Head", "1.0.0")
    assert [each.name for each in recipe.inputs] == ["a", "b"]


def test_the_recipes_of_this_file_are_good_ones():
    assert problems_of(EVERYTHING) == problems_of(ENVELOPE) == ()
    used = (
        "name: other\ninputs: {a: {}, b: {type: json}}\nsteps: [{id: x, agent: writer, prompt: x}]"
    )
    assert (
        problems_of(OTHER_WORDS, catalog=structs.replace(CATALOG, recipes=Shelf(other=used))) == ()
    )


def mappings(node: Node | None) -> list[MapNode]:
    match node:
        case MapNode():
            return [node, *(found for each in node.entries.values() for found in mappings(each))]
        case ListNode():
            return [found for each in node.items for found in mappings(each)]
        case _:
            return []


@pytest.mark.parametrize(
    "shape",
    [each for each in vars(grammar).values() if isinstance(each, Shape)],
    ids=lambda shape: shape.called,
)
def test_no_key_of_the_grammar_is_left_out_of_this_file(shape):
    written = {
        frozenset(node.entries)
        for text in (EVERYTHING, OTHER_WORDS, ENVELOPE)
        for node in mappings(read_text(text).root)
    }
    known = {key.name for key in shape.keys}
    used = {name for names in written if names <= known for name in names}
    assert known - used == set()


# --- types are inferred, and must agree ----------------------------------------------------

KINDS = {
    "sequential": "agent: writer",
    "parallel": "parallel: [{agent: writer}]",
    "conditional": "condition: {eval: 1 < 2, true: writer}",
    "loop": "loop: {agent: writer, until: 1 < 2}",
    "map": 'map: {over: "[1]", agent: writer}',
}


def one_step(*lines: str) -> str:
    return "name: x\nsteps:\n  - id: a\n    prompt: x\n" + "".join(
        f"    {line}\n" for line in lines
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_type_may_be_written_or_left_to_the_keys(kind):
    without, written = (
        recipe_of(one_step(KINDS[kind])),
        recipe_of(one_step(KINDS[kind], f"type: {kind}")),
    )
    assert without.steps[0].work == written.steps[0].work


def test_a_switch_is_conditional_too():
    switch = "switch: {value: inputs.a, cases: {x: writer}}"
    text = "inputs: [{name: a}]\n" + one_step(switch, "type: conditional")
    assert problems_of(text) == ()


@pytest.mark.parametrize("written", KINDS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_type_that_disagrees_with_the_keys_is_a_problem(kind, written):
    problems = problems_of(one_step(KINDS[kind], f"type: {written}"))
    assert [problem.code for problem in problems] == ([] if kind == written else ["RCP113"])
    for problem in problems:
        assert problem.place.line == 6
        assert problem.hint == f"write type: {kind}, or leave it out"


@pytest.mark.parametrize(
    ("one", "other"),
    [("parallel", "loop"), ("conditional", "map"), ("loop", "map"), ("parallel", "conditional")],
)
def test_a_step_is_of_one_kind_only(one, other):
    problem = problem_of(one_step(KINDS[one], KINDS[other]))
    assert (problem.code, problem.place.line) == ("RCP113", 6)
    assert problem.hint == "make two steps of it"


def test_an_unknown_type_is_a_problem():
    problem = problem_of(one_step("agent: writer", "type: paralel"))
    assert (problem.code, problem.hint) == ("RCP109", "did you mean 'parallel'?")


def test_true_and_false_are_bare_words_in_any_spelling_of_yaml():
    for line in (
        "condition: {eval: 1 < 2, true: writer, false: worker}",
        'condition: {eval: 1 < 2, "true": writer, "false": worker}',
    ):
        assert recipe_of(one_step(line)).steps[0].work == Condition("1 < 2", "writer", "worker")


@pytest.mark.parametrize("tools", ["[Read, Bash]", "Read, Bash", '"Read,Bash,"'])
def test_tools_are_a_list_or_one_line_with_commas(tools):
    text = (
        f"agents: {{own: {{tools: {tools}}}}}\n"
        if tools[0] == "["
        else (f"agents:\n  own:\n    tools: {tools}\n")
    )
    assert recipe_of(text + one_step("agent: writer")).agents["own"].tools == ("Read", "Bash")


@pytest.mark.parametrize("key", ["tools", "disallowed_tools"])
def test_no_tools_may_be_written_as_nothing(key):
    text = f"agents:\n  own:\n    {key}:\n    prompt: x\n" + one_step("agent: own")
    assert recipe_of(text).agents["own"].tools == ()


def test_one_rule_one_glob_and_one_dependency_need_no_list():
    text = (
        "agents: {own: {validation: {rules: Must not be empty}, fallback_models: a:b}}\n"
        + one_step("agent: own", "read_set: docs", "write_set: src")
    )
    recipe = recipe_of(text)
    assert recipe.agents["own"].validation.rules == ("Must not be empty",)
    assert recipe.agents["own"].fallback_models == ("a:b",)
    assert (recipe.steps[0].read_set, recipe.steps[0].write_set) == (("docs",), ("src",))


def test_a_bare_number_is_text_where_text_is_meant():
    recipe = recipe_of("name: 2024\nsteps:\n  - {id: 1, subagent: writer, prompt: 0x1F}\n")
    assert (recipe.name, recipe.steps[0].id, recipe.steps[0].instruction) == ("2024", "1", "0x1F")


@pytest.mark.parametrize("written", ["all", "any", "1", "2"])
def test_a_wait_is_all_any_or_a_number(written):
    text = one_step("parallel: [{agent: writer}, {agent: worker}]", f"wait: {written}")
    work = recipe_of(text).steps[0].work
    assert isinstance(work, Parallel)
    assert str(work.wait) == written


@pytest.mark.parametrize("written", ["0", "-1", "1.5", '"2"', "true", "some", "[all]"])
def test_anything_else_is_no_wait(written):
    text = one_step("parallel: [{agent: writer}, {agent: worker}]", f"wait: {written}")
    problem = problem_of(text)
    assert (problem.code, problem.place.line) == ("RCP112", 6)


@pytest.mark.parametrize(
    ("written", "policy"),
    [
        ("inline", OnFailure("inline")),
        ("skip", OnFailure("skip")),
        ("block", OnFailure("block")),
        ("abort", OnFailure("abort")),
        ("fallback:worker", OnFailure(fallback="worker")),
        ('"fallback: worker"', OnFailure(fallback="worker")),
    ],
)
def test_a_failure_policy_is_one_of_four_or_a_fallback(written, policy):
    recipe = recipe_of(one_step("agent: writer", f"on_failure: {written}"))
    assert recipe.steps[0].on_failure == policy


@pytest.mark.parametrize("written", ["fallback:", '"fallback: "', "retry", "Skip", "fallback"])
def test_anything_else_is_no_failure_policy(written):
    assert problem_of(
        one_step("agent: writer", f"on_failure: '{written.strip(chr(34))}'")
    ).code == ("RCP109")


@pytest.mark.parametrize("written", ["auto", "manual", "never", "after b", "after  b"])
def test_a_way_to_merge_is_read(written: str):
    step = read_recipe(
        f"name: x\nsteps: [{{id: a, agent: w, prompt: x, merge_back: {written}}}]"
    ).steps[0]
    assert step.merge_back == written.split()[0]
    assert step.merge_after == ("b" if "after" in written else None)


@pytest.mark.parametrize("written", ["atuo", "after", "'after '", "before b", "[after, b]"])
def test_another_way_to_merge_is_a_problem(written: str):
    problems = read_recipe(
        f"name: x\nsteps: [{{id: a, agent: w, prompt: x, merge_back: {written}}}]"
    ).problems
    assert any("merge_back" in each.message for each in problems)


VALIDATOR = Draft7Validator(recipe_schema())
GOOD = "name: x\nsteps:\n  - {id: a, subagent: writer, prompt: y}\n"


def errors(text: str) -> list[object]:
    root = read_text(text).root
    assert root is not None
    return list(VALIDATOR.iter_errors(plain(root)))


def test_the_schema_is_a_schema_and_json():
    Draft7Validator.check_schema(recipe_schema())
    assert json.loads(json.dumps(recipe_schema())) == recipe_schema()


@pytest.mark.parametrize("file", sorted(RECIPES.iterdir()), ids=lambda file: file.stem)
def test_the_printed_recipes_satisfy_it(file):
    root = read_file(file).root
    assert root is not None
    assert list(VALIDATOR.iter_errors(plain(root))) == []


@pytest.mark.parametrize(
    "text",
    [
        GOOD + "what: 1\n",
        "name: x\n",
        "name: x\nsteps: []\n",
        GOOD.replace("id: a, ", ""),
        GOOD.replace("prompt: y", "prompt: y, depend_on: b"),
        GOOD + "timeout: soon\n",
        GOOD + "max_concurrency: 0\n",
        "workflow:\n  name: x\n  steps: [{agent: a}]\n",
        "workflow: 5\n",
    ],
)
def test_what_cannot_be_read_does_not(text):
    assert errors(text)


def test_what_can_be_read_does():
    assert errors(GOOD) == []
