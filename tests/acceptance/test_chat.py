"""`stretto chat`: a lead agent that delegates, from outside."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stretto.testing.openai_script import Asked, Said, ServerAnswer, TokenUsage, ToolCall
from stretto.testing.openai_server import serving
from support.background_runs import MODEL, await_call, running
from support.cli import CTRL_C, environment, refused, stretto, succeeded, talk, write

SHOUT = """\
name: shout
inputs: [{name: topic, required: true}, {name: tone, default: loud}]
steps:
  - {id: say, subagent: writer, prompt: "Shout about {{inputs.topic}} ({{inputs.tone}})."}
"""
BATCH = """\
default: An answer.
replies:
  turn-1:
    calls:
      - tool: task_batch
        arguments: {tasks: [{agent: writer, prompt: a, description: good}, {agent: writer, prompt: b, description: bad}]}
    reply: One of two.
  2-bad: {fail: it broke}
"""
RUN_SHOUT = """\
default: LOUD
replies:
  turn-1: {calls: [{tool: run_workflow, arguments: {name: shout, inputs: {topic: tea}}}], reply: It was loud.}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "workflows/shout.yaml", SHOUT)
    write(tmp_path, "script.yaml", "default: An answer.\n")
    return tmp_path


def runs(folder: Path) -> list[dict[str, Any]]:
    return stretto(folder, "runs", "--json").json["runs"]


def test_one_turn_prints_its_answer_and_shows_beside_it_what_it_delegates(folder: Path) -> None:
    write(folder, "script.yaml", BATCH)
    said = stretto(folder, "chat", "-p", "Do both", *MODEL)
    assert (said.code, said.out) == (0, "One of two.\n")
    assert "→ task_batch: 2 tasks" in said.err
    assert "✓ 1-good succeeded" in said.err
    assert "✗ 2-bad  failed: it broke" in said.err
    assert "\x1b" not in said.out + said.err
    assert Counter(each["workflow"] for each in runs(folder)) == {"chat": 1, "batch": 1}
    assert all(", turn 1" in each["trigger"] for each in runs(folder))


def test_why_a_call_failed_is_shown_in_words(folder: Path) -> None:
    call = "{tool: task, arguments: {agent: nobody, prompt: x}}"
    write(folder, "script.yaml", f"replies: {{turn-1: {{calls: [{call}], reply: Sorry.}}}}")
    said = stretto(folder, "chat", "-p", "Go", *MODEL)
    assert (said.code, said.out) == (0, "Sorry.\n")
    assert "  task: there is no agent 'nobody'\n" in said.err


def test_with_json_a_turn_is_one_line(folder: Path) -> None:
    write(folder, "script.yaml", BATCH)
    found = succeeded(stretto(folder, "chat", "-p", "Do both", "--json", *MODEL))
    assert set(found) == {"ok", "chat", "turn"}
    turn = found["turn"]
    assert (turn["text"], turn["status"]) == ("One of two.", "complete")
    [call] = turn["calls"]
    assert (call["tool"], call["ok"], [call["run_id"]]) == ("task_batch", False, turn["run_ids"])
    assert turn["usage"]["model_calls"] == 4
    listed = stretto(folder, "chat", "--list", "--json").json["chats"]
    assert [(each["id"], each["turns"]) for each in listed] == [(found["chat"], 1)]


def test_each_line_of_stdin_is_a_turn_and_slash_commands_count(folder: Path) -> None:
    write(folder, "script.yaml", "{default: LOUD, replies: {turn-1: First., turn-3: Third.}}")
    lines = "one\n\n/shout tone=soft what's new\n//shout is a word\n"
    said = stretto(folder, "chat", *MODEL, stdin=lines)
    assert (said.code, said.out) == (0, "First.\nLOUD\nThird.\n")
    shout = next(each for each in runs(folder) if each["workflow"] == "shout")
    first = stretto(folder, "events", shout["run_id"]).out.splitlines()[0]
    assert json.loads(first)["inputs"] == {"topic": "what's new", "tone": "soft"}


