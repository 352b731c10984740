"""The waves of a dry run: every step takes equally long, every route is taken."""

import pytest

from stretto.plan.dry_run import DEFAULT_MAX_TURNS, max_delegations, max_model_calls
from stretto.plan.waves import waves
from support.recipes import flat, plan_of


def reader(id: str, *after: str, extra: str = "") -> str:
    return f"{{id: {id}, subagent: researcher, prompt: x, depends_on: [{', '.join(after)}]{extra}}}"


def writer(id: str, *after: str, writes: str = "'**/*'", extra: str = "") -> str:
    waits = ", ".join(after)
    return f"{{id: {id}, subagent: worker, prompt: x, depends_on: [{waits}], write_set: [{writes}]{extra}}}"


SHARED = ", workspace_mode: shared"


def shown(*steps: str, width: int = 4) -> list[str]:
    return [" ".join(wave) for wave in waves(plan_of(flat(*steps), width=width))]


def test_what_waits_for_nothing_starts_at_once():
    assert shown(reader("a"), reader("b"), reader("c")) == ["a b c"]


def test_a_diamond_has_three_waves():
    steps = [reader("a"), reader("b", "a"), reader("c", "a"), reader("d", "b", "c")]
    assert shown(*steps) == ["a", "b c", "d"]


def test_the_width_holds_steps_back_in_listing_order():
    steps = [reader(id) for id in "abcde"]
    assert shown(*steps, width=2) == ["a b", "c d", "e"]
    assert shown(*steps, width=1) == ["a", "b", "c", "d", "e"]
    assert shown(*steps, width=5) == ["a b c d e"]


def test_listing_order_breaks_ties_and_not_the_order_of_dependencies():
    assert shown(reader("z", "a"), reader("y"), reader("a"), width=1) == ["y", "a", "z"]


def test_a_later_step_may_overtake_one_that_must_wait():
    assert shown(reader("a"), reader("b", "a"), reader("c")) == ["a c", "b"]
    assert shown(writer("a", writes="src"), writer("b", writes="src/x"), reader("c")) == [
        "a c",
        "b",
    ]


def test_writers_of_the_same_files_take_turns():
    assert shown(writer("a"), writer("b"), writer("c")) == ["a", "b", "c"]
    assert shown(writer("a", writes="src"), writer("b", writes="docs")) == ["a b"]
    assert shown(writer("a", writes="src/**"), writer("b", writes="src/a.py")) == ["a", "b"]
    assert shown(writer("a", writes="'src/*.py'"), writer("b", writes="'src/*.md'")) == ["a b"]


def test_an_isolated_writer_blocks_no_reader_and_a_shared_one_does():
    assert shown(writer("a"), reader("b")) == ["a b"]
    assert shown(writer("a", extra=SHARED), reader("b")) == ["a", "b"]
    narrow = reader("b", extra=", read_set: [docs]")
    assert shown(writer("a", writes="src", extra=SHARED), narrow) == ["a b"]


def test_a_wave_is_filled_past_a_conflict():
    steps = [writer("a", writes="x"), writer("b", writes="x"), writer("c", writes="y"), reader("d")]
    assert shown(*steps, width=3) == ["a c d", "b"]


def test_a_plain_path_is_no_prefix_of_a_longer_name():
    assert shown(writer("a", writes="src"), writer("b", writes="srcx")) == ["a b"]
    assert shown(writer("a", writes="./src/"), writer("b", writes="src/deep/x.py")) == ["a", "b"]


def test_every_step_is_in_exactly_one_wave():
    steps = [writer(f"w{i}", writes=f"d{i % 3}") for i in range(9)] + [reader("r", "w0", "w8")]
    found = [id for wave in shown(*steps, width=2) for id in wave.split()]
    assert sorted(found) == sorted([f"w{i}" for i in range(9)] + ["r"])


# --- how much it may cost ------------------------------------------------------------------

AGENTS = """\
agents:
  mute: {prompt: x}
  tooled: {prompt: x, tools: [Read], max_turns: 3}
  free: {prompt: x, tools: [Read]}
  ruled: {prompt: x, validation: {rules: [Must not be empty]}}
  thrice: {prompt: x, retry: {max_attempts: 3}}
  backed: {prompt: x, retry: {max_attempts: 2, on_failure: fallback:tooled}}
"""


@pytest.mark.parametrize(
    ("step", "delegations", "calls"),
    [
        ("agent: mute", 1, 1),
        ("agent: tooled", 1, 3),
        ("agent: free", 1, DEFAULT_MAX_TURNS),
        ("agent: ruled", 1, 2),
        ("agent: thrice", 3, 3),
        ("agent: tooled, retry: {max_attempts: 4}", 4, 12),
        ("agent: backed", 3, 5),
        ("parallel: [{agent: mute}, {agent: tooled}], wait: any", 2, 4),
        ("loop: {agent: mute, until: 1 < 2}", 3, 3),
        ("loop: {agent: tooled, validator: mute, max_iterations: 5}", 10, 20),
        ("map: {over: '[1]', agent: mute}", 1000, 1000),
        ("map: {over: '[1]', agent: mute, max_items: 7, reduce: tooled}", 8, 10),
        ("map: {over: '[1]', stages: [{agent: mute}, {agent: tooled}], max_items: 5}", 10, 20),
        ("condition: {eval: 1 < 2, true: mute, false: tooled}", 1, 3),
        ("switch: {value: run.id, cases: {x: thrice}, default: mute}", 3, 3),
    ],
)
def test_the_most_that_a_step_may_cost_is_known_before(step, delegations, calls):
    plan = plan_of(flat(f"{{id: a, prompt: x, {step}}}", head=AGENTS))
    assert max_delegations(plan) == delegations
    assert max_model_calls(plan) == calls


def test_steps_add_up_and_a_condition_among_steps_costs_nothing_itself():
    plan = plan_of(
        flat(
            "{id: c, condition: {eval: 1 < 2, true: a}}",
            "{id: a, agent: thrice, prompt: x}",
            "{id: b, agent: mute, prompt: x}",
            head=AGENTS,
        )
    )
    assert max_delegations(plan) == max_model_calls(plan) == 4


ROUTED = "{id: r, condition: {eval: 1 < 2, 'true': a, 'false': b}}"


def test_steps_of_which_a_condition_chooses_one_stand_side_by_side():
    steps = [ROUTED, writer("a"), writer("b"), writer("a2", "a"), writer("b2", "b")]
    assert shown(*steps) == ["r", "a b", "a2 b2"]
    assert shown(*steps, width=1) == ["r", "a b", "a2 b2"]


def test_a_step_that_both_ways_lead_to_is_nobodys_rival():
    steps = [ROUTED, writer("a"), writer("b"), writer("c", "a", "b"), writer("d", "a", "b")]
    assert shown(*steps) == ["r", "a b", "c", "d"]


def test_a_choice_within_a_way_is_a_rival_of_the_other_way():
    inner = "{id: q, depends_on: [a], condition: {eval: 1 < 2, 'true': x, 'false': y}}"
    steps = [ROUTED, writer("a"), writer("b"), inner, writer("x"), writer("y"), writer("z", "b")]
    assert shown(*steps, width=1) == ["r", "a b", "q z", "x y"]
