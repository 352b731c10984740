"""Print the figures of the code base that tests/test_figures.py holds.

In: the Python files below src/stretto. Out: modules, lines, functions, import cycles, homonyms.

    python scripts/figures.py            the figures
    python scripts/figures.py --all      also every homonym, cycle and long function by name
"""

import ast
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeGuard

SOURCE = Path(__file__).parents[1] / "src" / "stretto"
SMALL = 60
# Functions are verbs. These forms say that something was done, and not what a call does.
PARTICIPLES = {"said", "told", "shown", "judged", "asked", "meant", "heard", "handed"}
# So do all of these where a function is its module's own. `listed(…)` of `text.short` is a value's name.
PRIVATE_PARTICIPLE = re.compile(r"_([a-z]{2,}ed|begun|cut|given|held|kept|left|spent|written)")
VERBS = {"_embed", "_exceed", "_feed", "_need", "_proceed", "_seed", "_succeed"}
# Nouns of this field that only look like participles.
NOUNS = {"string", "testing", "setting", "thing", "embedding", "heading", "routing"}


@dataclass(frozen=True, slots=True)
class Figures:
    modules: int
    lines: int
    small_modules: int
    functions: int
    median_function: int
    longest_function: tuple[int, str]
    cycles: tuple[tuple[str, ...], ...]  # imports inside functions and for types counted
    homonyms: dict[str, tuple[str, ...]]  # public type names that two modules define
    gerunds: tuple[str, ...]  # modules named for an activity
    participles: tuple[str, ...]  # functions named for what was done; properties are values


@cache
def figures() -> Figures:
    trees = {_name(path): ast.parse(path.read_text("utf-8")) for path in _files()}
    lengths = sorted(_function_lengths(trees))
    texts = [path.read_text("utf-8").count("\n") for path in _files()]
    return Figures(
        modules=len(trees),
        lines=sum(texts),
        small_modules=sum(lines <= SMALL for lines in texts),
        functions=len(lengths),
        median_function=lengths[len(lengths) // 2][0],
        longest_function=lengths[-1],
        cycles=_cycles({name: _imports(name, tree, trees) for name, tree in trees.items()}),
        homonyms=_homonyms(trees),
        gerunds=tuple(sorted(name for name in trees if _is_gerund(name.rpartition(".")[2]))),
        participles=tuple(sorted(_participles(trees))),
    )


def _files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def _name(path: Path) -> str:
    parts = ("stretto", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _is_gerund(word: str) -> bool:
    return bool(re.search(r"[a-z]{3}ing$", word)) and word.rpartition("_")[2] not in NOUNS


def _participles(trees: dict[str, ast.Module]) -> list[str]:
    return [
        f"{module}.{node.name}"
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and _is_participle(node.name)
        and not any(ast.unparse(each) in _VALUES for each in node.decorator_list)
    ]


# What is read, or entered, is a value: `with _traced(…)`.
_VALUES = {"property", "cached_property", "contextmanager", "asynccontextmanager"}


def _is_participle(name: str) -> bool:
    is_private_one = PRIVATE_PARTICIPLE.fullmatch(name) is not None and name not in VERBS
    return name.lstrip("_") in PARTICIPLES or is_private_one


def _function_lengths(trees: dict[str, ast.Module]) -> list[tuple[int, str]]:
    return [
        ((node.end_lineno or node.lineno) - node.lineno + 1, f"{module}.{node.name}")
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _imports(module: str, tree: ast.Module, known: dict[str, ast.Module]) -> set[str]:
    """Every module of ours that this one imports, wherever the import stands."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in inner}
    return {name for name in found if name in known and name != module}


def _cycles(imports: dict[str, set[str]]) -> tuple[tuple[str, ...], ...]:
    """Groups of modules each of which reaches the others (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[tuple[str, ...]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(imports[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(tuple(sorted(group)))

    sys.setrecursionlimit(10_000)
    for name in sorted(imports):
        if name not in index:
            visit(name)
    return tuple(sorted(found))


def _homonyms(trees: dict[str, ast.Module]) -> dict[str, tuple[str, ...]]:
    places = defaultdict(list)
    for module, tree in trees.items():
        for name in _types(tree):
            if not name.startswith("_"):
                places[name].append(module)
    return {name: tuple(where) for name, where in sorted(places.items()) if len(where) > 1}


def _types(tree: ast.Module) -> list[str]:
    """Classes, aliases and NewTypes of a module."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found.append(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if ast.unparse(node.annotation).endswith("TypeAlias"):
                found.append(node.target.id)
        elif _is_new_type(node):
            found += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return found


def _is_new_type(node: ast.stmt) -> TypeGuard[ast.Assign]:
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return False
    return ast.unparse(node.value.func) == "NewType"


def main() -> None:
    found = figures()
    print(
        f"modules                 {found.modules}, {found.small_modules} of {SMALL} lines or less"
    )
    print(f"lines                   {found.lines}")
    print(f"functions               {found.functions}, median {found.median_function} lines")
    print(f"longest function        {found.longest_function[0]} lines, {found.longest_function[1]}")
    print(f"import cycles           {len(found.cycles)} (imports inside functions counted)")
    print(f"homonyms                {len(found.homonyms)}")
    print(f"modules named …ing      {len(found.gerunds)}")
    print(f"functions like 'said'   {len(found.participles)}")
    if "--all" in sys.argv[1:]:
        for cycle in found.cycles:
            print("cycle", " ".join(cycle))
        for name, where in found.homonyms.items():
            print("homonym", name, *where)
        for name in found.gerunds:
            print("named …ing", name)


if __name__ == "__main__":
    main()
