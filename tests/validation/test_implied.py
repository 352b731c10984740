"""What rules imply of an answer's form, for models that can be held to a schema."""

import pytest

from stretto.validation.implied import implied_schema
from stretto.validation.validate import Accepted, check_value
from stretto.vocabulary.values import Json

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
    schema = implied_schema(["at least 2 findings", "at most 5 findings"])
    assert schema is not None
    assert (schema["minItems"], schema["maxItems"]) == (2, 5)
