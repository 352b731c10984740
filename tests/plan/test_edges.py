"""Every edge is enforced, written or not."""

import pytest

from stretto.plan.catalog import Catalog
from stretto.recipe.model import Agent
from support.recipes import edges_of, flat, plan_of, step_of


def wrapped(*steps: str, head: str = "") -> str:
    lines = ["name: test", *head.strip("\n").splitlines(), "steps:", *(f"  - {s}" for s in steps)]
    return "workflow:\n" + "".join(f"  {line}\n" for line in lines)


A = "{id: a, subagent: writer, prompt: x}"


def step_b(extra: str, prompt: str = "x") -> str:
    return f'{{id: b, subagent: writer, prompt: "{prompt}"{extra}}}'


@pytest.mark.parametrize("written", ["[a]", "a"])
def test_a_dependency_is_a_list_or_one_id(written):
    plan = plan_of(flat(A, step_b(f", depends_on: {written}")))
    assert edges_of(plan)["b"] == [("a", "written")]


@pytest.mark.parametrize(
    "path",
    [
        "steps.a.output",
        "steps.a.output.x[0]",
        "steps.a.status",
        "steps.a.error",
        "steps.a.validation",
    ],
)
def test_a_reference_is_an_edge(path):
    plan = plan_of(flat(A, step_b("", f"{{{{{path}}}}}")))
    assert edges_of(plan)["b"] == [("a", "reference")]


def test_a_reference_to_a_later_step_is_an_edge_too():
    plan = plan_of(flat(step_b("", "{{steps.a.output}}"), A))
    assert edges_of(plan) == {"b": [("a", "reference")], "a": []}


def test_an_edge_that_is_written_is_not_added_again():
    plan = plan_of(flat(A, step_b(", depends_on: a", "{{steps.a.output}} {{steps.a.error}}")))
    assert edges_of(plan)["b"] == [("a", "written")]


def test_a_stored_name_is_a_reference_to_its_step():
    stored = "{id: a, subagent: writer, prompt: x, output: {store_as: found}}"
    plan = plan_of(flat(stored, step_b("", "{{found.title}}")))
    assert edges_of(plan)["b"] == [("a", "reference")]
    assert plan.stored == {"found": "a"}


def test_an_input_of_a_step_s_name_is_no_edge():
    plan = plan_of(flat(A, step_b("", "{{a}} {{inputs.a}}"), head="inputs: [{name: a}]"))
    assert edges_of(plan)["b"] == []


def test_the_prompt_of_the_recipe_s_own_agent_adds_edges():
    head = "agents: {own: {prompt: 'Look at {{steps.a.output}}'}}"
    plan = plan_of(flat(A, "{id: b, subagent: own, prompt: x}", head=head))
    assert edges_of(plan)["b"] == [("a", "reference")]


@pytest.mark.parametrize(
    "work",
    [
        "parallel: [{agent: own}]",
        "loop: {agent: own, until: 1 < 2}",
        "loop: {agent: writer, validator: own}",
        "map: {over: '[1]', agent: own}",
        "map: {over: '[1]', agent: writer, reduce: own}",
        "map: {over: '[1]', stages: [{agent: writer}, {agent: own}]}",
        "condition: {eval: 1 < 2, true: own}",
        "switch: {value: run.id, cases: {x: own}}",
        "subagent: writer, on_failure: fallback:own",
        "subagent: writer, retry: {on_failure: fallback:own}",
        "subagent: second",
    ],
)
def test_so_does_the_prompt_of_everyone_whom_the_step_may_ask(work):
    head = (
        "agents:\n  own: {prompt: 'Look at {{steps.a.output}}'}\n"
        "  second: {prompt: y, retry: {on_failure: fallback:own}}"
    )
    plan = plan_of(flat(A, f"{{id: b, prompt: x, {work}}}", head=head))
    assert edges_of(plan)["b"] == [("a", "reference")]


def test_a_registered_agent_s_prompt_is_no_template():
    catalog = Catalog({"writer": Agent("writer", prompt="Use {{steps.a.output}} and {{x}}")})
    plan = plan_of(flat(A, step_b("")), catalog=catalog)
    assert edges_of(plan)["b"] == []
    assert plan.agents["writer"].prompt.is_literal


