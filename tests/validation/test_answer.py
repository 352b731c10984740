import time

import pytest

from stretto.validation.answer import NoJson, read_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("7", 7),
        ("null", None),
        ('Sure!\n```json\n{"a": 1}\n```\nDone.', {"a": 1}),
        ("```\n[1]\n```", [1]),
        ('```json\n{"a": 1}', {"a": 1}),
        ('The answer is {"a": {"b": [1]}}, I think.', {"a": {"b": [1]}}),
        ('In Python {"a", "b"} is a set. So: {"x": 1}', {"x": 1}),
        ('As in [1] and [2, 3]: {"score": 7}', {"score": 7}),
        ('- [ ] to do\n\n{"a": 1}', {"a": 1}),
        ("Here are the ids: [3, 5, 8]", [3, 5, 8]),
        ("The ids:\n\n[3, 5, 8]\n\nas asked.", [3, 5, 8]),
        ("No issues: []", []),
        ("```py\nx = {1: 2\n```\n```json\n[2]\n```", [2]),
    ],
)
def test_json_is_read_from_what_agents_say(text, value):
    assert read_json(text) == value


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


@pytest.mark.parametrize(
    "text",
    [
        '{"a" ' * 200_000,
        '{"a"} ' * 150_000,
        ":[1 " * 200_000,
        "```json\n" * 100_000,
        'x{"' + '\\"[' * 300_000,
        "\n[" * 300_000,
    ],
    ids=lambda text: text[:8],
)
def test_a_hostile_megabyte_is_given_up_on_quickly(text):
    began = time.process_time()
    assert isinstance(read_json(text), NoJson)
    assert time.process_time() - began < 3
