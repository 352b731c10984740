"""Nothing takes long without a word."""

import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.background_runs import CHAIN
from support.cli import stretto, talk, write

PREPARING = "preparing the run: looking at its models, tools and servers …"


def test_a_slow_preparation_is_named(tmp_path: Path) -> None:
    write(tmp_path, "recipe.yaml", CHAIN)
    with socket.socket() as deaf:  # it takes connections, and never says a word
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/v1"
        words = ("run", "recipe.yaml")
        env = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
        with ThreadPoolExecutor() as pool:  # each waits for the server until it gives up
            loud = pool.submit(talk, tmp_path, words, [], env)
            quiet = pool.submit(talk, tmp_path, (*words, "-q"), [], env)
            piped = pool.submit(stretto, tmp_path, *words, env=env)
        assert PREPARING in loud.result()[1]
        assert loud.result()[0] == 2
        assert PREPARING not in quiet.result()[1]
        # Elsewhere what is printed does not depend on how fast the machine is.
        assert PREPARING not in piped.result().err


SLOW_IMPORT = """\
import sys, time
class Late:
    def find_spec(self, name, path=None, target=None):
        if name == "stretto.cli.runs":
            time.sleep(2)
sys.meta_path.insert(0, Late())
"""
SLOW_END = """\
import time
class Late:
    def __del__(self, sleep=time.sleep):
        sleep(3)
late = Late()
"""
SLOW_SERVER = """\
import sys, time
time.sleep(3)
sys.exit("too tired")
"""
SERVED = """\
name: served
agents: {it: {prompt: Do it., tools: [mcp__quick__*, mcp__sleepy__*]}}
steps: [{id: a, subagent: it, prompt: x}]
"""


def test_a_slow_server_is_named(tmp_path: Path) -> None:
    write(tmp_path, "recipe.yaml", SERVED)
    write(tmp_path, "slow.py", SLOW_SERVER)
    python = sys.executable
    write(
        tmp_path,
        "stretto.yaml",
        f"mcp_servers: {{quick: {{command: /bin/false}}, sleepy: {{command: {python}, args: [slow.py]}}}}\n",
    )
    env = {"OPENAI_API_KEY": "sk-loopback-0123456789", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    words = ("run", "recipe.yaml", "--model", "openai:any")
    code, screen, _ = talk(tmp_path, words, [], env)
    assert code == 2
    assert "starting the MCP server 'sleepy' …" in screen
    assert "mcp__sleepy__*: the MCP server 'sleepy' did not start: " in " ".join(screen.split())


@pytest.mark.parametrize(("flag", "is_told"), [("--limit", True), ("--json", False)])
def test_slow_imports_are_told_on_a_terminal(tmp_path: Path, flag: str, is_told: bool) -> None:
    # A machine so busy that one module takes two seconds: what python itself looks at first.
    write(tmp_path, "late/sitecustomize.py", SLOW_IMPORT)
    words = ("runs", flag, *(["3"] if flag == "--limit" else []))
    code, screen, _ = talk(tmp_path, words, [], {"PYTHONPATH": str(tmp_path / "late")})
    assert code == 0, screen
    assert ("loading ..." in screen) == is_told


def test_a_command_that_is_slow_to_leave_ends_with_its_own_code(tmp_path: Path) -> None:
    """The clock that watches the imports must not ring where nobody hears it any more."""
    write(tmp_path, "late/sitecustomize.py", SLOW_END)
    code, screen, _ = talk(tmp_path, ("runs",), [], {"PYTHONPATH": str(tmp_path / "late")})
    assert code == 0, screen
