"""The one function through which all work goes, against a real HTTP server."""

from pathlib import Path
from typing import Any

import pytest

from stretto.agents.conversation import _JSON_ONLY, LeadTurn
from stretto.events.model import ModelFailedOver, ModelSpoke, ToolStarted
from stretto.ports.model import ModelReply, UserMessage
from stretto.ports.runner import CallEstimate, NothingLeft, Reservation
from stretto.testing.openai_script import Asked, Said, Status, TokenUsage, ToolCall, rate_limited
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.models import ModelSelection
from stretto.vocabulary.names import LEAD
from support.subagents import play, request

# Far more than a busy machine needs between two beats of the loop.
PAUSE_SECONDS = 10.0
SCHEMA = {
    "type": "object",
    "required": ["score"],
    "properties": {"score": {"type": "integer"}},
}


def test_a_prompt_is_answered_and_its_cost_is_counted() -> None:
    done = play(Said("Fine."), request("How are you?", instructions="Be brief."))
    assert done.output == "Fine."
    (asked,) = done.server.requests
    assert [m["role"] for m in asked.messages] == ["system", "user"]
    assert asked.messages[0]["content"] == "Be brief."
    assert asked.is_stream
    assert done.result.usage == done.heard.spent
    assert done.result.usage.model_calls == 1
    assert done.result.usage.output_tokens > 0
    assert done.result.model == "openai:first"


def test_what_is_said_streams_into_events() -> None:
    done = play(Said("a long answer in several pieces"))
    spoke = [event.text for event in done.heard.events if isinstance(event, ModelSpoke)]
    assert "".join(spoke) == "a long answer in several pieces"


def test_an_empty_answer_is_a_failure() -> None:
    assert play(Said("  ")).failure.kind == "empty"


