"""Any pydantic-ai model as one of ours: questions, replies, and what its exceptions mean."""

import asyncio
import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic_ai import exceptions as theirs
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from stretto.adapters.models.pydantic_model import PydanticAIModel, fault_of
from stretto.ports.model import ModelFailed, ModelQuestion, ModelReply, ToolResult, UserMessage
from stretto.ports.tool import ToolSpec
from stretto.problems.errors import InvalidConfig

LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {}})


class Played:
    """A pydantic-ai model that says what it is told to, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[list[ModelMessage]] = []
        self.infos: list[AgentInfo] = []
        self.model = PydanticAIModel(FunctionModel(stream_function=self._stream))

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        self.asked.append(list(messages))
        self.infos.append(info)
        answer = self._answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        for piece in answer:
            yield piece

    def ask(self, *messages: Any, **question: Any) -> tuple[ModelReply, list[str]]:
        heard: list[str] = []

        async def main() -> ModelReply:
            return await self.model.ask(ModelQuestion(messages, **question), heard.append)

        return asyncio.run(main()), heard


def test_a_question_is_asked_and_its_answer_heard_as_it_comes() -> None:
    played = Played(["Hel", "lo."])
    reply, heard = played.ask(UserMessage("Hi."), instructions="Be kind.", max_tokens=9)
    assert reply.text == "Hello."
    assert list(filter(None, heard)) == ["Hel", "lo."]
    (request,) = played.asked[0]
    assert isinstance(request, ModelRequest)
    assert request.instructions == "Be kind."
    assert played.infos[0].model_settings == {"max_tokens": 9}


def test_calls_are_asked_for_and_their_results_told_in_one_message() -> None:
    called = [
        {
            0: DeltaToolCall("look", "{}", tool_call_id="a"),
            1: DeltaToolCall("look", "{}", tool_call_id="b"),
        }
    ]
    played = Played(called, ["Done."])
    first, _ = played.ask(UserMessage("Hi."), tools=[LOOK])
    assert [(call.id, call.tool, call.arguments) for call in first.calls] == [
        ("a", "look", {}),
        ("b", "look", {}),
    ]
    results = [ToolResult(call.id, call.tool, "seen") for call in first.calls]
    second, _ = played.ask(UserMessage("Hi."), first, *results, tools=[LOOK])
    assert second.text == "Done."
    _, said, told = played.asked[1]
    assert said is first.own, "a provider sees its own reply again as it was"
    assert [part.content for part in told.parts if isinstance(part, ToolReturnPart)] == [
        "seen",
        "seen",
    ]


class _Answered(Exception):
    """As a provider's own package raises it."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status_code = status


class _Named(FunctionModel):
    """As a provider's own model: its name, and a client that would retry by itself."""

    called = ""
    client: Any = None

    @property
    def system(self) -> str:
        return self.called


async def _half(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
    yield "the first half"


@pytest.mark.parametrize("provider", ["anthropic", "google", "bedrock"])
def test_an_answer_without_the_reason_that_a_protocol_demands_was_cut_off(provider: str) -> None:
    named = _Named(stream_function=_half)
    named.called = provider
    with pytest.raises(ModelFailed) as caught:
        asyncio.run(PydanticAIModel(named).ask(ModelQuestion([UserMessage("Hi.")])))
    assert caught.value.fault.kind == "unavailable"
    assert caught.value.fault.message == f"{provider} ended its answer in the middle"


def test_a_client_does_not_retry_by_itself() -> None:
    named = _Named(stream_function=_half)
    named.client = SimpleNamespace(max_retries=2)
    PydanticAIModel(named)
    assert named.client.max_retries == 0


def test_the_reply_of_another_provider_is_written_anew() -> None:
    played = Played(["Yes."])
    played.ask(
        UserMessage("Hi."), ModelReply("Hello.", provider="openai", own={}), UserMessage("?")
    )
    _, said, _ = played.asked[0]
    assert isinstance(said, ModelResponse)
    assert said.text == "Hello."


def test_a_failure_of_the_model_is_a_fault() -> None:
    played = Played(theirs.ModelHTTPError(429, "m", "slow down"))
    with pytest.raises(ModelFailed) as caught:
        played.ask(UserMessage("Hi."))
    assert caught.value.fault.kind == "unavailable"
    assert "HTTP 429, too many requests: slow down" in caught.value.fault.message


BAD_KEY = {
    "type": "error",
    "error": {"type": "authentication_error", "message": "invalid x-api-key"},
}
NO_MODEL = {"error": {"code": 404, "message": "models/m is not found", "status": "NOT_FOUND"}}


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (401, BAD_KEY, "permanent", "HTTP 401, the key was refused: invalid x-api-key (set a valid key, "),
        (404, NO_MODEL, "permanent", "HTTP 404, no such model: models/m is not found (check the model's name "),
        (529, {"error": {"message": "Overloaded"}}, "unavailable", "HTTP 529, the provider failed: Overloaded"),
        (502, "<html>Bad gateway</html>", "unavailable", "HTTP 502, the provider failed: <html>"),
        (400, '{"error": {"message": "This organization has been disabled."}}', "permanent", "HTTP 400, access was refused: This organization "),
        (400, {"error": {"code": "insufficient_quota", "message": "pay"}}, "permanent", "HTTP 400, the account's quota is used up: pay (add credit"),
        (400, None, "refused", "HTTP 400"),
        (503, object(), "unavailable", "HTTP 503, the provider failed: <object"),
    ],
)  # fmt: skip
def test_a_body_is_read_as_the_provider_wrote_it(
    status: int, body: object, kind: str, message: str
) -> None:
    fault = fault_of(theirs.ModelHTTPError(status, "m", body))
    assert fault is not None
    assert fault.kind == kind
    assert fault.message.startswith(message)