@pytest.mark.parametrize(
    "work",
    [
        "subagent: writer, when: steps.a.output.n > 1",
        "parallel: [{agent: writer, input: '{{steps.a.output}}'}]",
        "loop: {agent: writer, until: steps.a.output.n > iteration}",
        "loop: {agent: writer, validator: reviewer, feedback_path: '{{steps.a.output.why}}'}",
        "map: {over: '{{steps.a.output}}', agent: writer}",
        "map: {over: '[1]', agent: writer, input: '{{steps.a.output}} {{item}}'}",
        "map: {over: '[1]', stages: [{agent: writer, input: '{{steps.a.output}}'}]}",
        "condition: {eval: steps.a.output.n > 1, true: writer}",
        "switch: {value: '{{steps.a.output.kind}}', cases: {x: writer}}",
    ],
)
def test_a_reference_counts_wherever_it_stands(work):
    plan = plan_of(flat(A, f"{{id: b, prompt: x, {work}}}"))
    assert edges_of(plan)["b"] == [("a", "reference")]


@pytest.mark.parametrize(
    "loop",
    [
        "{agent: writer, until: steps.b.output.done == true}",
        "{agent: writer, validator: reviewer, feedback_path: '{{steps.b.output.why}}'}",
    ],
)
def test_a_loop_may_look_at_itself_without_waiting_for_itself(loop):
    plan = plan_of(flat(f"{{id: b, prompt: x, loop: {loop}}}"))
    assert edges_of(plan) == {"b": []}


def test_the_target_of_a_condition_waits_for_it():
    plan = plan_of(
        flat(
            "{id: c, prompt: x, condition: {eval: 1 < 2, true: a, false: b}}",
            A,
            "{id: b, subagent: writer, prompt: x}",
            "{id: d, subagent: writer, prompt: x, depends_on: [a, b]}",
        )
    )
    assert edges_of(plan) == {
        "c": [],
        "a": [("c", "routed")],
        "b": [("c", "routed")],
        "d": [("a", "written"), ("b", "written")],
    }
    assert [step.id for step in plan.steps if step.is_routed] == ["a", "b"]


def test_the_cases_and_the_default_of_a_switch_are_routes():
    switch = "{id: c, switch: {value: run.id, cases: {x: a, y: a}, default: b}}"
    plan = plan_of(flat(switch, A, "{id: b, subagent: writer, prompt: x}"))
    assert edges_of(plan) == {"c": [], "a": [("c", "routed")], "b": [("c", "routed")]}


def test_a_route_outranks_a_dependency_that_is_written_beside_it():
    plan = plan_of(
        flat(
            "{id: c, condition: {eval: 1 < 2, true: a}}",
            "{id: a, subagent: writer, prompt: x, depends_on: [c]}",
        )
    )
    assert edges_of(plan)["a"] == [("c", "routed")]
    assert step_of(plan, "a").is_routed


def test_a_target_that_is_both_a_step_and_an_agent_is_the_step():
    plan = plan_of(
        flat(
            "{id: c, condition: {eval: 1 < 2, true: worker}}",
            "{id: worker, subagent: writer, prompt: x}",
        )
    )
    assert edges_of(plan)["worker"] == [("c", "routed")]


@pytest.mark.parametrize(
    ("second", "edges"),
    [
        ("{id: b, agent: writer}", [("a", "listed before")]),
        ("{id: b, agent: writer, depends_on: []}", []),
        ("{id: b, agent: writer, depends_on: [a]}", [("a", "written")]),
        ("{id: b, agent: writer, input: '{{steps.a.output}}'}", [("a", "reference")]),
    ],
)
def test_a_wrapped_step_follows_the_one_listed_before_it(second, edges):
    plan = plan_of(wrapped("{id: a, agent: writer}", second))
    assert edges_of(plan)["b"] == edges


def test_listed_before_means_the_very_last_one():
    plan = plan_of(wrapped(*(f"{{id: {id}, agent: writer}}" for id in "abcd")))
    assert edges_of(plan)["d"] == [("c", "listed before")]


@pytest.mark.parametrize("words", ["all prior context", '" all prior context\\n"'])
def test_all_prior_context_waits_for_everything_listed_before(words):
    plan = plan_of(
        flat(
            A,
            "{id: b, subagent: writer, prompt: x}",
            f"{{id: c, subagent: writer, prompt: {words}}}",
            "{id: d, subagent: writer, prompt: x}",
        )
    )
    assert edges_of(plan)["c"] == [("a", "context"), ("b", "context")]


def test_all_prior_context_with_written_dependencies_waits_for_those():
    third = "{id: c, subagent: writer, prompt: all prior context, depends_on: [b]}"
    plan = plan_of(flat(A, "{id: b, subagent: writer, prompt: x}", third))
    assert edges_of(plan)["c"] == [("b", "written")]


def test_more_words_than_these_do_not_mean_all_prior_context():
    plan = plan_of(flat(A, "{id: b, subagent: writer, prompt: Use all prior context}"))
    assert edges_of(plan)["b"] == []


