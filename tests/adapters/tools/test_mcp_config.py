"""The setting `mcp_servers`: what it may say, and what is wrong with what it says."""

import pytest

from stretto.adapters.tools.mcp_config import McpServer, fill_variables, read_servers
from stretto.vocabulary.json_value import Json


def test_a_program_and_an_address_are_read() -> None:
    servers, faults = read_servers(
        {
            "files": {"command": "npx", "args": ["-y", "x"], "env": {"T": "${T}"}, "cwd": "sub",
                      "tools": ["a"]},
            "github": {"url": "https://x.test/mcp", "headers": {"Authorization": "Bearer ${T}"},
                       "read_only": ["b"]},
        }
    )  # fmt: skip
    assert faults == ()
    assert servers["files"] == McpServer(
        "files", command="npx", args=("-y", "x"), env={"T": "${T}"}, cwd="sub", tools=("a",)
    )
    assert servers["github"].read_only == ("b",)
    assert servers["files"].allows("a")
    assert not servers["files"].allows("b")
    assert servers["github"].allows("anything")


def test_an_empty_allowlist_allows_nothing() -> None:
    servers, _ = read_servers({"x": {"command": "x", "tools": []}})
    assert not servers["x"].allows("a")


@pytest.mark.parametrize(
    ("name", "entry", "said"),
    [
        ("a b", {"command": "x"}, "its name must be an id"),
        ("a__b", {"command": "x"}, "without '__'"),
        ("a", [], "must be a mapping"),
        ("a", {}, "either 'command' or 'url'"),
        ("a", {"command": "x", "url": "http://x.test"}, "either 'command' or 'url'"),
        ("a", {"command": ""}, "'command' must be text"),
        ("a", {"command": "x", "args": "y"}, "'args' must be a list of texts"),
        ("a", {"command": "x", "args": [1]}, "'args' must be a list of texts"),
        ("a", {"command": "x", "env": {"A": 1}}, "'env' must be a mapping"),
        ("a", {"command": "x", "headers": {}}, "there is no key 'headers'"),
        ("a", {"command": "x", "tool": ["y"]}, "there is no key 'tool'"),
        ("a", {"url": "ftp://x.test"}, "must be an http:// or https:// URL"),
        ("a", {"url": "http://["}, "is not a URL"),
        ("a", {"url": "http:///x"}, "must be an http:// or https:// URL"),
    ],
)
def test_what_is_wrong_is_said_and_the_others_stay(name: str, entry: Json, said: str) -> None:
    servers, faults = read_servers({name: entry, "good": {"command": "x"}})
    assert list(servers) == ["good"]
    assert len(faults) == 1
    assert said in faults[0].message


def test_every_fault_of_an_entry_is_said() -> None:
    _, faults = read_servers({"a": {"command": 1, "args": 2, "tool": 3}})
    assert len(faults) == 3
    assert faults[2].hint == "did you mean 'tools'?"


def test_variables_are_filled_in_from_the_environment() -> None:
    assert fill_variables("Bearer ${TOKEN}!", {"TOKEN": "t"}) == "Bearer t!"
    assert fill_variables("$TOKEN ${ x }", {}) == "$TOKEN ${ x }"
    with pytest.raises(KeyError, match="TOKEN"):
        fill_variables("${TOKEN}", {})
