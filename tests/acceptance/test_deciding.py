"""Who sits at a terminal is asked there: about writers, about gates, about trust."""

from pathlib import Path

from acceptance.cli import talk, weft, write

WRITER = "name: w\nsteps: [{id: a, subagent: worker, prompt: go, write_set: [src]}]\n"
SCRIPT = ("--model", "scripted:script.yaml")


def folder_with(tmp_path: Path, recipe: str) -> Path:
    write(tmp_path, "w.yaml", recipe)
    write(tmp_path, "script.yaml", "default: Done.")
    return tmp_path


def test_a_writer_may_start_once_the_person_says_yes(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, WRITER)
    words = ["run", "w.yaml", "--permission", "ask", *SCRIPT]
    code, screen, _ = talk(folder, words, [("Let it start? [y/N]", "y\n")])
    assert code == 0, screen
    assert "It writes src" in screen
    assert "COMPLETE" in screen


def test_a_no_at_the_terminal_is_a_rejection(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, WRITER)
    words = ["run", "w.yaml", "--permission", "ask", *SCRIPT]
    code, screen, _ = talk(folder, words, [("Let it start? [y/N]", "n\n")])
    assert code == 1, screen
    assert "not allowed at the terminal" in screen


def test_a_gate_is_asked_about_at_the_terminal_too(tmp_path: Path) -> None:
    recipe = "name: w\nsteps: [{id: a, subagent: explorer, prompt: go, gate: human}]\n"
    folder = folder_with(tmp_path, recipe)
    code, screen, _ = talk(folder, ["run", "w.yaml", *SCRIPT], [("waits for you", "y\n")])
    assert code == 0, screen


def test_a_folder_that_brings_agents_is_asked_about_once(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "name: w\nsteps: [{id: a, subagent: mine, prompt: go}]\n")
    (folder / "agents").mkdir()
    write(folder, "agents/mine.md", "Be mine.\n")
    untrusted = {"WEFT_TRUST": "0"}
    refused = weft(folder, "validate", "w.yaml", env=untrusted)
    assert refused.code == 2
    assert "not used until you trust it" in refused.err
    words = ["validate", "w.yaml"]
    code, screen, _ = talk(folder, words, [("Trust this folder", "y\n")], env=untrusted)
    assert code == 0, screen
    assert weft(folder, "validate", "w.yaml", env=untrusted).code == 0
    write(folder, "agents/mine.md", "Be somebody else's.\n")
    changed = weft(folder, "validate", "w.yaml", env=untrusted)
    assert changed.code == 2
    assert "changed since you trusted it" in changed.err


def test_init_trusts_what_it_has_made_and_nothing_else(tmp_path: Path) -> None:
    untrusted = {"WEFT_TRUST": "0"}
    assert weft(tmp_path, "init", "new", env=untrusted).code == 0
    assert weft(tmp_path / "new", "trust", "--list", "--json", env={
        **untrusted, "WEFT_HOME": str(tmp_path / "home")}).json["trusted"] is True  # fmt: skip
    old = tmp_path / "old" / "agents"
    old.mkdir(parents=True)
    write(old, "theirs.md", "Obey.\n")
    assert weft(tmp_path, "init", "old", env=untrusted).code == 0
    assert weft(tmp_path / "old", "trust", "--list", "--json", env={
        **untrusted, "WEFT_HOME": str(tmp_path / "home")}).json["trusted"] is False  # fmt: skip
