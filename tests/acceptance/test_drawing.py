"""`stretto explain` and `stretto graph`: a recipe in words and in drawings."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.cli import GOOD, SHIPPED, problems, refused, stretto, succeeded, write

FORMS = ("ascii", "mermaid", "dot", "svg")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "good.yaml", GOOD)
    return tmp_path


def test_explain_says_who_does_what(folder: Path) -> None:
    said = stretto(folder, "explain", "good.yaml")
    assert (said.code, said.err) == (0, "")
    for piece in ("topic", "look", "researcher", "write", "writer", "check", "reviewer"):
        assert piece in said.out
    assert max(map(len, said.out.splitlines())) <= 80
    assert said.out.startswith("good\n")
    write(folder, "second.yaml", "version: 2\n" + GOOD)
    assert stretto(folder, "explain", "second.yaml").out.startswith("good, version 2\n")


def test_explain_in_json(folder: Path) -> None:
    found = succeeded(stretto(folder, "explain", "good.yaml", "--json"))
    assert found["workflow"] == "good"
    assert "researcher" in found["text"]
    assert "look" in found["graph"]


@pytest.mark.parametrize("recipe", SHIPPED, ids=lambda path: path.stem)
def test_words_and_drawing_of_everything_shipped_fit_80_columns(
    tmp_path: Path, recipe: Path
) -> None:
    found = succeeded(stretto(tmp_path, "explain", recipe, "--json"))
    for text in (found["text"], found["graph"]):
        assert text.strip()
        assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("recipe", SHIPPED, ids=lambda path: path.stem)
def test_svg_is_xml(tmp_path: Path, recipe: Path) -> None:
    said = stretto(tmp_path, "graph", recipe, "--format", "svg")
    assert (said.code, said.err) == (0, "")
    root = ElementTree.fromstring(said.out)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert not [node for node in root.iter() if node.tag.endswith("script")]


def test_mermaid_and_dot_begin_as_their_readers_expect(folder: Path) -> None:
    mermaid = stretto(folder, "graph", "good.yaml", "--format", "mermaid").out
    assert mermaid.startswith("flowchart ")
    assert mermaid.count("-->") == 2
    dot = stretto(folder, "graph", "good.yaml", "--format", "dot").out
    assert dot.startswith("digraph ")
    assert dot.rstrip().endswith("}")
    assert dot.count("->") == 2


@pytest.mark.parametrize("form", FORMS)
def test_every_drawing_names_every_step(folder: Path, form: str) -> None:
    found = succeeded(stretto(folder, "graph", "good.yaml", "--format", form, "--json"))
    assert (found["workflow"], found["format"]) == ("good", form)
    for step in ("look", "write", "check"):
        assert step in found["graph"]


@pytest.mark.parametrize("form", FORMS)
def test_hostile_names_stay_text(tmp_path: Path, form: str) -> None:
    text = """\
name: '"></svg><script>alert(1)</script>'
description: "]] --> end"
steps: [{id: end, subagent: writer, prompt: x}, {id: graph, subagent: writer, prompt: x}]
"""
    said = stretto(tmp_path, "graph", "-", "--format", form, stdin=text)
    assert said.code == 0
    if form != "dot":  # where it is text between quotes
        assert "<script>" not in said.out
    if form == "svg":
        ElementTree.fromstring(said.out)


def test_a_drawing_is_plain_and_fits_80_columns(folder: Path) -> None:
    said = stretto(folder, "graph", "good.yaml")
    assert (said.code, said.err) == (0, "")
    assert said.out.isascii()
    assert max(map(len, said.out.splitlines())) <= 80


def test_a_wide_graph_still_fits(tmp_path: Path) -> None:
    steps = "".join(
        f"  - {{id: a-rather-long-name-of-step-{n}, subagent: writer, prompt: x}}\n"
        for n in range(40)
    )
    said = stretto(tmp_path, "graph", "-", stdin=f"name: wide\nsteps:\n{steps}")
    assert said.code == 0
    assert max(map(len, said.out.splitlines())) <= 80


def test_the_width_can_be_chosen(folder: Path) -> None:
    said = stretto(folder, "graph", "good.yaml", "--width", "40")
    assert said.code == 0
    assert max(map(len, said.out.splitlines())) <= 40


def test_unknown_forms_and_widths_are_wrong_usage(folder: Path) -> None:
    refused(stretto(folder, "graph", "good.yaml", "--format", "png", "--json"), "usage")
    refused(stretto(folder, "graph", "good.yaml", "--width", "0", "--json"), "usage")
    refused(stretto(folder, "graph", "--json"), "usage")


@pytest.mark.parametrize("command", ["explain", "graph"])
def test_a_broken_recipe_is_not_drawn(tmp_path: Path, command: str) -> None:
    assert problems(stretto(tmp_path, command, "-", "--json", stdin="name: x\nsteps: []\n"))
    refused(stretto(tmp_path, command, "nope", "--json"), "not_found")
