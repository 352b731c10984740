"""Whatever a model passes: no tool raises, and nothing outside its reach is read or changed."""

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from stretto.adapters.tools.files import Files
from stretto.adapters.tools.notebook import notebook_edit
from stretto.adapters.tools.read import read
from stretto.adapters.tools.search import glob, grep
from stretto.adapters.tools.web_client import WebClient
from stretto.adapters.tools.web_fetch import web_fetch
from stretto.adapters.tools.write import edit, multi_edit, write
from stretto.ports.tool import Tool, ToolOutcome
from stretto.vocabulary.json_value import Json
from support.toolbench import reach_of, tree
from support.web_server import names

CANARY = "canary-5bd1e995"

ANY_JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda some: (
        st.lists(some, max_size=3) | st.dictionaries(st.text(max_size=8), some, max_size=3)
    ),
    max_leaves=5,
)
PIECES = st.sampled_from(
    ["..", ".", "", "/", "out", "src", "a.txt", "link", "up", "far", ".git", ".GIT", "config", "\0",
     "secret.txt", "~", "*", "**", "{a,b}", "\ud800", "\udc80", "\u202e", "x" * 300, "C:", "\\", " "]
)  # fmt: skip
# Ways out that chance would rarely find.
WAYS = st.sampled_from(
    ["out/link", "out/up/secret.txt", "out/up/.git/config", "out/far/outside.txt", "src/link/passwd",
     "out/far/w/secret.txt", "out/up/src/.git/config", "out/up/../secret.txt", "src/a.txt", "out/a.txt"]
)  # fmt: skip
PATHS = WAYS | st.builds(
    lambda root, parts: root + "/".join(parts),
    st.sampled_from(["", "/", "ROOT/", "ROOT/../", "//", "./"]),
    st.lists(PIECES, max_size=6),
)
TEXTS = st.sampled_from(["old", "", "x", CANARY, "(a+)+$", "[", "old\r\n", "\ud800"]) | st.text(
    max_size=30
)
VALUES = st.one_of(PATHS, TEXTS, ANY_JSON)


def arguments_of(tool: Tool) -> st.SearchStrategy[dict[str, Json]]:
    """Mostly such as the tool knows, with values it may not expect."""
    known = tool.spec.parameters["properties"]
    assert isinstance(known, dict)
    required = tool.spec.parameters["required"]
    assert isinstance(required, list)
    likely = {
        name: PATHS if "path" in name else TEXTS | VALUES for name in known if name in required
    }
    other = {name: VALUES for name in [*known, "other"] if name not in required}
    return st.fixed_dictionaries(likely, optional=other) | st.dictionaries(
        st.text(), ANY_JSON, max_size=3
    )


@contextmanager
def ground() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        work = root / "w"
        for path in ("w/out/a.txt", "w/src/a.txt"):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("old\n")
        for path in ("outside.txt", "w/secret.txt", "w/.git/config", "w/src/.git/config"):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(f"old {CANARY}\n")
        (work / "out" / "link").symlink_to("../secret.txt")
        (work / "out" / "up").symlink_to("..")
        (work / "out" / "far").symlink_to(root)
        (work / "src" / "link").symlink_to("/etc")
        yield root


def told(make: Callable[[Files], Tool], root: Path, arguments: dict[str, Json]) -> ToolOutcome:
    """By a tool that may read `out` and `src`, and write `out`."""
    filled = {
        name: value.replace("ROOT", str(root / "w")) if isinstance(value, str) else value
        for name, value in arguments.items()
    }
    reach = reach_of(root / "w", read_set=("out/**", "src/**"), write_set=("out/**",))
    with Files(reach) as files:
        return asyncio.run(make(files).call(filled, "k"))


def outside(root: Path) -> dict[str, bytes]:
    return {path: text for path, text in tree(root).items() if not path.startswith("w/out/")}


TOOLS = [
    (read, 60), (write, 60), (edit, 60), (multi_edit, 30), (notebook_edit, 30), (glob, 60),
    (grep, 10),
]  # fmt: skip


@pytest.mark.parametrize(("make", "examples"), TOOLS)
def test_no_arguments_reach_what_is_out_of_reach(
    make: Callable[[Files], Tool], examples: int
) -> None:
    with ground() as root:
        before = outside(root)
        with Files(reach_of(root)) as files:
            strategy = arguments_of(make(files))

        @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
        @given(strategy)
        def holds(arguments: dict[str, Json]) -> None:
            outcome = told(make, root, arguments)
            assert outcome.verdict in ("ok", "error", "refused")
            assert outcome.size >= 0
            given_canary = any(CANARY in str(value) for value in arguments.values())
            assert given_canary or CANARY not in outcome.text
            assert len(outcome.text) < 31_000
            assert outside(root) == before

        holds()


@settings(max_examples=80, deadline=None)
@given(VALUES | st.text().map("http://".__add__))
def test_no_url_makes_a_fetch_raise_or_dial(url: Json) -> None:
    tool = web_fetch(WebClient(names()))
    outcome = asyncio.run(tool.call({"url": url}, "k"))
    assert outcome.verdict in ("error", "refused")
