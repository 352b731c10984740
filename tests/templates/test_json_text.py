import copy
import json
import time

import pytest

from stretto.templates.json_text import DEEPEST_JSON, NoJson, find_json, kind_of, read_json
from stretto.templates.scope import MISSING, Missing


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        (" [1, 2]\n", [1, 2]),
        ("7", 7),
        ("null", None),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ('Sure!\n```json\n{"a": 1}\n```\nDone.', {"a": 1}),
        ("```JSON\n42\n```", 42),
        ("```\n[1]\n```", [1]),
        ("```py\nx = [1]\n```\n```json\n[2]\n```", [2]),
        ('```json\n{"code": "```py\\nx\\n```"}\n```', {"code": "```py\nx\n```"}),
        ('The answer is {"a": {"b": [1]}}, I think.', {"a": {"b": [1]}}),
        ('[see below] {"a": 1}', {"a": 1}),
        ('[5" pipe] {"a": 1}', {"a": 1}),
        ('A set {x} and then {"a": 1} and {"b": 2}', {"a": 1}),
        ('```json\n{"a": 1}', {"a": 1}),
        ('[NaN] but {"a": 1}', {"a": 1}),
        ('In Python {"a", "b"} is a set. So: {"x": 1}', {"x": 1}),
        ('As in [1] and [2, 3]: {"score": 7}', {"score": 7}),
        ('- [ ] to do\n\n{"a": 1}', {"a": 1}),
        ("Here are the ids: [3, 5, 8]", [3, 5, 8]),
        ("The ids:\n\n[3, 5, 8]\n\nas asked.", [3, 5, 8]),
        ("No issues: []", []),
        ("```py\nx = {1: 2\n```\n```json\n[2]\n```", [2]),
    ],
)
def test_json_is_found_in_what_agents_say(text, value):
    assert find_json(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain words",
        "NaN",
        "[Infinity]",
        "[1e999]",
        "{'a': 1}",
        '{"a": 1',
        "```\nword\n```",
        "{",
    ],
)
def test_what_is_not_json_is_missing(text):
    assert find_json(text) is MISSING


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("plain words", "holds no JSON"),
        ("{'a': 1}", "holds no JSON"),
        ('{"items": [{"a": 1}, {"b":', "ends before it is complete"),
        ('Here: {"items": [{"a": 1}, {"b": "tex', "ends before it is complete"),
        ('{"items": [{"a": 1}, {"b": 2},]}', "broken at line 1"),
        ('{"say": "he said "hi"", "more": {"c": 1}}', "broken at line 1, column"),
        ('```json\n{"a": [{"b": 1}],}\n```', "broken at line 1"),
        ('so {"a": NaN, "b": {"c": 1}}', "NaN, which JSON does not have"),
        ('so {"a": 1e999, "b": {"c": 1}}', "1e999, which JSON does not have"),
        ("As shown in [1], it works.", "only [1] could be JSON"),
        ("- [ ] write it\n- [ ] send it", "only [] could be JSON"),
        ("[" * 200 + "]" * 200, "nested too deeply"),
        ("[" * 100_000, "nested too deeply"),
    ],
    ids=lambda text: text[:20],
)
def test_broken_or_missing_json_is_refused_with_what_to_mend(text, reason):
    found = read_json(text)
    assert isinstance(found, NoJson)
    assert reason in found.reason


def test_a_lone_value_in_an_unmarked_fence_is_not_an_answer():
    assert find_json("Run this:\n```\n42\n```\n") is MISSING


def test_nesting_is_bounded_alike_in_whole_and_in_prose():
    fits = "[" * DEEPEST_JSON + "]" * DEEPEST_JSON
    assert find_json(fits) == find_json(f"so: {fits}.") == json.loads(fits)
    assert find_json(f"[{fits}]") is find_json(f"so: [{fits}].") is MISSING


@pytest.mark.parametrize(
    "text",
    [
        "[" * 500_000,
        "{" * 500_000,
        '[{"a":' * 100_000,
        "[1 " * 300_000,
        "[1," * 300_000,
        '["' * 500_000,
        "x[" + "1," * 500_000,
        "[[[[[[[[[[" + "1," * 400_000 + "NaN",
        "```\n" * 250_000,
        "```a\n" + "\n " * 500_000,
        'x{"' + '\\"[' * 300_000,
        '{"a" ' * 200_000,
        '{"a"} ' * 150_000,
        ":[1 " * 200_000,
        "```json\n" * 100_000,
        "\n[" * 300_000,
    ],
    ids=lambda text: text[:8],
)
def test_a_hostile_megabyte_is_given_up_on_quickly(text):
    began = time.process_time()
    assert find_json(text) is MISSING
    # What it must not be is quadratic: that would be minutes.
    assert time.process_time() - began < 1


def test_a_large_answer_in_prose_is_still_found_whole():
    rows = [{"n": n, "text": "x" * 10} for n in range(20_000)]
    assert find_json(f"Here: {json.dumps(rows)} Done.") == rows


def test_a_citation_before_the_answer_is_passed_over():
    assert find_json('As in [1] and [2, 3]: {"score": 7}') == {"score": 7}
    assert find_json("Only [1] and [2].") is MISSING
    assert find_json('See [1]. ["a", "b"]') == ["a", "b"]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"),
        (True, "true or false"),
        (1, "a number"),
        (1.5, "a number"),
        ("", "text"),
        ([], "a list"),
        ({}, "an object"),
    ],
)
def test_values_are_called_what_authors_call_them(value, kind):
    assert kind_of(value) == kind


def test_there_is_one_missing():
    assert isinstance(MISSING, Missing)
    assert copy.deepcopy(MISSING) is MISSING
    assert repr(MISSING) == "MISSING"