@pytest.mark.parametrize(
    ("line", "kind", "said"),
    [
        ("/shuot tea", "not_found", "did you mean 'shout'?"),
        ("/wokflows", "not_found", "did you mean 'workflows'?"),
        ("/zzzz is full", "not_found", "//zzzz sends it as text"),
        ("/shout", "invalid_inputs", "/shout topic=…"),
        ('/shout topic="tea', "usage", 'topic="…"'),
        ("/shout tpic=tea", "usage", "did you mean 'topic'?"),
        ("/runs --nonsense", "usage", ""),
        ("/agents 'open", "usage", ""),
    ],
)
def test_a_slash_command_that_is_not_clear_says_what_was_meant(
    folder: Path, line: str, kind: str, said: str
) -> None:
    error = refused(stretto(folder, "chat", "-p", line, "--json", *MODEL), kind)
    assert said in error["details"].get("hint", "")
    assert runs(folder) == []


@pytest.mark.parametrize(
    "line",
    [
        "/agents",
        "/agents show writer",
        "/workflows",
        "/playbooks",
        "/playbooks search recipe",
        "/runs",
        "/goal list",
        "/help",
    ],
)
def test_lists_are_printed_without_a_model(folder: Path, line: str) -> None:
    said = stretto(folder, "chat", "-p", line, "--model", "scripted:none.yaml")
    assert said.code == 0, said
    assert said.out


def test_the_help_is_a_table_of_two_columns(folder: Path) -> None:
    said = stretto(folder, "chat", "-p", "/help", "--model", "scripted:none.yaml").out
    rows = [line for line in said.splitlines() if line.startswith("/")]
    assert len(rows) == 9
    assert len({len(row) - len(row.split("   ")[-1].lstrip()) for row in rows if "   " in row}) == 1


def test_a_goal_that_is_set_in_a_chat_asks_its_model_and_may_do_what_it_may(folder: Path) -> None:
    line = '/goal set "It is there" --verify "command:touch made; test -f made"'
    chat = ("chat", "-p", line, "--json", *MODEL)
    forbidden = stretto(folder, *chat, "--permission", "read_only").json["goal"]
    assert (forbidden["status"], forbidden["iterations"]) == ("stalled", 3)
    assert not (folder / "made").exists()
    assert stretto(folder, *chat).json["goal"]["status"] == "achieved"
    own = stretto(folder, "chat", "-p", f"{line} --permission auto", "--permission", "read_only")
    assert own.code == 0, "what the line says itself counts first"


def test_a_chat_drafts_and_captures(folder: Path) -> None:
    drafted = "name: tea\nsteps:\n  - {id: a, subagent: writer, prompt: It's about tea.}\n"
    facts = "Tea was first drunk in the south of China, some say."
    calls = [
        {"tool": "task", "arguments": {"agent": "researcher", "prompt": "Where is tea from?"}},
        {"tool": "task", "arguments": {"agent": "writer", "prompt": f"A line on: {facts}"}},
    ]
    replies = {"turn-1": {"calls": calls, "reply": "Done."}, "task": facts}
    write(folder, "script.yaml", json.dumps({"replies": replies, "draft": drafted}))
    said = stretto(folder, "chat", "-p", "/draft it's 'only -- tea", *MODEL)
    assert (said.code, said.out) == (3, drafted), said
    nothing = stretto(folder, "chat", "-p", "/capture x", "--json", *MODEL)
    assert "nothing to capture" in refused(nothing, "usage")["message"]
    one = stretto(folder, "chat", *MODEL, stdin="Tell me about tea.\n/capture tea-line\n")
    assert one.code == 0, one
    assert "{{steps.researcher.output}}" in (folder / "workflows/tea-line.yaml").read_text()


