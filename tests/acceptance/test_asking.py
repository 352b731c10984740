"""At a terminal, missing inputs are asked for, one by one, until each fits."""

from pathlib import Path

import pytest

from support.cli import talk, write

ASKS = """\
name: asks
inputs:
  - {name: topic, required: true, description: What it is about.}
  - {name: count, type: number, required: true}
  - {name: tone, required: true, enum: [warm, cool]}
  - {name: loud, type: boolean, default: false}
steps:
  - id: a
    subagent: writer
    prompt: "{{inputs.topic}} {{inputs.count}} {{inputs.tone}} {{inputs.loud}}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "asks.yaml", ASKS)
    return tmp_path


def test_each_missing_input_is_asked_for(folder: Path) -> None:
    answers = [("topic: ", "bees\n"), ("count: ", "7\n"), ("tone: ", "warm\n")]
    code, screen, between = talk(folder, ["plan", "asks.yaml"], answers)
    assert code == 0
    assert "What it is about." in between[0]
    assert "bees 7 warm false" in screen
    assert "loud: " not in screen, "it has a default"


def test_a_wrong_value_is_explained_and_asked_for_again(folder: Path) -> None:
    answers = [
        ("topic: ", "bees\n"),
        ("count: ", "many\n"),
        ("count: ", "7\n"),
        ("tone: ", "hot\n"),
        ("tone: ", "cool\n"),
    ]
    code, screen, between = talk(folder, ["plan", "asks.yaml"], answers)
    assert code == 0
    assert "must be a number" in between[2]
    assert "warm" in between[4]
    assert "bees 7 cool false" in screen


def test_an_empty_answer_is_asked_for_again(folder: Path) -> None:
    answers = [("topic: ", "\n"), ("topic: ", "bees\n"), ("count: ", "7\n"), ("tone: ", "warm\n")]
    code, screen, _ = talk(folder, ["plan", "asks.yaml"], answers)
    assert code == 0
    assert "bees 7 warm false" in screen


def test_what_was_given_is_not_asked_for(folder: Path) -> None:
    words = ["plan", "asks.yaml", "-i", "topic=bees", "-i", "tone=warm"]
    code, screen, _ = talk(folder, words, [("count: ", "7\n")])
    assert code == 0
    assert "topic: " not in screen


def test_json_never_asks(folder: Path) -> None:
    code, screen, _ = talk(folder, ["plan", "asks.yaml", "--json"], [])
    assert code == 2
    assert "invalid_inputs" in screen


def test_the_end_of_input_interrupts(folder: Path) -> None:
    code, screen, _ = talk(folder, ["plan", "asks.yaml"], [("topic: ", "\x04")])
    assert code == 130
    assert "Traceback" not in screen
