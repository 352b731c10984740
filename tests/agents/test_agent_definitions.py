"""One agent from one file: front matter and a prompt, or YAML."""

from pathlib import Path

import pytest

from stretto.agents.agent_files import AgentFile, read_agent_file
from stretto.recipe.model import Agent, OnFailure, Retry, Validation
from stretto.vocabulary.names import KNOWN_TOOLS


@pytest.fixture
def read(tmp_path):
    def read_it(name: str, content: str | bytes, is_foreign: bool = False) -> AgentFile:
        file: Path = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_agent_file(file, name, is_foreign)

    return read_it


FULL = """\
---
name: critic
description: Judges what others wrote
tools: Read, Grep
disallowed_tools: Write
model: anthropic:claude
fallback_models: [a:b]
max_turns: 7
timeout: 2m
retry: {max_attempts: 2, backoff: linear, on_failure: skip}
validation:
  rules: [Must include passed boolean]
posture: read_only
---

You judge.

{{not a template}}
"""


def test_front_matter_and_a_prompt_make_an_agent(read):
    assert read("critic.md", FULL) == AgentFile(
        "critic",
        "critic.md",
        Agent(
            id="critic",
            name="critic",
            role="Judges what others wrote",
            prompt="You judge.\n\n{{not a template}}",
            tools=("Read", "Grep"),
            disallowed_tools=("Write",),
            model="anthropic:claude",
            fallback_models=("a:b",),
            max_turns=7,
            timeout_seconds=120,
            retry=Retry(2, "linear", OnFailure("skip")),
            validation=Validation(None, ("Must include passed boolean",)),
            posture="read_only",
            is_local=False,
        ),
    )


@pytest.mark.parametrize("change", [lambda t: t.replace("\n", "\r\n"), lambda t: "\ufeff" + t])
def test_line_ends_and_a_byte_order_mark_change_nothing(read, change):
    found = read("critic.md", change(FULL))
    assert found.problems == ()
    assert found.agent is not None
    assert found.agent.tools == ("Read", "Grep")
    assert found.agent.prompt.replace("\r\n", "\n") == "You judge.\n\n{{not a template}}"


@pytest.mark.parametrize("name", ["critic.yaml", "critic.yml"])
def test_a_yaml_file_is_an_agent_too(read, name):
    found = read(name, "role: Judges\nprompt: |\n  You judge.\ntools: [Read]\n")
    assert found.problems == ()
    assert found.agent == Agent(
        id="critic", role="Judges", prompt="You judge.\n", tools=("Read",), is_local=False
    )


def test_the_id_is_the_name_or_else_the_file_s(read):
    assert read("a.md", "---\nname: critic\n---\nx").id == "critic"
    titled = read("a.md", "---\nname: The Critic\n---\nx")
    assert titled.id == "a"
    assert titled.agent is not None
    assert titled.agent.name == "The Critic"
    assert read("b.md", "---\ntools: Read\n---\nx").id == "b"


@pytest.mark.parametrize("text", ["You judge.\n", "# Title\n\n---\n\nYou judge.", "--- x\ny"])
def test_a_file_without_front_matter_is_a_prompt(read, text):
    found = read("a.md", text)
    assert found.agent is not None
    assert (found.agent.prompt, found.agent.tools) == (text.strip(), ())


@pytest.mark.parametrize("blank", ["\n", " \t\n\n", "\r\n"])
def test_blank_lines_before_front_matter_hide_none_of_it(read, blank):
    found = read("a.md", blank + "---\ntools: Read\n---\nYou judge.")
    assert found.agent is not None
    assert (found.agent.prompt, found.agent.tools) == ("You judge.", ("Read",))
    (problem,) = read("a.md", blank + "---\ntools: Read\n").problems
    assert problem.message == "the front matter is not closed"


@pytest.mark.parametrize("text", ["---\n---\nYou judge.", "---\n# none\n---\nYou judge."])
def test_front_matter_may_be_empty(read, text):
    found = read("a.md", text)
    assert found.problems == ()
    assert found.agent is not None
    assert found.agent.prompt == "You judge."


