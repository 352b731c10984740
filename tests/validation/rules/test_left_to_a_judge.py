"""Rules that say more than code can see, and answers that leave a plain rule open."""

import pytest

from stretto.validation.rules.decide import decide
from stretto.validation.rules.understand import understand
from stretto.validation.rules.verdict import Unsure

NOT_UNDERSTOOD = [
    "",
    "...",
    "must include a score field that reflects the client's mood",
    "at least 3 credible sources",
    "must include at least 3 credible sources",
    "Must cite at least two peer-reviewed studies",
    "must be persuasive",
    "must be persuasive and at most 200 words",
    "must not include personal data",
    "must not contain confidential information",
    "each finding must have a severity that is justified",
    "each finding must have a realistic severity",
    "Each finding must have title and be actionable",
    "each finding must be relevant",
    "each critical finding must have a fix field",
    "must include a price list",
    "must include a phone number",
    "must include a clear summary",
    "must include a summary of the findings",
    "must include a detailed summary section",
    "must include a call to action",
    "must include all required fields",
    "must include no additional fields",
    "must include either a score or a rating field",
    "must include a score field or a rating field",
    "must include a score field if the lead is hot",
    "must include a score field unless it is unknown",
    "about 200 words",
    "must be 200 words",
    "approximately 5 findings",
    "at least 80% coverage",
    "must be written in a professional tone",
    "score must be realistic",
    "score must match the breakdown",
    "score must be higher than last time",
    "the sum of the scores must be between 0 and 100",
    "must not mention competitors",
    "must use British English",
    "must be factually accurate",
    "at least one of the following fields: a, b",
    "at least 3 of the findings must have a fix field",
    "must have exactly 3 unique findings",
    "must have at least 3 findings sorted by severity",
    "must have at least 3 findings with evidence",
    "all links must work",
    "code must compile",
    "the first finding must have a title field",
    "must include a score field (see the appendix)",
    "Must include 3 examples or 2 quotes",
    "must never include a score above what the data shows",
    "must use at least 3 tools",
    "must include property damage estimates",
    "must include field names",
    "may include a score field",
    "must not include a password field and a token field",
    "must not include a password field and include a token field",
    "must not be empty and contain a score field",
    "must include only the score field",
    "must include exactly the fields a and b",
    "If the lead is hot, must include a score field",
    "Try to include a score field",
    "not",
    "must",
    "must include",
    "must include a field",
    "each",
    "x" * 5000,
    "must include " + "a, " * 60 + "b fields",
]


@pytest.mark.parametrize("rule", NOT_UNDERSTOOD, ids=lambda rule: rule[:60])
def test_a_rule_with_more_in_it_than_code_can_see_is_not_understood(rule):
    assert understand(rule) == ()
    assert decide(rule, {"score": 1, "findings": [{"severity": "high"}]}) == Unsure()


OPEN = [
    ("two lists of which one is meant", "at least 3 items", {"a": [1], "b": [1, 2, 3]}),
    ("a list of another name", "Must identify exactly 3 pain points", {"pains": [1, 2, 3]}),
    ("elements that hold the things", "at least 3 sources", [{"sources": [1]}] * 3),
    ("an object where a list is meant", "at least 3 tiers", {"tiers": {"a": 1, "b": 2, "c": 3}}),
    ("a noun that may be a passage", "must include a summary", "A summary: all is well."),
    ("a noun that no field has", "must include a summary", {"overview": "x"}),
    ("a noun whose field is empty", "must include a summary", {"summary": ""}),
    ("a score by another name", "Score must be between 0 and 100", {"lead_score": 120}),
    ("a score in prose", "Score must be between 0 and 100", "Score: 120"),
    ("prose about findings", "at least 3 findings", "1. one\n2. two\n"),
    ("nested bullets", "exactly 2 bullet points", "- a\n  - b\n- c\n"),
    ("abbreviations", "exactly 1 sentence", "Ask Dr. Smith about it, e.g. today."),
    ("a script without blanks", "at most 3 words", "これは日本語の文章です"),
    ("the words of an object", "at most 3 words", {"a": "one two three four"}),
    ("more than were asked for, but not exactly", "must list 2 risks", {"risks": [1, 2, 3]}),
    ("a heading that is close", "must include a Summary section", "# Summary and outlook\n"),
    ("two meanings of answer", "The answer must not be empty", {"answer": ""}),
    ("a field deeper down", "must not include a password field", {"user": {"password": 1}}),
    ("an adjective or a name", "must include a catchy title field", {"title": "x"}),
    ("a list that may be the one", "must include a findings array", [1, 2]),
    ("who is told, not a field", "Reviewers must include a score field", {"score": 1}),
    ("a wish, not a rule", "Ideally include a score field", {"points": 1}),
    ("a noun that is no field", "The pitch must have at least 3 sections", {"title": "x"}),
    ("a date, not a number", "date must be between 2020 and 2024", {"date": "2022-05-01"}),
    ("a key finding, not a key", "must contain key findings", {"results": [1]}),
    ("a well-known compound", "at most 2 words", "well-known fact"),
]


@pytest.mark.parametrize(("why", "rule", "output"), OPEN)
def test_an_answer_that_can_be_read_two_ways_is_left_open(why, rule, output):
    assert understand(rule)
    assert decide(rule, output) == Unsure(), why
