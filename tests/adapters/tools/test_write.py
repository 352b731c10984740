"""Write, Edit, MultiEdit and NotebookEdit: in the write-set, whole, and nowhere else."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from stretto.adapters.tools.files import Files
from stretto.adapters.tools.notebook import notebook_edit
from stretto.adapters.tools.write import edit, multi_edit, write
from stretto.ports.tool import Tool
from stretto.vocabulary.json_value import Json
from support.toolbench import called, copy_of, reach_of, tree


def test_a_file_is_made_with_its_folders_and_replaced(tmp_path: Path) -> None:
    told = called(write, reach_of(tmp_path), file_path="a/b/c.txt", content="héllo\n")
    assert told.text == "Made a/b/c.txt: 7 bytes."
    told = called(write, reach_of(tmp_path), file_path="./a//b/c.txt", content="")
    assert told.text == "Replaced a/b/c.txt: 0 bytes."
    assert tree(tmp_path) == {"a/b/c.txt": b""}


def test_an_old_file_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("old")
    (tmp_path / "run.sh").chmod(0o755)
    called(write, reach_of(tmp_path), file_path="run.sh", content="new")
    assert (tmp_path / "run.sh").stat().st_mode & 0o777 == 0o755


CALLS: list[tuple[Callable[[Files], Tool], dict[str, Json]]] = [
    (write, {"file_path": "F", "content": "changed"}),
    (edit, {"file_path": "F", "old_string": "old", "new_string": "changed"}),
    (multi_edit, {"file_path": "F", "edits": [{"old_string": "old", "new_string": "changed"}]}),
    (notebook_edit, {"notebook_path": "F", "cell_number": 0, "new_source": "changed"}),
]


@pytest.mark.parametrize(("make", "arguments"), CALLS)
@pytest.mark.parametrize(
    "path", ["secret.txt", "../outside.txt", "/etc/stretto", ".git/config", "out/.git/hooks/x", "a\0b",
             "out/link.txt", "out/up/secret.txt", "", "out/\ud800"],
)  # fmt: skip
def test_nothing_is_written_outside_the_write_set(
    tmp_path: Path, make: Callable[[Files], Tool], arguments: dict[str, Json], path: str
) -> None:
    workspace = tmp_path / "w"
    (workspace / "out").mkdir(parents=True)
    (workspace / ".git").mkdir()
    for file in (".git/config", "secret.txt", "../outside.txt"):
        (workspace / file).write_text('{"cells": [{"source": "old"}]}')
    (workspace / "out" / "link.txt").symlink_to("../secret.txt")
    (workspace / "out" / "up").symlink_to("..")
    before = tree(tmp_path)
    arguments = {name: path if value == "F" else value for name, value in arguments.items()}
    told = called(make, reach_of(workspace, write_set=("out/**",)), **arguments)
    is_no_path = path in ("", "out/\ud800")
    assert told.verdict == ("error" if is_no_path else "refused"), told.text
    assert tree(tmp_path) == before


@pytest.mark.parametrize(("make", "arguments"), CALLS)
def test_nothing_is_written_in_a_read_only_step(
    tmp_path: Path, make: Callable[[Files], Tool], arguments: dict[str, Json]
) -> None:
    (tmp_path / "F").write_text("old")
    told = called(make, reach_of(tmp_path, may_write=False), **arguments)
    assert (told.verdict, "read-only" in told.text) == ("refused", True)
    assert tree(tmp_path) == {"F": b"old"}


def ignoring(folder: Path) -> Path:
    for file in ("out/old.txt", "node_modules/a.js", "a.txt"):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text('{"cells": [{"source": "old"}]}')
    (folder / ".gitignore").write_text("out/\n")
    return folder


@pytest.mark.parametrize(("make", "arguments"), CALLS)
@pytest.mark.parametrize(
    ("path", "because"),
    [
        ("out/old.txt", "not in this step's copy"),
        ("node_modules/a.js", "which copies leave out"),
        ("x/.venv/pyvenv.cfg", "which copies leave out"),
        ("deps/a.js", "carried into this copy to be read only"),
        ("deps", "carried into this copy to be read only"),
    ],
)
def test_what_could_not_reach_the_workspace_is_refused_in_a_copy(
    tmp_path: Path,
    make: Callable[[Files], Tool],
    arguments: dict[str, Json],
    path: str,
    because: str,
) -> None:
    origin = ignoring(tmp_path / "ws")
    (origin / "deps").mkdir()
    reach = copy_of(origin, tmp_path / "copy", "deps")
    before = tree(tmp_path)
    arguments = {name: path if value == "F" else value for name, value in arguments.items()}
    told = called(make, reach, **arguments)
    assert (told.verdict, because in told.text) == ("refused", True), told.text
    assert tree(tmp_path) == before


def test_a_new_file_under_an_ignored_path_is_made_in_a_copy(tmp_path: Path) -> None:
    reach = copy_of(ignoring(tmp_path / "ws"), tmp_path / "copy")
    for path in ("out/new.txt", "b.txt"):
        assert called(write, reach, file_path=path, content="x").text == f"Made {path}: 1 bytes."
    # What the step itself has made, it may change.
    assert called(write, reach, file_path="out/new.txt", content="y").verdict == "ok"


def test_the_refusal_tells_what_may_be_written(tmp_path: Path) -> None:
    reach = reach_of(tmp_path, write_set=("out/**", "docs"))
    told = called(write, reach, file_path="src/a.py", content="x")
    assert told.text == "Refused: 'src/a.py' is outside what you may write: out/**, docs"


def test_an_edit_replaces_what_occurs_once(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 2\n")
    told = called(
        edit, reach_of(tmp_path), file_path="a.py", old_string="x = 1\ny", new_string="z = 3\ny"
    )
    assert told.text == "Changed a.py in 1 place."
    assert (tmp_path / "a.py").read_text() == "z = 3\ny = 2\n"


def test_what_occurs_twice_is_not_guessed_at_but_may_be_replaced_everywhere(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a\nb\na\n")
    told = called(edit, reach_of(tmp_path), file_path="a.py", old_string="a", new_string="c")
    assert told.verdict == "error"
    assert "occurs 2 times, at lines 1, 3" in told.text
    assert (tmp_path / "a.py").read_text() == "a\nb\na\n"
    arguments: dict[str, Json] = {"old_string": "a", "new_string": "c", "replace_all": True}
    told = called(edit, reach_of(tmp_path), file_path="a.py", **arguments)
    assert told.text == "Changed a.py in 2 places."
    assert (tmp_path / "a.py").read_text() == "c\nb\nc\n"


def test_what_does_not_occur_is_answered_with_what_is_nearest(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os\n\ndef  total(rows, rate):\n    return 1\n")
    told = called(
        edit, reach_of(tmp_path), file_path="a.py",
        old_string="def total(rows, rate):\n  return 1", new_string="x",
    )  # fmt: skip
    assert told.verdict == "error"
    assert "The nearest is at line 3" in told.text
    assert "def  total(rows, rate):\n    return 1" in told.text


@pytest.mark.parametrize("old", ["b\nc", "b\r\nc"])
def test_windows_line_ends_stay(tmp_path: Path, old: str) -> None:
    (tmp_path / "a").write_bytes(b"a\r\nb\r\nc\r\n")
    called(edit, reach_of(tmp_path), file_path="a", old_string=old, new_string="1\n2\r\n3")
    assert (tmp_path / "a").read_bytes() == b"a\r\n1\r\n2\r\n3\r\n"


def test_mixed_line_ends_keep_those_of_the_place(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\nb\r\nc\r\nd\n")
    called(edit, reach_of(tmp_path), file_path="a", old_string="b\nc", new_string="1\n2")
    assert (tmp_path / "a").read_bytes() == b"a\n1\r\n2\r\nd\n"


def test_bytes_that_are_no_utf_8_survive_an_edit_beside_them(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfcaf\xe9 = old\n")
    called(edit, reach_of(tmp_path), file_path="a", old_string="old", new_string="näw")
    assert (tmp_path / "a").read_bytes() == b"\xef\xbb\xbfcaf\xe9 = n\xc3\xa4w\n"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [("", "x", "at least 1 character"), ("a", "a", "the same"), ("a", "\ud800", "lone surrogate")],
)
def test_an_edit_that_makes_no_sense_is_told_so(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    (tmp_path / "a").write_text("a")
    told = called(edit, reach_of(tmp_path), file_path="a", old_string=old, new_string=new)
    assert (told.verdict, said in told.text) == ("error", True)
    assert (tmp_path / "a").read_text() == "a"


def test_several_edits_are_made_in_order_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one two")
    good: list[Json] = [
        {"old_string": "one", "new_string": "three"},
        {"old_string": "three two", "new_string": "four"},
    ]
    bad: list[Json] = [*good, {"old_string": "gone", "new_string": "x"}]
    told = called(multi_edit, reach_of(tmp_path), file_path="a", edits=bad)
    assert told.text.startswith(
        "Error: nothing was changed: edit 3 of 3: old_string does not occur"
    )
    assert (tmp_path / "a").read_text() == "one two"
    assert called(multi_edit, reach_of(tmp_path), file_path="a", edits=good).verdict == "ok"
    assert (tmp_path / "a").read_text() == "four"


def test_binary_files_are_not_edited(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\0b")
    told = called(edit, reach_of(tmp_path), file_path="a", old_string="a", new_string="b")
    assert told.text == "Error: the file is binary; only text can be edited"


def test_only_what_may_be_read_can_be_edited(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("secret")
    reach = reach_of(tmp_path, read_set=("docs",))
    assert called(edit, reach, file_path="a", old_string="s", new_string="t").verdict == "refused"


NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "id": "m", "metadata": {}, "source": "# Títle"},
        {"cell_type": "code", "id": "c", "metadata": {}, "source": ["1+1"],
         "outputs": [{"data": 2}], "execution_count": 4},
    ],
    "metadata": {"kernelspec": {"name": "python3"}}, "nbformat": 4, "nbformat_minor": 5,
}  # fmt: skip


def test_a_cell_is_replaced_inserted_and_deleted(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps(NOTEBOOK))
    reach = reach_of(tmp_path)
    told = called(notebook_edit, reach, notebook_path="n.ipynb", cell_id="c", new_source="2+2")
    assert told.text == "Replaced cell 1 of n.ipynb; it has 2 cells now."
    changed = json.loads(path.read_text())
    assert changed["cells"][1]["source"] == "2+2"
    assert (changed["cells"][1]["outputs"], changed["cells"][1]["execution_count"]) == ([], None)
    assert changed["metadata"] == NOTEBOOK["metadata"]
    assert "Títle" in path.read_text()
    called(
        notebook_edit, reach, notebook_path="n.ipynb", edit_mode="insert", cell_id="m",
        cell_type="markdown", new_source="between",
    )  # fmt: skip
    called(notebook_edit, reach, notebook_path="n.ipynb", edit_mode="delete", cell_number=0)
    sources = [cell["source"] for cell in json.loads(path.read_text())["cells"]]
    assert sources == ["between", "2+2"]


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        ("no json", {"cell_number": 0}, "it is not JSON"),
        ("[]", {"cell_number": 0}, "no list of cells"),
        ("[" * 100_000, {"cell_number": 0}, "it is not JSON"),
        (json.dumps(NOTEBOOK), {}, "which cell?"),
        (json.dumps(NOTEBOOK), {"cell_id": "x"}, "no cell with the id 'x'"),
        (json.dumps(NOTEBOOK), {"cell_number": 9, "new_source": ""}, "there is no cell"),
        (json.dumps(NOTEBOOK), {"edit_mode": "insert"}, "cell_type is missing"),
    ],
)
def test_a_notebook_that_cannot_be_changed_stays_as_it_is(
    tmp_path: Path, content: str, arguments: dict[str, Json], said: str
) -> None:
    (tmp_path / "n.ipynb").write_text(content)
    told = called(notebook_edit, reach_of(tmp_path), notebook_path="n.ipynb", **arguments)
    assert (told.verdict, said in told.text) == ("error", True), told.text
    assert (tmp_path / "n.ipynb").read_text() == content


def cells_after(folder: Path, minor: int, **arguments: Json) -> list[dict[str, Json]]:
    cell = {
        "cell_type": "code",
        "source": "1",
        "metadata": {},
        "outputs": [1],
        "execution_count": 1,
    }
    book = {"nbformat": 4, "nbformat_minor": minor, "metadata": {}, "cells": [cell]}
    (folder / "n.ipynb").write_text(json.dumps(book))
    told = called(notebook_edit, reach_of(folder), notebook_path="n.ipynb", **arguments)
    assert told.verdict == "ok", told.text
    return list(json.loads((folder / "n.ipynb").read_text())["cells"])


def test_code_that_becomes_text_keeps_nothing_that_it_printed(tmp_path: Path) -> None:
    [cell] = cells_after(tmp_path, 5, cell_number=0, new_source="text", cell_type="markdown")
    assert cell == {"cell_type": "markdown", "source": "text", "metadata": {}}


@pytest.mark.parametrize(("minor", "has_id"), [(4, False), (5, True)])
def test_a_cell_has_an_id_where_its_format_has_ids(
    tmp_path: Path, minor: int, has_id: bool
) -> None:
    made, _ = cells_after(tmp_path, minor, edit_mode="insert", new_source="x", cell_type="markdown")
    assert ("id" in made) == has_id


def test_the_nearest_line_is_counted_as_editors_count(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ftwo\fthree\nfour\nthe wanted words stand here\n")
    told = called(
        edit, reach_of(tmp_path), file_path="a.py", old_string="the wanted words stood here",
        new_string="x",
    )  # fmt: skip
    assert "nearest is at line 3" in told.text
