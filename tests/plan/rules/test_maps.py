import pytest

from support.recipes import flat, problem_of, problems_of


def test_a_map_needs_at_least_one_stage():
    problem = problem_of(flat("{id: a, map: {over: '[1]', stages: []}}"))
    assert (problem.code, problem.path) == ("RCP102", "steps[0].map.stages")


def test_every_stage_needs_an_agent():
    problem = problem_of(flat("{id: a, map: {over: '[1]', stages: [{agent: writer}, {input: x}]}}"))
    assert (problem.code, problem.path) == ("RCP102", "steps[0].map.stages[1]")


def test_a_map_has_an_agent_or_stages_and_not_both():
    text = flat("{id: a, map: {over: '[1]', agent: writer, stages: [{agent: writer}]}}")
    assert problem_of(text).code == "RCP114"


@pytest.mark.parametrize("over", ["'[1, 2]'", "'{{steps.b.output}}'", "' {{steps.b.output}} '"])
def test_over_is_one_reference_or_a_list_as_written(over):
    text = flat(
        f"{{id: a, map: {{over: {over}, agent: writer}}}}", "{id: b, subagent: writer, prompt: x}"
    )
    assert problems_of(text) == ()


@pytest.mark.parametrize("over", ["words", "'{}'", "5", "'x {{steps.b.output}}'"])
def test_over_is_nothing_else(over):
    text = flat(
        f"{{id: a, map: {{over: {over}, agent: writer}}}}", "{id: b, subagent: writer, prompt: x}"
    )
    assert problem_of(text).code == "RCP212"


def _lists_of(field: str) -> str:
    one = f"{{properties: {{xs: {{type: array, items: {{properties: {{{field}: {{}}}}}}}}}}}}"
    return f"{{type: object, allOf: [{one}, {one}]}}"


@pytest.mark.parametrize("order", ["ab", "aab", "aabb"])
def test_what_is_known_of_one_list_is_not_believed_of_another(order):
    # The elements of both lists are described by schemas that are joined for one look only.
    agents = [
        f"{{id: {id}, subagent: writer, prompt: x, output: {{schema: {_lists_of(field)}}}}}"
        for id, field in (("a", "p"), ("b", "q"))
    ]
    maps = [
        f"{{id: m{n}, map: {{over: '{{{{steps.{id}.output.xs}}}}', agent: writer}}, "
        "prompt: '{{item.p}}'}"
        for n, id in enumerate(order)
    ]
    wrong = {f"steps[{2 + n}].prompt" for n, id in enumerate(order) if id == "b"}
    problems = problems_of(flat(*agents, *maps))
    assert {problem.code for problem in problems} == {"RCP205"}
    assert {problem.path for problem in problems} == wrong
