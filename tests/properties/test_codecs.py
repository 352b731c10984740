"""Codecs read back what they wrote, and never fail on what they did not write."""

import json
from contextlib import suppress
from typing import get_args

from hypothesis import given, settings, strategies as st
from msgspec import Raw, structs

from stretto.events.codec import UnknownEvent, decode, encode
from stretto.events.model import Event
from stretto.plan.build import build
from stretto.plan.catalog import Catalog
from stretto.plan.model import Plan, decode_plan, encode_plan
from stretto.problems.errors import StrettoError
from stretto.recipe.model import Agent
from stretto.recipe.read import read_recipe
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import AgentId, StepId

numbers = st.floats(allow_nan=False, allow_infinity=False)
json_values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
st.register_type_strategy(float, numbers)
st.register_type_strategy(StepId, st.text().map(StepId))
st.register_type_strategy(AgentId, st.text().map(AgentId))
st.register_type_strategy(
    Usage, st.builds(Usage, st.integers(), st.integers(), numbers, st.integers())
)
json_objects = st.dictionaries(st.text(), json_values, max_size=3)
json_texts = json_objects.map(lambda value: json.dumps(value, separators=(",", ":")))
given_json = {"output": json_values, "inputs": json_objects, "arguments": json_objects}
given_json["plan"] = json_texts.map(Raw)
given_json["at"] = st.floats(0, 253_402_300_799)  # what a date can be made of


def events_of(kind: type) -> st.SearchStrategy[Event]:
    named = {name: s for name, s in given_json.items() if name in kind.__struct_fields__}  # type: ignore[attr-defined]
    return st.builds(kind, **named)


events = st.one_of(*map(events_of, get_args(Event)))


@given(events)
def test_every_event_is_read_back_as_it_was(event: Event) -> None:
    row = encode(event)
    assert decode(row) == event
    assert encode(event) == row
    assert json.loads(row)["type"] == event.type


@given(events)
def test_a_row_is_json_like_any_other(event: Event) -> None:
    row = encode(event)
    again = json.dumps(json.loads(row), ensure_ascii=False, separators=(",", ":"))
    read = decode(again)
    assert not isinstance(read, UnknownEvent)
    assert json.loads(encode(read)) == json.loads(row)


@given(st.text())
def test_no_text_makes_decode_fail(text: str) -> None:
    assert isinstance(decode(text), UnknownEvent)


@given(events, st.data())
def test_no_damage_makes_decode_fail(event: Event, data: st.DataObject) -> None:
    row = json.loads(encode(event))
    field = data.draw(st.sampled_from(sorted(row)))
    row[field] = data.draw(json_values)
    decode(json.dumps(row))


