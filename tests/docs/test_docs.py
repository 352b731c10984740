"""What the docs show works: recipes validate, links lead somewhere, the reference is up to date."""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from stretto.assembly.project import Project
from stretto.documents.document import read_text
from stretto.plan.build import Problems, build
from stretto.problems.render import as_text
from stretto.recipe.read import read_recipe
from stretto.report.report import report_as_json
from stretto.testing.recipes import run_recipe
from support.doc_pages import DOCS, ROOT, Block, all_pages, anchors_of, blocks_of, prose_of

CATALOG = Project(DOCS, {"STRETTO_HOME": str(DOCS / "none")}).catalog()
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
STEPS = re.compile(r'^\s*"?steps"?\s*:', re.MULTILINE)


def data_blocks() -> list[tuple[str, Block]]:
    return [
        (f"{page.relative_to(ROOT)}:{block.line}", block)
        for page in all_pages()
        for block in blocks_of(page)
        if block.language in ("yaml", "json") and block.mark != "bad"
    ]


def recipes() -> list[tuple[str, Block]]:
    """But for the files on the page of a problem, which are tried there."""
    return [
        (where, block)
        for where, block in data_blocks()
        if STEPS.search(block.text) and not block.mark.endswith(".yaml")
    ]


@pytest.mark.parametrize(("where", "block"), recipes(), ids=[where for where, _ in recipes()])
def test_a_recipe_in_the_docs_validates(where: str, block: Block):
    built = build(read_recipe(block.text, f"{where}.{block.language}"), CATALOG)
    said = [as_text(problem) for problem in built.problems] if isinstance(built, Problems) else []
    assert not said, "\n\n".join(said)


@pytest.mark.parametrize(
    ("where", "block"), data_blocks(), ids=[where for where, _ in data_blocks()]
)
def test_a_block_of_data_can_be_read(where: str, block: Block):
    document = read_text(block.text, f"{where}.{block.language}")
    assert [as_text(problem) for problem in document.problems] == []


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_are_there(page: Path):
    lost = []
    for link in LINK.findall(prose_of(page)):
        if re.match(r"[a-z][a-z0-9+.-]*:", link):  # another site; nobody asks it here
            continue
        path, _, anchor = unquote(link).partition("#")
        target = page.parent / path if path else page
        is_there = target.exists()
        if anchor and target.suffix == ".md":
            is_there = is_there and anchor in anchors_of(target)
        if not is_there:
            lost.append(link)
    assert lost == []


def test_every_page_can_be_reached_from_the_index():
    seen, unread = set[Path](), [DOCS / "README.md"]
    while unread:
        page = unread.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        for link in LINK.findall(prose_of(page)):
            target = (page.parent / link.partition("#")[0]).resolve()
            # A link to a folder shows all that is in it.
            unread += sorted(target.glob("*.md")) if target.is_dir() else [target]
    assert set(DOCS.rglob("*.md")) - seen == set()


@pytest.mark.parametrize("page", ["reference", "commands"])
def test_a_page_that_a_script_makes_is_up_to_date(page: str):
    script = ROOT / "scripts" / f"{page}.py"
    made = subprocess.run(
        [sys.executable, str(script)], capture_output=True, encoding="utf-8", check=True
    )
    assert (DOCS / f"{page}.md").read_text(encoding="utf-8") == made.stdout, (
        f"run: python scripts/{page}.py > docs/{page}.md"
    )


def test_every_key_of_the_report_is_explained():
    recipe = "name: r\nsteps:\n  - {id: a, subagent: writer, prompt: Go.}\n"
    report = report_as_json(run_recipe(recipe))
    keys = set(report) | set(report["usage"]) | set(report["steps"]["a"])
    keys |= set(report["critical_path"][0])
    page = (DOCS / "runs.md").read_text(encoding="utf-8")
    section = page.partition("## The report as JSON\n")[2].partition("\n## ")[0]
    assert keys - set(re.findall(r"`(\w+)`", section)) == set()
