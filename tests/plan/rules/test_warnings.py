"""What is written and has no effect is a warning, never a problem."""

import pytest

from support.recipes import flat, plan_of

A = "{id: a, subagent: writer, prompt: x}"


def warnings(text: str) -> list[tuple[str, int]]:
    return [(each.code, each.place.line) for each in plan_of(text).warnings]


def test_a_good_recipe_has_no_warnings():
    assert warnings(flat(A)) == []


def test_a_dependency_that_is_listed_twice():
    second = "{id: b, subagent: writer, prompt: x, depends_on: [a, a]}"
    assert warnings(flat(A, second)) == [("RCP901", 4)]
    assert plan_of(flat(A, second)).steps[1].depends_on == ("a",)


def test_a_write_set_of_a_reader():
    step = "{id: a, subagent: writer, prompt: x, posture: read_only, write_set: [src]}"
    assert warnings(flat(step)) == [("RCP902", 3)]


@pytest.mark.parametrize(
    "written", ["{inputs.t}", "${inputs.t}", "{ inputs.t.x }", "a {inputs.t}}} b"]
)
def test_single_braces_around_an_input(written):
    step = f"{{id: a, subagent: writer, prompt: 'Say {written.replace('}}}', '}')} now'}}"
    (warning,) = plan_of(flat(step, head="inputs: [{name: t, type: json}]")).warnings
    assert (warning.code, warning.hint[:14]) == ("RCP907", "write {{inputs")


def test_single_braces_around_a_step_and_in_a_set_of_branches():
    second = (
        "{id: b, prompt: 'Say {steps.a.output}', parallel: [{agent: writer}, {agent: reviewer}]}"
    )
    assert warnings(flat(A, second)) == [("RCP907", 4)]


@pytest.mark.parametrize("written", ["steps.a.output", "inputs.t", "kept", " steps.a.output.x[0] "])
def test_a_path_without_braces_is_one_warning_with_the_braces_as_its_hint(written):
    steps = (
        "{id: a, agent: writer, input: x, output: {store_as: kept, format: json}}",
        f"{{id: b, agent: writer, input: '{written}'}}",
    )
    recipe = "workflow:\n  name: t\n  inputs: [{name: t}]\n  steps:\n    - " + "\n    - ".join(
        steps
    )
    (warning,) = (each for each in plan_of(recipe).warnings if each.code != "RCP903")
    assert (warning.code, warning.hint) == ("RCP907", f"write {{{{{written.strip()}}}}}")
    assert warning.place.line == 6


@pytest.mark.parametrize("written", ["steps.nobody.output", "see inputs.t", "other", "t"])
def test_other_words_are_text(written):
    step = f"{{id: a, subagent: writer, prompt: '{written}', when: inputs.t != null}}"
    assert warnings(flat(step, head="inputs: [{name: t}]")) == []


@pytest.mark.parametrize(
    "written", ["{inputs.u}", "{t}", "{steps}", r"\{{inputs.t}}", "{'inputs.t'}"]
)
def test_other_braces_are_text(written):
    step = f'{{id: a, subagent: writer, prompt: "{written} {{{{inputs.t}}}}"}}'.replace(
        "\\", "\\\\"
    )
    assert warnings(flat(step, head="inputs: [{name: t}]")) == []


def test_an_agent_that_no_step_uses():
    assert warnings(flat(A, head="agents:\n  own: {prompt: x}")) == [("RCP903", 3)]


def test_an_agent_that_only_takes_over_is_used():
    head = "agents:\n  own: {prompt: x}"
    step = "{id: a, subagent: writer, prompt: x, on_failure: fallback:own}"
    assert warnings(flat(step, head=head)) == []


def test_an_input_that_nothing_uses():
    assert warnings(flat(A, head="inputs:\n  - {name: topic}")) == [("RCP903", 3)]


