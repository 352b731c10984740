"""Recipes against a real OpenAI-compatible server on loopback: real HTTP, scripted replies."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from stretto.testing.openai_script import (
    Asked,
    Cut,
    Hang,
    Said,
    ServerAnswer,
    Status,
    ToolCall,
    by_words,
    rate_limited,
)
from stretto.testing.openai_server import serving
from support.background_runs import lines, statuses
from support.cli import stretto, write
from support.recipes import RECIPES

ONE = """
name: one
agents: {helper: {prompt: Help., timeout: 2s}}
steps:
  - {id: a, agent: helper, prompt: "Say something.", retry: {max_attempts: 2}}
"""
PAINS = [{"problem": "p", "impact": "i", "solution": "s"}] * 3
PROPOSAL = by_words(
    {
        "business research analyst": Said(
            json.dumps({"company_overview": "looms", "key_challenges": ["speed"]})
        ),
        "Identify the top 3 pain points": Said(f"Here:\n```json\n{json.dumps(PAINS)}\n```"),
        "Create 3 pricing tiers": Said('{"tiers": []}'),
        "Review this proposal": Said('{"overall_score": 9, "passed": true, "feedback": []}'),
    },
    default=Said("# Proposal\n\nWords."),
)


def over_http(folder: Path, url: str, *words: str | Path, stdin: str = "", **more: str) -> Any:
    environ = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-loopback-0123456789", **more}
    return stretto(folder, *words, stdin=stdin, env=environ)


@pytest.mark.parametrize(
    ("name", "inputs", "script"),
    [
        ("research-and-brief", {"topic": "looms"}, Said("Looms weave.")),
        ("threat-brief", {"topic": "looms"}, Said("No threat.")),
        (
            "multi-criteria-lead-scoring",
            {"lead_data": {"name": "Ann"}, "icp_criteria": {}},
            Said('{"score": 80, "reasoning": "fits"}'),
        ),
        (
            "research-to-proposal",
            {"company_name": "Acme", "contact_name": "Ann", "our_services": "looms"},
            PROPOSAL,
        ),
    ],
)
def test_the_printed_recipes_run_over_http(
    tmp_path: Path, name: str, inputs: dict[str, Any], script: Any
) -> None:
    recipe = str(RECIPES / f"{name}.yaml")
    with serving(script) as server:
        words = ("run", recipe, "--json", "--input-json", "-")
        said = over_http(tmp_path, server.url, *words, stdin=json.dumps(inputs))
    assert said.code == 0, said
    report = lines(said)[-1]
    assert report["status"] == "complete"
    assert set(statuses(report).values()) == {"succeeded"}
    assert all(asked.is_stream for asked in server.requests if asked.path.endswith("completions"))
    assert report["usage"]["model_calls"] == sum(
        asked.path.endswith("completions") for asked in server.requests
    )


@pytest.mark.parametrize(
    "fault",
    [Said(""), Hang()],
    ids=["empty", "hang"],
)
def test_a_fault_is_retried_within_the_steps_policy(tmp_path: Path, fault: ServerAnswer) -> None:
    write(tmp_path, "one.yaml", ONE)
    with serving([fault, Said("Fine.")]) as server:
        said = over_http(tmp_path, server.url, "run", "one.yaml", "--json", "--model", "openai:m")
    assert said.code == 0, said
    report = lines(said)[-1]
    assert report["output"] == "Fine."
    assert report["steps"]["a"]["attempts"] == 2
    failed = [line for line in lines(said) if line["type"] == "attempt_failed"]
    # One that hangs is ended by the agent's timeout, and its attempt was called off.
    assert len(failed) == (0 if isinstance(fault, Hang) else 1)


@pytest.mark.parametrize(
    "fault", [rate_limited(1), Status(503), Cut()], ids=["429", "503", "cut stream"]
)
def test_a_moments_trouble_costs_no_attempt_and_is_told(
    tmp_path: Path, fault: ServerAnswer
) -> None:
    write(tmp_path, "one.yaml", ONE.replace("timeout: 2s", "timeout: 60s"))
    with serving([fault, Said("Fine.")]) as server:
        said = over_http(tmp_path, server.url, "run", "one.yaml", "--json", "--model", "openai:m")
    assert said.code == 0, said
    report = lines(said)[-1]
    assert (report["status"], report["output"], report["retries"]) == ("complete", "Fine.", 1)
    assert report["steps"]["a"]["attempts"] == 1
    assert report["usage"]["model_calls"] == 2
    (retried,) = [line for line in lines(said) if line["type"] == "model_retried"]
    assert (retried["retry"], retried["most"]) == (1, 3)
    assert any("1 retry of the model after" in text for text in report["warnings"])


def test_a_retry_is_a_line_for_who_watches(tmp_path: Path) -> None:
    write(tmp_path, "one.yaml", ONE.replace("timeout: 2s", "timeout: 60s"))
    with serving([rate_limited(1), Said("Fine.")]) as server:
        said = over_http(tmp_path, server.url, "run", "one.yaml", "--model", "openai:m")
    assert "openai:m: HTTP 429, too many requests: rate limited, retry 1/3 in 1s" in said.err


def test_retry_after_is_obeyed_by_the_step_where_the_client_gave_up(tmp_path: Path) -> None:
    write(tmp_path, "one.yaml", ONE)
    with serving([rate_limited(2), Said("Fine.")]) as server:
        words = ("run", "one.yaml", "--json", "--model", "openai:m")
        said = over_http(tmp_path, server.url, *words, STRETTO_MODEL_RETRIES="0")
    events = {line["type"]: line["at"] for line in lines(said)[:-1]}
    assert events["timer_fired"] - events["attempt_failed"] >= 1.9


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_permanent_fault_ends_the_run_at_once_and_says_what_to_do(
    tmp_path: Path, status: int
) -> None:
    recipe = """
