"""What was said and done can be seen: `stretto logs`, `stretto output`, the transcript in the report."""

import json
from pathlib import Path

import pytest

from stretto.testing.openai_script import Said, ToolCall
from support.background_runs import GATED, lines, ran, stuck
from support.cli import stretto, write
from support.happenings import over_http, scripted

RECIPE = """
name: told
agents:
  reader: {prompt: Read for me., tools: [Read], validation: {rules: ["Must include score field"]},
           retry: {max_attempts: 2}}
steps:
  - {id: a, agent: reader, prompt: "Look at <b>note.txt</b>."}
  - {id: b, agent: writer, prompt: "Say {{steps.a.output}}"}
"""


@pytest.fixture
def run_id(tmp_path: Path) -> str:
    write(tmp_path, "note.txt", "the words in the file\n")
    call = ToolCall("Read", {"file_path": "note.txt"})
    script = [
        Said("", tool_calls=(call,)),
        Said('{"points": 7}'),
        Said('{"score": 7}'),
        Said("Seven."),
    ]
    happened = over_http(tmp_path, RECIPE, script)
    assert happened.code == 0, happened.report.issues
    return happened.report.run_id


def test_logs_show_prompts_words_calls_results_and_rejected_answers(
    tmp_path: Path, run_id: str
) -> None:
    said = stretto(tmp_path, "logs", run_id)
    assert said.code == 0, said
    for expected in (
        "== a, attempt 1 by reader",
        "Look at <b>note.txt</b>.",
        'Read {"file_path": "note.txt"}',
        "the words in the file",
        '{"points": 7}',
        "-- rejected",
        "== a, attempt 2 by reader",
        "Your last answer was not accepted",
        "== b, attempt 1 by writer",
        'Say {"score": 7}',
    ):
        assert expected in said.out, expected


def test_logs_of_one_step_are_its_own(tmp_path: Path, run_id: str) -> None:
    entries = lines(stretto(tmp_path, "logs", run_id, "b", "--json"))
    assert {entry["step"] for entry in entries} == {"b"}
    assert [entry["kind"] for entry in entries][-1] == "answer"


SPEAKS = """
name: speaks
agents: {reader: {tools: [Read]}}
steps: [{id: a, agent: reader, prompt: Look at it.}]
"""


@pytest.fixture
def spoken(tmp_path: Path) -> tuple[str, str, str]:
    """A run whose model speaks in many pieces before a call, and in its answer."""
    write(tmp_path, "note.txt", "the words in the file\n")
    aside = "".join(f"aside{number} " for number in range(1500)).strip()
    answer = "".join(f"word{number} " for number in range(1500)).strip()
    call = ToolCall("Read", {"file_path": "note.txt"})
    script = [Said(aside, tool_calls=(call,), chunks=300), Said(answer, chunks=300)]
    happened = over_http(tmp_path, SPEAKS, script)
    assert happened.code == 0, happened.report.issues
    return happened.report.run_id, aside, answer


def test_what_was_said_in_pieces_is_whole_and_the_answer_stands_once(
    tmp_path: Path, spoken: tuple[str, str, str]
) -> None:
    run_id, aside, answer = spoken
    pieces = [each["kind"] for each in lines(stretto(tmp_path, "logs", run_id, "--json"))]
    assert pieces.count("words") > 2, "it has not spoken in pieces"
    said = stretto(tmp_path, "logs", run_id).out
    assert said.count("-- words") == 1
    assert said.count(aside) == said.count(answer) == 1
    page = stretto(tmp_path, "report", run_id, "--format", "html").out
    assert page.count('class="entry-words"') == 1


def test_who_follows_reads_the_pieces_as_one_text_and_the_answer_once(
    tmp_path: Path, spoken: tuple[str, str, str]
) -> None:
    run_id, aside, answer = spoken
    said = stretto(tmp_path, "logs", run_id, "-f").out
    assert said.count("-- words") == 2
    assert f"-- words\n   {aside}\n-- tool" in said
    assert f"-- words\n   {answer}\n-- answer\n   (the words above)\n" in said
    assert said.count(aside) == said.count(answer) == 1


def test_a_step_that_is_not_there_is_named_with_the_nearest(tmp_path: Path, run_id: str) -> None:
    for command in ("logs", "output"):
        said = stretto(tmp_path, command, run_id, "c")
        assert said.code == 2, said
        assert "has no step 'c'" in said.err


def test_output_prints_the_output_and_nothing_else(tmp_path: Path, run_id: str) -> None:
    assert stretto(tmp_path, "output", run_id).out == "Seven.\n"
    assert json.loads(stretto(tmp_path, "output", run_id, "a").out) == {"score": 7}
    assert stretto(tmp_path, "output", run_id, "a", "--json").json["output"] == '{"score": 7}'


def test_a_run_without_an_output_says_why(tmp_path: Path) -> None:
    recipe = "name: n\nsteps: [{id: a, subagent: writer, prompt: x, when: '1 == 2'}]\n"
    happened = scripted(tmp_path, recipe, "default: ok")
    said = stretto(tmp_path, "output", happened.report.run_id)
    assert said.code != 0
    assert said.out == ""
    assert "none of its steps gave one" in said.err


def test_the_html_report_has_the_transcript_and_it_is_text(tmp_path: Path, run_id: str) -> None:
    page = stretto(tmp_path, "report", run_id, "--format", "html").out
    assert "Transcript" in page
    assert "Look at &lt;b&gt;note.txt&lt;/b&gt;." in page
    assert "the words in the file" in page
    assert "<b>note.txt</b>" not in page


def test_logs_of_a_run_that_was_killed_end(tmp_path: Path) -> None:
    with stuck(tmp_path) as (child, run_id):
        child.kill()
        child.wait()
        said = stretto(tmp_path, "logs", run_id, "-f")
    assert said.code == 1
    assert f"stretto resume {run_id}" in said.err
    assert "write ok" in said.out
    assert stretto(tmp_path, "logs", run_id).code == 0  # who only reads is not told


def test_logs_of_a_run_that_awaits_approval_end_with_its_exit_code(tmp_path: Path) -> None:
    run_id = str(ran(tmp_path, GATED)["run_id"])
    said = stretto(tmp_path, "logs", run_id, "-f")
    assert said.code == 3
    assert f"stretto approve {run_id} g --show" in said.err
    assert "nothing was said or done" in stretto(tmp_path, "logs", run_id, "g").err
    assert stretto(tmp_path, "logs", run_id).code == 0
    stretto(tmp_path, "reject", run_id, "g", "--reason", "no")
    assert stretto(tmp_path, "logs", run_id, "-f").code == 1  # it has ended, and not complete