def test_inputs_are_used_by_prompts_agents_expressions_and_the_output():
    head = "inputs: [{name: p}, {name: q}, {name: r}, {name: s}]\nagents: {own: {prompt: '{{q}}'}}"
    step = "{id: a, subagent: own, prompt: '{{inputs.p}}', when: inputs.r == 'x'}"
    assert warnings(flat(step, head=head + "\noutput: '{{inputs.s}}'")) == []


@pytest.mark.parametrize(
    "step",
    [
        "{id: a, subagent: writer, prompt: x, write_set: [src]}",
        "{id: a, parallel: [{agent: writer}, {agent: reviewer}], write_set: [src]}",
        "{id: a, loop: {agent: writer, validator: reviewer}, prompt: x, write_set: [src]}",
        "{id: a, map: {over: '[]', agent: writer, prompt: x}, write_set: [src]}",
    ],
)
def test_a_write_set_of_a_step_whose_agents_cannot_write(step: str):
    assert warnings(flat(step)) == [("RCP902", 3)]
    assert "no agent of step 'a' has a tool that writes" in plan_of(flat(step)).warnings[0].message
    # One of them is enough.
    assert warnings(flat(step.replace("agent: writer", "agent: worker"))) == []


def test_a_fallback_that_can_write_makes_a_writer():
    step = "{id: a, subagent: writer, prompt: x, write_set: [src], on_failure: fallback:worker}"
    assert warnings(flat(step)) == []


@pytest.mark.parametrize(
    ("tools", "posture", "step_keys", "is_warned"),
    [
        ("Read", "", ", posture: writer", True),
        ("Read", "", ", posture: writer, write_set: [src]", True),
        ("Read", ", posture: writer", "", True),
        ("Bash", "", ", posture: writer", False),
        ("mcp__files__put", "", ", posture: writer", False),
        ("Read", "", ", posture: writer, model: 'cli:codex'", False),
        ("Read", "", ", posture: read_only", False),
        ("Read", "", "", False),
    ],
)
def test_a_writer_without_a_tool_that_writes(
    tools: str, posture: str, step_keys: str, is_warned: bool
):
    head = f"agents:\n  own: {{prompt: x, tools: [{tools}]{posture}}}"
    step = f"{{id: a, subagent: own, prompt: x{step_keys}}}"
    codes = [code for code, _ in warnings(flat(step, head=head))]
    assert codes == (["RCP904"] if is_warned else [])


def wrapped(*steps: str) -> str:
    listed = "\n".join(f"    - {step}" for step in steps)
    agents = "{one: {prompt: x}, two: {prompt: 'On {{steps.a.output}}'}, hand: {tools: [Write]}}"
    return f"workflow:\n  name: w\n  agents: {agents}\n  steps:\n{listed}\n"


FIRST = "{id: a, agent: one, input: x}"


@pytest.mark.parametrize(
    ("second", "is_warned"),
    [
        ("{id: b, agent: one, input: y}", True),
        ("{id: b, agent: one}", True),
        ("{id: b, parallel: [{agent: one, input: y}, {agent: one, input: z}]}", True),
        ("{id: b, agent: one, input: '{{steps.a.output}}'}", False),
        ("{id: b, agent: one, input: All prior context}", False),
        ("{id: b, agent: two, input: y}", False),  # its prompt says it
        ("{id: b, agent: one, input: y, depends_on: []}", False),
        ("{id: b, agent: one, input: y, depends_on: [a]}", False),  # as it was meant
        ("{id: b, agent: one, input: y, when: steps.a.output == 'x'}", False),
        ("{id: b, agent: hand, input: y}", False),
        ("{id: b, run: make}", False),
    ],
)
def test_a_wrapped_step_that_is_told_nothing_of_the_one_before(second: str, is_warned: bool):
    codes = [code for code, _ in warnings(wrapped(FIRST, second)) if code == "RCP908"]
    assert bool(codes) == is_warned


def test_single_braces_are_shown_where_they_stand():
    (warning,) = plan_of(
        flat('{id: a, subagent: writer, prompt: "Say {steps.a.output} now"}')
    ).warnings
    assert (warning.place.column, warning.place.width) == (44, len("{steps.a.output}"))
