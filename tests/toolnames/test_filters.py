"""What an agent lists, read and judged: the same answer before a run and during it."""

import pytest

from stretto.globs.glob import Glob, parse_glob
from stretto.toolnames.filters import (
    CommandFilter,
    DomainFilter,
    ListedTool,
    read_listed,
    tool_fault,
)
from stretto.vocabulary.names import KNOWN_TOOLS

DELEGATING = ("task", "task_batch", "run_workflow", "save_workflow", "Task", "Agent", "AGENT")


def command(text: str, *words: str, is_prefix: bool = False) -> CommandFilter:
    return CommandFilter(text, words, is_prefix)


def test_names_and_filters_are_told_apart() -> None:
    docs = parse_glob("docs/*.md")
    assert isinstance(docs, Glob)
    written = ("Read", "Bash(git diff:*)", "Bash( git log )", "mcp__a__b", "Edit(docs/*.md)")
    assert read_listed(written) == (
        ListedTool("Read"),
        ListedTool(
            "Bash",
            (
                command("git diff:*", "git", "diff", is_prefix=True),
                command("git log", "git", "log"),
            ),
        ),
        ListedTool("mcp__a__b"),
        ListedTool("Edit", (docs,)),
    )


@pytest.mark.parametrize(
    ("text", "filter"),
    [
        ("git diff:*", command("git diff:*", "git", "diff", is_prefix=True)),
        ("git *", command("git *", "git", is_prefix=True)),
        ("npm test", command("npm test", "npm", "test")),
        ("*", command("*", is_prefix=True)),
        (":*", command(":*", is_prefix=True)),
    ],
)
def test_a_filter_of_bash_is_a_prefix_of_words_or_one_command(
    text: str, filter: CommandFilter
) -> None:
    assert read_listed([f"Bash({text})"]) == (ListedTool("Bash", (filter,)),)


@pytest.mark.parametrize(
    ("written", "domain"),
    [
        ("WebFetch(domain:example.com)", "example.com"),
        ("WebFetch( domain: .Example.COM. )", "example.com"),
        ("WebFetch(domain:bücher.example)", "xn--bcher-kva.example"),
        ("WebFetch(domain:localhost)", "localhost"),
    ],
)
def test_a_filter_of_web_fetch_names_a_site(written: str, domain: str) -> None:
    assert read_listed([written]) == (ListedTool("WebFetch", (DomainFilter(domain),)),)


def test_a_site_covers_what_is_below_it_and_nothing_else() -> None:
    site = DomainFilter("example.com")
    assert site.allows("example.com")
    assert site.allows("docs.example.com")
    assert not site.allows("badexample.com")


def test_listed_once_without_a_filter_a_tool_has_none() -> None:
    for written in (("Bash", "Bash(ls)"), ("Bash(ls)", "Bash"), ("Bash(ls)", "Bash", "Bash(x)")):
        assert read_listed(written) == (ListedTool("Bash"),)


@pytest.mark.parametrize(
    ("written", "why", "hint"),
    [
        ("Bash(rm $(x) > y)", "it expands a variable or runs a command inside ($)", "git diff:*"),
        ("Bash(a; b)", "it is several commands", "once for each"),
        ("Bash(a > b)", "it redirects (>)", "Bash(git diff:*)"),
        ("Bash('open)", "a quote is not closed", "Bash(git diff:*)"),
        ("Bash()", "it is empty", "Bash(git diff:*)"),
        ("Bash(ls", "its bracket is not closed", "write Bash(…)"),
        ("Bash(ls) x", "its bracket is not closed", "write Bash(…)"),
        ("WebFetch(example.com)", "domain:NAME", "write WebFetch(domain:example.com)"),
        ("WebFetch(domain:)", "domain:NAME", "write WebFetch(domain:example.com)"),
        ("WebFetch(domain:*.example.com)", "domain:NAME", "write WebFetch(domain:example.com)"),
        ("WebFetch(https://example.com)", "domain:NAME", "write WebFetch(domain:example.com)"),
        ("WebFetch(domain:a..b)", "domain:NAME", "write WebFetch(domain:example.com)"),
        ("Read(../x)", "leaves the workspace", "'..'"),
        ("Read(/etc/**)", "workspace", "relative to the workspace"),
        ("Read([)", "", ""),
        ("Read()", "", ""),
        ("WebSearch(news)", "WebSearch has no filters", "write WebSearch"),
        ("mcp__tickets__find(x)", "mcp__tickets__find has no filters", "write mcp__tickets__find"),
        ("lookup(x)", "lookup has no filters", "write lookup"),
    ],
)
def test_a_filter_that_cannot_be_used_is_a_fault_with_its_reason(
    written: str, why: str, hint: str
) -> None:
    (listed,) = read_listed([written])
    fault = tool_fault(written, KNOWN_TOOLS | {"lookup"})
    assert fault is not None
    assert fault == listed.fault
    assert fault.code == "RCP128"
    assert f"the filter of '{written}' cannot be used: " in fault.message
    assert why in fault.message
    assert hint in fault.hint


def test_one_filter_that_cannot_be_used_makes_the_tool_unusable() -> None:
    for written in (("Bash(ls)", "Bash($x)"), ("Bash($x)", "Bash(ls)"), ("Bash", "Bash($x)")):
        (listed,) = read_listed(written)
        assert listed.fault is not None


def test_what_delegates_is_never_given() -> None:
    assert read_listed((*DELEGATING, "Task(x)")) == ()
    for name in DELEGATING:
        fault = tool_fault(name)
        assert fault is not None
        assert fault.code == "RCP125"


def test_a_name_that_is_a_slip_is_told_with_the_nearest() -> None:
    fault = tool_fault("Raed(src/**)")
    assert fault is not None
    assert (fault.code, fault.hint) == ("RCP126", "did you mean 'Read'?")
    assert tool_fault("mcp__any__thing") is None
