"""Limits, decided before any model is called: at the limit, and one past it."""

import pytest

from stretto.plan.model import PlannedMap
from stretto.vocabulary.amounts import Limits
from support.recipes import flat, plan_of, problem_of, problems_of


def many_steps(count: int) -> str:
    return flat(*(f"{{id: s{i}, subagent: writer, prompt: x}}" for i in range(count)))


def branches(count: int) -> str:
    many = ", ".join(["{agent: writer, prompt: x}"] * count)
    return flat(f"{{id: a, parallel: [{many}]}}")


def map_of(max_items: str) -> str:
    return flat(f"{{id: a, map: {{over: '[1]', agent: writer{max_items}}}}}")


def test_there_may_be_500_steps():
    assert problems_of(many_steps(500)) == ()


def test_the_501st_step_is_a_problem():
    problem = problem_of(many_steps(501))
    assert problem.code == "RCP118"
    assert problem.message == "the recipe has 501 steps; at most 500 are allowed"
    assert problem.place.line == 3 + 500
    assert "stretto.yaml" in problem.hint


def test_there_may_be_16_branches():
    assert problems_of(branches(16)) == ()
    problem = problem_of(branches(17))
    assert (problem.code, problem.message) == ("RCP118", "17 branches; at most 16 are allowed")


def test_a_map_that_says_nothing_has_1000_elements_at_the_most():
    work = plan_of(map_of("")).steps[0].work
    assert isinstance(work, PlannedMap)
    assert work.max_items == 1000


def test_max_items_may_say_more_up_to_10000():
    work = plan_of(map_of(", max_items: 10000")).steps[0].work
    assert isinstance(work, PlannedMap)
    assert work.max_items == 10_000
    problem = problem_of(map_of(", max_items: 10001"))
    assert problem.code == "RCP118"
    assert problem.message == "max_items is 10,001; at most 10,000 are allowed"


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        (many_steps(501), Limits(steps=501)),
        (branches(17), Limits(branches=17)),
        (map_of(", max_items: 20000"), Limits(map_items_ceiling=20_000)),
    ],
)
def test_the_user_may_raise_them(text, limits):
    assert problems_of(text, limits=limits) == ()


def test_the_user_may_change_what_a_map_has_when_it_says_nothing():
    work = plan_of(map_of(""), limits=Limits(map_items=7)).steps[0].work
    assert isinstance(work, PlannedMap)
    assert work.max_items == 7


def test_a_recipe_may_not_set_limits():
    problem = problem_of(flat("{id: a, subagent: writer, prompt: x}", head="limits: {steps: 9}"))
    assert problem.code == "RCP101"
    assert "stretto.yaml may set limits" in problem.hint


@pytest.mark.parametrize(
    ("key", "least", "most"),
    [
        ("max_concurrency", 1, 1000),
        ("budget.tokens", 1, 10**12),
        ("budget.agents", 1, 10**6),
        ("agents.own.max_turns", 1, 1000),
        ("agents.own.retry.max_attempts", 1, 100),
    ],
)
def test_counts_have_bounds(key, least, most):
    def with_count(count: int) -> str:
        value: str = str(count)
        for name in reversed(key.split(".")):
            value = f"{{{name}: {value}}}"
        return flat("{id: a, subagent: writer, prompt: x}", head=value[1:-1])

    for good in (least, most):
        assert problems_of(with_count(good)) == ()
    for bad in (least - 1, most + 1, -1):
        problem = problem_of(with_count(bad))
        assert (problem.code, problem.place.line) == ("RCP111", 2)


@pytest.mark.parametrize("work", ["loop: {agent: writer, until: 1 < 2, max_iterations: %s}",
                                  "map: {over: '[1]', agent: writer, batch_size: %s}"])  # fmt: skip
def test_iterations_and_batches_have_bounds(work):
    for good in (1, 1000):
        assert problems_of(flat(f"{{id: a, prompt: x, {work % good}}}")) == ()
    for bad in (0, 1001):
        assert problem_of(flat(f"{{id: a, prompt: x, {work % bad}}}")).code == "RCP111"


def test_an_expression_may_have_4096_characters():
    for length, code in ((4096, None), (4097, "RCP210")):
        expression = "1 < " + "2" * 10 + " " * (length - 14)
        text = flat(f'id: a\nsubagent: writer\nprompt: x\nwhen: "{expression}"')
        assert [problem.code for problem in problems_of(text)] == ([code] if code else [])
