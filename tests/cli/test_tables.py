"""Tables fit the terminal, whatever stands in them; `stretto runs` finds what is asked for."""

import re

import pytest

from stretto.cli import terminal
from stretto.cli.terminal import columns
from stretto.text.short import columns as width_of
from support.background_runs import stuck
from support.cli import GOOD, refused, stretto, write

ROWS = [
    ("NAME", "FROM", "DESCRIPTION"),
    ("run-1", "a-very-long-name-of-something-" * 3, "words that go on and on " * 8),
    ("漢字", "\x1b[2J\u202ehostile\n", "日本語の説明 " * 20),
]


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("margin", [0, 3])
def test_a_table_fits_its_terminal(monkeypatch, width, margin):
    monkeypatch.setattr(terminal, "terminal_columns", lambda err=False: width)
    made = columns(ROWS, margin=margin)
    assert len(made) == len(ROWS)
    lines = [
        " " * margin * (i == 0) + line for row in made for i, line in enumerate(row.split("\n"))
    ]
    # A word that is longer than the terminal stays whole, alone on its line.
    assert all(width_of(line) <= width or len(line.split()) == 1 for line in lines)
    assert "\x1b" not in "".join(made)
    # Nothing of the last column is lost.
    assert " ".join("".join(made[1:2]).split()).count("words that") == 8


def test_wide_characters_are_counted(monkeypatch):
    monkeypatch.setattr(terminal, "terminal_columns", lambda err=False: 0)
    first, second = columns([("漢字", "x"), ("abcd", "y")])
    assert (first, second) == ("漢字  x", "abcd  y")


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "workflows/good.yaml", GOOD)
    write(tmp_path, "workflows/bad.yaml", GOOD.replace("name: good", "name: bad"))
    write(tmp_path, "ok.yaml", "default: Fine.\n")
    write(tmp_path, "no.yaml", 'default: {fail: "broken"}\n')
    for name, topic, script in (("good", "tea", "ok"), ("good", "bees", "ok"), ("bad", "x", "no")):
        model = f"scripted:{script}.yaml"
        stretto(tmp_path, "run", name, "-i", f"topic={topic}", "--model", model, "--json")
    return tmp_path


def found(folder, *words):
    said = stretto(folder, "runs", "--json", *words).json
    return [row["workflow"] for row in said["runs"]]


def test_runs_are_filtered(folder):
    assert found(folder) == ["bad", "good", "good"]
    assert found(folder, "--workflow", "good") == ["good", "good"]
    assert found(folder, "--status", "complete") == ["good", "good"]
    assert found(folder, "--status", "FAILED") == ["bad"]
    assert found(folder, "TEA") == ["good"]
    assert found(folder, "--since", "1h") == ["bad", "good", "good"]
    assert found(folder, "--since", "1ms") == []
    assert found(folder, "--project", ".") == ["bad", "good", "good"]
    assert found(folder, "--project", "/") == []
    refused(stretto(folder, "runs", "--since", "soon", "--json"), "usage")


def test_a_run_that_nobody_drives_is_found_as_interrupted_and_not_as_running(tmp_path):
    with stuck(tmp_path) as (child, _):
        assert found(tmp_path, "--status", "running") == ["chain"]
        child.kill()
        child.wait()
    assert found(tmp_path, "--status", "running") == []
    assert found(tmp_path, "--status", "interrupted") == ["chain"]


def test_a_state_that_no_run_has_is_refused(folder):
    error = refused(stretto(folder, "runs", "--status", "succeded", "--json"), "usage")
    assert "complete" in error["details"]["hint"]
    assert "did you mean 'failed'?" in stretto(folder, "runs", "--status", "faild").err


def test_runs_say_how_many_more_there_are_what_they_cost_and_when(folder):
    said = stretto(folder, "runs", "--limit", "1")
    assert "2 more; --limit 3 shows them" in said.out
    assert stretto(folder, "runs", "--limit", "1", "--json").json["more"] == 2
    assert "ago" in said.out
    assert "COST" in said.out
    assert "free" in said.out
    assert "no run matches" in stretto(folder, "runs", "--status", "cancelled").out


WIDE = [
    ("NAME", "FROM", "POSTURE", "MODEL", "TOOLS", "DESCRIPTION"),
    (
        "researcher",
        "bundled",
        "read_only",
        "-",
        "Read,Glob,Grep",
        "Gathers facts, with sources. " * 4,
    ),
    ("worker", "bundled", "writer", "-", "Read,Write,Edit,Bash", "Changes files and checks them."),
]


