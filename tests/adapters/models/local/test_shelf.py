"""Nothing is loaded that has not been hashed as it is now."""

import os
from pathlib import Path

import pytest

from stretto.adapters.models.local import catalog as room
from stretto.adapters.models.local.catalog import (
    CATALOG,
    SMOLLM2,
    Shelf,
    is_local,
    is_own_file,
    models_folder,
    own_file,
    weights_named,
)
from stretto.adapters.models.local.pull import ensure_weights
from stretto.problems.errors import NotFound, PermissionDenied, StrettoError
from support.weight_pulls import BYTES, weights


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    (tmp_path / "toy.gguf").write_bytes(BYTES)
    return Shelf(tmp_path)


def test_a_file_is_hashed_once_and_then_known(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shelf.state(weights()) == "unchecked"
    assert shelf.take(weights()).path.read_bytes() == BYTES
    assert shelf.state(weights()) == "verified"

    def digest(*args: object) -> str:
        raise AssertionError("it was hashed again")

    monkeypatch.setattr(room, "digest", digest)
    shelf.take(weights())


def test_a_changed_file_is_hashed_again_and_refused(shelf: Shelf) -> None:
    shelf.take(weights())
    path = shelf.path(weights())
    before = path.stat()
    path.write_bytes(BYTES[:-1] + b"!")
    # As whoever hides a change would do it: same size, same inode, the old time put back.
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert shelf.state(weights()) == "unchecked"
    with pytest.raises(StrettoError, match="its sha256 is") as no:
        shelf.take(weights())
    assert no.value.hint == "delete it, then stretto models pull toy"


@pytest.mark.parametrize("record", ["", "[]", "{", '{"toy.gguf": 1}'])
def test_a_broken_record_only_means_hashing_again(shelf: Shelf, record: str) -> None:
    (shelf.folder / "verified.json").write_text(record, encoding="utf-8")
    assert shelf.state(weights()) == "unchecked"
    shelf.take(weights())
    assert shelf.state(weights()) == "verified"


def test_the_models_lie_in_the_users_home_unless_the_environment_says_else(tmp_path: Path) -> None:
    assert models_folder(tmp_path, {}) == tmp_path / "models"
    assert models_folder(tmp_path, {"STRETTO_MODELS_DIR": "/elsewhere"}) == Path("/elsewhere")


def test_names_of_local_models() -> None:
    assert weights_named("embedded") is weights_named("local:smollm2") is SMOLLM2
    assert [weights_named(name) for name in CATALOG] == list(CATALOG.values())
    assert is_local("embedded")
    assert is_local("local:x")
    assert not is_local("openai:gpt-4o")
    with pytest.raises(NotFound, match="no local model 'smollm'") as no:
        weights_named("local:smollm")
    assert no.value.hint == "did you mean 'smollm2'?"


def test_a_file_of_the_users_own_needs_the_users_own_word(shelf: Shelf) -> None:
    model = f"local:{shelf.path(weights())}"
    assert is_own_file(model)
    assert own_file(model, may_name_a_file=True).path == shelf.path(weights())
    with pytest.raises(PermissionDenied, match="a project cannot choose"):
        own_file(model, may_name_a_file=False)


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"PK\x03\x04")
    with pytest.raises(NotFound, match="not a GGUF file"):
        own_file(f"local:{tmp_path / 'x.gguf'}", may_name_a_file=True)
    with pytest.raises(NotFound, match="cannot be read"):
        own_file(f"local:{tmp_path / 'y.gguf'}", may_name_a_file=True)


def test_where_nobody_can_be_asked_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as no:
        ensure_weights("embedded", Shelf(tmp_path), may_ask=False, may_name_a_file=False)
    assert no.value.hint == "stretto models pull smollm2"
    assert list(tmp_path.iterdir()) == []


def test_a_person_is_asked_and_may_say_no(tmp_path: Path) -> None:
    asked: list[str] = []

    def ask(question: str) -> bool:
        asked.append(question)
        return False

    with pytest.raises(NotFound):
        ensure_weights("embedded", Shelf(tmp_path), may_ask=True, may_name_a_file=False, ask=ask)
    assert asked == ["fetch SmolLM2-135M (98 MB)?"]
