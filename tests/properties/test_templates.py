"""What holds for every template, whatever is written in it and whatever is inserted."""

import json

from hypothesis import assume, given, strategies as st

from stretto.templates.json_text import find_json
from stretto.templates.render import as_text, render, render_known, whole_value
from stretto.templates.scope import Scope, StepValue, resolve
from stretto.templates.template import Fault, Reference, parse_reference, parse_template

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)
# Text that is likely to look like a template.
bracy = st.lists(
    st.sampled_from(
        ["{{", "}}", "\\", "{", "}", " ", "\n", "inputs.a", "steps.x.output", "|", "é", "[0]"]
    )
).map("".join)


@given(bracy | st.text())
def test_every_text_parses_or_has_faults_inside_it(text):
    template, faults = parse_template(text)
    assert template.text == text
    for fault in faults:
        assert fault.code == "RCP201"
        assert 0 <= fault.offset < len(text)
    for reference in template.located:
        assert text[reference.offset :].startswith(reference.text)


@given(bracy | st.text())
def test_every_path_is_a_reference_or_a_fault(text):
    parsed = parse_reference(text)
    assert isinstance(parsed, Reference | Fault)


@given(bracy | st.text(), bracy | st.text(), bracy | st.text())
def test_whatever_is_inserted_is_never_expanded(before, inserted, after):
    # The surroundings are written as literals, so all that is left is what was inserted.
    def literal(text: str) -> str:
        return text.replace("{", "").replace("\\", "")

    template, faults = parse_template(f"{literal(before)}{{{{inputs.a}}}}{literal(after)}")
    assert not faults
    scope = Scope(inputs={"a": inserted, "b": "secret"})
    assert render(template, scope).text == literal(before) + inserted + literal(after)


@given(bracy, values)
def test_rendering_never_raises(text, value):
    template, _ = parse_template(text)
    scope = Scope(inputs={"a": value}, steps={"x": StepValue(value)})
    assert isinstance(render(template, scope).text, str)
    assert isinstance(render_known(template, scope), str)
    whole_value(template, scope)


@given(bracy)
def test_an_empty_scope_keeps_a_dry_run_as_it_was_written(text):
    template, _ = parse_template(text)
    again = render_known(template, Scope())
    blanks_gone = "".join(
        part if isinstance(part, str) else "{{" + part.text + "}}" for part in template.parts
    )
    assert again == blanks_gone


@given(values)
def test_text_of_a_value_reads_back_as_the_value(value):
    assert isinstance(value, str) or json.loads(as_text(value)) == value


@given(
    values, st.lists(st.text(alphabet="ab", min_size=1, max_size=2) | st.integers(0, 3), max_size=4)
)
def test_resolving_never_raises(value, rest):
    path = ("inputs", "a", *rest)
    resolve(Reference("…", path, 0), Scope(inputs={"a": value}))


@given(st.text() | bracy | st.text(alphabet='[]{}",:1` \njson'))
def test_looking_for_json_never_raises(text):
    find_json(text)


words = st.text(alphabet=st.characters(exclude_characters="[{`", exclude_categories=["Cs"]))


@given(words, st.dictionaries(st.text(max_size=5), values, max_size=4), words)
def test_json_is_found_in_any_prose(before, value, after):
    # In quotes all of it would be one JSON text, and that is then what it says.
    assume(not before.startswith('"'))
    assert find_json(f"{before} {json.dumps(value)} {after}") == value


@given(words, values, st.sampled_from([None, 2]))
def test_json_is_found_in_a_fence(before, value, indent):
    fence = f"```json\n{json.dumps(value, indent=indent)}\n```"
    assert find_json(f"see: {before}\n{fence}\nDone.") == value
