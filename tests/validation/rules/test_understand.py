"""What a rule is understood to ask for."""

import time

import pytest

from stretto.validation.rules.checks import (
    ANY_ITEM,
    Amount,
    Between,
    CountOf,
    Each,
    HasFields,
    HasSections,
    IsJson,
    IsKind,
    IsOneOf,
    LacksFields,
    LengthOf,
    Mentions,
    Name,
    NotEmpty,
    On,
    Whole,
)
from stretto.validation.rules.understand import understand


def field(text):
    return Name(text, is_field=True)


def exact(text):
    return Name(text, is_exact=True, is_field=True)


UNDERSTOOD = [
    (
        "Output must include company_overview field",
        [Whole("output", (HasFields((exact("company_overview"),)),))],
    ),
    (
        "Output must include key_challenges array",
        [Whole("output", (On(exact("key_challenges"), (IsKind("array"),)),))],
    ),
    ("Must identify exactly 3 pain points", [CountOf(Name("pain points"), Amount(3, 3))]),
    (
        "Each pain point must have problem, impact, and solution fields",
        [
            Each(
                Name("pain point"),
                (HasFields((field("problem"), field("impact"), field("solution"))),),
            )
        ],
    ),
    ("Must include overall_score field", [HasFields((exact("overall_score"),))]),
    ("Must include passed boolean", [On(field("passed"), (IsKind("boolean"),))]),
    ("Score must be between 0 and 100", [On(Name("Score"), (Between(Amount(0, 100)),))]),
    ("must not be empty", [NotEmpty()]),
    ("must be valid JSON", [IsJson()]),
    ("must include a summary", [Mentions((Name("summary"),))]),
    ("must not include the `token` field", [LacksFields((exact("token"),))]),
    ("no more than 200 words", [LengthOf("words", Amount(most=200))]),
    ("2,000-3,000 words", [LengthOf("words", Amount(2000, 3000))]),
    ("more than twenty-five characters", [LengthOf("characters", Amount(25, is_open_below=True))]),
    ("under two hundred words", [LengthOf("words", Amount(most=200, is_open_above=True))]),
    ("at least a hundred words", [LengthOf("words", Amount(least=100))]),
    ("at least 3 items", [CountOf(ANY_ITEM, Amount(least=3))]),
    ("must list 3 risks", [CountOf(Name("risks"), Amount(3, 3, is_bare=True))]),
    ("must have Scope and Next Steps sections", [HasSections(("Scope", "Next Steps"))]),
    (
        "status must be one of ok, failed",
        [On(Name("status"), (IsOneOf(("ok", "failed")),))],
    ),
    (
        "must be a JSON array of objects with a title field",
        [IsKind("array", "object"), Each(ANY_ITEM, (HasFields((field("title"),)),))],
    ),
]


@pytest.mark.parametrize(("rule", "checks"), UNDERSTOOD)
def test_a_rule_is_understood_as_these_checks(rule, checks):
    assert understand(rule) == tuple(checks)


SAME = [
    (
        "must include a score field",
        [
            "Must include a score field.",
            "should contain a score field",
            "needs to have a score field",
            "has to provide the score property",
            "is required to include a score key",
            "Include a score field",
            "a score field",
            "score field",
            "  must   include\n a score  field ",
        ],
    ),
    (
        "exactly 5 bullet points",
        [
            "exactly five bullet points",
            "must have precisely five bullets",
            "Use exactly 5 bullets",
            "must be exactly 5 bullet points long",
            "There must be exactly five bullet points",
        ],
    ),
    (
        "at most 200 words",
        [
            "no more than 200 words",
            "not more than two hundred words",
            "up to 200 words",
            "a maximum of 200 words",
            "must not exceed 200 words",
            "must not be longer than 200 words",
            "must be <= 200 words",
            "must be no longer than 200 words in length",
        ],
    ),
]


@pytest.mark.parametrize(("rule", "others"), SAME)
def test_what_means_the_same_is_understood_alike(rule, others):
    for other in others:
        assert understand(other) == understand(rule), other


@pytest.mark.parametrize(
    "rule",
    ["must include " + "a and " * 70, "each with " * 40, "and " * 100, "must be " * 50, "(" * 400],
)
def test_a_hostile_rule_is_given_up_on_quickly(rule):
    began = time.process_time()
    assert understand(rule) == ()
    assert time.process_time() - began < 1
