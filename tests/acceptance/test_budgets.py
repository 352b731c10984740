"""Budgets over real HTTP: what many calls at once and many turns of one agent may take together."""

import json
from pathlib import Path

from acceptance.test_over_http import over_http
from stretto.testing.openai_script import Asked, Hang, Said, ServerAnswer, TokenUsage, ToolCall
from stretto.testing.openai_server import serving
from support.background_runs import lines
from support.cli import write

FAN = """
workflow:
  name: fan
  budget: {BUDGET}
  max_concurrency: 50
  inputs: [{name: list, type: json}]
  agents: {helper: {prompt: Help., tools: [Glob], max_turns: 40}}
  steps:
    - id: all
      map: {over: "{{inputs.list}}", agent: helper, batch_size: 50, on_item_failure: skip}
"""


def obedient(asked: Asked) -> ServerAnswer:
    """A model that would use 860 tokens, and keeps to a limit that it is given."""
    limit = asked.body.get("max_tokens") or asked.body.get("max_completion_tokens") or 840
    return Said("word " * 3, usage=TokenUsage(20, min(840, int(str(limit)))))


def test_fifty_calls_at_once_stay_within_the_budget(tmp_path: Path) -> None:
    write(tmp_path, "fan.yaml", FAN.replace("BUDGET", "tokens: 1000"))
    inputs = json.dumps({"list": list(range(50))})
    with serving(obedient) as server:
        words = ("run", "fan.yaml", "--json", "--model", "openai:m", "--input-json", "-")
        said = over_http(tmp_path, server.url, *words, stdin=inputs)
    report = lines(said)[-1]
    used = report["usage"]["input_tokens"] + report["usage"]["output_tokens"]
    assert used <= 1_000
    assert (said.code, report["status"]) == (1, "failed")
    assert any("budget exhausted" in text for text in report["warnings"])


def test_the_turns_of_one_agent_stay_within_the_budget(tmp_path: Path) -> None:
    write(tmp_path, "fan.yaml", FAN.replace("BUDGET", "tokens: 1000"))

    def never_done(asked: Asked) -> ServerAnswer:
        call = ToolCall("Glob", {"pattern": "*"})
        return Said("", tool_calls=(call,), usage=TokenUsage(100 * asked.times, 50))

    with serving(never_done) as server:
        words = ("run", "fan.yaml", "--json", "--model", "openai:m", "--input-json", "-")
        said = over_http(tmp_path, server.url, *words, stdin='{"list": [1]}')
    report = lines(said)[-1]
    assert report["status"] == "failed"
    assert report["usage"]["input_tokens"] + report["usage"]["output_tokens"] <= 1_000
    assert report["usage"]["model_calls"] < 8


def test_a_model_that_takes_more_than_was_reserved_is_told_on(tmp_path: Path) -> None:
    write(tmp_path, "fan.yaml", FAN.replace("BUDGET", "tokens: 1000"))
    with serving(Said("Long.", usage=TokenUsage(20, 5_000))) as server:
        words = ("run", "fan.yaml", "--json", "--model", "openai:m", "--input-json", "-")
        said = over_http(tmp_path, server.url, *words, stdin='{"list": [1, 2, 3]}')
    report = lines(said)[-1]
    assert server.asked_times == 1
    assert report["status"] == "failed"
    assert any("exceeded by 4,020 tokens" in text for text in report["warnings"])


SLOW = """
workflow:
  name: slow
  budget: {tokens: 500}
  agents: {helper: {prompt: Help., timeout: 100ms, retry: {max_attempts: 20}}}
  steps: [{id: a, agent: helper, input: PROMPT}]
"""


def test_calls_that_time_out_use_up_the_budget(tmp_path: Path) -> None:
    write(tmp_path, "slow.yaml", SLOW.replace("PROMPT", "word " * 100))
    with serving(Hang()) as server:
        said = over_http(tmp_path, server.url, "run", "slow.yaml", "--json", "--model", "openai:m")
    report = lines(said)[-1]
    assert report["usage"]["model_calls"] == 2
    assert server.asked_times <= 2  # a busy machine may stop a call before the server has it
    assert report["usage"]["input_tokens"] > 2 * 160
    assert any("budget exhausted" in text for text in report["warnings"])