def test_tools_are_offered_called_and_their_results_told(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("the sky is green\n")
    script = [Said("", tool_calls=(ToolCall("Read", {"file_path": "note.txt"}),)), Said("Green.")]
    done = play(script, request(tools=("Read",), workspace=str(tmp_path)))
    assert done.output == "Green."
    first, second = done.server.requests
    assert first.tool_names == ["Read"]
    assert "the sky is green" in str(second.messages[-1]["content"])
    (call,) = done.heard.calls
    assert (call.tool, call.verdict, call.call) == ("Read", "ok", 1)
    assert call.arguments == {"file_path": "note.txt"}
    assert call.result_bytes > 0
    assert done.result.usage.model_calls == 2


def test_a_call_off_the_allowlist_is_refused_recorded_and_told(tmp_path: Path) -> None:
    script = [Said("", tool_calls=(ToolCall("Write", {"file_path": "x"}),)), Said("Oh.")]
    done = play(script, request(tools=("Read",), workspace=str(tmp_path), may_write=True))
    (call,) = done.heard.calls
    assert call.verdict == "refused"
    assert "you have no tool 'Write'" in str(done.server.requests[1].messages[-1]["content"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("tool", ["task", "task_batch", "run_workflow", "save_workflow", "Task"])
def test_a_subagent_never_delegates(tool: str, tmp_path: Path) -> None:
    script = [Said("", tool_calls=(ToolCall(tool, {}),)), Said("Oh.")]
    done = play(script, request(tools=(tool, "Read"), workspace=str(tmp_path)))
    assert done.server.requests[0].tool_names == ["Read"]
    assert [call.verdict for call in done.heard.calls] == ["refused"]


def test_a_hostile_model_makes_a_hundred_calls_and_none_is_carried_out(tmp_path: Path) -> None:
    names = (
        "Bash",
        "Write",
        "Edit",
        "task",
        "mcp__x__y",
        "Read; rm",
        "Exec",
        "read",
        "WebFetch",
        "__",
    )
    wanted = {"file_path": str(tmp_path / "pwned"), "content": "x", "command": "touch pwned"}

    def script(asked: Asked) -> Said:
        if asked.times > 10:
            return Said("I give up.")
        return Said("", tool_calls=tuple(ToolCall(name, wanted) for name in names))

    done = play(script, request(tools=("Glob",), workspace=str(tmp_path), may_write=True))
    refused = [call for call in done.heard.calls if call.verdict == "refused"]
    assert len(done.heard.calls) == len(refused) == 100
    assert not list(tmp_path.iterdir())


def test_arguments_that_are_no_json_are_told_to_the_model(tmp_path: Path) -> None:
    script = [Said("", tool_calls=(ToolCall("Read", '{"file_path": '),)), Said("Sorry.")]
    done = play(script, request(tools=("Read",), workspace=str(tmp_path)))
    assert done.output == "Sorry."
    assert [call.verdict for call in done.heard.calls] == ["error"]


def test_a_call_in_doubt_is_durable_before_it_is_made(tmp_path: Path) -> None:
    script = [Said("", tool_calls=(ToolCall("Bash", {"command": "true"}),)), Said("Done.")]
    done = play(script, request(tools=("Bash",), workspace=str(tmp_path), may_write=True))
    (started,) = done.heard.durable
    assert isinstance(started, ToolStarted)
    assert (started.tool, started.recovery) == ("Bash", "in_doubt")


def test_at_the_cap_of_turns_the_partial_text_is_kept_and_marked(tmp_path: Path) -> None:
    more = Said("So far: one.", tool_calls=(ToolCall("Glob", {"pattern": "*"}),))
    done = play(more, request(tools=("Glob",), workspace=str(tmp_path), max_turns=2))
    assert done.output == "So far: one.\n\nSo far: one."
    assert len(done.server.requests) == 2
    assert "max turns (2) reached" in done.result.warnings[0]
    assert [call.verdict for call in done.heard.calls] == ["ok", "refused"]


def test_a_cap_without_a_word_is_a_failure(tmp_path: Path) -> None:
    more = Said("", tool_calls=(ToolCall("Glob", {"pattern": "*"}),))
    done = play(more, request(tools=("Glob",), workspace=str(tmp_path), max_turns=1))
    assert "max turns (1) reached" in done.failure.error


class Remembered:
    """A chat in which one question was answered before."""

    earlier = (UserMessage("what is 2 + 2?"), ModelReply("It is four."))

    async def recall(self, number: int) -> ModelReply | None:
        return None

    async def keep(self, number: int, reply: ModelReply) -> None:
        pass


@pytest.mark.parametrize("said", ["", "It will be six."])
def test_at_the_cap_of_a_chat_turn_no_earlier_answer_counts(said: str, tmp_path: Path) -> None:
    more = Said(said, tool_calls=(ToolCall("Glob", {"pattern": "*"}),))
    asked = request("And 3 + 3?", agent=LEAD, tools=("Glob",), workspace=str(tmp_path), max_turns=1)
    done = play(more, asked, lead=LeadTurn(asked.run_id, lambda _: {}, Remembered()))
    assert done.failure.kind == "empty" if not said else done.output == said


def test_a_call_is_settled_with_what_it_took_of_each_kind() -> None:
    settled = []

    class Granted:
        async def reserve(self, estimate: CallEstimate) -> Reservation:
            return Reservation(10, 10, 0.0, False)

        def settle(self, reserved: Reservation, usage: Usage) -> None:
            settled.append((usage.input_tokens, usage.output_tokens, usage.model_calls))

    play(Said("Done.", usage=TokenUsage(1_000, 500)), request(allowance=Granted()))
    assert settled == [(1_000, 500, 1)]


def test_a_schema_is_asked_of_the_provider_and_checked_by_us() -> None:
    done = play(Said('{"score": 7}'), request(schema=SCHEMA))
    assert done.output == {"score": 7}
    wanted = done.server.requests[0].response_format
    assert wanted is not None
    assert wanted["type"] == "json_schema"
    refused = play(Said('{"score": "seven"}'), request(schema=SCHEMA)).failure
    assert refused.kind == "validation"
    assert "score" in refused.error


def test_json_is_asked_for_in_words_and_found_in_its_fence() -> None:
    done = play(Said("Here:\n```json\n[1, 2]\n```"), request(format="json"))
    assert done.output == [1, 2]
    assert "JSON alone" in done.server.requests[0].prompt


def test_rules_are_decided_by_code() -> None:
    rules = ("must include score field",)
    done = play(Said('{"note": 1}'), request(format="json", rules=rules))
    assert done.failure.kind == "validation"
    assert "score" in done.failure.error


def test_without_a_judge_a_rule_that_code_cannot_decide_is_a_warning() -> None:
    done = play(Said("Buy now!"), request(rules=("must be persuasive",)), judge="off")
    assert done.output == "Buy now!"
    said = "the rule 'must be persuasive' was not checked: judge is off"
    assert done.result.warnings == (said,)
    assert len(done.server.requests) == 1


def test_the_model_that_did_the_step_judges_unless_another_is_named() -> None:
    verdict = '{"verdicts": [{"rule": 1, "pass": true, "reason": "It sells."}]}'
    rules = ("must be persuasive",)
    done = play([Said("Buy!"), Said(verdict)], request(rules=rules, model="openai:own"))
    assert [asked.model for asked in done.server.requests] == ["own", "own"]
    assert (done.output, done.result.warnings) == ("Buy!", ())
    assert done.result.usage.model_calls == 2
    said = [event.text for event in done.heard.events if isinstance(event, ModelSpoke)]
    assert "[openai:own checks 1 rule]" in "".join(said)
    assert "[met: must be persuasive: It sells.]" in "".join(said)
    assert "verdicts" not in "".join(said), "the judge's own words are left out"


def test_a_judge_that_the_budget_does_not_allow_is_a_warning() -> None:
    class Spent:
        calls = 0

        async def reserve(self, estimate: CallEstimate) -> Reservation | NothingLeft:
            self.calls += 1
            return Reservation(10, 10, 0.0, False) if self.calls == 1 else NothingLeft("all spent")

        def settle(self, reserved: object, usage: object) -> None:
            pass

    done = play(Said("Buy."), request(rules=("must be persuasive",), allowance=Spent()))
    assert len(done.server.requests) == 1
    assert done.result.warnings == ("the rule 'must be persuasive' was not checked: all spent",)


@pytest.mark.parametrize("model", ["embedded", "cli:claude", "python:score", "scripted:x", ""])
def test_who_cannot_judge_judges_nothing(model: str) -> None:
    assert ModelSelection(default="openai:x").judge_of(model) is None
    assert ModelSelection(default="openai:x", judge="openai:j").judge_of(model) == "openai:j"
    assert ModelSelection(default="openai:x", judge="off").judge_of("openai:x") is None


def test_a_judge_decides_what_code_cannot_and_its_cost_counts() -> None:
    verdict = '{"verdicts": [{"rule": 1, "pass": false, "reason": "It is dull."}]}'
    script = [Said("Buy."), Said(verdict)]
    done = play(script, request(rules=("must be persuasive",)), judge="openai:judge")
    assert done.failure.kind == "validation"
    assert "It is dull." in done.failure.error
    assert done.failure.usage.model_calls == 2
    assert done.server.requests[1].model == "judge"


def test_a_judge_that_cannot_be_read_passes_nothing_in_silence() -> None:
    done = play([Said("Buy."), Said("Looks good!")], request(rules=("must be persuasive",)),
                judge="openai:judge")  # fmt: skip
    assert done.output == "Buy."
    assert "was not checked" in done.result.warnings[0]


def test_the_next_model_goes_on_where_one_cannot(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")

    def script(asked: Asked) -> Said | Status:
        if asked.model == "first":
            if asked.times > 1:
                return Status(503)
            return Said("", tool_calls=(ToolCall("Glob", {"pattern": "*"}),))
        return Said(f"{asked.model} saw {len(asked.messages)} messages")

    asked = request(tools=("Glob",), workspace=str(tmp_path), fallback_models=("openai:second",))
    done = play(script, asked)
    assert done.output == "second saw 3 messages"
    (over,) = [event for event in done.heard.events if isinstance(event, ModelFailedOver)]
    assert (over.model, over.to) == ("openai:first", "openai:second")
    assert "503" in over.error
    assert done.result.model == "openai:second"


def test_a_rate_limit_is_a_failure_that_says_when_to_come_back() -> None:
    failure = play(rate_limited(7)).failure
    assert failure.kind == "unavailable"
    assert failure.retry_after_seconds == pytest.approx(7, abs=1)


def test_secrets_of_the_environment_are_in_no_prompt_event_or_result(tmp_path: Path) -> None:
    canary = "canary-5f3a9c04d1"
    (tmp_path / ".env").write_text(f"KEY={canary}\n")
    script = [
        Said(f"I saw {canary}", tool_calls=(ToolCall("Read", {"file_path": ".env"}),)),
        Said(f"It is {canary}."),
    ]
    asked = request(f"My key is {canary}.", tools=("Read",), workspace=str(tmp_path))
    done = play(script, asked, environ={"SERVICE_TOKEN": canary})
    assert done.output == "It is [redacted]."
    assert canary not in str(
        [m for r in done.server.requests for m in r.messages if m["role"] != "assistant"]
    )
    assert canary not in str([e for e in done.heard.events if not isinstance(e, ModelSpoke)])
    assert canary not in "".join(e.text for e in done.heard.events if isinstance(e, ModelSpoke))


@pytest.mark.parametrize(
    "prompt", ["Go.", "Go.\n", "Go.\n\n\n", "  Go. ", "\n\tGo.\r\n", "Über 3 → 4\u2028\n", " \n"]
)
def test_a_prompt_is_sent_byte_for_byte(prompt: str) -> None:
    outcome = play(Said("Gone."), request(prompt, instructions="Be brief.\n\n"))
    (asked,) = outcome.server.requests
    assert [message["content"] for message in asked.messages] == ["Be brief.\n\n", prompt]


def test_a_hint_for_json_stands_after_the_prompt_and_changes_none_of_it() -> None:
    prompt = "Score it.\n\n\n"
    outcome = play(Said("{}"), request(prompt, format="json"))
    (asked,) = outcome.server.requests
    assert asked.prompt.startswith(prompt)
    assert asked.prompt[len(prompt) :].strip() == _JSON_ONLY


@pytest.mark.parametrize(
    "asked",
    [
        {"rules": ("must have at most 3 words",)},
        {"format": "json", "rules": ("must include a score field",)},
        {"schema": {"type": "string", "pattern": "^(- a\\n){1,40}(a|a)*$"}},
    ],
)
def test_an_answer_of_any_length_is_checked_while_the_loop_goes_on(asked: dict[str, Any]) -> None:
    done = play(Said("- a\n" * 50_000), request(**asked), timeout=120)
    assert done.failure.kind == "validation"
    assert done.pause < PAUSE_SECONDS


@pytest.mark.parametrize(
    "cut",
    [
        Said("The first half of", finish_reason="length"),
        Said("", finish_reason="length"),  # all of it went into thinking
        Said("", tool_calls=(ToolCall("Read", {"file_path": "x"}),), finish_reason="length"),
        Said('{"passed": true}', finish_reason="length"),
    ],
)
def test_an_answer_that_was_cut_off_is_no_answer(cut: Said, tmp_path: Path) -> None:
    asked = request(tools=("Read",), workspace=str(tmp_path), max_output_tokens=50)
    outcome = play(cut, asked)
    assert outcome.failure.kind == "truncated"
    assert "max_output_tokens: 50" in outcome.failure.error
    assert outcome.heard.calls == []  # half a call is never made
    assert outcome.server.requests[0].body["max_tokens"] == 50


def test_the_next_model_is_asked_where_one_was_cut_off() -> None:
    asked = request(model="openai:first", fallback_models=("openai:second",))
    outcome = play([Said("Half", finish_reason="length"), Said("Whole.")], asked)
    assert outcome.output == "Whole."
    assert [each.model for each in outcome.server.requests] == ["first", "second"]


def test_an_answer_that_ended_with_an_error_is_asked_for_again() -> None:
    outcome = play([Said("Some of", finish_reason="error"), Said("Whole.")])
    assert outcome.output == "Whole."
    assert len(outcome.server.requests) == 2
    broken = play(Said("Some of", finish_reason="error"))
    assert broken.failure.kind == "unavailable"
    assert "ended with an error (after 3 retries)" in broken.failure.error