def asking(folder: Path) -> tuple[str, str]:
    """A chat that waits for a person: its id, and the key of what it waits for."""
    write(folder, "script.yaml", RUN_SHOUT)
    said = stretto(folder, "chat", "-p", "Shout", "--permission", "ask", "--json", *MODEL)
    assert (said.code, said.json["error"]["kind"]) == (3, "waiting")
    [awaited] = said.json["turn"]["awaits"]
    assert "topic = tea" in awaited["shown"]
    return said.json["chat"], awaited["key"]


def test_an_asking_chat_exits_3_with_the_commands_that_decide(folder: Path) -> None:
    write(folder, "script.yaml", RUN_SHOUT)
    said = stretto(folder, "chat", "-p", "Shout", "--permission", "ask", *MODEL)
    assert (said.code, said.out) == (3, "")
    assert "Run the workflow 'shout'" in said.err
    command = next(line for line in said.err.splitlines() if "--approve" in line)
    assert [each["workflow"] for each in runs(folder)] == ["chat"]
    done = stretto(folder, *command.split()[1:])
    assert (done.code, done.out) == (0, "It was loud.\n")
    assert Counter(each["status"] for each in runs(folder)) == {"complete": 2}


def test_a_decision_counts_once_for_what_was_shown(folder: Path) -> None:
    chat, key = asking(folder)
    wrong = stretto(folder, "chat", "--resume", chat, "--approve", "0" * 12, "--json")
    refused(wrong, "usage")
    write(folder, "workflows/shout.yaml", SHOUT.replace("Shout about", "Delete"))
    again = stretto(folder, "chat", "--resume", chat, "--approve", key, "--json")
    assert (again.code, again.json["turn"]["status"]) == (3, "waiting")
    assert [each["workflow"] for each in runs(folder)] == ["chat"]
    new = again.json["turn"]["awaits"][0]["key"]
    assert new != key
    said = stretto(folder, "chat", "--resume", chat, "--reject", new, "--reason", "no", "--json")
    assert succeeded(said)["turn"]["calls"][0]["ok"] is False


def test_a_turn_goes_on_by_its_chat_alone(folder: Path) -> None:
    chat, _ = asking(folder)
    [turn] = runs(folder)
    assert turn["status"] == "waiting"
    report = stretto(folder, "report", turn["run_id"])
    assert "A person must approve or reject what the chat asks." in report.out
    assert f"`stretto chat --resume {chat}` goes on with the chat" in report.out
    for words in (["resume"], ["retry"], ["fork", "--from", "turn-1"]):
        error = refused(stretto(folder, *words, turn["run_id"], "--json"), "usage")
        assert chat in error["details"]["hint"]


def test_who_follows_a_turn_is_told_that_its_chat_asks(folder: Path) -> None:
    chat, _ = asking(folder)
    [turn] = runs(folder)
    for words in (["watch"], ["logs", "-f"], ["events", "--follow"]):
        said = stretto(folder, *words, turn["run_id"])
        assert said.code == 3, said
        assert f"the chat asks a person: stretto chat --resume {chat}" in said.err
        assert "stretto resume" not in said.err
        assert "interrupted" not in said.err


def test_a_turn_that_has_ended_is_not_done_again_without_its_chat(folder: Path) -> None:
    """It would have neither its tools nor its memory, and would say that it has done what it has not."""
    write(folder, "script.yaml", "default: ok\nreplies: {turn-1: {fail: it broke}}\n")
    stretto(folder, "chat", "-p", "Go", *MODEL)
    [turn] = runs(folder)
    report = stretto(folder, "report", turn["run_id"])
    assert "stretto chat --resume" in report.out
    assert "stretto retry" not in report.out
    refused(stretto(folder, "retry", turn["run_id"], "--json"), "usage")
    assert len(runs(folder)) == 1


