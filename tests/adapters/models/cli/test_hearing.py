"""What is journaled of an agent's work: all of it in order, little of each."""

import pytest

from stretto.adapters.models.cli.claude import CLAUDE
from stretto.adapters.models.cli.described import Cli
from stretto.adapters.models.cli.hearing import Hearing
from stretto.adapters.models.cli.opencode import OPENCODE
from stretto.adapters.models.cli.said import (
    Answered,
    CallBegan,
    CallEnded,
    Capped,
    Spent,
    SpentInAll,
    Spoke,
)
from stretto.events.model import ModelSpoke, ToolEnded
from stretto.ports.runner import Failure, Success
from stretto.text.redaction import NOTHING_SECRET, Redactor
from stretto.vocabulary.usage import Usage
from stretto.vocabulary.values import Json
from support.cli_agents import Watching, attempt


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def _hearing(
    watching: Watching, redactor: Redactor = NOTHING_SECRET, max_turns: int | None = None
) -> Hearing:
    return Hearing(attempt("cli:x"), watching, redactor, max_turns)


def test_a_word_at_a_time_becomes_two_events_a_second() -> None:
    clock = Clock()
    watching = Watching(clock=clock)
    hearing = _hearing(watching)
    for _ in range(100):
        clock.time += 0.05
        hearing.hear(Spoke("word "))
    hearing.close()
    assert watching.spoken == "word " * 100
    assert 9 <= len(watching.events) <= 11


def test_many_words_at_once_become_events_of_four_kilobytes() -> None:
    watching = Watching(clock=Clock())
    hearing = _hearing(watching)
    for _ in range(4_000):
        hearing.hear(Spoke("word "))
    hearing.close()
    assert watching.spoken == "word " * 4_000
    assert len(watching.events) == 5


def test_words_before_a_call_are_told_before_it() -> None:
    watching = Watching()
    hearing = _hearing(watching)
    hearing.hear(Spoke("Let me look."))
    hearing.hear(CallBegan("1", "Read", {}))
    hearing.hear(CallEnded("1", True, 3))
    hearing.close()
    assert [type(event) for event in watching.events] == [ModelSpoke, ToolEnded]


def test_the_answer_is_what_was_said_after_the_last_call() -> None:
    hearing = _hearing(Watching())
    for said in (Spoke("Let me look."), CallBegan("1", "Read", {}), CallEnded("1", True, 3)):
        hearing.hear(said)
    assert hearing.text == "Let me look."  # so far there is nothing better
    hearing.hear(Spoke("It is 42."))
    assert hearing.text == "It is 42."


def test_what_the_cli_calls_its_answer_is_the_answer() -> None:
    hearing = _hearing(Watching())
    for said in (Spoke("Hm. "), Spoke("It is 42."), Answered("42")):
        hearing.hear(said)
    assert hearing.result("cli:x") == Success("42", model="cli:x")


def test_who_says_nothing_has_not_answered() -> None:
    result = _hearing(Watching()).result("cli:x")
    assert isinstance(result, Failure)
    assert result.kind == "empty"


def test_arguments_are_shortened_at_every_depth() -> None:
    deep: Json = "bottom"
    for _ in range(30):
        deep = [deep]
    watching = Watching()
    hearing = _hearing(watching)
    given: dict[str, Json] = {"content": "x" * 9_000, "in": [{"y": "y" * 9_000}], "deep": deep}
    given |= {f"k{number}": number for number in range(500)}
    hearing.hear(CallBegan("1", "Write", given))
    hearing.hear(CallEnded("1", True, 9_000))
    (call,) = watching.calls
    assert str(call.arguments["content"]).startswith("x" * 2_000 + " … (7000 characters more)")
    assert len(str(call.arguments)) < 8_000
    assert call.result_bytes == 9_000


def test_a_call_that_never_ended_is_told_when_the_agent_stops() -> None:
    watching = Watching()
    hearing = _hearing(watching)
    hearing.hear(CallBegan("1", "Bash", {"command": "sleep"}))
    hearing.close()
    (call,) = watching.calls
    assert (call.verdict, call.message) == ("error", "the agent stopped before it ended")