workflow:
  name: two
  agents: {helper: {prompt: Help.}}
  steps:
    - {id: a, agent: helper, input: "Say something.", retry: {max_attempts: 5}, on_failure: inline}
    - {id: b, agent: helper, input: "More on {{steps.a.output}}"}
"""
    write(tmp_path, "two.yaml", recipe)
    with serving(Status(status, "no")) as server:
        said = over_http(tmp_path, server.url, "run", "two.yaml", "--json", "--model", "openai:m")
    report = lines(said)[-1]
    assert (said.code, report["status"], report["output"]) == (1, "failed", None)
    assert server.asked_times == 1
    assert f"HTTP {status}" in report["steps"]["a"]["error"]
    assert "--model" in report["steps"]["a"]["error"]


def test_without_a_named_model_the_servers_first_is_used_and_said(tmp_path: Path) -> None:
    write(tmp_path, "one.yaml", ONE)
    with serving(Said("Hi."), models=("first", "second")) as server:
        said = over_http(tmp_path, server.url, "run", "one.yaml")
    assert said.code == 0
    assert "using openai:first: OPENAI_BASE_URL is set" in said.err
    assert server.requests[-1].model == "first"


def test_a_failover_is_visible_in_events_and_report(tmp_path: Path) -> None:
    write(
        tmp_path,
        "two.yaml",
        """
name: two
agents:
  helper: {prompt: Help., model: "openai:flaky", fallback_models: ["openai:steady"]}
steps: [{id: a, agent: helper, prompt: Go.}]
""",
    )

    def script(asked: Asked) -> ServerAnswer:
        return Status(503) if asked.model == "flaky" else Said("Done.")

    with serving(script) as server:
        words = ("run", "two.yaml", "--json")
        said = over_http(tmp_path, server.url, *words, STRETTO_MODEL_RETRIES="0")
    assert said.code == 0, said
    (over,) = [line for line in lines(said) if line["type"] == "model_failed_over"]
    assert (over["model"], over["to"]) == ("openai:flaky", "openai:steady")
    assert any("openai:flaky could not answer" in text for text in lines(said)[-1]["warnings"])


def test_a_canary_in_the_environment_is_found_nowhere(tmp_path: Path) -> None:
    canary = "canary-8d1f6c2ab907"
    recipe = """
