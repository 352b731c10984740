"""`stretto validate`: what is fine, what is not, and where."""

import os
import time
from pathlib import Path

import pytest

from support.cli import (
    BAD,
    GOOD,
    SHIPPED,
    SOUND,
    problems,
    refused,
    stretto,
    succeeded,
    tree,
    write,
)


def test_a_good_file_is_ok(tmp_path: Path) -> None:
    write(tmp_path, "good.yaml", GOOD)
    said = stretto(tmp_path, "validate", "good.yaml")
    assert (said.code, said.err) == (0, "")
    assert "good.yaml" in said.out
    assert said.out == "ok good.yaml (good, 3 steps)\n"
    write(tmp_path, "workflows/good.yaml", GOOD)
    # By its name, which is then said once.
    assert stretto(tmp_path, "validate", "good").out == "ok good (3 steps)\n"


def test_a_good_file_is_ok_in_json_and_nothing_more(tmp_path: Path) -> None:
    write(tmp_path, "good.yaml", GOOD)
    assert succeeded(stretto(tmp_path, "validate", "good.yaml", "--json")) == SOUND


def test_every_problem_comes_at_once_with_its_place(tmp_path: Path) -> None:
    write(tmp_path, "bad.yaml", BAD)
    found = problems(stretto(tmp_path, "validate", "bad.yaml", "--json"))
    assert [(p["file"], p["line"], p["column"], p["path"]) for p in found] == [
        ("bad.yaml", 4, 15, "steps[0].subagent"),
        ("bad.yaml", 6, 5, "steps[0].depend_on"),
        ("bad.yaml", 9, 22, "steps[1].prompt"),
    ]
    assert [p["hint"] for p in found[:2]] == [
        "did you mean 'researcher'?",
        "did you mean 'depends_on'?",
    ]
    assert all(p["code"].startswith("RCP") and p["message"] for p in found)


def test_the_text_shows_the_line_and_a_caret_under_the_word(tmp_path: Path) -> None:
    write(tmp_path, "bad.yaml", BAD)
    said = stretto(tmp_path, "validate", "bad.yaml")
    assert said.code == 2
    lines = said.out.splitlines()
    at = next(i for i, line in enumerate(lines) if "bad.yaml:4:15" in line)
    assert lines[at + 1].endswith("subagent: researchr")
    assert lines[at + 2].index("^") == lines[at + 1].index("researchr")
    assert "did you mean 'researcher'?" in lines[at + 2]


def test_many_files_are_checked_in_one_go(tmp_path: Path) -> None:
    write(tmp_path, "one.yaml", GOOD)
    write(tmp_path, "two.yaml", BAD)
    write(tmp_path, "three.yaml", "name: x\nsteps: []\n")
    found = problems(stretto(tmp_path, "validate", "one.yaml", "two.yaml", "three.yaml", "--json"))
    assert {p["file"] for p in found} == {"two.yaml", "three.yaml"}


def test_many_good_files_are_ok(tmp_path: Path) -> None:
    write(tmp_path, "one.yaml", GOOD)
    write(tmp_path, "two.yaml", GOOD.replace("name: good", "name: two"))
    said = stretto(tmp_path, "validate", "one.yaml", "two.yaml")
    assert said.code == 0
    assert [line.split()[1] for line in said.out.splitlines()] == ["one.yaml", "two.yaml"]


def test_a_folder_stands_for_the_recipes_in_it(tmp_path: Path) -> None:
    write(tmp_path, "mine/a.yaml", GOOD)
    write(tmp_path, "mine/b.yml", BAD)
    write(tmp_path, "mine/notes.txt", "not a recipe")
    found = problems(stretto(tmp_path, "validate", "mine", "--json"))
    assert {p["file"] for p in found} == {"mine/b.yml"}


def test_without_a_name_the_projects_recipes_are_checked(tmp_path: Path) -> None:
    write(tmp_path, "workflows/a.yaml", GOOD)
    assert succeeded(stretto(tmp_path, "validate", "--json")) == SOUND


def test_a_saved_name_is_validated(tmp_path: Path) -> None:
    assert succeeded(stretto(tmp_path, "validate", "research-and-brief", "--json")) == SOUND


def test_stdin_is_read_for_a_dash(tmp_path: Path) -> None:
    assert succeeded(stretto(tmp_path, "validate", "-", "--json", stdin=GOOD)) == SOUND
    found = problems(stretto(tmp_path, "validate", "-", "--json", stdin=BAD))
    assert [p["line"] for p in found] == [4, 6, 9]


def test_json_recipes_are_read_too(tmp_path: Path) -> None:
    text = '{"name": "j", "steps": [{"id": "a", "subagent": "writer", "prompt": "x"}]}'
    write(tmp_path, "j.json", text)
    assert stretto(tmp_path, "validate", "j.json").code == 0
    assert stretto(tmp_path, "validate", "-", stdin=text).code == 0


def test_everything_shipped_is_valid(tmp_path: Path) -> None:
    assert succeeded(stretto(tmp_path, "validate", *SHIPPED, "--json")) == SOUND


