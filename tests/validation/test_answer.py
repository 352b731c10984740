import pytest

from stretto.validation.answer import Accepted, NotAccepted, check_answer, check_value

SCHEMA = {"type": "object", "required": ["score"], "properties": {"score": {"type": "number"}}}


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b\ufeff ", "\x00"])
def test_a_blank_answer_is_empty_whatever_was_asked(text):
    for format in (None, "json", "text", "markdown"):
        checked = check_answer(text, format, SCHEMA, ("must not be empty",))
        assert checked == NotAccepted("empty", "the answer is empty")


@pytest.mark.parametrize(
    ("text", "format", "output"),
    [
        ("words", None, "words"),
        (" kept as it is\n", "text", " kept as it is\n"),
        ('{"a": 1}', None, '{"a": 1}'),
        ('{"a": 1}', "markdown", '{"a": 1}'),
        ('{"a": 1}', "json", {"a": 1}),
        ('```json\n{"a": 1}\n```', "json", {"a": 1}),
        ("[]", "json", []),
        ("false", "json", False),
    ],
)
def test_the_output_is_parsed_when_the_format_asks(text, format, output):
    assert check_answer(text, format, None, ()) == Accepted(output)


def test_text_that_is_no_json_is_told_what_to_mend():
    checked = check_answer("Sorry, I cannot.", "json", None, ())
    assert isinstance(checked, NotAccepted)
    assert checked.kind == "validation"
    assert "must be JSON" in checked.reason
    assert "JSON alone" in checked.reason


def test_a_json_null_is_an_empty_answer_unless_the_schema_admits_it():
    assert check_answer("null", "json", None, ()) == NotAccepted("empty", "the answer is empty")
    assert check_answer("null", "json", {"type": ["null", "object"]}, ()) == Accepted(None)
    assert isinstance(check_answer("null", "json", SCHEMA, ()), NotAccepted)


def test_a_schema_asks_for_json_without_any_format():
    assert check_answer('It is {"score": 7}.', None, SCHEMA, ()) == Accepted({"score": 7})
    checked = check_answer('{"score": "7"}', None, SCHEMA, ())
    assert isinstance(checked, NotAccepted)
    assert "at `score`: must be a number" in checked.reason


@pytest.mark.parametrize("text", ["hot", ' "hot"\n', "hot\n"])
def test_a_schema_of_texts_takes_the_text_with_or_without_quotes(text):
    assert check_answer(text, None, {"enum": ["hot", "cold"]}, ()) == Accepted("hot")


def test_a_schema_that_admits_text_takes_text():
    schema = {"type": ["object", "string"]}
    assert check_answer("words", None, schema, ()) == Accepted("words")
    assert check_answer('{"a": 1}', None, schema, ()) == Accepted({"a": 1})
    assert check_answer("42", None, {"type": "string"}, ()) == Accepted("42")


def test_a_schema_that_cannot_be_used_is_not_worth_another_attempt():
    checked = check_answer("{}", "json", {"$ref": "https://example.com/s.json"}, ())
    assert isinstance(checked, NotAccepted)
    assert not checked.can_retry
    assert "https://example.com/s.json" in checked.reason


def test_the_schema_is_checked_before_the_rules():
    checked = check_answer("{}", "json", SCHEMA, ("must include a title field",))
    assert isinstance(checked, NotAccepted)
    assert "must have the field 'score', which is missing" in checked.reason
    assert "title" not in checked.reason


def test_all_rules_that_fail_are_told_at_once():
    rules = ("must include title field", "must be persuasive", "must have at least 2 findings")
    checked = check_answer('{"findings": [1]}', "json", None, rules)
    assert isinstance(checked, NotAccepted)
    assert checked.can_retry
    assert checked.reason == (
        "the answer does not meet these rules:\n"
        "- \"must include title field\": the field 'title' is missing in the answer, "
        "which has 'findings'\n"
        '- "must have at least 2 findings": the answer must have at least 2 findings, but has 1'
    )


def test_rules_that_code_cannot_decide_are_left_in_their_order():
    rules = ("must be persuasive", "must not be empty", "at least 3 credible sources")
    assert check_answer("text", None, None, rules) == Accepted("text", (rules[0], rules[2]))


def test_field_rules_read_the_json_in_a_text_and_leave_the_text_as_it_is():
    text = 'Here you are:\n```json\n{"score": 7}\n```'
    assert check_answer(text, None, None, ("must include a score field",)) == Accepted(text)


def test_a_field_rule_about_plain_text_says_that_json_is_needed():
    checked = check_answer("All is well.", None, None, ("must include overall_score",))
    assert isinstance(checked, NotAccepted)
    assert (
        "the answer is text: it must be an object with the field 'overall_score'" in checked.reason
    )


def test_a_parsed_value_is_checked_alike():
    assert check_value({"score": 1}, SCHEMA, ("must include a score field",)) == Accepted(
        {"score": 1}
    )
    assert check_value(None, None, ()) == NotAccepted("empty", "the answer is empty")
    assert check_value("  ", None, ()) == NotAccepted("empty", "the answer is empty")
    assert check_value([], None, ()) == Accepted([])
    assert isinstance(check_value([], None, ("must not be empty",)), NotAccepted)