def test_a_gate_in_a_run_of_the_chat_is_decided_as_every_gate_is(folder: Path) -> None:
    write(
        folder,
        "workflows/gated.yaml",
        SHOUT.replace("shout", "gated").replace("id: say,", "id: say, gate: human,"),
    )
    write(folder, "script.yaml", RUN_SHOUT.replace("name: shout", "name: gated"))
    said = stretto(folder, "chat", "-p", "Go", *MODEL)
    assert said.code == 3
    command = next(line for line in said.err.splitlines() if "stretto approve" in line)
    assert stretto(folder, *command.split()[1:]).code == 0
    done = stretto(folder, "chat", "--resume", "last")
    assert (done.code, done.out) == (0, "It was loud.\n")
    assert Counter(each["status"] for each in runs(folder)) == {"complete": 2}


def test_a_signal_stops_one_turn_so_that_it_can_go_on(folder: Path) -> None:
    write(folder, "script.yaml", "{default: Done., replies: {turn-1: {reply: Late., delay: 600s}}}")
    words = [sys.executable, "-m", "stretto", "chat", "-p", "Go", *MODEL]
    child = subprocess.Popen(
        words, cwd=folder, env=environment(folder), stderr=subprocess.PIPE, text=True
    )
    assert child.stderr is not None
    assert "waits for the first word" in child.stderr.readline()
    busy = stretto(folder, "chat", "--resume", "last", "--json", *MODEL)
    assert (busy.code, busy.json["error"]["kind"]) == (5, "leased")
    child.send_signal(signal.SIGINT)
    assert child.wait(120) == 130
    assert "stretto chat --resume" in child.stderr.read()
    child.stderr.close()
    write(folder, "script.yaml", "default: Done.")
    assert stretto(folder, "chat", "--resume", "last", *MODEL).out == "Done.\n"


def test_after_kill_9_the_turn_goes_on_and_no_run_is_started_twice(folder: Path) -> None:
    write(
        folder,
        "script.yaml",
        """\
replies:
  turn-1:
    calls:
      - {tool: task, arguments: {agent: writer, prompt: one}}
      - {tool: run_workflow, arguments: {name: shout, inputs: {topic: tea}}}
    reply: Both are done.
  task: quick
  say: {reply: LOUD, delay: 600s}
""",
    )
    words = [sys.executable, "-m", "stretto", "chat", "-p", "Go", *MODEL]
    child = subprocess.Popen(
        words, cwd=folder, env=environment(folder), stderr=subprocess.PIPE, text=True
    )
    assert child.stderr is not None
    for line in child.stderr:
        if "say running" in line:
            break
    child.kill()
    child.wait()
    child.stderr.close()
    before = {each["run_id"] for each in runs(folder)}
    assert len(before) == 3
    write(folder, "script.yaml", "{default: OTHER, replies: {say: LOUD}}")
    said = stretto(folder, "chat", "--resume", "last", "--json", *MODEL)
    assert said.code == 0, said
    turn = said.json["turn"]
    # The replies of before the crash still count, so the second script changes only what was missing.
    assert [each["tool"] for each in turn["calls"]] == ["task", "run_workflow"]
    assert {each["run_id"] for each in runs(folder)} == before
    assert {each["status"] for each in runs(folder)} == {"complete"}


def test_the_budget_of_a_chat_counts_what_kill_9_cut_off(folder: Path) -> None:
    task = "{tool: task, arguments: {agent: writer, prompt: one}}"
    script = "replies: {turn-1: {calls: [%s], reply: Done.}, task: {reply: It, %stokens: 12000}}"
    write(folder, "script.yaml", script % (task, "delay: 600s, "))
    with running(folder, "chat", "-p", "Go", "--budget", "tokens=20k", *MODEL) as child:
        await_call(folder, "task")
        child.kill()
    write(folder, "script.yaml", script % (task, ""))
    turn = succeeded(stretto(folder, "chat", "--resume", "last", "--json", *MODEL))["turn"]
    usage = turn["usage"]
    # Two calls of 12,000 would be more than there is.
    assert 12_000 <= usage["input_tokens"] + usage["output_tokens"] <= 20_000, usage
    assert [each["ok"] for each in turn["calls"]] == [False]
    report = stretto(folder, "report", turn["run_ids"][0]).out
    assert "12,000 tokens of it are counted" in report


