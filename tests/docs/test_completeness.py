"""Whatever a user can write or call has its place in the docs: settings, variables, routes, kinds of errors."""

import ast
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import stretto
from stretto.config.grammar import CONFIG
from stretto.documents.kinds import ShapeOf
from stretto.documents.shapes import Shape
from stretto.problems.errors import StrettoError
from stretto.server.answers import STATUSES
from support.doc_pages import DOCS, ROOT
from support.served import served

PARAMETER = re.compile(r"{[^}]*}")
SOURCES = sorted((ROOT / "src/stretto").rglob("*.py"))


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def first_cells(text: str) -> set[str]:
    """The codes in the first column of every table of a page."""
    rows = re.findall(r"^\| (`[^|]*?) \|", text.replace(r"\|", "/"), re.MULTILINE)
    return {code for row in rows for code in re.findall(r"`([^`]+)`", row)}


def keys_of(shape: Shape, above: str = "") -> Iterator[str]:
    for key in shape.keys:
        if isinstance(key.kind, ShapeOf):
            yield from keys_of(key.kind.shape, f"{above}{key.name}.")
        else:
            yield above + key.name


def strings_of(source: Path) -> Iterator[str]:
    """The texts of a module, without its docstrings."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def test_every_key_of_the_settings_has_a_row_and_no_other():
    named = {code for code in first_cells(page("settings.md")) if not code.startswith("STRETTO_")}
    assert named == set(keys_of(CONFIG))


def test_every_variable_of_stretto_has_a_row_and_no_other():
    used = {
        found
        for source in SOURCES
        for text in strings_of(source)
        if (found := text.strip()) and re.fullmatch(r"STRETTO_[A-Z_]*[A-Z]", found)
    }
    assert len(used) > 10
    named = set(re.findall(r"^\|[^\n]*?`(STRETTO_[A-Z_]+)`", page("settings.md"), re.MULTILINE))
    assert named == used


def routes_of_the_server(folder: Path) -> dict[str, str | None]:
    """Each route with the role that it asks for; a parameter has no name."""
    with served(folder) as server:
        paths = server.client().get("/api/openapi.json").json()["paths"]
    return {
        f"{method.upper()} {PARAMETER.sub('{}', path)}": described.get("x-role")
        for path, methods in paths.items()
        for method, described in methods.items()
    }


def routes_of_the_page() -> Iterator[tuple[str, str | None]]:
    for cells, role in re.findall(r"^\| (`[A-Z].*?) \| (\w+) \|", page("http.md"), re.MULTILINE):
        for route in re.findall(r"`((?:GET|PUT|POST|DELETE) /[^`?]*)", cells):
            yield PARAMETER.sub("{}", route), {"owner": "operator", "none": None}.get(role, role)


def test_every_route_has_a_row_with_its_role_and_no_other(tmp_path: Path):
    assert dict(routes_of_the_page()) == routes_of_the_server(tmp_path)


def test_every_kind_of_error_has_a_row_with_its_status_and_no_other():
    for module in pkgutil.walk_packages(stretto.__path__, "stretto."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    kinds = {each.kind for each in every_error(StrettoError)} | set(STATUSES)
    rows = re.findall(r"^\| (`[a-z_`, ]+) \| ([\d, ]+) \|", page("http.md"), re.MULTILINE)
    told = {}
    for cell, statuses in rows:
        named, answered = re.findall(r"\w+", cell), re.findall(r"\d+", statuses)
        told |= zip(named, answered if len(answered) > 1 else answered * len(named), strict=True)
    assert told == {kind: str(STATUSES.get(kind, 500)) for kind in kinds}


def every_error(kind: type[StrettoError]) -> Iterator[type[StrettoError]]:
    yield kind
    for each in kind.__subclasses__():
        if each.__module__.startswith("stretto."):
            yield from every_error(each)