def test_what_pydantic_ai_knows_of_a_status_counts_where_the_body_does_not_say_it() -> None:
    out_of_quota = theirs.ModelHTTPError.for_category(
        theirs.ModelQuotaExceededError, status_code=429, model_name="m", body="a limit a day"
    )
    fault = fault_of(out_of_quota)
    assert fault is not None
    assert fault.kind == "permanent"
    assert fault.message.startswith("HTTP 429, the account's quota is used up: a limit a day (add ")


def test_a_name_that_is_near_is_told() -> None:
    misspelt = theirs.ModelHTTPError(404, "m", "no", suggested_model_id="claude-sonnet-5")
    fault = fault_of(misspelt)
    assert fault is not None
    assert "no: did you mean 'claude-sonnet-5'? (check the model's name" in fault.message


def _caused(error: Exception, cause: Exception, its_cause: Exception | None = None) -> Exception:
    cause.__cause__ = its_cause
    error.__cause__ = cause
    return error


NOT_JSON = json.JSONDecodeError("Expecting value", "{", 1)


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (_caused(theirs.ModelAPIError("m", "not JSON"), NOT_JSON), "unavailable", "not JSON"),
        (
            _caused(theirs.ModelAPIError("m", "not JSON"), ValueError("odd"), NOT_JSON),
            "unavailable",
            "not JSON",
        ),
        (
            theirs.UnexpectedModelBehavior("Streamed response ended without content or tool calls"),
            "unavailable",
            "ended without content",
        ),
        (
            _caused(theirs.ModelAPIError("m", "301"), _Answered("moved", 301)),
            "permanent",
            "redirects, which is not followed: name the final address",
        ),
        (_caused(theirs.ModelAPIError("m", "odd"), _Answered("odd", 200)), "error", "odd"),
    ],
)
def test_what_the_client_met_decides_where_no_status_does(
    error: Exception, kind: str, says: str
) -> None:
    fault = fault_of(error)
    assert fault is not None
    assert fault.kind == kind
    assert says in fault.message


def test_a_bug_is_raised_as_it_is() -> None:
    with pytest.raises(KeyError):
        Played(KeyError("bug")).ask(UserMessage("Hi."))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (theirs.ContentFilterError("filtered"), "refused"),
        (theirs.ModelRequestTimeout("m", 3.0), "timeout"),
        (theirs.ModelTimeoutError("m", "slow", phase="connect"), "unavailable"),
        (theirs.UnexpectedModelBehavior("odd"), "error"),
        (theirs.UsageLimitExceeded("enough"), "error"),
        (theirs.UserError("no such setting"), "error"),
        (InvalidConfig("no key", hint="set one"), "error"),
        (ConnectionResetError("reset"), "unavailable"),
        (TimeoutError(), "timeout"),
    ],
)
def test_other_exceptions_have_a_kind_too(error: Exception, kind: str) -> None:
    fault = fault_of(error)
    assert fault is not None
    assert (fault.kind, bool(fault.message)) == (kind, True)


@pytest.mark.parametrize("error", [KeyError("bug"), asyncio.CancelledError(), ZeroDivisionError()])
def test_bugs_and_cancellations_are_nobodys_fault(error: BaseException) -> None:
    assert fault_of(error) is None


def test_when_all_fall_back_in_vain_the_best_hope_decides() -> None:
    rejected = theirs.ModelHTTPError(400, "a", "bad request")
    limited = theirs.ModelHTTPError.for_category(
        theirs.ModelRateLimitError,
        status_code=429, model_name="b", body="slow down", headers={"Retry-After": "9"},
    )  # fmt: skip
    fault = fault_of(theirs.FallbackExceptionGroup("all failed", [rejected, limited]))
    assert fault is not None
    assert (fault.kind, fault.retry_after_seconds) == ("unavailable", 9)
    assert "bad request" in fault.message
    assert "slow down" in fault.message


def test_long_words_are_cut() -> None:
    fault = fault_of(theirs.UserError("many words " * 500))
    assert fault is not None
    assert len(fault.message) < 1_100
