"""Every problem has a page, and every page shows its own problem, word for word."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.assembly.project import Project
from stretto.cli.terminal import print_problems, print_warnings
from stretto.plan.build import Problems, build
from stretto.plan.model import Plan
from stretto.recipe.read import read_recipe
from support.doc_pages import DOCS, ROOT, Block, blocks_of
from support.problem_codes import TITLES

PAGES = DOCS / "problems"
CATALOG = Project(DOCS, {"STRETTO_HOME": str(DOCS / "none")}).catalog()
SOURCES = list((ROOT / "src/stretto").rglob("*.py"))
NO_EXAMPLE = re.compile(r"<!-- example: none, \S.* -->")


def page_of(code: str) -> Path:
    return PAGES / f"{code}.md"


def marked(mark: str) -> list[tuple[str, Block]]:
    return [
        (code, block)
        for code in TITLES
        for block in (blocks_of(page_of(code)) if page_of(code).is_file() else [])
        if block.mark == mark
    ]


def built(block: Block) -> Plan | Problems:
    return build(read_recipe(block.text, f"recipe.{block.language}"), CATALOG)


def named(cases: list[tuple[str, Block]]) -> list[str]:
    return [f"{code}:{block.line}" for code, block in cases]


def test_every_code_in_the_source_has_a_title_and_every_title_a_use():
    used = {
        code
        for source in SOURCES
        for code in re.findall(r'"((?:RCP|CFG|PRM|RUN)\d{3})"', source.read_text(encoding="utf-8"))
    }
    assert used == set(TITLES)


def test_titles_are_listed_in_order():
    assert list(TITLES) == sorted(TITLES)


def test_every_title_has_a_page_and_every_page_a_title():
    assert {path.stem for path in PAGES.glob("*.md")} - {"README"} == set(TITLES)


@pytest.mark.parametrize("code", TITLES)
def test_a_page_opens_with_its_title(code: str):
    first = page_of(code).read_text(encoding="utf-8").partition("\n")[0]
    assert first == f"# {code} · {TITLES[code]}"


@pytest.mark.parametrize("code", TITLES)
def test_a_page_has_an_example_or_says_why_not(code: str):
    blocks = blocks_of(page_of(code))
    has_example = any(block.mark == "bad" or block.language == "console" for block in blocks)
    says_why = NO_EXAMPLE.search(page_of(code).read_text(encoding="utf-8"))
    assert has_example != bool(says_why)


@pytest.mark.parametrize("code", TITLES)
def test_a_bad_block_is_followed_by_what_is_printed_and_by_the_mended_recipe(code: str):
    marks = [block.mark or block.language for block in blocks_of(page_of(code))]
    if "bad" in marks:
        assert marks == ["bad", "text", "good"]


@pytest.mark.parametrize(("code", "block"), marked("bad"), ids=named(marked("bad")))
def test_a_bad_block_yields_exactly_its_code_as_it_is_printed(code, block, capsys):
    found = built(block)
    # Warnings leave a plan; everything else leaves none.
    assert isinstance(found, Plan) == code.startswith("RCP9")
    if isinstance(found, Plan):
        assert [warning.code for warning in found.warnings] == [code]
        print_warnings(found.warnings)
    else:
        assert [problem.code for problem in found.problems] == [code]
        print_problems(found.problems)
    printed = capsys.readouterr()
    text = next(b.text for b in blocks_of(page_of(code)) if b.language == "text")
    assert (printed.out + printed.err).rstrip("\n") == text.rstrip("\n")


@pytest.mark.parametrize(("code", "block"), marked("good"), ids=named(marked("good")))
def test_a_good_block_builds_without_a_warning(code, block):
    found = built(block)
    assert isinstance(found, Plan), found
    assert found.warnings == ()


def with_console() -> list[str]:
    return [
        code
        for code in TITLES
        if page_of(code).is_file()
        and any(block.language == "console" for block in blocks_of(page_of(code)))
    ]


@pytest.mark.parametrize("code", with_console())
def test_a_console_block_shows_what_the_commands_print(code: str, tmp_path: Path):
    console = Console(tmp_path)
    blocks = blocks_of(page_of(code))
    assert any(code in block.text for block in blocks if block.language == "console")
    for block in blocks:
        if block.mark.endswith(".yaml"):
            (console.folder / block.mark).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for command, shown in commands_of(block):
                printed, exit_code = console.run(command)
                assert fits(printed, shown), f"$ {command}\n{printed}"
                # Where nothing of the output is shown, all that is claimed is that it works.
                assert exit_code == 0 or shown != ["…"], f"$ {command}\n{printed}"


class Console:
    """A shell in a folder of its own, which the pages call /home/ada/news."""

    def __init__(self, tmp_path: Path) -> None:
        self.home = (tmp_path / "ada").resolve()
        self.folder = self.home / "news"
        self.folder.mkdir(parents=True)
        programs = tmp_path / "bin"
        programs.mkdir()
        stretto = programs / "stretto"
        stretto.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m stretto "$@"\n')
        stretto.chmod(0o755)
        self.environ = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "PYTHONUTF8": "1",
        }

    def run(self, command: str) -> tuple[str, int]:
        ended = subprocess.run(
            ["sh", "-c", command],
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        return ended.stdout.replace(str(self.home), "/home/ada"), ended.returncode


def commands_of(block: Block) -> list[tuple[str, list[str]]]:
    commands: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    return commands


def fits(printed: str, shown: list[str]) -> bool:
    """Line by line; a shown line that is only `…` stands for any number of lines."""
    lines = (".*" if line == "…" else re.escape(line) for line in shown)
    return re.fullmatch("\n".join(lines), printed.rstrip("\n"), re.DOTALL) is not None


def test_the_index_lists_every_code_in_order_with_its_title():
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\w+)\]\((\w+)\.md\) \| (.+?) \| .+ \|$", index, re.MULTILINE)
    assert rows == [(code, code, title) for code, title in TITLES.items()]
