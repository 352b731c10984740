"""A provider that fails for a moment is asked again; one that will not answer is not."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from stretto.agents.call_limits import delay_before_retry
from stretto.agents.subagent import Subagents
from stretto.events.attempts import AttemptId
from stretto.events.model import FailureKind, ToolEnded
from stretto.ports.model import ModelFault
from stretto.ports.runner import AttemptRequest, AttemptResult, Failure, Success, Witness
from stretto.testing.openai_script import (
    Asked,
    Cut,
    ErrorInStream,
    Said,
    ServerAnswer,
    Status,
    TokenUsage,
    ToolCall,
    rate_limited,
)
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.models import ModelSelection
from support.subagents import Heard, play, request

TRANSIENT = {
    "429": rate_limited(),
    "500": Status(500),
    "502": Status(502),
    "503": Status(503),
    "504": Status(504),
    "529": Status(529),
    "408": Status(408),
    "cut": Cut(),
    "cut cleanly": Cut(cleanly=True),
    "cut before a word": Cut(after_chunks=0),
    "error in the stream": ErrorInStream(),
}


@pytest.mark.parametrize("fault", TRANSIENT.values(), ids=TRANSIENT)
def test_a_moments_trouble_is_asked_again_and_told(fault: ServerAnswer) -> None:
    done = play([fault, fault, Said("Fine.")])
    assert done.output == "Fine."
    assert done.server.asked_times == 3
    assert [(each.retry, each.most) for each in done.heard.retries] == [(1, 3), (2, 3)]
    assert [each.delay_seconds for each in done.heard.retries] == done.heard.slept
    assert done.heard.retries[0].model == "openai:first"
    assert done.result.usage.model_calls == done.heard.spent.model_calls == 3


def test_after_the_last_retry_it_fails_as_what_it_is() -> None:
    done = play(lambda asked: Status(503, "overloaded"), retries=2)
    assert done.server.asked_times == 3
    assert done.failure.kind == "unavailable"
    assert "HTTP 503" in done.failure.error
    assert "(after 2 retries)" in done.failure.error
    assert done.failure.usage.model_calls == 3


def test_a_call_that_broke_off_took_what_was_sent_and_what_came() -> None:
    script = [Cut(Said("word " * 300), after_chunks=2), Said("Fine.", usage=TokenUsage(200, 2))]
    done = play(script, request("ask " * 150))
    used = done.result.usage
    assert done.output == "Fine."
    assert (used.input_tokens, used.model_calls) == (200 + 200 + 8, 2)  # three bytes a token
    assert used.output_tokens == 2 + 167  # one of three pieces had come
    assert used == done.heard.spent


@pytest.mark.parametrize("fault", [Status(503), rate_limited(), ErrorInStream(after_chunks=0)])
def test_a_provider_that_fails_before_its_first_word_took_nothing(fault: ServerAnswer) -> None:
    done = play([fault, Said("Fine.", usage=TokenUsage(9, 2))])
    assert done.result.usage == Usage(9, 2, model_calls=2)


PERMANENT: dict[str, tuple[ServerAnswer, str]] = {
    "401": (Status(401, "bad key"), "set a valid key"),
    "403": (Status(403, "not yours"), "use a key that may use this model"),
    "402": (Status(402), "add credit"),
    "404": (Status(404, "no such model"), "check the model's name"),
    "quota": (Status(429, body='{"error": {"code": "insufficient_quota"}}'), "add credit"),
    "redirect": (Status(307), "name the final address"),
}


@pytest.mark.parametrize(("fault", "todo"), PERMANENT.values(), ids=PERMANENT)
def test_what_nobody_can_wait_out_fails_at_once_and_says_what_to_do(
    fault: ServerAnswer, todo: str
) -> None:
    done = play([fault, Said("never")])
    assert (done.failure.kind, done.server.asked_times) == ("permanent", 1)
    assert todo in done.failure.error
    assert done.heard.slept == []


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_request_that_is_rejected_is_not_sent_again(status: int) -> None:
    done = play([Status(status), Said("never")])
    assert (done.failure.kind, done.server.asked_times) == ("refused", 1)


@pytest.mark.parametrize("model", ["openai:x", "nobody:x"])
def test_a_model_that_cannot_be_made_is_permanent(model: str) -> None:
    none = {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}
    done = play(Said("never"), request(model=model), environ=none)
    assert done.failure.kind == "permanent"


def test_an_unknown_host_is_permanent_and_a_closed_port_is_not() -> None:
    unknown = play(Said(), environ={"OPENAI_BASE_URL": "http://no-such-host.invalid/v1"})
    # Where no name server answers, nobody knows whether the host exists.
    if "Temporary failure" not in unknown.failure.error:
        assert unknown.failure.kind == "permanent"
        assert "check the address" in unknown.failure.error
    closed = play(Said(), environ={"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
    assert closed.failure.kind == "unavailable"
    assert len(closed.heard.retries) == 3


def test_only_the_request_is_repeated_and_no_tool_is_called_twice(tmp_path: Path) -> None:
    call = ToolCall("Write", {"file_path": "a.txt", "content": "once"})
    script: Sequence[ServerAnswer] = [
        Said("", tool_calls=(call,)),
        rate_limited(),
        Cut(Said("half", tool_calls=(call,))),
        Said("Written."),
    ]
    asked = request(tools=("Write",), workspace=str(tmp_path), may_write=True, write_set=("a.txt",))
    done = play(script, asked)
    assert done.output == "Written."
    assert [each.verdict for each in done.heard.calls] == ["ok"]
    before, *_, last = (each.messages for each in done.server.requests[1:])
    assert before == last


def test_a_provider_that_asks_to_wait_is_obeyed_up_to_a_minute() -> None:
    done = play([rate_limited(17), Said("Fine.")])
    assert done.heard.slept == [17]
    late = play([rate_limited(3600), Said("never")])
    assert (late.failure.retry_after_seconds, late.heard.slept) == (3600, [])


def test_a_wait_that_would_outlast_the_timeout_fails_with_the_fault_itself() -> None:
    done = play([rate_limited(17), Said("never")], request(seconds_left=10.0))
    assert done.failure.kind == "unavailable"
    assert "HTTP 429" in done.failure.error
    assert done.heard.slept == []


def test_another_model_is_asked_rather_than_waited_for_long() -> None:
    def script(asked: Asked) -> ServerAnswer:
        return rate_limited(30) if asked.model == "first" else Said("Second.")

    done = play(script, request(fallback_models=("openai:second",)))
    assert (done.output, done.heard.slept) == ("Second.", [])


def test_delays_grow_and_are_never_shorter_than_what_was_asked() -> None:
    fault = ModelFault("unavailable", "busy")
    for retried, longest in ((0, 1.0), (1, 2.0), (2, 4.0)):
        delay = delay_before_retry(fault, retried, 3, None)
        assert delay is not None
        assert longest / 2 <= delay <= longest
    assert delay_before_retry(fault, 3, 3, None) is None
    asked = ModelFault("unavailable", "busy", 9.0)
    assert delay_before_retry(asked, 0, 3, None) == 9.0


class Program:
    """Another program's agent that is busy twice, and may have called a tool before it said so."""

    def __init__(self, kind: FailureKind, calls_a_tool: bool) -> None:
        self.kind, self.calls_a_tool, self.times = kind, calls_a_tool, 0

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        self.times += 1
        if self.calls_a_tool:
            ended = ToolEnded(0.0, AttemptId(request.step, 1), 1, "Bash", {}, "ok", 0, 0.0)
            witness.note(ended)
        if self.times < 3:
            return Failure(self.kind, "busy", Usage(model_calls=1))
        return Success("Done.", Usage(model_calls=1))


@pytest.mark.parametrize(
    ("kind", "calls_a_tool", "times"),
    [("unavailable", False, 3), ("unavailable", True, 1), ("permanent", False, 1)],
)
def test_another_programs_agent_is_started_again_only_if_it_has_done_nothing(
    kind: FailureKind, calls_a_tool: bool, times: int
) -> None:
    import asyncio

    program, heard = Program(kind, calls_a_tool), Heard()
    subagents = Subagents(
        ModelSelection("cli:claude"), models=None, toolbox=None, cli=program, sleep=heard.sleep
    )  # type: ignore[arg-type]
    result = asyncio.run(subagents.run(request(), heard))
    assert program.times == times
    assert isinstance(result, Success) is (times == 3)
    assert result.usage.model_calls == times