name: spy
agents: {spy: {prompt: Spy., tools: [Read, Bash, Grep, Glob], max_turns: 9}}
steps: [{id: a, agent: spy, prompt: "Find it."}]
"""
    write(tmp_path, "spy.yaml", recipe)
    write(tmp_path, ".env", f"SECRET={canary}\n")
    calls = (
        ToolCall("Read", {"file_path": ".env"}),
        ToolCall("Read", {"file_path": "/proc/self/environ"}),
        ToolCall("Grep", {"pattern": "canary", "output_mode": "content"}),
        ToolCall("Bash", {"command": "env; cat .env; cat /proc/*/environ"}),
        ToolCall("Bash", {"command": f"echo {canary}"}),
    )
    script = [Said("", tool_calls=(call,)) for call in calls] + [Said(f"It is {canary}!")]
    with serving(script) as server:
        words = ("run", "spy.yaml", "--json", "--model", "openai:m")
        said = over_http(tmp_path, server.url, *words, SERVICE_API_KEY=canary)
    assert said.code == 0, said
    assert lines(said)[-1]["output"] == "It is [redacted]!"
    assert canary not in said.out + said.err
    prompts = [m for asked in server.requests for m in asked.messages if m["role"] != "assistant"]
    assert canary not in json.dumps(prompts)
    run_id = lines(said)[-1]["run_id"]
    for command in (("events", run_id), ("report", run_id), ("report", run_id, "--format", "html")):
        assert canary not in stretto(tmp_path, *command).out
    kept = [file for file in (tmp_path / "home").rglob("*") if file.is_file()]
    assert kept
    assert not [file for file in kept if canary.encode() in file.read_bytes()]


def test_what_a_run_needs_and_is_not_here_is_told_before_it_starts(tmp_path: Path) -> None:
    write(
        tmp_path,
        "needs.yaml",
        """
name: needs
budget: {usd: 1}
agents:
  one: {prompt: x, model: "anthropic:claude-sonnet-4-5"}
  two: {prompt: x, model: "opnai:gpt-4o"}
  three: {prompt: x, model: "openai:unheard-of"}
  four: {prompt: x, tools: [WebSearch], model: "openai:gpt-4o"}
  five: {prompt: x, tools: [mcp__nowhere__x], model: "openai:gpt-4o"}
steps:
  - {id: a, agent: one, prompt: go}
  - {id: b, agent: two, prompt: go}
  - {id: c, agent: three, prompt: go}
  - {id: d, agent: four, prompt: go}
  - {id: e, agent: five, prompt: go}
""",
    )
    with serving(Said("x")) as server:
        said = over_http(tmp_path, server.url, "run", "needs.yaml", "--json")
    assert said.code == 2
    error = said.json["error"]
    assert error["kind"] == "not_ready"
    codes = [problem["code"] for problem in error["details"]["problems"]]
    assert sorted(codes) == ["RUN001", "RUN001", "RUN002", "RUN003", "RUN004"]
    assert server.requests == []


def test_a_read_only_run_denies_writers_before_anything_starts(tmp_path: Path) -> None:
    recipe = "name: w\nsteps: [{id: a, subagent: worker, prompt: go, write_set: [src]}]\n"
    write(tmp_path, "w.yaml", recipe)
    with serving(Said("x")) as server:
        words = ("run", "w.yaml", "--permission", "read_only", "--json", "--model", "openai:m")
        said = over_http(tmp_path, server.url, *words)
    assert said.code == 4
    assert said.json["error"]["kind"] == "permission_denied"
    assert server.requests == []
    assert stretto(tmp_path, "runs").out.startswith("no runs yet")


def test_asking_for_permission_becomes_an_approval_where_nobody_can_be_asked(
    tmp_path: Path,
) -> None:
    recipe = "name: w\nsteps: [{id: a, subagent: worker, prompt: go, write_set: [src]}]\n"
    write(tmp_path, "w.yaml", recipe)
    with serving(Said("Done.")) as server:
        words = ("run", "w.yaml", "--permission", "ask", "--model", "openai:m")
        said = over_http(tmp_path, server.url, *words)
        assert said.code == 3, said
        found = re.search(r"stretto approve (\S+) a", said.err)
        assert found
        assert stretto(tmp_path, "approve", found[1], "a", "--no-resume").code == 0
        said = over_http(tmp_path, server.url, "resume", found[1], "--json")
    assert said.code == 0, said
    assert lines(said)[-1]["output"] == "Done."


def test_an_isolated_writers_change_is_merged_back_before_its_dependents(tmp_path: Path) -> None:
    recipe = """
