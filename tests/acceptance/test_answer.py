"""What a run leaves behind: its answer on stdout, all else on stderr."""

import json
import re
import signal
import time
from pathlib import Path

import pytest

from stretto.cli.result import _count_calls
from stretto.report.model import CallsReport
from stretto.testing.openai_script import Said as ServerSaid
from stretto.testing.openai_server import serving
from support.background_runs import CHAIN, MODEL, run, running
from support.cli import Said, stretto, talk, write

FAILING = "default: ok\nreplies: {b: {fail: broken}}"
ODD = "Grüße\u200b \u200ffin\r\n  two spaces  \n\n"


def answering(text: str) -> str:
    return f"default: ok\nreplies: {{c: {json.dumps(text)}}}"


@pytest.mark.parametrize("text", ["Seven.", "a\n\nb\n", ODD, "- x\n# y"])
def test_piped_stdout_is_exactly_the_answer(tmp_path: Path, text: str) -> None:
    write(tmp_path, "recipe.yaml", CHAIN)
    write(tmp_path, "script.yaml", answering(text))
    said = stretto(tmp_path, "run", "recipe.yaml", *MODEL)
    assert said.out == (text if text.endswith("\n") else f"{text}\n")
    assert said.code == 0
    run_id = re.search(r"run (\S+) of chain", said.err)[1]  # type: ignore[index]
    assert stretto(tmp_path, "output", run_id).out == said.out
    stretto(tmp_path, "run", "recipe.yaml", *MODEL, "-o", "answer.txt")
    assert (tmp_path / "answer.txt").read_bytes().decode() == said.out


def test_an_answer_that_is_no_text_is_json(tmp_path: Path) -> None:
    recipe = CHAIN + 'output: "{{steps.c.output}}"\n'
    script = "default: ok\nreplies: {c: {reply: {score: 7}}}"
    assert json.loads(run(tmp_path, recipe, script).out) == {"score": 7}


@pytest.mark.parametrize("variables", [{"LANG": "C", "PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C"}])
def test_an_answer_is_utf_8_whatever_the_locale(tmp_path: Path, variables: dict[str, str]) -> None:
    write(tmp_path, "recipe.yaml", CHAIN)
    write(tmp_path, "script.yaml", answering("Grüße ✓"))
    said = stretto(tmp_path, "run", "recipe.yaml", *MODEL, env=variables)
    assert (said.code, said.out) == (0, "Grüße ✓\n")


def test_a_terminal_that_may_be_at_the_other_end_is_not_commanded(tmp_path: Path) -> None:
    said = run(tmp_path, CHAIN, answering("a\x1b[2J\x9b31m\u202eb"))
    assert not re.search("[\x1b\x9b\u202e]", said.out)


def test_the_end_is_a_summary_of_three_lines_what_went_wrong_and_the_next_commands(
    tmp_path: Path,
) -> None:
    said = run(tmp_path, CHAIN, FAILING)
    assert said.code == 1
    run_id = re.search(r"run (\S+) of chain started", said.err)[1]  # type: ignore[index]
    end = said.err.splitlines()[-7:]
    assert end[0].startswith("partial in ")
    assert end[0].endswith(": 2 of 3 steps succeeded, 1 failed")
    assert end[1].startswith("3 model calls")
    assert end[2] == f"run {run_id} of chain"
    assert end[3] == "  b: failed: broken"
    commands = [re.split(r"\s{2,}", line.strip())[0] for line in end[4:]]
    assert commands == [
        f"stretto logs {run_id} b",
        f"stretto retry {run_id}",
        f"stretto report {run_id}",
    ]
    for command in commands:
        assert stretto(tmp_path, *command.split()[1:]).code in (0, 1), command


def test_many_failures_are_counted_and_not_all_listed(tmp_path: Path) -> None:
    steps = "".join(f"  - {{id: s{i}, subagent: writer, prompt: x}}\n" for i in range(60))
    said = run(tmp_path, f"name: many\nsteps:\n{steps}", "default: {fail: broken}", "-q")
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    said = stretto(tmp_path, "run", "recipe.yaml", *MODEL)
    end = said.err[said.err.index("\nfailed in") :]
    assert len(end.splitlines()) <= 15
    assert "s4 and 55 more: failed: broken" in end
    replies = "".join(f"  s{i}: {{fail: broken {i}}}\n" for i in range(60))
    said = run(tmp_path, f"name: many\nsteps:\n{steps}", f"replies:\n{replies}")
    end = said.err[said.err.index("\nfailed in") :]
    assert len(end.splitlines()) <= 15
    assert "more: stretto report" in end