def test_after_kill_9_a_draft_of_the_lead_agent_goes_on_as_the_same_run(folder: Path) -> None:
    drafted = "name: tea\nsteps:\n  - {id: a, subagent: writer, prompt: Tell of tea.}\n"
    call = {"tool": "draft_workflow", "arguments": {"words": "tell of tea"}}
    turn = {"calls": [call], "reply": "Here it is."}
    late = {"replies": {"turn-1": turn, "draft": {"reply": "Late.", "delay": "600s"}}}
    write(folder, "script.yaml", json.dumps(late))
    words = [sys.executable, "-m", "stretto", "chat", "-p", "Draft it", *MODEL]
    child = subprocess.Popen(
        words, cwd=folder, env=environment(folder), stderr=subprocess.PIPE, text=True
    )
    assert child.stderr is not None
    assert any("draft running" in line for line in child.stderr)
    child.kill()
    child.wait()
    child.stderr.close()
    before = {each["run_id"] for each in runs(folder)}
    write(folder, "script.yaml", json.dumps({"default": "Here it is.", "draft": drafted}))
    found = succeeded(stretto(folder, "chat", "--resume", "last", "--json", *MODEL))["turn"]
    assert {found["id"], *found["run_ids"]} == before == {each["run_id"] for each in runs(folder)}
    assert stretto(folder, "output", found["run_ids"][0]).out == drafted


def over_http(folder: Path, url: str, *words: str, **more: Any) -> Any:
    environ = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
    return stretto(folder, *words, env=environ, **more)


def test_a_model_is_told_what_was_said_before_and_only_the_lead_agent_may_delegate(
    folder: Path,
) -> None:
    write(
        folder,
        "agents/greedy.md",
        "---\ndescription: Wants more.\ntools: Read\n---\nYou are greedy.",
    )
    call = ToolCall("task", {"agent": "greedy", "prompt": "more", "description": "x"})

    def answer(asked: Asked) -> ServerAnswer:
        system = str(asked.messages[0])
        if "You are greedy" in system:
            is_first = asked.messages[-1]["role"] == "user"
            return Said("", tool_calls=(call,)) if is_first else Said("I may not.")
        if "First" in asked.prompt:
            return Said("", tool_calls=(call,))
        return Said(f"{len(asked.messages)} messages. \x1b[2J\x1b]0;evil\x07")

    with serving(answer) as server:
        said = over_http(folder, server.url, "chat", "--json", stdin="First\nSecond\n")
        assert said.code == 0, said
        first, second = (json.loads(line)["turn"] for line in said.out.splitlines())
        asked = [each for each in server.requests if each.messages]
        greedy = [each for each in asked if "You are greedy" in str(each.messages[0])]
        lead = [each for each in asked if each not in greedy]
    assert {"task", "task_batch", "run_workflow", "save_workflow", "list_workflows"} < set(
        lead[0].tool_names
    )
    assert greedy[0].tool_names == ["Read"]
    assert "a subagent cannot delegate" in greedy[1].prompt
    assert [each["tool"] for each in first["calls"]] == ["task"]
    told = [(each["role"], each.get("content")) for each in lead[-1].messages]
    assert told[1:] == [("user", "First"), ("assistant", first["text"]), ("user", "Second")]
    assert "\x1b" not in said.out
    assert second["text"].startswith("4 messages.")


