"""The figures of the code base stay as good as they are; `-s` prints them."""

import ast
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import stretto

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    place = ROOT / "scripts" / "figures.py"
    spec = importlib.util.spec_from_file_location("figures", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["figures"] = module
    spec.loader.exec_module(module)
    return module


def test_the_figures_hold(script: ModuleType):
    script.main()
    found = script.figures()
    assert found.modules <= 474
    assert found.longest_function[0] <= 40
    assert found.cycles == ()
    assert found.gerunds == ()
    assert found.participles == ()


def test_no_public_type_name_is_defined_twice(script: ModuleType):
    assert script.figures().homonyms == {}


def test_a_cycle_through_a_lazy_import_is_found(script: ModuleType):
    imports = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert script._cycles(imports) == (("a", "b", "c"),)


def test_every_module_says_what_is_in_it(script: ModuleType):
    silent = [path for path in script._files() if not says_what_is_in_it(path)]
    assert silent == []


def says_what_is_in_it(path: Path) -> bool:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return len(text.split()) >= 4


def test_code_refers_to_pages_that_are_here(script: ModuleType):
    # A section of a paper that a reader does not have explains nothing.
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/**/*.py")]
    elsewhere = re.compile(r"\b[Ss]eeds? \d{3}")
    texts = {path: path.read_text(encoding="utf-8") for path in (*script._files(), *pages)}
    assert [path for path, text in texts.items() if elsewhere.search(text)] == []
    assert [path for path in script._files() if "§" in texts[path]] == []


def glossary() -> list[str]:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    return [row.strip() for row in re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE)][1:]


def test_the_glossary_names_each_word_once_in_order():
    words = glossary()
    assert words == sorted(set(words), key=str.lower)


def test_the_glossary_has_the_nouns_of_the_public_api():
    known = {word.lower() for row in glossary() for word in row.split(", ")}
    nouns = {"agent", "event", "plan", "problem", "report", "run", "step", "tool", "usage"}
    assert nouns - known == set()
    assert {"Event", "Problem", "Run", "RunReport"} <= set(stretto.__all__)


def test_the_contributors_table_names_every_room():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    told = sorted(room for row in rows for room in re.findall(r"`(\w+)/`", row))
    folders = (ROOT / "src" / "stretto").iterdir()
    assert told == sorted(each.name for each in folders if any(each.glob("*.py")))
