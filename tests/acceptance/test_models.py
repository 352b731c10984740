"""`stretto models`, from outside: list, pull, use, test."""

import json
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from stretto.adapters.models.local.catalog import SMOLLM2
from support.cli import ROOT, refused, stretto, succeeded, talk, write

WEIGHTS = Path(os.environ.get("STRETTO_TEST_MODELS") or ROOT / ".venv/models")


@pytest.fixture
def weights() -> Path:
    file = WEIGHTS / SMOLLM2.file
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    if not file.exists():
        pytest.skip(
            f"no weights in {WEIGHTS}: STRETTO_MODELS_DIR={WEIGHTS} stretto models pull smollm2"
        )
    return file


def config(folder: Path) -> Path:
    return folder / "home" / "stretto.yaml"


def test_the_list_says_what_is_here_and_what_is_used(tmp_path: Path) -> None:
    write(tmp_path, "home/stretto.yaml", "model: openai:gpt-4o\n")
    listed = succeeded(stretto(tmp_path, "models", "list", "--json"))
    assert listed["in_use"] == "openai:gpt-4o"
    assert listed["folder"] == str(tmp_path / "home" / "models")
    assert [row["model"] for row in listed["models"]] == ["local:smollm2", "local:qwen2.5-coder"]
    assert {row["state"] for row in listed["models"]} == {"absent"}
    assert all(row["licence"] == "Apache-2.0" and row["size_bytes"] for row in listed["models"])
    said = stretto(tmp_path, "models")
    assert "stretto models pull smollm2" in said.out
    assert "in use: openai:gpt-4o" in said.out


def test_flags_are_accepted_anywhere(tmp_path: Path) -> None:
    write(tmp_path, "home/stretto.yaml", "model: openai:gpt-4o\n")
    wanted = stretto(tmp_path, "models", "list", "--json").out
    assert stretto(tmp_path, "models", "--json", "list").out == wanted
    assert stretto(tmp_path, "--json", "models").out == wanted


def test_an_unknown_model_or_command_is_refused_with_a_hint(tmp_path: Path) -> None:
    error = refused(stretto(tmp_path, "models", "pull", "smollm", "--json"), "not_found")
    assert "smollm" in error["message"]
    assert stretto(tmp_path, "models", "pul").code == 2


def test_a_file_that_is_not_the_weights_is_refused(tmp_path: Path) -> None:
    forged = write(tmp_path, "forged.gguf", b"GGUF forged")
    said = stretto(tmp_path, "models", "pull", "smollm2", "--from", forged)
    assert said.code == 1
    assert "is not SmolLM2-135M: it has 11 bytes" in said.err
    assert not (tmp_path / "home/models" / SMOLLM2.file).exists()


def test_the_weights_are_pulled_from_a_file_in_plain_lines(tmp_path: Path, weights: Path) -> None:
    said = stretto(tmp_path, "models", "pull", "smollm2", "--from", weights)
    assert said.code == 0, said
    assert "fetching" in said.err
    assert "checking 98 of 98 MB" in said.err
    assert "\r" not in said.err
    assert "\x1b" not in said.out + said.err
    assert "stretto models test local:smollm2" in said.out
    listed = succeeded(stretto(tmp_path, "models", "--json"))
    assert listed["models"][0]["state"] == "verified"
    again = stretto(tmp_path, "models", "pull", "embedded", "--json")
    *_, last = [json.loads(line) for line in again.out.splitlines()]
    assert last["ok"] is True
    assert last["how"] == "was there"


def test_a_damaged_file_is_never_loaded(tmp_path: Path, weights: Path) -> None:
    damaged = tmp_path / "models" / SMOLLM2.file
    damaged.parent.mkdir()
    content = bytearray(weights.read_bytes())
    content[50_000_000] ^= 1
    damaged.write_bytes(content)
    said = stretto(
        tmp_path, "models", "test", "embedded", env={"STRETTO_MODELS_DIR": str(damaged.parent)}
    )
    assert said.code == 1
    assert "its sha256 is" in said.err
    assert "stretto models pull smollm2" in said.err


