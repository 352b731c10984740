"""Plans and reports draw themselves, and what models said stays text."""

import re
from dataclasses import replace

from stretto.adapters.models.scripted import Reply, Script
from stretto.assembly.views import RunReport
from stretto.testing.recipes import run_recipe

EVIL = '<script>alert("x")</script> & "quoted"'


def report_with(output: str) -> RunReport:
    recipe = "name: r\nsteps: [{id: a, subagent: writer, prompt: go}]\n"
    return run_recipe(recipe, script=Script((Reply(output),)))


def test_a_report_in_a_notebook_is_a_page_in_a_frame_without_scripts() -> None:
    drawn = report_with(EVIL)._repr_html_()
    assert re.fullmatch(r'<iframe sandbox srcdoc="[^"]*" style="[^"]*"></iframe>', drawn)
    assert "<script" not in drawn
    assert "alert(" in drawn


def test_a_report_as_markdown_holds_no_markup_of_a_model() -> None:
    report = report_with(EVIL)
    assert "<script>" in report.markdown()
    assert "<" not in report._repr_markdown_()
    assert str(report) == report.markdown()


def test_a_report_gives_the_forms_of_the_command_line() -> None:
    report = report_with("fine")
    assert repr(report) == "<stretto.RunReport of r: complete>"
    assert report.json()["status"] == "complete"
    assert report.html().startswith("<!doctype html>")
    svg = report._repr_svg_()
    assert svg is not None
    assert svg.startswith("<svg")


def test_the_page_and_the_drawing_of_a_report_show_how_the_steps_stand() -> None:
    recipe = (
        "name: r\nsteps: [{id: a, subagent: writer, prompt: Write a line., on_failure: skip}]\n"
    )
    report = run_recipe(recipe, script="default: {fail: no such model}")
    svg = report._repr_svg_()
    assert svg is not None
    assert "✗ failed" in svg
    assert "href" not in svg
    page = report.html()
    assert "✗ failed" in page
    assert "Prompt, as it was sent" in page
    assert "Write a line." in page
    assert "no such model" in page


def test_a_secret_of_the_environment_is_hidden_on_the_page() -> None:
    report = replace(
        report_with("the key is 12345"), hide=lambda text: text.replace("12345", "***")
    )
    assert "12345" not in report.html()
    assert "the key is ***" in report.html()