SCORE = "{id: score, agent: writer}"
ROUTE = "{id: route, condition: {eval: 1 < 2, true: hot, false: cold}}"
HOT, COLD = "{id: hot, agent: writer}", "{id: cold, agent: writer}"


def follows(plan) -> dict[str, list[str]]:
    return {id: [before for before, _ in befores] for id, befores in edges_of(plan).items()}


def test_a_step_that_a_condition_may_choose_follows_the_condition_and_not_its_rival():
    plan = plan_of(wrapped(SCORE, ROUTE, HOT, COLD))
    assert edges_of(plan) == {
        "score": [],
        "route": [("score", "listed before")],
        "hot": [("route", "routed")],
        "cold": [("route", "routed")],
    }


def test_the_step_after_a_fork_follows_all_its_ways():
    plan = plan_of(wrapped(SCORE, ROUTE, HOT, COLD, "{id: end, agent: writer}"))
    assert edges_of(plan)["end"] == [("hot", "listed before"), ("cold", "listed before")]


def test_a_way_of_a_fork_may_be_longer_than_one_step():
    more = "{id: more, agent: writer, input: '{{steps.hot.output}}'}"
    colder = "{id: colder, agent: writer, input: '{{steps.cold.output}}'}"
    end = "{id: end, agent: writer}"
    expected = {
        "hot": ["route"],
        "more": ["hot"],
        "cold": ["route"],
        "colder": ["cold"],
        "end": ["more", "colder"],
    }
    for listed in ([HOT, more, COLD, colder, end], [HOT, COLD, more, colder, end]):
        found = follows(plan_of(wrapped(SCORE, ROUTE, *listed)))
        assert {id: sorted(found[id]) for id in expected} == {
            id: sorted(befores) for id, befores in expected.items()
        }


def test_a_target_may_be_listed_before_its_condition():
    found = follows(plan_of(wrapped(HOT, SCORE, ROUTE, COLD, "{id: end, agent: writer}")))
    assert found == {
        "hot": ["route"],
        "score": [],
        "route": ["score"],
        "cold": ["route"],
        "end": ["hot", "cold"],
    }


def test_a_fork_inside_a_way_is_a_fork_too():
    inner = "{id: inner, switch: {value: run.id, cases: {x: one}, default: two}}"
    one, two = "{id: one, agent: writer}", "{id: two, agent: writer}"
    found = follows(
        plan_of(wrapped(SCORE, ROUTE, HOT, inner, one, two, COLD, "{id: end, agent: writer}"))
    )
    assert found["inner"] == ["hot"]
    assert (found["one"], found["two"], found["cold"]) == (["inner"], ["inner"], ["route"])
    assert found["end"] == ["one", "two", "cold"]


@pytest.mark.parametrize("dialect", [flat, wrapped])
@pytest.mark.parametrize(
    "use", ["input: '{{steps.route.output}}'", "input: x, depends_on: [route]", "input: '{{way}}'"]
)
def test_whoever_waits_for_a_condition_waits_for_what_it_chooses(dialect, use):
    route = ROUTE.replace("}}", "}, output: {store_as: way}}")
    steps = [step.replace("agent: writer", "agent: writer, input: x") for step in (HOT, COLD)]
    plan = plan_of(dialect(route, *steps, f"{{id: end, agent: writer, {use}}}"))
    assert set(follows(plan)["end"]) == {"route", "hot", "cold"}


def test_the_choice_is_known_before_what_was_chosen_has_ended():
    end = "{id: end, agent: writer, input: '{{steps.route.chosen}} {{steps.route.status}}'}"
    steps = [step.replace("agent: writer", "agent: writer, input: x") for step in (HOT, COLD)]
    assert follows(plan_of(flat(ROUTE, *steps, end)))["end"] == ["route"]


def test_a_step_between_a_condition_and_its_target_does_not_wait_for_the_target():
    between = "{id: between, agent: writer, input: x, depends_on: [route]}"
    hot = "{id: hot, agent: writer, input: x, depends_on: [between]}"
    plan = plan_of(flat(ROUTE, between, hot, COLD.replace("}", ", input: x}")))
    assert follows(plan)["between"] == ["route", "cold"]


def test_the_output_of_a_condition_waits_for_the_last_of_a_chain_of_them():
    first = "{id: first, condition: {eval: 1 < 2, true: route}}"
    steps = [step.replace("agent: writer", "agent: writer, input: x") for step in (HOT, COLD)]
    end = "{id: end, agent: writer, input: '{{steps.first.output}}'}"
    plan = plan_of(flat(first, ROUTE, *steps, end))
    assert set(follows(plan)["end"]) == {"first", "route", "hot", "cold"}