# Recipes with every kind of step; what hypothesis writes into them only has to be allowed there.
words = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="{\\\ufffe\uffff"),
    min_size=1,
    max_size=20,
)
# A recipe may not hold control characters, not even as escapes; events may.
written_values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)
told = words.map(lambda text: f"go on: {text} {{{{inputs.topic}}}} \\{{{{ not this }}}}")
sets = st.lists(st.sampled_from(["src", "docs/**", "**/*.py", "a/[!b]?/*", "{x,y}/z"]), max_size=3)
common = {
    "timeout": st.sampled_from([5, 2.5, "3m"]),
    "on_failure": st.sampled_from(["inline", "skip", "block", "abort", "fallback:other"]),
    "when": st.sampled_from(
        ["inputs.topic != ''", "{{inputs.topic}} contains 'x' and not (1 > 2)"]
    ),
    "gate": st.just("human"),
    "read_set": sets,
    "write_set": sets,
    "posture": st.sampled_from(["read_only", "writer"]),
    "workspace_mode": st.sampled_from(["shared", "isolated"]),
    "merge_back": st.sampled_from(["auto", "manual", "never"]),
    "retry": st.fixed_dictionaries(
        {"max_attempts": st.integers(1, 5), "backoff": st.sampled_from(["none", "linear"])}
    ),
}
works = st.one_of(
    st.fixed_dictionaries({"agent": st.just("some"), "prompt": told}),
    st.fixed_dictionaries({"agent": st.just("some"), "input": st.just("all prior context")}),
    st.fixed_dictionaries(
        {
            "parallel": st.just([{"agent": "some"}, {"agent": "other"}]),
            "wait": st.sampled_from(["all", "any", 1, 2]),
            "prompt": told,
        }
    ),
    st.fixed_dictionaries(
        {
            "condition": st.just(
                {"eval": "inputs.topic > 3 or inputs.topic in [1, 'a']", "true": "some"}
            ),
            "prompt": told,
        }
    ),
    st.fixed_dictionaries(
        {
            "switch": st.just(
                {"value": "inputs.topic", "cases": {"a": "some", "b": "other"}, "default": "some"}
            ),
            "prompt": told,
        }
    ),
    st.fixed_dictionaries(
        {
            "loop": st.fixed_dictionaries(
                {"agent": st.just("some"), "max_iterations": st.integers(1, 9)},
                optional={"feedback_path": st.just("feedback.notes[0]")},
            ).flatmap(
                lambda loop: st.sampled_from(
                    [{**loop, "validator": "other"}, {**loop, "until": "iteration > 2"}]
                )
            ),
            "prompt": told,
        }
    ),
    st.fixed_dictionaries(
        {
            "map": st.fixed_dictionaries(
                {"over": st.just("{{inputs.topic}}"), "agent": st.just("some")},
                optional={"reduce": st.just("other"), "batch_size": st.integers(1, 9)},
            ),
            "prompt": told,
        }
    ),
)
steps = st.builds(
    lambda work, rest: {**rest, **work}, works, st.fixed_dictionaries({}, optional=common)
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    written = draw(st.lists(steps, min_size=1, max_size=4))
    recipe = {
        "name": "made",
        "inputs": [{"name": "topic", "type": "json", "default": [draw(written_values)]}],
        "budget": {"tokens": 5, "usd": 0.5},
        "steps": [{"id": f"s{n}", **step} for n, step in enumerate(written)],
    }
    agents = {
        AgentId(name): Agent(AgentId(name), prompt=draw(st.text() | st.just("{{ not this }}")))
        for name in ("some", "other")
    }
    plan = build(read_recipe(json.dumps(recipe), "made.json"), Catalog(agents))
    assert isinstance(plan, Plan), plan
    return plan


@settings(deadline=None)
@given(plans())
def test_every_plan_is_read_back_as_it_was(plan: Plan) -> None:
    stored = encode_plan(plan)
    again = decode_plan(stored)
    assert again == plan
    assert bytes(encode_plan(again)) == bytes(stored)


@settings(deadline=None)
@given(plans(), st.data())
def test_a_damaged_plan_is_read_or_refused_but_never_breaks_the_reader(
    plan: Plan, data: st.DataObject
) -> None:
    whole = json.loads(bytes(encode_plan(plan)))
    part = whole
    while isinstance(part, dict | list) and part:
        keys = sorted(part) if isinstance(part, dict) else list(range(len(part)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(part[key], dict | list) or data.draw(st.booleans()):
            part[key] = data.draw(json_values)
            break
        part = part[key]
    with suppress(StrettoError):
        decode_plan(Raw(json.dumps(whole)))


@settings(deadline=None)
@given(json_values)
def test_no_value_but_a_plan_is_read_as_one(value: Json) -> None:
    try:
        decode_plan(Raw(json.dumps(value)))
    except StrettoError:
        return
    raise AssertionError("this is no plan")


def test_an_empty_prompt_that_was_never_parsed_stays_so() -> None:
    recipe = read_recipe('{"name": "n", "steps": [{"id": "a", "agent": "some", "prompt": "go"}]}')
    plan = build(recipe, Catalog({AgentId("some"): Agent(AgentId("some"))}))
    assert isinstance(plan, Plan)
    assert decode_plan(encode_plan(plan)) == plan
    assert decode_plan(encode_plan(structs.replace(plan, name="ü"))).name == "ü"
