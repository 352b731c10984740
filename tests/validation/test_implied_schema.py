"""What rules imply of an answer's form, for models that can be held to a schema."""

import pytest

from stretto.validation.answer import Accepted, check_value
from stretto.validation.implied_schema import implied_schema
from stretto.vocabulary.json_value import Json

CASES: list[tuple[list[str], Json]] = [
    (["Output must include company_overview field"], {"company_overview": "x"}),
    (["Must include overall_score field", "Must include passed boolean"],
     {"overall_score": 7, "passed": True}),
    (["Must identify exactly 3 pain points",
      "Each pain point must have problem, impact, and solution fields"],
     [{"problem": "p", "impact": "i", "solution": "s"}] * 3),
    (["score must be between 0 and 100"], {"score": 50}),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "answer"), CASES)
def test_what_fits_the_implied_schema_passes_the_rules(rules: list[str], answer: Json) -> None:
    schema = implied_schema(rules)
    assert schema is not None
    assert check_value(answer, schema, rules) == Accepted(answer)
    assert not isinstance(check_value({}, schema, ()), Accepted)


def test_rules_that_code_does_not_understand_imply_nothing() -> None:
    assert implied_schema(["must be persuasive"]) is None
    assert implied_schema([]) is None


def test_counts_bound_the_list() -> None:
    schema = implied_schema(["must list at least 2 findings", "must list at most 5 findings"])
    assert schema is not None
    assert (schema["minItems"], schema["maxItems"]) == (2, 5)


def test_what_an_answer_includes_is_a_field_of_it() -> None:
    rules = [
        "Each finding must have title and url fields",
        "must include at least 2 findings",
        "must include a score between 0 and 10",
    ]
    schema = implied_schema(rules)
    finding = {"title": "t", "url": "u"}
    assert schema is not None
    assert check_value({"findings": [finding] * 2, "score": 3}, schema, rules) == Accepted(
        {"findings": [finding] * 2, "score": 3}
    )
    assert not isinstance(check_value({"findings": [finding], "score": 3}, schema, ()), Accepted)
    assert not isinstance(check_value({"findings": [{}] * 2, "score": 3}, schema, ()), Accepted)
