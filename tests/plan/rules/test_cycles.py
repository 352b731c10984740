import pytest

from support.recipes import flat, problem_of, problems_of


def steps(**waits: str) -> str:
    return flat(
        *(
            f"{{id: {id}, subagent: writer, prompt: x, depends_on: [{w}]}}"
            for id, w in waits.items()
        )
    )


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        (steps(a="a"), "a → a"),
        (steps(a="b", b="a"), "a → b → a"),
        (steps(a="c", b="a", c="b"), "a → b → c → a"),
        (steps(a="", b="a, d", c="b", d="c"), "b → c → d → b"),
        (steps(x="b", a="b", b="a"), "a → b → a"),
    ],
)
def test_a_cycle_is_spelt_out_from_its_first_listed_step(text, spelt):
    problem = problem_of(text)
    assert problem.code == "RCP106"
    assert problem.message.endswith(f": {spelt}")


def test_two_cycles_are_two_problems():
    problems = problems_of(steps(a="b", b="a", c="d", d="c"))
    assert [problem.message.rpartition(": ")[2] for problem in problems] == [
        "a → b → a",
        "c → d → c",
    ]


def test_what_only_stands_behind_a_cycle_is_not_on_it():
    problem = problem_of(steps(z="a", a="b", b="a", c="b"))
    assert problem.message.endswith(": a → b → a")


def test_the_shortest_of_two_entangled_cycles_is_told():
    problems = problems_of(steps(a="b, d", b="a", c="b", d="c"))
    assert problems[0].message.endswith(": a → b → a")


def test_a_reference_that_closes_a_cycle_is_told_at_its_words():
    problem = problem_of(
        flat(
            "{id: a, subagent: writer, prompt: 'x {{ steps.b.output }}'}",
            "{id: b, subagent: writer, prompt: x, depends_on: [a]}",
        )
    )
    assert problem.code == "RCP211"
    assert problem.message == "this reference closes a cycle: a → b → a"
    assert (problem.place.line, problem.place.column, problem.place.width) == (3, 45, 14)


def test_a_step_that_refers_to_itself_is_told_so():
    problem = problem_of(flat("{id: a, subagent: writer, prompt: '{{steps.a.output}}'}"))
    assert (problem.code, problem.message) == ("RCP211", "step 'a' refers to itself")


@pytest.mark.parametrize("word", ["steps.route.output", "way"])
def test_a_step_cannot_use_the_output_of_a_condition_that_may_choose_it(word):
    problem = problem_of(
        flat(
            "{id: route, condition: {eval: 1 < 2, true: a}, output: {store_as: way}}",
            f"{{id: a, subagent: writer, prompt: '{{{{{word}}}}}'}}",
        )
    )
    assert problem.code == "RCP211"
    assert problem.message == (
        "the output of 'route' is that of the step it chooses, which may be this one"
    )
    assert problem.hint == "steps.route.chosen names what it chose"


def test_an_agent_s_prompt_can_close_a_cycle():
    problem = problem_of(
        flat(
            "{id: a, subagent: own, prompt: x}",
            "{id: b, subagent: writer, prompt: x, depends_on: [a]}",
            head="agents:\n  own:\n    prompt: See {{steps.b.output}}",
        )
    )
    assert (problem.code, problem.place.line) == ("RCP211", 4)


def test_a_route_back_is_a_cycle():
    problem = problem_of(
        flat(
            "{id: a, subagent: writer, prompt: x}",
            "{id: c, depends_on: [a], condition: {eval: 1 < 2, true: a}}",
        )
    )
    assert problem.code == "RCP106"
    assert problem.message.endswith(": a → c → a")


def test_a_long_cycle_is_found_quickly():
    count = 300
    waits = {f"s{i}": f"s{(i - 1) % count}" for i in range(count)}
    problem = problem_of(steps(**waits))
    assert problem.message.count("→") == count
