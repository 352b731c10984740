"""What is written and has no effect is a warning, never a problem."""

from make import flat, plan_of

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