def test_a_real_model_answers_two_questions(tmp_path: Path, weights: Path) -> None:
    tried = succeeded(
        stretto(
            tmp_path,
            "models",
            "test",
            "embedded",
            "--json",
            env={"STRETTO_MODELS_DIR": str(WEIGHTS)},
        )
    )
    assert [each["what"] for each in tried["tried"]] == ["words", "json"]
    assert all(each["ok"] and each["tokens_per_second"] > 0 for each in tried["tried"])
    assert set(json.loads(tried["tried"][1]["says"])) == {"city", "is_capital"}


def test_without_weights_the_test_says_how_to_get_them(tmp_path: Path) -> None:
    said = stretto(tmp_path, "models", "test", "local:smollm2")
    assert said.code == 2
    assert "stretto models pull smollm2" in said.err


def test_at_a_terminal_one_is_asked_before_anything_is_fetched(tmp_path: Path) -> None:
    words = ["models", "test", "embedded"]
    code, screen, _ = talk(tmp_path, words, [("fetch SmolLM2-135M (98 MB)?", "n\n")])
    assert code == 2
    assert "stretto models pull smollm2" in screen
    assert not (tmp_path / "home/models").exists()


WRITTEN = """\
# My own settings.
model: openai:gpt-4o   # the good one
subagents:
  max_concurrency: 2  # small machine
  # model: not this one
"""


def test_use_changes_the_model_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path, "home/stretto.yaml", WRITTEN)
    said = succeeded(stretto(tmp_path, "models", "use", "local:smollm2", "--json"))
    assert said["model"] == "local:smollm2"
    assert "stretto models pull smollm2" in said["note"]
    changed = config(tmp_path).read_text(encoding="utf-8")
    assert changed == WRITTEN.replace("openai:gpt-4o", "local:smollm2")


@pytest.mark.parametrize(
    "before",
    [
        "",
        "# nothing yet\n",
        "subagents:\n  max_concurrency: 2",
        "# model: x\nworkflows: {dir: here}\n",
        'model: "a: b"\n',
        "model : openai:gpt-4o\n",
    ],
)
def test_use_finds_or_makes_its_line(tmp_path: Path, before: str) -> None:
    write(tmp_path, "home/stretto.yaml", before)
    succeeded(stretto(tmp_path, "models", "use", "embedded", "--json"))
    after = config(tmp_path).read_text(encoding="utf-8")
    kept = [line for line in before.splitlines() if not line.startswith("model")]
    assert [line for line in after.splitlines() if not line.startswith("model:")] == kept
    assert succeeded(stretto(tmp_path, "models", "--json"))["in_use"] == "local:smollm2"


@pytest.mark.parametrize(
    "before",
    ["model: |\n  openai:gpt-4o\n", "{model: x, permission: ask}\n", "model: [\n", "a: 1\na: 2\n"],
)
def test_a_file_that_cannot_be_changed_safely_is_left_alone(tmp_path: Path, before: str) -> None:
    write(tmp_path, "home/stretto.yaml", before)
    assert stretto(tmp_path, "models", "use", "embedded").code == 2
    assert config(tmp_path).read_text(encoding="utf-8") == before


@pytest.mark.parametrize("line", ["model: a:b", "model: a:b  # mine", "# model", "permission: ask"])
def test_use_keeps_line_breaks_and_who_may_read_the_file(tmp_path: Path, line: str) -> None:
    before = f"# mine\r\n{line}\r\nsubagents:\r\n  max_concurrency: 3\r\n"
    write(tmp_path, "home/stretto.yaml", before).chmod(0o600)
    assert stretto(tmp_path, "models", "use", "openai:gpt-x").code == 0
    is_replaced = line.startswith("model")
    after = (
        before.replace("a:b", "openai:gpt-x") if is_replaced else f"{before}model: openai:gpt-x\r\n"
    )
    assert config(tmp_path).read_bytes().decode() == after
    assert config(tmp_path).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["local:nope", "nosuchprovider:x", "local:/no/such.gguf", ""])
def test_use_takes_no_name_that_cannot_work(tmp_path: Path, name: str) -> None:
    assert stretto(tmp_path, "models", "use", name).code == 2
    assert not config(tmp_path).exists()


def test_a_file_of_weights_is_used_by_its_path(tmp_path: Path) -> None:
    file = write(tmp_path, "my model #1.gguf", b"GGUF")
    said = succeeded(stretto(tmp_path, "models", "use", f"local:{file}", "--json"))
    assert said["model"] == f"local:{file}"
    assert succeeded(stretto(tmp_path, "models", "--json"))["in_use"] == f"local:{file}"
