"""Every port has a contract suite, and every class that meets a port is tried by it."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "stretto"
# Classes that cannot do all that a suite asks for, or that a suite meets without their name: where
# each is tried, and by which words one finds it there.
ELSEWHERE = {
    "McpTool": ("contracts/test_toolbox.py", "mcp__bench__"),
    "UnusableTool": ("contracts/test_toolbox.py", "leaves_a_tool_that_says_why"),
    "_RedactedTool": ("agents/test_redacted.py", "mcp__plain__xredacted"),
    "_DelegatingTool": ("acceptance/test_chat.py", "task"),  # the tools of a lead agent
    "ScriptedModel": ("contracts/test_model_names.py", "ScriptedModel("),  # it obeys no question
    "NoRunner": ("execution/test_runs.py", "a_run_that_nobody_drives"),  # it starts nothing
    "Player": ("smoke/test_prove.py", "every_promise_is_proven"),  # it plays one recipe
    "_Recorded": ("contracts/test_identities.py", "_Recorded("),  # it repeats what was recorded
}

Parameters = dict[str, tuple[str, ...]]  # of each method, by its name


@dataclass(frozen=True, slots=True)
class Class:
    name: str
    is_protocol: bool
    methods: Parameters


@cache
def classes(folder: Path) -> tuple[Class, ...]:
    return tuple(
        Class(node.name, is_protocol(node), methods(node))
        for file in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )


def is_protocol(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base) == "Protocol" for base in node.bases)


def methods(node: ast.ClassDef) -> Parameters:
    return {
        each.name: tuple(word.arg for word in (*each.args.args, *each.args.kwonlyargs))
        for each in node.body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        and not each.name.startswith("_")
        and not any(ast.unparse(word) == "property" for word in each.decorator_list)
    }


def ports() -> dict[str, Parameters]:
    return {each.name: each.methods for each in classes(SOURCE / "ports") if each.is_protocol}


def suites() -> dict[str, Path]:
    """Where the suite of each port is: a module says with PORTS whose suite it is."""
    found: dict[str, Path] = {}
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PORTS":
                assert isinstance(node.value, ast.Tuple)
                found |= {ast.unparse(each): file for each in node.value.elts}
    return found


def adapters(port: Parameters) -> list[str]:
    return sorted(
        each.name
        for each in classes(SOURCE)
        if not each.is_protocol and port.items() <= each.methods.items()
    )


def test_every_port_has_a_suite_and_every_suite_has_a_port() -> None:
    assert suites().keys() == ports().keys()


@pytest.mark.parametrize("port", ports())
def test_every_class_that_meets_a_port_is_tried(port: str) -> None:
    found = adapters(ports()[port])
    assert found, "a port that nothing meets"
    support = "".join(file.read_text("utf-8") for file in (ROOT / "tests/support").glob("*.py"))
    suite = suites()[port].read_text(encoding="utf-8") + support
    assert [name for name in found if name not in suite and name not in ELSEWHERE] == []


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_is_tried_elsewhere_is_found_there(name: str) -> None:
    place, words = ELSEWHERE[name]
    assert words in (ROOT / "tests" / place).read_text(encoding="utf-8")
    assert name in {each.name for each in classes(SOURCE)}


def test_a_class_that_no_suite_names_is_found() -> None:
    assert "MemoryJournal" in adapters(ports()["Mailbox"])
    assert adapters({"send": ("self", "run_id", "event"), "nothing": ("self",)}) == []
