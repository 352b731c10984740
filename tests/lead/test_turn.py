"""What a person types after a slash, and what a model is told of the turns before."""

from dataclasses import replace

import pytest

from stretto.lead.chats import KeptTurn
from stretto.lead.turn import (
    SlashCommand,
    earlier_messages,
    plain_text,
    read_slash,
    workflow_inputs,
)
from stretto.ports.model import ModelReply, UserMessage
from stretto.problems.errors import InvalidUsage
from stretto.recipe.model import Input
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.names import InputName, RunId

DECLARED = (
    Input(InputName("depth"), (), has_default=True, default="deep"),
    Input(InputName("topic"), (), is_required=True),
    Input(InputName("tone"), (), is_required=True),
)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/brief tea", SlashCommand("brief", "tea")),
        ("  /brief\n two lines", SlashCommand("brief", "two lines")),
        ("/", SlashCommand("", "")),
        ("/ brief tea", None),
        ("/\nbrief", None),
        ("/etc/passwd is what?", None),
        ("//brief", None),
        ("brief /tea", None),
        ("/-rf", None),
        ("/ü", None),
    ],
)
def test_only_a_slash_with_a_name_is_a_command(text: str, command: SlashCommand | None) -> None:
    assert read_slash(text) == command


def test_two_slashes_say_one() -> None:
    assert plain_text("//etc/hosts // x") == "/etc/hosts // x"
    assert plain_text("a // b") == "a // b"


@pytest.mark.parametrize(
    ("rest", "inputs"),
    [
        ("what's new in tea", {"topic": "what's new in tea"}),
        ("topic=tea loud and clear", {"topic": "tea", "tone": "loud and clear"}),
        ("depth=flat what's new", {"depth": "flat", "topic": "what's new"}),
        ('topic="green tea" tone=\'so "so"\'', {"topic": "green tea", "tone": 'so "so"'}),
        (r'topic="a \"b\" \\ c"', {"topic": r'a "b" \ c'}),
        ("solve x=1 and y=2", {"topic": "solve x=1 and y=2"}),
        ("a line\nand depth=flat another", {"topic": "a line\nand  another", "depth": "flat"}),
        ('"topic=tea stays text"', {"topic": "topic=tea stays text"}),
        ("topic= rest", {"topic": "", "tone": "rest"}),
        ('topic=["a", "b"] so', {"topic": '["a", "b"]', "tone": "so"}),
        ('topic={"a": [1, "} x"]} so', {"topic": '{"a": [1, "} x"]}', "tone": "so"}),
        ("topic=[a b", {"topic": "[a", "tone": "b"}),
        ("topic=[1]th b", {"topic": "[1]th", "tone": "b"}),
        ("", {}),
    ],
)
def test_pairs_are_inputs_and_other_text_is_the_first_required_one(
    rest: str, inputs: dict[str, str]
) -> None:
    assert workflow_inputs(rest, DECLARED) == inputs


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("topik=tea", "no input 'topik'"),
        ('topic="tea', "not closed"),
        ("topic=a topic=b", "given twice"),
        ("topic=a tone=b and more", "every required input is set"),
    ],
)
def test_what_is_not_clear_is_refused(rest: str, said: str) -> None:
    with pytest.raises(InvalidUsage, match=said):
        workflow_inputs(rest, DECLARED)


def turn(number: int, said: str, answer: str, **changes: object) -> KeptTurn:
    made = KeptTurn(
        "chat", number, RunId(f"run-{number}"), "lead", said, {}, "complete", answer, "", Usage(), 0,
        1.0, 2.0,
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def test_earlier_turns_are_question_and_answer() -> None:
    failed = turn(2, "And?", "", status="failed", error="no luck")
    open_one = turn(3, "Now?", "", status="open", ended_at=None)
    messages = earlier_messages([turn(1, "Hi", "Hello."), failed, open_one])
    assert messages == (
        UserMessage("Hi"),
        ModelReply("Hello."),
        UserMessage("And?"),
        ModelReply("(There was no answer: no luck.)"),
    )


def test_of_a_long_chat_the_oldest_turns_are_left_out_and_that_is_said() -> None:
    turns = [turn(n, f"question {n}", "x" * 10_000) for n in range(1, 21)]
    messages = earlier_messages(turns)
    assert len(messages) == 10
    first = messages[0]
    assert isinstance(first, UserMessage)
    assert first.text == "[15 earlier turns left out]\n\nquestion 16"
    huge = earlier_messages([turn(1, "y" * 1_000_000, "z" * 1_000_000)])
    assert sum(len(getattr(each, "text", "")) for each in huge) < 80_000
