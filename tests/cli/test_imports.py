"""A command loads what it needs: every start pays for what is imported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.testing.openai_script import Said
from stretto.testing.openai_server import serving

GOOD = """\
name: good
steps:
  - {id: a, subagent: researcher, prompt: look}
  - {id: b, subagent: writer, prompt: "{{steps.a.output}}"}
  - {id: c, subagent: reviewer, prompt: "{{steps.b.output}}"}
"""
# Runs one command in a fresh interpreter, then says on stderr which modules it took.
PROBE = """\
import sys
before = set(sys.modules)
from stretto.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as exit:
    assert not exit.code, exit.code
after = set(sys.modules)
import json
print(json.dumps(sorted(after - before)), file=sys.stderr)
"""
# Each costs milliseconds at every start, and none is needed to read and check a recipe. msgspec
# costs some too, and saves three times as much: what a recipe is made of are its structs.
HEAVY = {
    "aiosqlite",
    "asyncio",
    "concurrent",
    "csv",
    "ctypes",
    "difflib",
    "email",
    "fastapi",
    "html",
    "http",
    "httpx",
    "importlib.metadata",
    "jsonschema",
    "logging",
    "multiprocessing",
    "pydantic",
    "pydantic_ai",
    "pygments",
    "queue",
    "random",
    "rich",
    "selectors",
    "shutil",
    "socket",
    "sqlite3",
    "ssl",
    "starlette",
    "statistics",
    "subprocess",
    "tempfile",
    "temporalio",
    "tomllib",
    "traceback",
    "unittest",
    "urllib.request",
    "uvicorn",
    "xml",
    "zipfile",
}
# A number that needs no reading of anything: not even the parser of the command line.
NOT_FOR_THE_VERSION = HEAVY | {
    "click",
    "dataclasses",
    "inspect",
    "json",
    "pathlib",
    "stretto.assembly",
    "yaml",
}


def loaded(folder: Path, *words: str, **more: str) -> set[str]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *words],
        cwd=folder,
        env={**environ, "STRETTO_HOME": str(folder / "home"), **more},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def among(modules: set[str], unwanted: set[str]) -> set[str]:
    """The unwanted ones that were loaded, by themselves or by a part of them."""
    return {name for name in unwanted if any(f"{m}.".startswith(f"{name}.") for m in modules)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.yaml").write_text(GOOD, encoding="utf-8")
    return tmp_path


def test_the_version_loads_next_to_nothing(folder: Path) -> None:
    modules = loaded(folder, "--version")
    assert among(modules, NOT_FOR_THE_VERSION) == set()
    ours = {name.removeprefix("stretto.") for name in modules if name.startswith("stretto.")}
    assert ours <= {"cli", "cli.main", "cli.streams", "vocabulary", "vocabulary.version"}


def test_validating_a_good_file_loads_nothing_heavy(folder: Path) -> None:
    assert among(loaded(folder, "validate", "good.yaml"), HEAVY) == set()


def test_validating_loads_no_other_command_and_no_room_it_does_not_need(folder: Path) -> None:
    modules = loaded(folder, "validate", "good.yaml")
    rooms = {"adapters", "execution", "schedule", "server", "report", "events", "testing", "goals"}
    assert among(modules, {f"stretto.{room}" for room in rooms}) == set()
    # Nor what only a plan, a saved recipe, an expression or a set of files needs.
    parts = {"plan.model", "globs", "plan.dry_run", "registry.workflows", "templates.expression"}
    assert among(modules, {"hashlib", *(f"stretto.{part}" for part in parts)}) == set()
    others = {"init", "new", "plan", "run", "explain", "graph", "list_", "show", "schema"}
    assert among(modules, {f"stretto.cli.{name}" for name in others}) == set()


@pytest.mark.parametrize(
    "words",
    [
        ("validate", "good.yaml", "--json"),
        ("show", "good.yaml"),
        ("list",),
        ("schema",),
    ],
    ids=" ".join,
)
def test_no_reading_command_loads_anything_heavy(folder: Path, words: tuple[str, ...]) -> None:
    assert among(loaded(folder, *words), HEAVY) == set()


# Drawings and prose wrap lines and measure the terminal; nothing else is granted to them.
@pytest.mark.parametrize(
    "words",
    [("plan", "good.yaml"), ("explain", "good.yaml"), ("graph", "good.yaml")],
    ids=" ".join,
)
def test_plans_and_drawings_load_no_network_no_database_no_loop(
    folder: Path, words: tuple[str, ...]
) -> None:
    heavy = {"asyncio", "email", "http", "pydantic", "pydantic_ai", "rich", "socket", "sqlite3"}
    assert among(loaded(folder, *words), heavy | {"ssl", "urllib.request", "xml"}) == set()


def test_help_loads_no_command(folder: Path) -> None:
    modules = loaded(folder, "--help")
    assert "stretto.assembly" not in modules
    # click itself asks how wide the terminal is.
    assert among(modules, (HEAVY - {"shutil"}) | {"msgspec"}) == set()


# A shell waits for these words at every Tab.
@pytest.mark.parametrize(
    "line", ["stretto ", "stretto run ", "stretto logs last ", "stretto run -"]
)
def test_completion_needs_no_engine(folder: Path, line: str) -> None:
    rooms = ("assembly", "execution", "plan", "recipe", "schedule", "documents", "config")
    engine = {"asyncio", "msgspec", "pydantic", "rich", "yaml"} | {f"stretto.{r}" for r in rooms}
    assert among(loaded(folder, "completion", "--words", line), engine) == set()


# A run of a script asks nobody and opens no connection; nothing here is for reports on a terminal.
NOT_FOR_A_SCRIPTED_RUN = {
    "anyio",
    "email",
    "genai_prices",
    "http",
    "httpcore2",
    "httpx2",
    "importlib.metadata",
    "jsonschema",
    "mcp",
    "pydantic",
    "pydantic_ai",
    "pygments",
    "rich",
    "stretto.adapters.models.cli",
    "stretto.adapters.models.openai_model",
    "stretto.adapters.tools",
    "stretto.agents.subagent",
    "stretto.assembly.readiness",
    "stretto.cli.gate",
    "stretto.cli.progress.view",
    "stretto.report.html",
    "stretto.report.markdown",
    "unittest",
    "urllib.request",
    "xml",
}
# pydantic-ai alone took 0.7 s of CPU: it is for providers that have no lean model of their own.
NOT_FOR_MODEL_CALLS = {
    "fastapi",
    "griffe",
    "jsonschema",
    "mcp",
    "openai",
    "opentelemetry",
    "pydantic_ai",
    "pydantic_graph",
    "pygments",
    "rich",
    "stretto.adapters.models.cli",
    "stretto.adapters.models.local.model",
    "stretto.adapters.models.resolve",
    "stretto.cli.gate",
    "stretto.cli.progress.view",
    "stretto.report.html",
    "stretto.report.markdown",
    "stretto.workspaces.sandbox.sandbox",
    "unittest",
    "xllamacpp",
}


def test_a_scripted_run_loads_no_model_no_tool_and_no_network(folder: Path) -> None:
    (folder / "script.yaml").write_text("default: Fine.\n", encoding="utf-8")
    words = ("run", "good.yaml", "--json", "--model", "scripted:script.yaml")
    assert among(loaded(folder, *words), NOT_FOR_A_SCRIPTED_RUN) == set()


def test_a_run_of_three_model_calls_loads_what_they_need(folder: Path) -> None:
    (folder / "three.yaml").write_text(GOOD.replace("researcher", "analyst"), encoding="utf-8")
    with serving(Said("Fine.")) as server:
        modules = loaded(
            folder, "run", "three.yaml", "--json", "--model", "openai:m",
            OPENAI_BASE_URL=server.url, OPENAI_API_KEY="sk-loopback-0123456789",
        )  # fmt: skip
    assert server.asked_times == 3
    assert among(modules, NOT_FOR_MODEL_CALLS) == set()