def test_calls_side_by_side_keep_their_numbers() -> None:
    watching = Watching()
    hearing = _hearing(watching)
    for id in "abc":
        hearing.hear(CallBegan(id, id, {}))
    for id in "cab":
        hearing.hear(CallEnded(id, True, 0))
    hearing.hear(CallEnded("nobody's", True, 0))
    assert [(call.tool, call.call) for call in watching.calls] == [("c", 3), ("a", 1), ("b", 2)]


@pytest.mark.parametrize("size", [1, 3, 7, 12])
def test_a_secret_of_several_words_is_hidden_wherever_the_pieces_are_cut(size: int) -> None:
    clock = Clock()
    watching = Watching(clock=clock)
    hearing = _hearing(watching, Redactor({"DB_PASSWORD": "correct horse battery staple"}))
    text = "It is correct horse battery staple, keep it."
    for at in range(0, len(text), size):
        clock.time += 1
        hearing.hear(Spoke(text[at : at + size]))
    hearing.close()
    assert watching.spoken == "It is [redacted], keep it."


def test_secrets_are_hidden_in_words_and_calls_even_if_they_come_in_pieces() -> None:
    clock = Clock()
    watching = Watching(clock=clock)
    hearing = _hearing(watching, Redactor({"API_KEY": "sk-123456789"}))
    for piece in ("The key is sk-1234", "56789, keep it."):
        clock.time += 1
        hearing.hear(Spoke(piece))
    hearing.hear(CallBegan("1", "Bash", {"command": "echo sk-123456789"}))
    hearing.hear(CallEnded("1", False, 0, "no sk-123456789"))
    assert "sk-1234" not in repr(watching.events)
    assert "[redacted], keep it." in watching.spoken


def test_the_sum_at_the_end_adds_only_what_was_not_counted() -> None:
    watching = Watching()
    hearing = _hearing(watching)
    hearing.hear(Spent(Usage(10, 5, 0.0, 1)))
    hearing.hear(SpentInAll(Usage(30, 7, 0.5)))
    assert watching.spent == hearing.usage == Usage(30, 7, 0.5, 1)


def test_turns_are_counted_for_those_who_do_not() -> None:
    watching = Watching()
    hearing = _hearing(watching, max_turns=2)
    for number in range(2):
        hearing.hear(Spoke(f"turn {number} "))
        hearing.hear(CallBegan(str(number), "Read", {}))
        hearing.hear(CallEnded(str(number), True, 0))
    assert not hearing.is_over
    hearing.hear(Spoke("one too many"))
    assert hearing.is_over
    hearing.close()
    result = hearing.result("cli:x")
    assert isinstance(result, Success)
    assert result.warnings == ("max turns reached; the answer is what there was",)
    assert result.usage.model_calls == 3


@pytest.mark.parametrize("size", [10, 5_000_000])
def test_an_endless_reply_is_not_kept_whole(size: int) -> None:
    hearing = _hearing(Watching())
    for _ in range(3):
        hearing.hear(Spoke("x" * (size // 2)))
    assert len(hearing.text) <= 4 * 1024 * 1024


def test_an_answer_that_was_cut_off_is_no_answer() -> None:
    hearing = _hearing(Watching())
    hearing.hear(Spoke("The first half of"))
    hearing.hear(Capped("the model's limit of tokens reached", is_truncated=True))
    result = hearing.result("cli:x")
    assert isinstance(result, Failure)
    assert result.kind == "truncated"


def test_an_agent_that_went_on_by_itself_was_not_cut_off() -> None:
    hearing = _hearing(Watching())
    hearing.hear(Spoke("The first half of"))
    hearing.hear(Capped("the model's limit of tokens reached", is_truncated=True))
    hearing.hear(Spoke(" the answer."))
    assert isinstance(hearing.result("cli:x"), Success)


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
    assert any(isinstance(said, Capped) and said.is_truncated for said in cli.read(line))
