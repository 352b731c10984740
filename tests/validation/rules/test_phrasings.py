"""Every phrasing that code decides: an answer that meets it, and one that does not."""

import pytest

from stretto.validation.rules.decide import decide
from stretto.validation.rules.verdict import Failed, Passed

THREE = ["x", "y", "z"]
PAINS = [{"problem": 1, "impact": 2, "solution": 3}] * 3
FIVE_BULLETS = "Intro\n\n- a\n- b\n- c\n- d\n- e\n"
REPORT = "# Report\n\n## Summary\n\nShort.\n\n## Next Steps\n\nMore.\n"

PHRASINGS = [
    # What seed 004 prints.
    ("Output must include company_overview field", {"company_overview": "x"}, {"overview": "x"}),
    ("Output must include key_challenges array", {"key_challenges": []}, {"key_challenges": "x"}),
    ("Must identify exactly 3 pain points", PAINS, PAINS[:2]),
    ("Must identify exactly 3 pain points", {"pain_points": THREE}, {"painPoints": ["x"] * 4}),
    ("Each pain point must have problem, impact, and solution fields", PAINS, [{"problem": 1}]),
    (
        "Each pain point must have problem, impact, and solution fields",
        {"pain_points": PAINS},
        {"pain_points": [*PAINS, {"problem": 1, "impact": 2}]},
    ),
    ("Must include overall_score field", {"overall_score": 7}, {"score": 7}),
    ("Must include passed boolean", {"passed": False}, {"passed": "yes"}),
    ("Must include passed boolean", {"passed": True}, {"overall_score": 3}),
    ("Must include X field", {"X": 1}, {"Y": 1}),
    ("Must identify exactly 4 items", [1, 2, 3, 4], THREE),
    ("Score must be between 0 and 100", {"score": 100}, {"score": 101}),
    # Fields.
    ("must include a `score` field", {"score": None}, {"scores": 1}),
    ('must contain a "score" key', {"score": 1}, {"Score": 1}),
    ("should have the property 'score'", {"score": 1}, "no JSON here"),
    ("The response needs to include a score field", {"score": 1}, [1]),
    ("The answer has to contain a summary field.", {"summary": ""}, {"text": ""}),
    ("Include a summary field", {"summary": "x"}, {}),
    ("Output includes a summary field", {"summary": "x"}, {}),
    ("It must have a Summary field", {"summary": "x"}, {"title": "x"}),
    ("must have a company overview field", {"companyOverview": 1}, {"company": 1}),
    ("must have a, b and c fields", {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2}),
    ("must have `a`, `b`, and `c` fields", {"a": 1, "b": 2, "c": 3}, {"a": 1, "c": 2}),
    ("must include both a title and a url field", {"title": 1, "url": 2}, {"title": 1}),
    ("must include the following fields: title, url", {"title": 1, "url": 2}, {"url": 1}),
    ("must include the fields title and url", {"title": 1, "url": 2}, {"url": 1}),
    ("must include a field called title", {"title": 1}, {"name": 1}),
    ("must include a field named `title`", {"title": 1}, {"Title": 1}),
    ("must include overall_score", {"overall_score": 1}, {"overall": 1}),
    ("Must include overallScore and `passed`", {"overallScore": 1, "passed": 1}, {"passed": 1}),
    ("must include a non-empty summary field", {"summary": "x"}, {"summary": " "}),
    ("must not include a password field", {"user": "x"}, {"password": "x"}),
    ("Do not include the fields `token` and `password`", {"user": "x"}, {"token": "x"}),
    ("must include a score field in the output", {"score": 1}, {}),
    ("There must be a score field", {"score": 1}, {"points": 1}),
    # Kinds.
    ("a boolean `passed` field", {"passed": True}, {"passed": 1}),
    ("must include a boolean passed field", {"passed": True}, {"passed": None}),
    ("must have an array called findings", {"findings": []}, {"findings": {}}),
    ("must contain a findings list", {"findings": []}, {"findings": "x"}),
    ("must contain a non-empty findings array", {"findings": [1]}, {"findings": []}),
    ("must include an integer score", {"score": 3.0}, {"score": 3.5}),
    ("must include score (number)", {"score": 3.5}, {"score": "3.5"}),
    ("must include tags (array of strings)", {"tags": ["a"]}, {"tags": ["a", 1]}),
    ("must include a `meta` field of type object", {"meta": {}}, {"meta": []}),
    ("must include a score field that is a number", {"score": 1}, {"score": True}),
    ("passed must be a boolean", {"passed": True}, {"passed": "true"}),
    ("passed is true", {"passed": True}, {"passed": False}),
    ("The findings field must be an array of objects", {"findings": [{}]}, {"findings": [1]}),
    ("Output must be a JSON object", {"a": 1}, [1]),
    ("Output must be valid JSON", '{"a": 1}', "{'a': 1}"),
    ("must return valid JSON", "```json\n[1]\n```", "words"),
    ("must be a JSON array with at least 2 items", [1, 2], [1]),
    ("must be an object with title and url fields", {"title": 1, "url": 2}, {"title": 1}),
    ("must be an array of objects with title and url fields", [{"title": 1, "url": 2}], [{}]),
    (
        "must include overall_score, passed boolean and feedback array",
        {"overall_score": 1, "passed": True, "feedback": []},
        {"overall_score": 1, "passed": True, "feedback": ""},
    ),
    ("The score field is required", {"score": None}, {"points": 1}),
    ("errors must be present", {"errors": []}, {"warnings": []}),
    ("result must be true", {"result": True}, {"result": False}),
    # Bounds.
    ("score must be between 0 and 100 inclusive", {"score": 0}, {"score": -1}),
    ("score between 0 and 100 (inclusive)", {"score": 100}, {"score": "100"}),
    ("score must be between 0 and 1 exclusive", {"score": 0.5}, {"score": 1}),
    ("The score field must be from 1 to 10", {"score": 1}, {"score": 0}),
    ("`score` must be in the range 1-10", {"score": 10}, {"score": 11}),
    ("score must be at least 7", {"score": 7}, {"score": 6.9}),
    ("score must be >= 7", {"score": 7}, {"score": None}),
    ("score must be greater than 7", {"score": 8}, {"score": 7}),
    ("score must not exceed 10", {"score": 10}, {"score": 11}),
    ("score must not be negative", {"score": 0}, {"score": -0.1}),
    ("score must be a positive integer", {"score": 1}, {"score": 0}),
    ("score must be a number between -1 and 1", {"score": -1}, {"score": -2}),
    ("score and confidence must be between 0 and 1", {"score": 0, "confidence": 1}, {"score": 2}),
    ("must include a score between 0 and 100", {"score": 50}, {"score": 500}),
    ("must include an integer score from 1 to 10", {"score": 5}, {"score": 5.5}),
    ("must include overall_score (1-10)", {"overall_score": 10}, {"overall_score": 0}),
    ("Each score must be between 0 and 5", {"scores": [0, 5]}, {"scores": [0, 6]}),
    ("category must be one of hot, warm or cold", {"category": "hot"}, {"category": "Hot"}),
    ('category must be "hot", "warm" or "cold"', {"category": "cold"}, {"category": "tepid"}),
    # How many.
    ("at least 3 items", THREE, [1]),
    ("Must list at least three risks", {"risks": THREE}, {"risks": ["x"]}),
    ("must have at most 2 findings", {"findings": [1, 2]}, {"findings": THREE}),
    ("must have no more than 2 findings", {"findings": []}, {"findings": THREE}),
    ("must not contain more than 2 findings", {"findings": []}, {"findings": THREE}),
    ("must contain between 2 and 3 findings", {"findings": THREE}, {"findings": [1]}),
    ("Must contain 2-3 findings", {"findings": THREE}, {"findings": [1]}),
    ("at least 2 but no more than 3 findings", {"findings": THREE}, {"findings": ["x"] * 4}),
    ("must contain one or more findings", {"findings": THREE}, {"findings": []}),
    ("must provide a minimum of 2 recommendations", {"recommendations": THREE}, {"a": 1}),
    ("must have fewer than 3 findings", {"report": {"findings": [1]}}, {"findings": THREE}),
    ("findings must contain at least 3 entries", {"findings": THREE}, {"findings": [1]}),
    ("The `findings` array must have exactly 1 element", {"findings": [1]}, {"findings": []}),
    ("Return exactly 3 pricing tiers", {"pricing_tiers": THREE}, {"pricing_tiers": [1]}),
    (
        "must contain at least 1 finding, each with a title and a severity field",
        {"findings": [{"title": 1, "severity": 2}]},
        {"findings": [{"title": 1}]},
    ),
    ("must return a list of at least 2 findings", {"findings": [1, 2]}, {"findings": [1]}),
    ("You must return exactly 3 items", THREE, [1]),
    # Texts.
    ("no more than 4 words", "only four words here", "but these are five words"),
    ("Must not exceed 4 words", "only four words here", "but these are five words"),
    ("The report must be at most 2 words", {"report": "two words"}, {"report": "a b c"}),
    ("The summary must be at most 2 words", {"summary": "two words"}, {"summary": "a b c"}),
    ("Must be between 2 and 4 words long", "three words here", "one"),
    ("title must be no longer than 5 characters", {"title": "hello"}, {"title": "hello!"}),
    ("At least two hundred words", "word " * 200, "word " * 199),
    ("must have at least 1,000 characters", "x" * 1000, "x" * 999),
    ("exactly five bullet points", FIVE_BULLETS, "- a\n- b\n"),
    ("Use at most 6 bullets", FIVE_BULLETS, "- x\n" * 7),
    ("Must contain exactly 2 sentences", "This is one. Here is two!", "One. Two. Three."),
    ("must have at least 2 paragraphs", "One para.\n\nTwo para.", "One para."),
    ("must be at most 3 lines", "a\nb\nc\n", "a\nb\nc\nd"),
    ("must have at least 2 sections", REPORT, "no headings"),
    ("must include a Summary section", REPORT, "# Title\n\ntext\n"),
    ("must have Summary and Next Steps sections", REPORT, "## Summary\n"),
    ("must include a section titled 'Next Steps'", REPORT, "plain"),
    # Emptiness.
    ("must not be empty", "x", {}),
    ("Output must not be empty", [0], []),
    ("findings must not be empty", {"findings": [1]}, {"findings": []}),
    ("The findings array must be non-empty", {"findings": [1]}, {"findings": []}),
    ("summary must not be blank", {"summary": "x"}, {"summary": "\n"}),
    ("summary must be a non-empty string", {"summary": "x"}, {"summary": ""}),
    ("Each item must not be empty", ["a"], ["a", ""]),
    # Elements.
    ("each finding must have a `title` field", {"findings": [{"title": 1}]}, [{"name": 1}]),
    ("Every finding must include title and url fields", [{"title": 1, "url": 2}], [{"url": 1}]),
    ("All findings must have a title field", {"findings": []}, {"findings": ["x"]}),
    (
        "Each item in `findings` must have a title field",
        {"findings": [{"title": 1}]},
        {"findings": [1]},
    ),
    ("For each tier, include name and price fields", [{"name": 1, "price": 2}], [{"name": 1}]),
    ("each finding must be an object with a title field", [{"title": 1}], ["title"]),
    ("each finding must have at least 2 sources", [{"sources": [1, 2]}], [{"sources": [1]}]),
    # Several at once.
    (
        "Must include score field and score must be between 0 and 100",
        {"score": 1},
        {"score": 101},
    ),
    ("Output must be valid JSON and include a `score` field", {"score": 1}, {"points": 1}),
    ("Must include a title field; title must not be empty.", {"title": "x"}, {"title": ""}),
    # Text that holds JSON is read as JSON.
    ("must include a score field", 'Here: ```json\n{"score": 1}\n```', 'Here: {"points": 1}'),
]


@pytest.mark.parametrize(("rule", "accepted", "rejected"), PHRASINGS)
def test_an_answer_that_meets_the_rule_passes(rule, accepted, rejected):
    assert decide(rule, accepted) == Passed()


@pytest.mark.parametrize(("rule", "accepted", "rejected"), PHRASINGS)
def test_an_answer_that_does_not_fails_with_a_reason(rule, accepted, rejected):
    verdict = decide(rule, rejected)
    assert isinstance(verdict, Failed)
    assert all(verdict.reasons)
