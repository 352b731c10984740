import pytest

from stretto.templates.template import MOST_FAULTS, Template, parse_template


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
    assert [reference.offset for reference in template.references] == [6, 20]


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