def test_a_line_of_dashes_in_the_prompt_ends_nothing(read):
    found = read("a.md", "---\nname: a\n---\nOne\n---\nTwo")
    assert found.agent is not None
    assert found.agent.prompt == "One\n---\nTwo"


# --- files of another tool -----------------------------------------------------------------

CLAUDE = """\
---
name: code-reviewer
description: Reviews code
tools: Read, Grep, Bash(git diff:*)
model: inherit
color: purple
permissionMode: plan
skills: [a, b]
---
You review code.
"""


def test_the_further_keys_of_another_tool_are_its_own_business(read):
    found = read("code-reviewer.md", CLAUDE, is_foreign=True)
    assert found.problems == ()
    assert found.agent is not None
    assert found.agent.role == "Reviews code"
    assert found.agent.tools == ("Read", "Grep", "Bash(git diff:*)")
    assert found.agent.model is None


def test_in_our_own_files_they_are_mistakes(read):
    found = read("code-reviewer.md", CLAUDE)
    assert found.agent is None
    assert [(each.code, each.place.line) for each in found.problems] == [
        ("RCP101", 6),
        ("RCP101", 7),
        ("RCP101", 8),
    ]


def test_another_tool_s_agent_without_tools_has_all_of_them_and_ours_none(read):
    text = "---\nname: a\n---\nx"
    foreign, ours = read("a.md", text, is_foreign=True).agent, read("a.md", text).agent
    assert foreign is not None
    assert ours is not None
    assert set(foreign.tools) == KNOWN_TOOLS
    assert ours.tools == ()


def test_an_empty_key_of_another_tool_is_not_written(read):
    found = read("a.md", "---\nname: a\ntools:\nmodel:\n---\nx", is_foreign=True)
    assert found.problems == ()


# --- broken ones ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("---\nname: a\ntool: Read\n---\nx", "RCP101", 3, 1),
        ("---\nname: a\nmax_turns: many\n---\nx", "RCP103", 3, 12),
        ("---\nname: a\ntimeout: soon\n---\nx", "RCP110", 3, 10),
        ("---\nname: a\nname: b\n---\nx", "RCP012", 3, 1),
        ("---\nname: a: b\n---\nx", "RCP005", 2, 8),
        ("---\ntools: [Read\n---\nx", "RCP005", 2, 8),
        ("---\n\n\nposture: write\n---\nx", "RCP109", 4, 10),
        ("---\r\nname: a\r\nposture: write\r\n---\r\nx", "RCP109", 3, 10),
        (" \t\n\n---\nname: a\nposture: write\n---\nx", "RCP109", 5, 10),
        ("---\n- a\n---\nx", "RCP103", 2, 1),
        ("---\nname: &x a\n---\nx", "RCP010", 2, 7),
        ("---\nname: a\nretry: {max_attempts: 0}\n---\nx", "RCP111", 3, 23),
    ],
)
def test_lines_of_front_matter_keep_their_numbers(read, text, code, line, column):
    found = read("a.md", text)
    assert found.agent is None
    (problem,) = found.problems
    assert (problem.code, problem.place.line, problem.place.column) == (code, line, column)
    assert problem.file == "a.md"
    assert problem.source_line == text.splitlines()[line - 1]


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("a.yaml", "", "RCP016"),
        ("a.yaml", "hello", "RCP103"),
        ("a.yaml", "prompt: [x]", "RCP103"),
        ("a.yaml", b"prompt: \xff", "RCP003"),
        ("a.yaml", "prompt: a\0b", "RCP004"),
        ("a.md", "x" * (1024 * 1024 + 1), "RCP002"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_problem_and_never_raised(read, name, content, code):
    found = read(name, content)
    assert (found.id, found.agent) == ("a", None)
    assert [problem.code for problem in found.problems] == [code]
    assert "recipe" not in str(found.problems)


def test_a_file_that_is_gone_is_a_problem(tmp_path):
    found = read_agent_file(tmp_path / "gone.md")
    assert (found.id, found.agent) == ("gone", None)
    assert [problem.code for problem in found.problems] == ["RCP001"]
