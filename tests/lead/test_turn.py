"""What a person types after a slash becomes a command, and the inputs of a workflow."""

import pytest

from stretto.lead.turn import SlashCommand, plain_text, read_slash, workflow_inputs
from stretto.problems.errors import InvalidUsage
from stretto.recipe.model import Input
from stretto.vocabulary.ids import InputName

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
