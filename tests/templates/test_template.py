import pytest

from stretto.templates.template import (
    MOST_FAULTS,
    Fault,
    Reference,
    Template,
    parse_reference,
    parse_template,
)


def texts(template: Template) -> list[str]:
    return [part if isinstance(part, str) else f"<{part.text}>" for part in template.parts]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("plain", ["plain"]),
        ("{{a}}", ["<a>"]),
        ("{{ a.b }} and {{c}}!", ["<a.b>", " and ", "<c>", "!"]),
        ("{{a}}{{b}}", ["<a>", "<b>"]),
        (r"\{{a}} {{b}}", ["{{a}} ", "<b>"]),
        (r"\\{{a}}", [r"\{{a}}"]),
        (r"{{a}}\{{b}}", ["<a>", "{{b}}"]),
        (r"C:\dir {{a}}", ["C:\\dir ", "<a>"]),
        ("}} alone", ["}} alone"]),
        ('{"a":{{x}}}', ['{"a":', "<x>", "}"]),
        ("{ one } brace", ["{ one } brace"]),
    ],
)
def test_a_template_is_text_and_references(text, parts):
    template, faults = parse_template(text)
    assert faults == ()
    assert texts(template) == parts
    assert template.text == text


def test_offsets_count_from_the_start_of_the_template():
    template, _ = parse_template("ab {{ inputs.x }} {{y}}")
    assert [reference.offset for reference in template.located] == [6, 20]


def test_a_template_without_references_is_literal():
    assert parse_template("plain")[0].is_literal
    assert parse_template(r"\{{a}}")[0].is_literal
    assert not parse_template("{{a}}")[0].is_literal


@pytest.mark.parametrize(
    ("text", "offset", "says"),
    [
        ("hello {{ name", 6, "is not closed"),
        ("{{ }}", 3, "empty"),
        ("{{a\n}}", 0, "not closed on its line"),
        ("{{a {{b}}", 0, "not closed before the next"),
        ("{{" + "a" * 600 + "}}", 0, "within 512 characters"),
        ("{{a | upper}}", 4, "cannot be part of a path"),
        ("{{{a}}}", 2, "cannot be part of a path"),
    ],
)
def test_a_template_that_does_not_parse_says_where(text, offset, says):
    _, (fault,) = parse_template(text)
    assert (fault.code, fault.offset) == ("RCP201", offset)
    assert says in fault.message


def test_all_faults_are_found_at_once_and_the_rest_is_still_read():
    template, faults = parse_template("{{ a b }} {{good}} {{}} {{ open")
    assert [fault.offset for fault in faults] == [5, 21, 24]
    assert texts(template) == ["{{ a b }} ", "<good>", " {{}} {{ open"]


def test_a_megabyte_of_braces_gives_a_page_of_faults():
    template, faults = parse_template("{{" * 500_000)
    assert len(faults) == MOST_FAULTS
    assert texts(template) == ["{{" * 500_000]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("inputs.topic", ("inputs", "topic")),
        ("  inputs.topic\t", ("inputs", "topic")),
        ("steps.gather.output.items[0].title", ("steps", "gather", "output", "items", 0, "title")),
        ("steps.1st-try.output", ("steps", "1st-try", "output")),
        ("grid[2][13]", ("grid", 2, 13)),
        ("inputs.größe", ("inputs", "größe")),
        ("inputs.名前", ("inputs", "名前")),
    ],
)
def test_a_path_is_names_and_indices(text, path):
    reference = parse_reference(text)
    assert isinstance(reference, Reference)
    assert reference.path == path
    assert reference.text == text.strip()


def test_the_offset_is_that_of_the_trimmed_text():
    reference = parse_reference("   item", offset=10)
    assert isinstance(reference, Reference)
    assert reference.offset == 13


@pytest.mark.parametrize(
    ("text", "offset", "says"),
    [
        ("", 0, "empty"),
        ("   ", 3, "empty"),
        ("x | upper", 2, "cannot be part of a path"),
        ("x.upper()", 7, "cannot be part of a path"),
        ("a b", 2, "no blanks"),
        ("a..b", 1, "name is missing"),
        ("a.", 1, "name is missing"),
        (".a", 0, "name is missing"),
        ("a[-1]", 1, "whole number from 0"),
        ("a[x]", 1, "whole number from 0"),
        ("a[0", 1, "whole number from 0"),
        ("a\nb", 1, "one line"),
        ("{a", 0, "cannot be part of a path"),
        ("a" * 513, 0, "longer than 512"),
    ],
)
def test_anything_else_is_a_fault_that_points_at_the_slip(text, offset, says):
    fault = parse_reference(text)
    assert isinstance(fault, Fault)
    assert (fault.code, fault.offset) == ("RCP201", offset)
    assert says in fault.message


def test_filters_are_answered_with_the_rule():
    fault = parse_reference("x | upper")
    assert isinstance(fault, Fault)
    assert "there are no filters" in fault.hint


@pytest.mark.parametrize(
    ("text", "step"),
    [("steps.a-b.output", "a-b"), ("steps", None), ("steps[0].output", None), ("inputs.a", None)],
)
def test_a_reference_knows_the_step_it_names(text, step):
    reference = parse_reference(text)
    assert isinstance(reference, Reference)
    assert reference.step == step


def test_every_part_knows_where_it_stands():
    reference = parse_reference("steps.a.output[007].x", offset=4)
    assert isinstance(reference, Reference)
    assert reference.path[3] == 7
    assert reference.span(1) == (10, 1)
    assert reference.span(3) == (18, 5)
    assert reference.span(-1) == (24, 1)