def test_a_turn_that_goes_on_has_cost_what_one_without_a_stop_costs(folder: Path) -> None:
    call = ToolCall("run_workflow", {"name": "shout", "inputs": {"topic": "tea"}})

    def answer(asked: Asked) -> ServerAnswer:
        # This server does not say what a call takes, so with a budget it is estimated.
        nothing = TokenUsage(0, 0)
        is_lead = "Go" in asked.prompt and "Shout about" not in asked.prompt
        return Said("", (call,), nothing) if is_lead else Said("Done.", usage=nothing)

    with serving(answer) as server:
        bounded = ("chat", "-p", "Go", "--json", "--budget", "tokens=1m")
        at_once = over_http(folder, server.url, *bounded, "--permission", "auto").json["turn"]
        waiting = over_http(folder, server.url, *bounded, "--permission", "ask").json
        assert waiting["turn"]["usage"]["input_tokens"] > 0, "so far"
        key = waiting["turn"]["awaits"][0]["key"]
        goes_on = ("chat", "--resume", waiting["chat"], "--approve", key, "--json")
        later = over_http(folder, server.url, *goes_on).json["turn"]
    assert (at_once["status"], later["status"]) == ("complete", "complete")
    assert at_once["usage"]["input_tokens"] > 0
    assert later["usage"] == at_once["usage"]


def test_a_turn_that_is_retried_starts_nothing_twice_and_counts_nothing_twice(folder: Path) -> None:
    """The second reply of the lead agent is cut off, and its third one is no JSON."""
    fields = "retry: {max_attempts: 3}\nvalidation: {schema: {type: object}}"
    write(folder, "agents/lead.md", f"---\ndescription: Leads.\n{fields}\n---\nLead.")
    call = ToolCall("task", {"agent": "writer", "prompt": "one"})
    used = TokenUsage(100, 10)
    replies = [
        Said("", (call,), used),
        Said("half of", usage=used, finish_reason="length"),
        Said("no object", usage=used),
        Said('{"done": true}', usage=used),
    ]
    given = 0

    def answer(asked: Asked) -> ServerAnswer:
        nonlocal given
        given += 110
        return replies.pop(0) if "task_batch" in asked.tool_names else Said("one", usage=used)

    with serving(answer) as server:
        turn = over_http(folder, server.url, "chat", "-p", "Go", "--json").json["turn"]
    assert (turn["status"], turn["text"], replies) == ("complete", '{"done":true}', []), turn
    assert len(turn["calls"]) == len(turn["run_ids"]) == 1
    assert Counter(each["workflow"] for each in runs(folder)) == {"chat": 1, "task": 1}
    assert turn["usage"]["input_tokens"] + turn["usage"]["output_tokens"] == given == 550


def test_what_a_model_says_does_nothing_to_a_terminal_and_runs_no_slash_command(
    folder: Path,
) -> None:
    with serving(Said("/shout tea \x1b]0;evil\x07 \x1b[2Jdone")) as server:
        said = over_http(folder, server.url, "chat", "-p", "Say it")
        assert said.code == 0
        assert "/shout tea" in said.out
        assert "\x1b" not in said.out + said.err
        assert [each["workflow"] for each in runs(folder)] == ["chat"]
        environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
        keys = [("> ", "Say it\r"), ("done", "/exit\r")]
        code, screen, _ = talk(folder, ["chat"], keys, environ)
    assert code == 0
    assert "\x1b]0;evil" not in screen
    assert "\x1b[2J" not in screen


def test_at_a_terminal_a_person_talks_decides_and_leaves(folder: Path) -> None:
    write(folder, "script.yaml", RUN_SHOUT)
    code, screen, _ = talk(
        folder,
        ["chat", "--permission", "ask", *MODEL],
        [
            ("> ", "Shout\r"),
            ("[y]es", "y\r"),
            ("It was loud.", "/nope\r"),
            ("there is no /nope", "again\r"),
            ("LOUD", "/exit\r"),
        ],
    )
    assert code == 0
    assert screen.count("It was loud.") == 1
    assert "to go on: stretto chat --resume" in screen
    code, screen, _ = talk(folder, ["chat", "--resume", "last"], [("> ", "\x04")])
    assert code == 0
    assert "to go on: stretto chat --resume" in screen