DEEP = 200_000
HOPELESS = {
    "empty": b"",
    "blank": b"\n\n   \n",
    "comments": b"# nothing but this\n",
    "text": b"just words",
    "list": b"- a\n- b\n",
    "binary": bytes(range(256)) * 8,
    "nul": b"name: a\0b\nsteps: []\n",
    "escape": b"name: \x1b[31mred\nsteps: []\n",
    "latin": "name: café\nsteps: []\n".encode("latin-1"),
    "utf16": "name: x\nsteps: []\n".encode("utf-16"),
    "tabs": b"name: x\nsteps:\n\t- id: a\n",
    "unclosed": b'name: "x\nsteps: [\n',
    "brackets": b"[" * DEEP,
    "braces": b"{a: " * DEEP,
    "dashes": b"- " * DEEP,
    "alias": b"a: &a [x]\nb: [*a, *a]\n",
    "laughs": b"a: &a [x,x]\n"
    + b"".join(b"%c: &%c [*%c,*%c]\n" % (c, c, c - 1, c - 1) for c in range(98, 120)),
    "merge": b"name: x\nbase: &b {id: a}\nsteps: [{<<: *b}]\n",
    "twice": b"name: x\nname: y\nsteps: []\n",
    "documents": b"name: x\n---\nname: y\n",
    "tag": b"name: !!python/object/apply:os.system ['true']\nsteps: []\n",
    "large": b"# " + b"x" * 10_000_000,
    "values": b"name: x\nsteps: [" + b"1," * 60_000 + b"]\n",
}


@pytest.mark.parametrize("name", HOPELESS)
def test_hopeless_content_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path, f"{name}.yaml", HOPELESS[name])
    before = tree(tmp_path)
    found = problems(stretto(tmp_path, "validate", f"{name}.yaml", "--json"))
    assert {p["file"] for p in found} == {f"{name}.yaml"}
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["binary", "large", "brackets", "escape"])
def test_what_is_said_about_hopeless_content_is_short_and_printable(
    tmp_path: Path, name: str
) -> None:
    write(tmp_path, f"{name}.yaml", HOPELESS[name])
    said = stretto(tmp_path, "validate", f"{name}.yaml")
    assert said.code == 2
    assert len(said.out + said.err) < 2000
    assert all(letter.isprintable() or letter == "\n" for letter in said.out + said.err)


@pytest.mark.parametrize("name", ["empty", "binary", "brackets", "large"])
def test_hopeless_stdin_is_refused(tmp_path: Path, name: str) -> None:
    assert problems(stretto(tmp_path, "validate", "-", "--json", stdin=HOPELESS[name]))


def test_hopeless_json_is_refused(tmp_path: Path) -> None:
    for number, text in enumerate((b"", b"{", b"[" * DEEP, b'{"a": 1, "a": 2}', b'{"name": NaN}')):
        write(tmp_path, f"{number}.json", text)
    found = problems(stretto(tmp_path, "validate", ".", "--json"))
    assert {p["file"] for p in found} == {f"{number}.json" for number in range(5)}


def test_a_missing_file_is_a_problem_of_that_file(tmp_path: Path) -> None:
    (problem,) = problems(stretto(tmp_path, "validate", "nope.yaml", "--json"))
    assert problem["file"] == "nope.yaml"
    assert (problem["line"], problem["column"]) == (None, None)
    assert "No such file" in problem["message"]


def test_a_name_nobody_saved_is_not_found(tmp_path: Path) -> None:
    error = refused(stretto(tmp_path, "validate", "research-and-breif", "--json"), "not_found")
    assert error["details"]["hint"] == "did you mean 'research-and-brief'?"


def test_a_folder_without_recipes_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "hollow").mkdir()
    refused(stretto(tmp_path, "validate", "hollow", "--json"), "not_found")


def test_a_folder_named_like_a_recipe_is_no_recipe(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").mkdir()
    refused(stretto(tmp_path, "plan", "odd.yaml", "--json"), "invalid_recipe")
    refused(stretto(tmp_path, "validate", "odd.yaml", "--json"), "not_found")


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        reason = "root may read every file, whatever its permissions"
        print(reason)
        pytest.skip(reason)
    write(tmp_path, "locked.yaml", GOOD).chmod(0)
    (problem,) = problems(stretto(tmp_path, "validate", "locked.yaml", "--json"))
    assert "Permission denied" in problem["message"]


def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    started = time.monotonic()
    (problem,) = problems(stretto(tmp_path, "validate", "pipe.yaml", "--json"))
    assert "not a regular file" in problem["message"]
    assert time.monotonic() - started < 50, "only the helper's patience ended it"


def test_a_folder_with_a_pipe_in_it_does_not_hang(tmp_path: Path) -> None:
    write(tmp_path, "mine/a.yaml", GOOD)
    os.mkfifo(tmp_path / "mine" / "pipe.yaml")
    assert succeeded(stretto(tmp_path, "validate", "mine", "--json")) == SOUND


def test_a_device_is_not_read(tmp_path: Path) -> None:
    assert problems(stretto(tmp_path, "validate", "/dev/zero", "--json"))


def test_a_link_that_leads_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    assert problems(stretto(tmp_path, "validate", "loop.yaml", "--json"))


def test_a_broken_config_is_refused_with_its_place(tmp_path: Path) -> None:
    write(tmp_path, "good.yaml", GOOD)
    write(tmp_path, "stretto.yaml", "modl: x\n")
    (problem,) = problems(stretto(tmp_path, "validate", "good.yaml", "--json"), "invalid_config")
    assert (problem["line"], problem["column"]) == (1, 1)
    assert problem["hint"] == "did you mean 'model'?"
