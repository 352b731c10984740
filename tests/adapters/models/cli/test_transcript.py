"""What is journaled of an agent's work: all of it in order, little of each."""

import pytest

from stretto.adapters.models.cli.claude import CLI as CLAUDE
from stretto.adapters.models.cli.cli_spec import Cli
from stretto.adapters.models.cli.opencode import CLI as OPENCODE
from stretto.adapters.models.cli.transcript import (
    MOST_ANSWER_CHARACTERS,
    CallEnded,
    CallStarted,
    FinalAnswer,
    Finished,
    LimitReached,
    TextDelta,
    TranscriptRecorder,
    UsageDelta,
    UsageTotal,
    failure,
)
from stretto.events.model import ModelSpoke, ToolEnded
from stretto.ports.runner import Failure, Success
from stretto.text.redaction import NOTHING_SECRET, Redactor
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from support.cli_agents import Watching, attempt


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def _recorder(
    watching: Watching, redactor: Redactor = NOTHING_SECRET, max_turns: int | None = None
) -> TranscriptRecorder:
    return TranscriptRecorder(attempt("cli:x"), watching, redactor, max_turns)


def test_a_word_at_a_time_becomes_two_events_a_second() -> None:
    clock = Clock()
    watching = Watching(clock=clock)
    recorder = _recorder(watching)
    for _ in range(100):
        clock.time += 0.05
        recorder.record(TextDelta("word "))
    recorder.close()
    assert watching.spoken == "word " * 100
    assert 9 <= len(watching.events) <= 11


def test_many_words_at_once_become_events_of_four_kilobytes() -> None:
    watching = Watching(clock=Clock())
    recorder = _recorder(watching)
    for _ in range(4_000):
        recorder.record(TextDelta("word "))
    recorder.close()
    assert watching.spoken == "word " * 4_000
    assert len(watching.events) == 5


def test_words_before_a_call_are_told_before_it() -> None:
    watching = Watching()
    recorder = _recorder(watching)
    recorder.record(TextDelta("Let me look."))
    recorder.record(CallStarted("1", "Read", {}))
    recorder.record(CallEnded("1", True, 3))
    recorder.close()
    assert [type(event) for event in watching.events] == [ModelSpoke, ToolEnded]


def test_the_answer_is_what_was_said_after_the_last_call() -> None:
    recorder = _recorder(Watching())
    for said in (TextDelta("Let me look."), CallStarted("1", "Read", {}), CallEnded("1", True, 3)):
        recorder.record(said)
    assert recorder.text == "Let me look."  # so far there is nothing better
    recorder.record(TextDelta("It is 42."))
    assert recorder.text == "It is 42."


def test_what_the_cli_calls_its_answer_is_the_answer() -> None:
    recorder = _recorder(Watching())
    for said in (TextDelta("Hm. "), TextDelta("It is 42."), Finished(), FinalAnswer("42")):
        recorder.record(said)
    assert recorder.result("cli:x") == Success("42", model="cli:x")


def test_who_says_nothing_has_not_answered() -> None:
    result = _recorder(Watching()).result("cli:x")
    assert isinstance(result, Failure)
    assert result.kind == "empty"


def test_arguments_are_shortened_at_every_depth() -> None:
    deep: Json = "bottom"
    for _ in range(30):
        deep = [deep]
    watching = Watching()
    recorder = _recorder(watching)
    given: dict[str, Json] = {"content": "x" * 9_000, "in": [{"y": "y" * 9_000}], "deep": deep}
    given |= {f"k{number}": number for number in range(500)}
    recorder.record(CallStarted("1", "Write", given))
    recorder.record(CallEnded("1", True, 9_000))
    (call,) = watching.calls
    assert str(call.arguments["content"]).startswith("x" * 2_000 + " … (7000 characters more)")
    assert len(str(call.arguments)) < 8_000
    assert call.result_bytes == 9_000


def test_a_call_that_never_ended_is_told_when_the_agent_stops() -> None:
    watching = Watching()
    recorder = _recorder(watching)
    recorder.record(CallStarted("1", "Bash", {"command": "sleep"}))
    recorder.close()
    (call,) = watching.calls
    assert (call.verdict, call.message) == ("error", "the agent stopped before it ended")


def test_calls_side_by_side_keep_their_numbers() -> None:
    watching = Watching()
    recorder = _recorder(watching)
    for id in "abc":
        recorder.record(CallStarted(id, id, {}))
    for id in "cab":
        recorder.record(CallEnded(id, True, 0))
    recorder.record(CallEnded("nobody's", True, 0))
    assert [(call.tool, call.call) for call in watching.calls] == [("c", 3), ("a", 1), ("b", 2)]


@pytest.mark.parametrize("size", [1, 3, 7, 12])
def test_a_secret_of_several_words_is_hidden_wherever_the_pieces_are_cut(size: int) -> None:
    clock = Clock()
    watching = Watching(clock=clock)
    recorder = _recorder(watching, Redactor({"DB_PASSWORD": "correct horse battery staple"}))
    text = "It is correct horse battery staple, keep it."
    for at in range(0, len(text), size):
        clock.time += 1
        recorder.record(TextDelta(text[at : at + size]))
    recorder.close()
    assert watching.spoken == "It is [redacted], keep it."