def test_the_answer_of_one_turn_is_rendered_at_a_terminal(folder: Path) -> None:
    write(folder, "script.yaml", "default: 'It is **good** and `cheap`.'\n")
    code, screen, _ = talk(folder, ["chat", "-p", "Is it?", *MODEL], [])
    assert code == 0
    assert "It is \x1b[1mgood\x1b[0m and" in screen
    assert "**good**" not in screen


def test_ctrl_c_ends_the_turn_and_not_the_chat(folder: Path) -> None:
    write(
        folder,
        "script.yaml",
        """\
default: Still here.
replies:
  turn-1: {calls: [{tool: task, arguments: {agent: writer, prompt: one}}], reply: Never.}
  task: {reply: Never., delay: 600s}
""",
    )
    code, screen, _ = talk(
        folder,
        ["chat", *MODEL],
        [
            ("> ", "Go\r"),
            ("task running", CTRL_C),
            ("the turn is cancelled", "Hello?\r"),
            ("Still here.", "/exit\r"),
        ],
        {"TERM": "dumb"},
    )
    assert code == 0, screen
    statuses = Counter(each["status"] for each in runs(folder))
    assert statuses == {"cancelled": 2, "complete": 1}


def test_ctrl_c_at_a_question_of_a_command_ends_no_chat(folder: Path) -> None:
    drafted = "name: tea\nsteps:\n  - {id: a, subagent: writer, prompt: It's about tea.}\n"
    write(
        folder, "script.yaml", json.dumps({"default": "Still here.", "replies": {"draft": drafted}})
    )
    code, screen, _ = talk(
        folder,
        ["chat", *MODEL],
        [
            ("> ", "/draft say hello\r"),
            ("[s]ave only", CTRL_C),
            ("the chat goes on", "Hello?\r"),
            ("Still here.", "/exit\r"),
        ],
        {"TERM": "dumb"},
    )
    assert code == 0, screen
    assert "it is kept: stretto draft --resume" in screen


def test_ctrl_c_while_a_draft_is_at_work_stops_the_draft_and_not_the_chat(folder: Path) -> None:
    script = "default: Still here.\nreplies: {draft: {reply: Never., delay: 600s}}\n"
    write(folder, "script.yaml", script)
    code, screen, _ = talk(
        folder,
        ["chat", *MODEL],
        [
            ("> ", "/draft say hello\r"),
            ("draft running", CTRL_C),
            ("the chat goes on", "Hello?\r"),
            ("Still here.", "/exit\r"),
        ],
        {"TERM": "dumb"},
    )
    assert code == 0, screen
    assert "stopped; to go on: stretto draft --resume" in screen


def test_a_closed_stdout_loses_no_turn(folder: Path) -> None:
    words = [sys.executable, "-m", "stretto", "chat", "-p", "Hi", *MODEL]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(words, cwd=folder, env=environment(folder), stdout=writer, timeout=120)
    os.close(writer)
    assert done.returncode == 0
    assert [each["status"] for each in runs(folder)] == ["complete"]


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (["-p", ""], "", "empty"),
        (["-p", "-"], " \n", "empty"),
        ([], "", "nothing was said"),
        (["--resume", "nobody", "-p", "x"], "", "no chat"),
        (["--approve", "a", "--reject", "b"], "", "exclude"),
        (["--budget", "lots", "-p", "x"], "", "no budget"),
    ],
)
def test_bad_words_are_refused(folder: Path, words: list[str], stdin: str, said: str) -> None:
    done = stretto(folder, "chat", *words, *MODEL, stdin=stdin)
    assert done.code == 2
    assert said in done.err
