"""What holds for every rule and every answer: a verdict, never an exception, always the same one."""

import json

from hypothesis import given, settings, strategies as st

from stretto.templates.json_text import read_json
from stretto.validation.answer import Accepted, NotAccepted, check_answer, check_value
from stretto.validation.judge import judge_prompt, read_verdicts
from stretto.validation.rule_decisions import decide
from stretto.validation.rules import understand
from stretto.validation.schema import BadSchema, schema_errors, schema_faults

# A machine with much to do is slow now and then; that is no fault of an example.
unhurried = settings(deadline=None)

# Pieces that make sentences which are almost rules.
WORDS = (
    "must should not be include have contain each every finding findings score field fields array "
    "boolean number at least most exactly between and or , . ; : ( ) - 3 0 100 -1 2.5 five words "
    "bullet points sections items the a an output `title` 'x' \"y\" overall_score one of true empty "
    "non-empty object with JSON valid Summary section that is there for key list é 80% >= passed"
)
sentences = st.lists(st.sampled_from(WORDS.split(" ")), max_size=14).map(" ".join)
rules = sentences | st.text(max_size=60)

keys = st.sampled_from(["score", "findings", "title", "x", "Summary", "items", "overall_score"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**4000)
    | st.floats()
    | st.sampled_from(["", "- a\n- b", "# Summary\ntext", '{"score": 1}', "[1]", "85%", "\ud800"])
    | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(keys | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=10,
)
texts = st.text(max_size=80) | values.map(lambda value: f"so: {value!r}") | values.map(json.dumps)


@unhurried
@given(rules, values)
def test_every_rule_about_every_answer_has_one_verdict(rule, output):
    decision = decide(rule, output)
    assert (decision.status == "failed") == bool(decision.reasons)
    assert all(len(reason) < 2000 for reason in decision.reasons)
    understand.cache_clear()
    assert decide(rule, output) == decision


@unhurried
@given(texts, st.sampled_from([None, "json", "text", "markdown"]), st.lists(rules, max_size=3))
def test_every_text_is_accepted_or_not(text, format, asked):
    checked = check_answer(text, format, None, tuple(asked))
    assert isinstance(checked, Accepted | NotAccepted)
    assert check_answer(text, format, None, tuple(asked)) == checked or "nan" in text.lower()
    if isinstance(checked, Accepted):
        assert set(checked.undecided) <= set(asked)
        assert format == "json" or checked.output == text
    else:
        assert checked.reason


schemas = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["object", "array", "string", "number", ["null", "integer"], "x"]),
        "required": st.lists(keys, max_size=2, unique=True),
        "enum": st.lists(st.text(max_size=3) | st.integers(), min_size=1, max_size=3),
        "minItems": st.integers(-1, 3),
        "uniqueItems": st.booleans(),
        "multipleOf": st.sampled_from([0.1, 3, 0]),
        "maximum": st.floats(allow_nan=False) | st.integers(),
        "pattern": st.sampled_from(["^a+$", "(", "(a+)+$", r"(x)\1"]),
        "items": st.sampled_from([{"type": "number"}, {"$ref": "#"}, {"$ref": "#/nowhere"}, False]),
        "properties": st.dictionaries(keys, st.sampled_from([{"type": "string"}, {"$ref": "#"}])),
        "anyOf": st.just([{"type": "string"}, {"required": ["score"]}]),
        "not": st.just({"type": "null"}),
        "$schema": st.just("http://json-schema.org/draft-07/schema#"),
    },
)


@unhurried
@given(values, schemas)
def test_every_value_fits_every_schema_or_is_told_why(value, schema):
    errors = schema_errors(value, schema)
    assert isinstance(errors, BadSchema) == bool(schema_faults(schema))
    assert schema_errors(value, schema) == errors
    assert isinstance(check_value(value, schema, ()), Accepted | NotAccepted)


@unhurried
@given(texts)
def test_every_text_is_json_or_is_told_why(text):
    read_json(text)
    said = read_verdicts(text, ("one", "two"))
    assert isinstance(said, str)


@unhurried
@given(st.lists(rules, max_size=3), values)
def test_a_judge_can_be_asked_about_every_answer(asked, output):
    assert judge_prompt(asked, output)