def test_secrets_are_hidden_in_words_and_calls_even_if_they_come_in_pieces() -> None:
    clock = Clock()
    watching = Watching(clock=clock)
    recorder = _recorder(watching, Redactor({"API_KEY": "sk-123456789"}))
    for piece in ("The key is sk-1234", "56789, keep it."):
        clock.time += 1
        recorder.record(TextDelta(piece))
    recorder.record(CallStarted("1", "Bash", {"command": "echo sk-123456789"}))
    recorder.record(CallEnded("1", False, 0, "no sk-123456789"))
    assert "sk-1234" not in repr(watching.events)
    assert "[redacted], keep it." in watching.spoken


def test_the_sum_at_the_end_adds_only_what_was_not_counted() -> None:
    watching = Watching()
    recorder = _recorder(watching)
    recorder.record(UsageDelta(Usage(10, 5, 0.0, 1)))
    recorder.record(UsageTotal(Usage(30, 7, 0.5)))
    assert watching.spent == recorder.usage == Usage(30, 7, 0.5, 1)


def test_turns_are_counted_for_those_who_do_not() -> None:
    watching = Watching()
    recorder = _recorder(watching, max_turns=2)
    for number in range(2):
        recorder.record(TextDelta(f"turn {number} "))
        recorder.record(CallStarted(str(number), "Read", {}))
        recorder.record(CallEnded(str(number), True, 0))
    assert not recorder.is_over
    recorder.record(TextDelta("one too many"))
    assert recorder.is_over
    recorder.close()
    result = recorder.result("cli:x")
    assert isinstance(result, Success)
    assert result.warnings == ("max turns reached; the answer so far was kept",)
    assert result.usage.model_calls == 3


@pytest.mark.parametrize("size", [10, 5_000_000])
def test_an_endless_reply_is_not_kept_whole(size: int) -> None:
    recorder = _recorder(Watching())
    for _ in range(3):
        recorder.record(TextDelta("x" * (size // 2)))
    assert len(recorder.text) <= 4 * 1024 * 1024


def test_an_answer_that_was_cut_off_is_no_answer() -> None:
    recorder = _recorder(Watching())
    recorder.record(TextDelta("The first half of"))
    recorder.record(LimitReached("the model's limit of tokens reached", is_truncated=True))
    result = recorder.result("cli:x")
    assert isinstance(result, Failure)
    assert result.kind == "truncated"


def test_an_agent_that_went_on_by_itself_was_not_cut_off() -> None:
    recorder = _recorder(Watching())
    recorder.record(TextDelta("The first half of"))
    recorder.record(LimitReached("the model's limit of tokens reached", is_truncated=True))
    recorder.record(TextDelta(" the answer."))
    assert isinstance(recorder.result("cli:x"), Success)


@pytest.mark.parametrize(
    ("cli", "line"),
    [
        (CLAUDE, {"type": "stream_event", "event": {
            "type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {}}}),
        (OPENCODE, {"type": "step_finish", "part": {"reason": "length", "tokens": {}}}),
    ],
    ids=["claude", "opencode"],
)  # fmt: skip
def test_a_cli_that_reports_its_limit_is_understood(cli: Cli, line: dict[str, Json]) -> None:
    assert any(isinstance(said, LimitReached) and said.is_truncated for said in cli.read(line))


@pytest.mark.parametrize(
    ("words", "status", "kind"),
    [
        ("slow down", 429, "unavailable"),
        ("overloaded_error", None, "unavailable"),
        ("usage limit reached", None, "unavailable"),
        ("stream disconnected before completion", None, "unavailable"),
        ("You wrote about rate limits", 400, "error"),
        ("file a.txt has 429 lines", None, "error"),
        ("syntax error", None, "error"),
    ],
)
def test_a_status_is_believed_before_words_are(words: str, status: int | None, kind: str) -> None:
    assert failure("x", words, "log in", status).kind == kind


@pytest.mark.parametrize("words", ["Not logged in", "401", "Invalid API key", "Unauthorized"])
def test_who_is_not_logged_in_is_told_how(words: str) -> None:
    failed = failure("x", words, "run x login", 401 if words == "401" else None)
    assert failed.error == f"x is not logged in: {words} (run x login)"


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("rate limit: try again in 20s", 20.0),
        ("rate limit: please retry after 1.5 seconds", 1.5),
        ("rate limit, retry in 250ms", 0.25),
        ("usage limit, try again in 3 minutes", 180.0),
        ("rate limit, 40 requests a minute", None),
    ],
)
def test_when_to_try_again_is_read_from_the_words(words: str, seconds: float | None) -> None:
    assert failure("x", words, "").retry_after_seconds == seconds


def test_a_long_complaint_is_cut() -> None:
    assert len(failure("x", "y" * 100_000, "").error) < 2_100


def test_a_long_talk_before_the_last_call_leaves_room_for_the_answer() -> None:
    recorder = _recorder(Watching())
    for _ in range(MOST_ANSWER_CHARACTERS // 65_536 + 1):
        recorder.record(TextDelta("x" * 65_536))
    recorder.record(CallStarted("1", "shell", {}))
    recorder.record(CallEnded("1", True, 1))
    recorder.record(TextDelta("The real answer."))
    recorder.record(Finished())
    result = recorder.result("cli:x")
    assert isinstance(result, Success)
    assert (result.output, result.warnings) == ("The real answer.", ())


def test_an_answer_that_is_too_long_is_told_as_cut() -> None:
    recorder = _recorder(Watching())
    for _ in range(MOST_ANSWER_CHARACTERS // 65_536 + 1):
        recorder.record(TextDelta("x" * 65_536))
    recorder.record(Finished())
    result = recorder.result("cli:x")
    assert isinstance(result, Success)
    assert len(str(result.output)) == MOST_ANSWER_CHARACTERS
    assert "the last 65,536 characters of its answer were left out" in result.warnings[0]