def test_prose_stands_below_its_row_where_there_is_no_room_beside_it(monkeypatch):
    monkeypatch.setattr(terminal, "terminal_columns", lambda err=False: 80)
    head, first, second = columns(WIDE, has_head=True)
    assert head.split() == ["NAME", "FROM", "POSTURE", "TOOLS"]  # nobody has a model
    assert first.split("\n")[0].split() == ["researcher", "bundled", "read_only", "Read,Glob,Grep"]
    assert all(line.startswith("    ") for line in first.split("\n")[1:])
    assert second.split("\n")[1] == "    Changes files and checks them."
    assert "…" not in head + first + second


def test_a_short_last_column_stays_beside_the_others(monkeypatch):
    monkeypatch.setattr(terminal, "terminal_columns", lambda err=False: 40)
    made = columns([("RUN", "STATUS", "NAME"), ("2026-1", "interrupted-by-somebody", "two")])
    assert made[1].count("\n") == 0
    assert made[1].endswith(" two")


def test_one_long_cell_does_not_push_the_others_below(monkeypatch):
    monkeypatch.setattr(terminal, "terminal_columns", lambda err=False: 40)
    rows = [("2026-1", "complete", "mix"), ("2026-2", "complete", "chat (chat …f90434, turn 1)")]
    made = columns([("RUN", "STATUS", "WORKFLOW"), *rows, ("2026-3", "x" * 20, "mix")])
    assert [line.count("\n") for line in made] == [0, 0, 1, 0]
    assert made[2].split("\n")[1].strip() == "chat (chat …f90434, turn 1)"
    assert max(width_of(part) for line in made for part in line.split("\n")) <= 40


@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_question_is_broken_so_that_its_answer_fits_behind_it(monkeypatch, width):
    monkeypatch.setattr(terminal, "terminal_columns", lambda err=False: width)
    long = "the weights of SmolLM2-135M are not on this machine (98 MB). Fetch them now?"
    *_, last = shown = terminal._question(long, " [Y/n]: ").split("\n")
    assert all(width_of(line) <= width for line in shown)
    assert width_of(last) + len(" [Y/n]: n") <= width
    assert " ".join(shown) == long


def test_what_is_paged_is_broken_between_words(monkeypatch):
    paged = []
    monkeypatch.setattr(terminal, "terminal_columns", lambda err=False: 40)
    monkeypatch.setattr(terminal.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(terminal.click, "echo_via_pager", paged.append)
    terminal.page("  | " + "words that go on " * 10)
    assert all(width_of(line) <= 40 for line in paged[0].splitlines())
    assert "wor\n" not in paged[0]


def test_names_and_states_are_never_cut(monkeypatch):
    monkeypatch.setattr(terminal, "terminal_columns", lambda err=False: 60)
    head, row = columns(
        [("RUN", "STATUS", "STARTED", "TOOK", "COST", "WORKFLOW"),
         ("20261118-185420-a3958a7631", "awaiting approval", "32s ago", "9ms", "unknown", "small")],
        has_head=True,
    )  # fmt: skip
    assert head.split("\n")[1].split() == ["COST", "WORKFLOW"]
    assert row.split("\n")[1].split() == ["unknown", "small"]
    assert "awaiting approval" in row


def test_a_command_that_does_not_fit_can_still_be_copied(monkeypatch):
    monkeypatch.setattr(terminal, "terminal_columns", lambda err=False: 50)
    command = "stretto approve 20261118-185420-a3958a7631 publish-it --show"
    (made,) = columns([(command, "shows what would run")], margin=2)
    assert max(map(len, made.split("\n"))) <= 50
    assert re.sub(r" \\\n +", " ", made).split("\n")[0] == command


def test_a_path_that_does_not_fit_stays_whole(monkeypatch):
    monkeypatch.setattr(terminal, "terminal_columns", lambda err=False: 50)
    (made,) = columns([("weights", f"/{'folder/' * 8}file.gguf is there")])
    assert f"/{'folder/' * 8}file.gguf" in made


def test_a_file_gets_every_column_on_one_line(monkeypatch):
    monkeypatch.setattr(terminal, "terminal_columns", lambda err=False: 0)
    assert [len(row.split("\n")) for row in columns(WIDE, has_head=True)] == [1, 1, 1]
    assert "MODEL" in columns(WIDE, has_head=True)[0]
