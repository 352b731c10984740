"""An agent's list of tools, read."""

from stretto.adapters.tools.listed_tools import ListedTool, read_listed


def test_names_and_filters_are_told_apart() -> None:
    assert read_listed(("Read", "Bash(git diff:*)", "Bash( git log )", "mcp__a__b")) == (
        ListedTool("Read"),
        ListedTool("Bash", ("git diff:*", "git log")),
        ListedTool("mcp__a__b"),
    )


def test_listed_once_without_a_filter_a_tool_has_none() -> None:
    for written in (("Bash", "Bash(ls)"), ("Bash(ls)", "Bash"), ("Bash(ls)", "Bash", "Bash(x)")):
        assert read_listed(written) == (ListedTool("Bash"),)


def test_a_bracket_that_is_not_closed_still_forbids() -> None:
    assert read_listed(("Bash(ls",)) == (ListedTool("Bash", ("ls",)),)
    assert read_listed(("Bash()",)) == (ListedTool("Bash", ("",)),)


def test_what_delegates_is_not_among_them() -> None:
    names = (
        "task",
        "task_batch",
        "run_workflow",
        "save_workflow",
        "Task",
        "Agent",
        "AGENT",
        "Task(x)",
    )
    assert read_listed(names) == ()
