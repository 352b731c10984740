"""Read: numbered lines of text files, and nothing that the sets do not cover."""

import os
from pathlib import Path

import pytest

from stretto.adapters.tools.read import read
from support.toolbench import called, reach_of


def test_lines_come_numbered(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n\nfour")
    told = called(read, reach_of(tmp_path), file_path="a.txt")
    assert told.text == "     1\tone\n     2\ttwo\n     3\t\n     4\tfour"
    assert told.verdict == "ok"


def test_offset_and_limit_choose_the_part_and_the_rest_is_announced(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    told = called(read, reach_of(tmp_path), file_path="a.txt", offset=3, limit=2)
    assert told.text == "     3\tline 3\n     4\tline 4\n[there is more: go on with offset 5]"
    told = called(read, reach_of(tmp_path), file_path="a.txt", offset=9)
    assert told.text == "     9\tline 9\n    10\tline 10"
    told = called(read, reach_of(tmp_path), file_path="a.txt", offset=11)
    assert told.text == "(the file has fewer than 11 lines)"


def test_a_long_file_is_read_in_parts_that_add_up(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{n}:{'x' * 90}\n" for n in range(1, 1001)))
    offset, seen = 1, 0
    for _ in range(10):
        told = called(read, reach_of(tmp_path), file_path="a.txt", offset=offset)
        assert told.result_bytes is None, "it stops by itself, nothing is cut out of the middle"
        lines = [line for line in told.text.split("\n") if "\t" in line]
        assert [line.split("\t")[1].split(":")[0] for line in lines] == [
            str(n) for n in range(offset, offset + len(lines))
        ]
        seen += len(lines)
        offset += len(lines)
        if "there is more" not in told.text:
            break
    assert seen == 1000


def test_a_line_of_megabytes_is_cut_and_the_next_one_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 5_000_000 + "\nsecond\n")
    told = called(read, reach_of(tmp_path), file_path="a.txt")
    first, second = told.text.split("\n")
    assert first.endswith("[the rest of this line is left out]")
    assert len(first) < 2_100
    assert second == "     2\tsecond"


def test_an_empty_file_and_a_byte_order_mark_are_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbfhello\r\n")
    assert called(read, reach_of(tmp_path), file_path="empty").text == "(the file is empty)"
    assert called(read, reach_of(tmp_path), file_path="marked").text == "     1\thello"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\x89PNG\r\n\x1a\n....", "a PNG image"),
        (b"%PDF-1.7 ...", "a PDF document"),
        (b"\xff\xd8\xff\xe0", "a JPEG image"),
        (b"abc\0def", "binary"),
        ("wide".encode("utf-16"), "UTF-16 text"),
    ],
)
def test_what_is_no_text_is_named(tmp_path: Path, content: bytes, what: str) -> None:
    (tmp_path / "a").write_bytes(content)
    told = called(read, reach_of(tmp_path), file_path="a")
    assert told.verdict == "error"
    assert f"is {what}, {len(content)} bytes" in told.text


def test_a_missing_file_a_folder_and_a_pipe_are_errors(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, said in [("none", "does not exist"), ("folder", "folder"), ("pipe", "a pipe")]:
        told = called(read, reach_of(tmp_path), file_path=name)
        assert (told.verdict, said in told.text) == ("error", True), told.text


def test_an_absolute_path_inside_the_workspace_is_fine(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    assert called(read, reach_of(tmp_path), file_path=str(tmp_path / "a.txt")).verdict == "ok"


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../x", "a/../../x", "a\0b", ".git/config", "sub/.GIT/config", "//etc/passwd"],
)
def test_what_is_not_in_the_workspace_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("secret")
    told = called(read, reach_of(tmp_path), file_path=path)
    assert told.verdict == "refused"
    assert "secret" not in told.text


def test_what_is_outside_the_read_set_is_refused_and_the_set_is_told(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("fine")
    (tmp_path / "secret.txt").write_text("hidden")
    reach = reach_of(tmp_path, read_set=("src", "docs/*.md"))
    assert called(read, reach, file_path="src/a.py").verdict == "ok"
    told = called(read, reach, file_path="secret.txt")
    assert told.verdict == "refused"
    assert told.text == "Refused: 'secret.txt' is outside what you may read: src, docs/*.md"


def test_a_link_is_judged_by_what_it_leads_to(tmp_path: Path) -> None:
    workspace, outside = tmp_path / "w", tmp_path / "outside.txt"
    (workspace / "src").mkdir(parents=True)
    outside.write_text("outside")
    (workspace / "secret.txt").write_text("hidden")
    (workspace / "src" / "real.py").write_text("fine")
    (workspace / ".git").mkdir()
    (workspace / ".git" / "config").write_text("git's")
    for name, target in {
        "near": "real.py",
        "far": "../../outside.txt",
        "absolute": str(outside),
        "secret": "../secret.txt",
        "git": "../.git/config",
        "round": "round",
    }.items():
        (workspace / "src" / name).symlink_to(target)
    (workspace / "src" / "folder").symlink_to("..")
    reach = reach_of(workspace, read_set=("src",))
    assert called(read, reach, file_path="src/near").text == "     1\tfine"
    for name in ("far", "absolute", "secret", "git", "folder/secret.txt", "round"):
        told = called(read, reach, file_path=f"src/{name}")
        assert told.verdict in ("refused", "error"), name
        assert not any(word in told.text for word in ("hidden", "git's\n", "     1\t")), name