def test_quiet_prints_the_answer_alone(tmp_path: Path) -> None:
    said = run(tmp_path, CHAIN, "default: ok", "-q")
    assert said == Said(0, "ok\n", "")
    failed = run(tmp_path, CHAIN, "default: {fail: broken}", "-q")
    assert (failed.code, failed.out) == (1, "")
    assert "broken" in failed.err


def test_a_quiet_answer_is_alone_on_a_terminal_too(tmp_path: Path) -> None:
    run(tmp_path, CHAIN, "default: ok")
    _, screen, _ = talk(tmp_path, ["run", "recipe.yaml", *MODEL, "-q"], [])
    assert [line.rstrip() for line in screen.splitlines()] == ["ok"]


def test_an_empty_answer_leaves_one_empty_line(tmp_path: Path) -> None:
    write(tmp_path, "recipe.yaml", "name: quiet\nsteps: [{id: a, run: 'true'}]\n")
    _, screen, _ = talk(tmp_path, ["run", "recipe.yaml"], [], {"TERM": "dumb"})
    assert "complete in" in screen
    assert screen.rstrip().splitlines().count("") == 1


def test_the_answer_goes_to_a_file_whole_and_over_what_is_there(tmp_path: Path) -> None:
    target = write(tmp_path, "real.md", "old")
    target.chmod(0o640)
    (tmp_path / "link.md").symlink_to("real.md")
    said = run(tmp_path, CHAIN, answering("new"), "-o", "link.md")
    assert (said.code, said.out) == (0, "")
    assert "wrote link.md" in said.err
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("new\n", 0o640)
    assert (tmp_path / "link.md").is_symlink()
    run(tmp_path, CHAIN, "default: {fail: broken}", "-o", "link.md")
    assert target.read_text() == "new\n", "a run without an answer leaves it as it is"
    assert not list(tmp_path.glob(".*tmp"))
    assert run(tmp_path, CHAIN, answering("new"), "-o", "/dev/null").code == 0


@pytest.mark.parametrize("target", [".", "nowhere/x.md", "recipe.yaml/x.md", "/proc/x/y.md"])
def test_a_file_that_cannot_be_written_is_refused_before_the_run(
    tmp_path: Path, target: str
) -> None:
    said = run(tmp_path, CHAIN, "default: ok", "-o", target)
    assert said.code == 2
    assert f"cannot write {target}" in said.err
    assert stretto(tmp_path, "runs", "--json").json["runs"] == []
    assert stretto(tmp_path, "report", "x", "-o", target).code == 2


def test_the_whole_report_is_printed_on_request(tmp_path: Path) -> None:
    said = run(tmp_path, CHAIN, "default: ok", "--report")
    assert said.out.startswith("## Workflow Execution Report: chain")
    assert run(tmp_path, CHAIN, "default: ok", "--report", "--json").code == 2
    run(tmp_path, CHAIN, "default: ok", "--report", "-o", "report.md")
    assert (tmp_path / "report.md").read_text().startswith("## Workflow Execution Report")


def test_open_shows_the_report_in_a_browser(tmp_path: Path) -> None:
    browser = write(
        tmp_path, "user/bin/browser", '#!/bin/sh\necho "$1" > "$(dirname "$0")/asked"\n'
    )
    browser.chmod(0o755)
    write(tmp_path, "work/recipe.yaml", CHAIN)
    write(tmp_path, "work/script.yaml", "default: ok")
    env = {"BROWSER": str(browser), "STRETTO_HOME": str(tmp_path / "home")}
    said = stretto(tmp_path / "work", "run", "recipe.yaml", *MODEL, "--open", env=env)
    assert (said.code, said.out) == (0, "ok\n")
    page = re.search(r"opened (\S+\.html)", said.err)[1]  # type: ignore[index]
    assert "<html" in Path(page).read_text()
    for _ in range(100):
        if (browser.parent / "asked").exists():
            break
        time.sleep(0.05)
    assert (browser.parent / "asked").read_text().strip() == Path(page).as_uri()