name: writers
agents:
  writer: {prompt: Write., tools: [Write, Read]}
  reader: {prompt: Read., tools: [Read]}
steps:
  - {id: a, agent: writer, prompt: "write a", write_set: [a.txt]}
  - {id: b, agent: writer, prompt: "write b", write_set: [b.txt]}
  - {id: c, agent: reader, prompt: "read both", depends_on: [a, b]}
"""
    write(tmp_path, "writers.yaml", recipe)

    def script(asked: Asked) -> ServerAnswer:
        first = str(asked.messages[1]["content"])
        if len(asked.messages) > 2:
            return Said(str(asked.messages[-1]["content"]))
        name = "a" if "write a" in first else "b"
        if "read both" in first:
            return Said("", tool_calls=(ToolCall("Read", {"file_path": "a.txt"}),))
        arguments = {"file_path": f"{name}.txt", "content": f"by {name}\n"}
        return Said("", tool_calls=(ToolCall("Write", arguments),))

    with serving(script) as server:
        words = ("run", "writers.yaml", "--json", "--model", "openai:m")
        said = over_http(tmp_path, server.url, *words)
    assert said.code == 0, said
    assert (tmp_path / "a.txt").read_text() == "by a\n"
    assert (tmp_path / "b.txt").read_text() == "by b\n"
    report = lines(said)[-1]
    assert "by a" in report["output"]
    changes = report["steps"]["a"]["changes"]
    assert (changes["files"], changes["insertions"], changes["merged"]) == (1, 1, True)
    assert (
        "changed 1 file, +1 -0 lines, merged" in stretto(tmp_path, "report", report["run_id"]).out
    )
    for form in ("md", "html"):
        assert "+by a" in stretto(tmp_path, "report", report["run_id"], "--format", form).out
    patch = stretto(tmp_path, "diff", report["run_id"], "a")
    assert patch.code == 0
    assert "+by a" in patch.out


def test_a_write_outside_the_write_set_is_refused_and_told(tmp_path: Path) -> None:
    recipe = """
