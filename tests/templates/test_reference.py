import pytest

from stretto.templates.template import Fault, Reference, parse_reference


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
    assert "no filters, no logic" in fault.hint


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