def test_without_a_browser_the_path_is_said(tmp_path: Path) -> None:
    said = run(tmp_path, CHAIN, "default: ok", "--open")
    assert said.code == 0
    page = re.search(r"the report is in (\S+\.html)", said.err)[1]  # type: ignore[index]
    assert "<html" in Path(page).read_text()
    shown = stretto(tmp_path, "report", Path(page).stem, "--open")
    assert (shown.code, shown.out) == (0, "")
    assert page in shown.err


def test_a_program_that_a_step_could_write_is_not_started_as_browser(tmp_path: Path) -> None:
    browser = write(tmp_path, "browser", "#!/bin/sh\ntouch ran\n")
    browser.chmod(0o755)
    write(tmp_path, "recipe.yaml", CHAIN)
    write(tmp_path, "script.yaml", "default: ok")
    said = stretto(tmp_path, "run", "recipe.yaml", *MODEL, "--open", env={"BROWSER": str(browser)})
    assert "no browser was found" in said.err


def test_stopped_at_300_steps_it_says_little(tmp_path: Path) -> None:
    steps = "".join(f"  - {{id: s{i}, subagent: writer, prompt: x}}\n" for i in range(300))
    write(tmp_path, "recipe.yaml", f"name: many\nsteps:\n{steps}")
    write(tmp_path, "script.yaml", "default: {reply: ok, delay: 10m}")
    with running(tmp_path, "run", "recipe.yaml", *MODEL) as child:
        assert child.stderr is not None
        assert any("s3 " in line and "running" in line for line in child.stderr)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert out == ""
    assert len(err.splitlines()) <= 10, err
    assert "stretto resume" in err


def test_at_a_terminal_markdown_is_rendered_and_nothing_of_it_is_lost(tmp_path: Path) -> None:
    write(tmp_path, "recipe.yaml", CHAIN)
    text = "# Title\n\n- one **two** list<int> <b>x</b>\n\nfirst line\nsecond line\n"
    write(tmp_path, "script.yaml", answering(text))
    code, screen, _ = talk(tmp_path, ["run", "recipe.yaml", *MODEL], [])
    assert code == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", screen)
    assert "• one two list<int> <b>x</b>" in shown
    assert "first line\nsecond line" in "\n".join(line.rstrip() for line in shown.splitlines())
    assert shown.index("second line") < shown.index("complete in")
    code, screen, _ = talk(tmp_path, ["run", "recipe.yaml", *MODEL], [], {"TERM": "dumb"})
    assert "- one **two** list<int>" in screen
    assert "\x1b" not in screen


def test_code_stands_on_the_terminals_own_ground(tmp_path: Path) -> None:
    write(tmp_path, "recipe.yaml", CHAIN)
    text = "Call `total` so:\n\n```python\nfor line in lines:\n    total('it')\n```\n"
    write(tmp_path, "script.yaml", answering(text))
    colours = {"NO_COLOR": "", "TERM": "xterm-256color"}
    code, screen, _ = talk(tmp_path, ["run", "recipe.yaml", *MODEL], [], colours)
    assert code == 0
    assert "\x1b[1mfor\x1b[0m" in screen  # in colours, and no ground for them is set
    assert not re.search(r"\x1b\[(?:[0-9]+;)*(?:4[0-7]|48;[0-9;]+|10[0-7])m", screen)


def test_detached_its_id_is_alone_on_stdout(tmp_path: Path) -> None:
    said = run(tmp_path, CHAIN, "default: ok", "--detach")
    assert said.code == 0
    assert re.fullmatch(r"\S+\n", said.out)
    assert f"stretto watch {said.out.strip()}" in said.err
    assert run(tmp_path, CHAIN, "default: ok", "--detach", "-o", "x").code == 2


def test_which_model_is_asked_is_no_part_of_the_answer(tmp_path: Path) -> None:
    write(tmp_path, "recipe.yaml", CHAIN)
    with serving(ServerSaid("Seven.")) as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
        said = stretto(tmp_path, "run", "recipe.yaml", env={**env, "STRETTO_MODEL": "openai:m"})
        assert said.out == "Seven.\n"
        named = stretto(tmp_path, "run", "recipe.yaml", env=env)
    assert "OPENAI_BASE_URL is set" in named.err
    assert "OPENAI_BASE_URL" not in named.out


def test_tool_calls_are_counted_before_those_that_failed() -> None:
    for made, failed, says in ((1, 0, "1 tool call"), (6, 3, "6 tool calls (3 failed)")):
        calls = CallsReport(made=made, refused=0, failed=failed)
        assert _count_calls(calls) == says