name: stray
agents: {writer: {prompt: Write., tools: [Write]}}
steps: [{id: a, agent: writer, prompt: go, write_set: [ok/**]}]
"""
    write(tmp_path, "stray.yaml", recipe)
    call = ToolCall("Write", {"file_path": "stray.txt", "content": "x"})
    with serving([Said("", tool_calls=(call,)), Said("Could not.")]) as server:
        words = ("run", "stray.yaml", "--json", "--model", "openai:m")
        said = over_http(tmp_path, server.url, *words)
    assert said.code == 1, said  # it wrote nothing, whatever it says
    (ended,) = [line for line in lines(said) if line["type"] == "tool_ended"]
    assert ended["verdict"] == "refused"
    assert not (tmp_path / "stray.txt").exists()
    assert "ok/**" in json.dumps(server.requests[-1].messages[-1])


def test_a_manual_merge_waits_for_apply(tmp_path: Path) -> None:
    recipe = """
name: manual
agents: {writer: {prompt: Write., tools: [Write]}}
steps: [{id: a, agent: writer, prompt: go, write_set: [a.txt], merge_back: manual}]
"""
    write(tmp_path, "manual.yaml", recipe)
    call = ToolCall("Write", {"file_path": "a.txt", "content": "one\n"})
    with serving([Said("", tool_calls=(call,)), Said("Done.")]) as server:
        words = ("run", "manual.yaml", "--json", "--model", "openai:m")
        said = over_http(tmp_path, server.url, *words)
    assert said.code == 0, said
    run_id = lines(said)[-1]["run_id"]
    assert not (tmp_path / "a.txt").exists()
    tried = stretto(tmp_path, "apply", run_id, "a", "--dry-run", "--json")
    assert tried.json["files"] == ["a.txt"]
    assert not (tmp_path / "a.txt").exists()
    assert stretto(tmp_path, "apply", run_id, "a").code == 0
    assert (tmp_path / "a.txt").read_text() == "one\n"
    assert stretto(tmp_path, "apply", run_id, "a").code == 0  # again is as good as once


def test_a_conflict_fails_the_step_and_keeps_both_sides(tmp_path: Path) -> None:
    recipe = """
name: clash
agents: {writer: {prompt: Write., tools: [Write]}}
steps: [{id: a, agent: writer, prompt: go, write_set: [a.txt]}]
"""
    write(tmp_path, "clash.yaml", recipe)
    write(tmp_path, "a.txt", "base\n")
    call = ToolCall("Write", {"file_path": "a.txt", "content": "theirs\n"})

    def script(asked: Asked) -> ServerAnswer:
        if len(asked.messages) > 2:
            write(tmp_path, "a.txt", "ours\n")  # a person edits it meanwhile
            return Said("Done.")
        return Said("", tool_calls=(call,))

    with serving(script) as server:
        words = ("run", "clash.yaml", "--json", "--model", "openai:m")
        said = over_http(tmp_path, server.url, *words)
    assert said.code == 1, said
    report = lines(said)[-1]
    assert "a.txt" in report["steps"]["a"]["error"]
    assert (tmp_path / "a.txt").read_text() == "ours\n"
    artifact = Path(report["steps"]["a"]["changes"]["artifact"])
    assert (artifact / "conflicts" / "theirs" / "a.txt").read_text() == "theirs\n"
    assert (artifact / "conflicts" / "ours" / "a.txt").read_text() == "ours\n"


def test_what_was_written_and_not_declared_is_reported(tmp_path: Path) -> None:
    recipe = """
name: shared
agents: {writer: {prompt: Write., tools: [Write]}}
steps: [{id: a, agent: writer, prompt: go, write_set: [a.txt], workspace_mode: shared}]
"""
    write(tmp_path, "shared.yaml", recipe)
    call = ToolCall("Write", {"file_path": "a.txt", "content": "one\n"})

    def script(asked: Asked) -> ServerAnswer:
        if len(asked.messages) > 2:
            write(tmp_path, "stray.txt", "by somebody\n")
            return Said("Done.")
        return Said("", tool_calls=(call,))

    with serving(script) as server:
        words = ("run", "shared.yaml", "--json", "--model", "openai:m")
        said = over_http(tmp_path, server.url, *words)
    assert said.code == 0, said
    assert (tmp_path / "a.txt").read_text() == "one\n"
    warnings = " ".join(lines(said)[-1]["warnings"])
    assert "no step had declared: stray.txt" in warnings


def test_two_names_of_one_folder_are_one_claim(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "link").symlink_to("src")
    recipe = """
name: links
agents: {writer: {prompt: Write., tools: [Write]}}
steps:
  - {id: a, agent: writer, prompt: go, write_set: [src/**]}
  - {id: b, agent: writer, prompt: go, write_set: [link/**]}
"""
    write(tmp_path, "links.yaml", recipe)
    with serving(Said("Done.", delay_seconds=0.3)) as server:
        words = ("run", "links.yaml", "--json", "--model", "openai:m")
        said = over_http(tmp_path, server.url, *words)
        assert server.most_in_flight == 1
    assert said.code == 0, said


def test_a_recipe_cannot_start_a_command_that_the_user_has_not_allowed(tmp_path: Path) -> None:
    recipe = """
name: sly
agents: {sly: {prompt: x, model: "cli:touch pwned"}}
steps: [{id: a, agent: sly, prompt: go}]
"""
    write(tmp_path, "sly.yaml", recipe)
    said = stretto(tmp_path, "run", "sly.yaml", "--json", env={"STRETTO_TRUST": "0"})
    assert said.code == 2
    assert said.json["error"]["details"]["problems"][0]["code"] == "RUN005"
    assert not (tmp_path / "pwned").exists()
    echo = recipe.replace("touch pwned", "cat")
    write(tmp_path, "echo.yaml", echo)
    said = stretto(tmp_path, "run", "echo.yaml", "--json", "--trust", env={"STRETTO_TRUST": "0"})
    assert said.code == 0, said
    assert "go" in lines(said)[-1]["output"]


@pytest.mark.parametrize("answer", [Said("Done."), Status(500)], ids=["succeeds", "fails"])
def test_a_sandbox_that_is_off_is_loud_and_in_the_report(
    tmp_path: Path, answer: ServerAnswer
) -> None:
    recipe = "name: b\nagents: {sh: {prompt: x, tools: [Bash]}}\nsteps: [{id: a, agent: sh, prompt: go}]\n"
    write(tmp_path, "b.yaml", recipe)
    write(tmp_path, "stretto.yaml", "sandbox: off\n")
    with serving(answer) as server:
        said = over_http(tmp_path, server.url, "run", "b.yaml", "--model", "openai:m")
    assert "THE SANDBOX IS OFF: Bash of sh has all your rights" in said.err
    assert "the sandbox is off: Bash ran with all the rights of this user" in said.err


VOTES = """
name: votes
agents: {helper: {prompt: Help.}}
steps:
  - {id: one, agent: helper, prompt: Vote., cache: true}
  - {id: two, agent: helper, prompt: Vote., cache: true}
  - {id: three, agent: helper, prompt: "Count {{steps.one.output}} and {{steps.two.output}}."}
"""


def test_a_retry_asks_for_what_failed_and_reuses_what_its_own_place_said(tmp_path: Path) -> None:
    write(tmp_path, "votes.yaml", VOTES)
    broken = True

    def answer(asked: Asked) -> ServerAnswer:
        counts = "Count" in asked.prompt
        return Said("" if counts and broken else f"{'count' if counts else 'vote'} {asked.times}")

    with serving(answer) as server:
        said = over_http(tmp_path, server.url, "run", "votes.yaml", "--json")
        first = lines(said)[-1]
        assert statuses(first)["three"] == "failed"
        broken = False
        asked = len(server.requests)
        said = over_http(tmp_path, server.url, "retry", first["run_id"], "--json")
        again = lines(said)[-1]
        assert again["status"] == "complete"
        assert again["agents_deployed"] == 1
        votes = [first["steps"][step]["output"] for step in ("one", "two")]
        assert [again["steps"][step]["output"] for step in ("one", "two")] == votes
        assert votes[0] != votes[1]
        chats = [each for each in server.requests[asked:] if each.method == "POST"]
        assert len(chats) == 1


def test_what_a_script_answered_is_never_served_to_a_real_model(tmp_path: Path) -> None:
    write(tmp_path, "votes.yaml", VOTES)
    write(tmp_path, "script.yaml", "default: from a script")
    assert stretto(tmp_path, "run", "votes.yaml", "--model", "scripted:script.yaml").code == 0
    with serving(Said("from a model")) as server:
        said = over_http(tmp_path, server.url, "run", "votes.yaml", "--json")
        outputs = {step["output"] for step in lines(said)[-1]["steps"].values()}
        assert outputs == {"from a model"}
