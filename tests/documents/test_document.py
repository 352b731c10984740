"""Bytes into nodes, within limits, and never a traceback."""

import os
from hashlib import sha256

import pytest

from stretto.documents.document import Document, read_bytes, read_file, read_text
from stretto.documents.node import plain
from stretto.vocabulary.amounts import DEFAULT_LIMITS, Limits


def codes(document: Document) -> list[str]:
    return [problem.code for problem in document.problems]


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


# --- files ---------------------------------------------------------------------------------


def test_a_file_is_read_with_its_name_in_every_problem(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("a: [1\n")
    document = read_file(file)
    assert document.root is None
    assert [problem.file for problem in document.problems] == [str(file)]
    assert read_file(file, shown_as="here/a.yaml").problems[0].file == "here/a.yaml"


def test_a_file_that_is_not_there_is_a_problem(tmp_path):
    document = read_file(tmp_path / "no.yaml", shown_as="no.yaml")
    assert codes(document) == ["RCP001"]
    assert document.problems[0].message == "no.yaml cannot be read: No such file or directory"


def test_a_folder_or_a_pipe_is_no_file(tmp_path):
    assert codes(read_file(tmp_path)) == ["RCP001"]
    os.mkfifo(tmp_path / "pipe.yaml")
    assert codes(read_file(tmp_path / "pipe.yaml")) == ["RCP001"]


def test_a_name_that_no_file_can_have_is_a_problem(tmp_path):
    assert codes(read_file(tmp_path / "a\0b")) == ["RCP001"]
    assert codes(read_file(tmp_path / ("a" * 5000))) == ["RCP001"]


def test_a_dangling_link_is_a_problem(tmp_path):
    (tmp_path / "a.yaml").symlink_to(tmp_path / "gone.yaml")
    assert codes(read_file(tmp_path / "a.yaml")) == ["RCP001"]


def test_ten_megabytes_are_refused_before_they_are_read(tmp_path):
    file = tmp_path / "big.yaml"
    with open(file, "wb") as stream:
        stream.truncate(10_000_000)
    document = read_file(file)
    assert codes(document) == ["RCP002"]
    assert "10,000,000 bytes" in document.problems[0].message
    assert document.problems[0].hint


# --- size ----------------------------------------------------------------------------------


def test_text_may_be_as_large_as_the_limit_and_no_larger():
    full = "a: " + "x" * (DEFAULT_LIMITS.text_bytes - 3)
    assert len(full) == 1024 * 1024
    assert codes(read_text(full)) == []
    assert codes(read_text(full + "x")) == ["RCP002"]
    assert codes(read_bytes(full.encode())) == []
    assert codes(read_bytes(full.encode() + b"x")) == ["RCP002"]


def test_a_file_may_be_as_large_as_the_limit_and_no_larger(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("a: 12345")
    assert codes(read_file(file, Limits(text_bytes=8))) == []
    assert codes(read_file(file, Limits(text_bytes=7))) == ["RCP002"]


def test_size_counts_bytes_and_not_characters():
    assert codes(read_text("a: éé", limits=Limits(text_bytes=7))) == []
    assert codes(read_text("a: éé", limits=Limits(text_bytes=6))) == ["RCP002"]


# --- depth and nodes -----------------------------------------------------------------------


@pytest.mark.parametrize("file", ["a.yaml", "a.json"])
def test_nesting_may_be_as_deep_as_the_limit_and_no_deeper(file):
    assert codes(read_text(nested(64), file)) == []
    assert codes(read_text(nested(65), file)) == ["RCP008"]


@pytest.mark.parametrize("file", ["a.yaml", "a.json"])
@pytest.mark.parametrize("text", ["[" * 60_000, "{a: " * 60_000, '{"a":' * 60_000, nested(30_000)])
def test_a_bomb_of_brackets_is_refused(file, text):
    document = read_text(text, file)
    assert document.root is None
    assert len(document.problems) == 1
    assert document.problems[0].place is not None


def test_a_deep_block_is_refused_too():
    text = "".join(" " * i + "a:\n" for i in range(1, 66))
    assert codes(read_text(text)) == ["RCP008"]


@pytest.mark.parametrize("file", ["a.yaml", "a.json"])
def test_there_may_be_as_many_values_as_the_limit_and_no_more(file):
    # The list itself is one of them.
    assert codes(read_text("[" + "1," * 49_998 + "1]", file)) == []
    assert codes(read_text("[" + "1," * 49_999 + "1]", file)) == ["RCP009"]


# --- aliases and merge keys ----------------------------------------------------------------


def test_an_alias_bomb_costs_nothing():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    document = read_text("\n".join(lines))
    assert set(codes(document)) == {"RCP010"}


def test_a_merge_key_bomb_costs_nothing():
    lines = ["a0: {x: 1}"] + [f"a{i}: {{<<: [{{}}, {{}}], y: {i}}}" for i in range(1, 30)]
    document = read_text("\n".join(lines))
    assert set(codes(document)) == {"RCP011"}
    assert len(document.problems) == 29


def test_nobody_reads_more_than_fifty_problems_of_one_file():
    assert len(read_text("- *a\n" * 5000).problems) == 50
    assert len(read_text("a: 1\n" * 5000).problems) == 50
    repeated = "{" + ", ".join(['"a": 1'] * 5000) + "}"
    assert len(read_text(repeated, "a.json").problems) == 50


# --- characters ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "line", "column", "byte"),
    [
        (b"\xff\xfea\0", 1, 1, "0xff"),
        (b"a: 1\nb: \xe9t\xe9\n", 2, 4, "0xe9"),
        ("a: é\nb: ".encode() + b"\x80", 2, 4, "0x80"),
        (b"a: \xc3", 1, 4, "0xc3"),
        (b"a: \xed\xa0\x80", 1, 4, "0xed"),
    ],
)
def test_a_byte_that_is_not_utf8_is_pointed_at(raw, line, column, byte):
    (problem,) = read_bytes(raw).problems
    assert problem.code == "RCP003"
    assert (problem.place.line, problem.place.column) == (line, column)
    assert problem.message == f"byte {byte} is not UTF-8"


@pytest.mark.parametrize("letter", ["\0", "\x01", "\x0b", "\x0c", "\x1b", "\x7f", "\x9b", "\ufffe"])
@pytest.mark.parametrize("file", ["a.yaml", "a.json"])
def test_control_characters_are_refused_where_they_stand(letter, file):
    (problem,) = read_text(f'{{"a": 1,\n "é{letter}": 2}}', file).problems
    assert problem.code == "RCP004"
    assert (problem.place.line, problem.place.column) == (2, 4)


def test_half_a_surrogate_pair_is_refused():
    assert codes(read_text("a: \ud800")) == ["RCP004"]


def test_a_byte_order_mark_is_skipped():
    for document in (read_text("\ufeffa: 1"), read_bytes(b"\xef\xbb\xbfa: 1")):
        assert document.root is not None
        assert plain(document.root) == {"a": 1}


# --- which reader --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ['{"a": [1, "\\ud83c\\udf89", null]}', ' \n{"a": [1, "🎉", null]}']
)
@pytest.mark.parametrize("file", ["a.json", ""])
def test_json_is_told_by_its_name_or_its_first_character(text, file):
    document = read_text(text, file)
    assert document.root is not None
    assert plain(document.root) == {"a": [1, "🎉", None]}


def test_a_yaml_file_may_start_with_a_brace():
    document = read_text("{a: [1, b]}", "a.yaml")
    assert document.root is not None
    assert plain(document.root) == {"a": [1, "b"]}


def test_a_json_file_is_held_to_json():
    assert codes(read_text("a: 1", "a.json")) == ["RCP007"]
    assert codes(read_text("{'a': 1}", "a.json")) == ["RCP007"]


def test_nothing_is_an_empty_file():
    for text in ("", "\n", "# only a comment\n", "\ufeff"):
        document = read_text(text)
        assert document.root is None
        assert codes(document) == ["RCP016"]
    assert codes(read_text("", "a.json")) == ["RCP016"]


def test_the_digest_is_that_of_the_text():
    assert read_text("a: é").source.digest == sha256("a: é".encode()).hexdigest()
