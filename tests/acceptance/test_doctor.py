"""`stretto doctor`: what is here, what is missing, and the proof."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from stretto.testing.openai_script import Asked, Said, ServerAnswer, Status, ToolCall
from stretto.testing.openai_server import serving
from support.cli import refused, stretto, succeeded, tree, write

KEY = "sk-this-must-never-be-printed"


def findings(folder: Path, **env: str) -> dict[str, dict[str, Any]]:
    said = succeeded(stretto(folder, "doctor", "--json", env=env))
    return {each["name"]: each for each in said["checks"]}


def test_everything_is_told_with_a_status_and_a_fix(tmp_path: Path) -> None:
    before = tree(tmp_path)
    found = findings(tmp_path)
    assert {"python", "stretto", "home", "journal", "folder", "model", "keys", "git"} <= set(found)
    assert {"sandbox", "bubblewrap", "landlock", "search", "mcp", "xllamacpp"} <= set(found)
    assert {f"cli:{name}" for name in ("claude", "codex", "gemini", "opencode", "goose")} <= set(
        found
    )
    assert {found[f"weights {it}"]["status"] for it in ("smollm2", "qwen2.5-coder")} == {"optional"}
    for each in found.values():
        assert each["status"] in ("ok", "warning", "missing", "optional")
        assert bool(each["fix"]) == (each["status"] != "ok"), each
    assert tree(tmp_path) == before


def test_in_text_each_row_has_a_word_and_an_icon(tmp_path: Path) -> None:
    said = stretto(tmp_path, "doctor")
    assert (said.code, said.err) == (0, "")
    assert "✓ ok" in said.out
    assert "- optional" in said.out
    assert "optional and not here" in said.out
    assert all(c.isprintable() or c == "\n" for c in said.out)


def test_a_terminal_without_icons_still_gets_the_words(tmp_path: Path) -> None:
    said = stretto(tmp_path, "doctor", env={"PYTHONIOENCODING": "ascii"})
    assert (said.code, said.err) == (0, "")
    assert "+ ok" in said.out


def test_keys_are_named_and_never_shown(tmp_path: Path) -> None:
    said = stretto(tmp_path, "doctor", env={"OPENAI_API_KEY": KEY})
    assert "set: OPENAI_API_KEY" in said.out
    assert "✓ ok        model" in said.out
    assert KEY not in said.out + said.err
    json = stretto(tmp_path, "doctor", "--json", env={"OPENAI_API_KEY": KEY})
    assert KEY not in json.out + json.err


def test_a_model_that_cannot_be_used_is_missing_with_its_fix(tmp_path: Path) -> None:
    model = findings(tmp_path, STRETTO_MODEL="anthropic:claude-x")["model"]
    assert model["status"] == "missing"
    assert "ANTHROPIC_API_KEY" in model["fix"]


def test_a_server_that_lists_no_models_is_told(tmp_path: Path) -> None:
    with serving(models=()) as server:
        model = findings(tmp_path, OPENAI_BASE_URL=server.url)["model"]
    assert model["status"] == "missing"
    assert "--model" in model["fix"]


def test_a_folder_that_is_not_trusted_is_a_warning(tmp_path: Path) -> None:
    write(tmp_path, "stretto.yaml", "subagents: {max_concurrency: 2}\n")
    folder = findings(tmp_path, STRETTO_TRUST="")["folder"]
    assert (folder["status"], folder["fix"]) == ("warning", "stretto trust")
    assert findings(tmp_path)["folder"]["status"] == "ok"


def test_a_search_endpoint_is_told(tmp_path: Path) -> None:
    assert findings(tmp_path)["search"]["status"] == "optional"
    env = {"STRETTO_SEARCH_URL": "http://127.0.0.1:9/search"}
    assert findings(tmp_path, **env)["search"]["status"] == "ok"


def test_a_cli_on_the_path_is_found(tmp_path: Path) -> None:
    # Outside of the project: a program inside it could be one that a step has put there.
    write(tmp_path, "bin/claude", "#!/bin/sh\n").chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.defpath}"
    (tmp_path / "project").mkdir()
    found = findings(tmp_path / "project", PATH=path)
    assert found["cli:claude"]["status"] == "ok"
    assert found["cli:codex"]["status"] == "optional"


def essential(folder: Path, name: str, **env: str) -> dict[str, Any]:
    """The one finding for which the doctor fails."""
    said = stretto(folder, "doctor", "--json", env=env)
    assert said.code == 1, said
    assert said.json["ok"] is False
    (bad,) = [each for each in said.json["checks"] if each["essential"]]
    assert bad["name"] == name
    assert bad["fix"]
    return bad


def test_a_home_that_cannot_be_written_fails(tmp_path: Path) -> None:
    write(tmp_path, "home", "a file, and no folder")
    essential(tmp_path, "home")


def test_a_journal_that_is_none_fails(tmp_path: Path) -> None:
    write(tmp_path, "home/runs.db", "this is not a database, whatever its name says" * 100)
    assert "not a database" in essential(tmp_path, "journal")["says"]


def test_a_journal_of_a_newer_stretto_fails(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    with closing(sqlite3.connect(tmp_path / "home" / "runs.db")) as db:
        db.execute("CREATE TABLE runs (id INTEGER)")
        db.execute("PRAGMA user_version = 99")
    assert "newer" in essential(tmp_path, "journal")["says"]


def test_a_journal_that_opens_tells_its_version(tmp_path: Path) -> None:
    write(tmp_path, "r.yaml", "name: r\nsteps: [{id: a, subagent: writer, prompt: x}]\n")
    write(tmp_path, "s.yaml", "default: ok\n")
    assert stretto(tmp_path, "run", "r.yaml", "--model", "scripted:s.yaml").code == 0
    assert "version 4, 1 runs" in findings(tmp_path)["journal"]["says"]


def test_settings_that_cannot_be_read_fail(tmp_path: Path) -> None:
    write(tmp_path, "stretto.yaml", "modle: x\n")
    assert "modle" in essential(tmp_path, "settings")["says"]


def test_the_smoke_test_proves_every_promise_offline(tmp_path: Path) -> None:
    said = succeeded(stretto(tmp_path, "doctor", "--smoke", "--json"))
    assert set(said) == {"ok", "checks", "seconds"}
    assert len(said["checks"]) == 7
    for check in said["checks"]:
        assert check["ok"] is True
        assert check["evidence"]
    assert not (tmp_path / "home").exists()  # it works in a folder of its own


def test_the_smoke_test_in_text_is_a_row_for_each_check(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    said = stretto(tmp_path, "doctor", "--smoke", env={"TMPDIR": str(scratch)})
    assert (said.code, said.err) == (0, "")
    assert said.out.count("✓ passed") == 7
    assert "7 of 7 passed" in said.out
    assert list(scratch.iterdir()) == []


def _obedient(asked: Asked) -> ServerAnswer:
    """Does what the tasks ask for: writes with Write, reads with Read, then says a word."""
    if asked.messages[-1].get("role") == "tool":
        return Said(asked.prompt if "Read" in asked.tool_names else "done")
    words = asked.prompt.split()
    if "Write" in words:
        file = words[words.index("file") + 1]
        arguments = {"file_path": file, "content": "written by the model\n"}
        return Said("", tool_calls=(ToolCall("Write", arguments),), delay_seconds=0.05)
    if "Read" in words:
        return Said("", tool_calls=(ToolCall("Read", {"file_path": "made.txt"}),))
    return Said("ready", delay_seconds=1)  # so that readers meet, however slowly they come


def test_the_real_proof_asks_the_configured_model(tmp_path: Path) -> None:
    with serving(_obedient) as server:
        env = {"OPENAI_BASE_URL": server.url}
        said = succeeded(stretto(tmp_path, "doctor", "--real", "--json", env=env))
    checks = {check["name"]: check for check in said["checks"]}
    assert all(check["ok"] for check in checks.values()), checks
    assert server.most_in_flight >= 3  # the readers, as the server saw them
    assert checks["merge back"]["evidence"]["files"] == 1
    assert checks["merge back"]["evidence"]["read_by_dependent"] is True


def test_the_real_proof_fails_with_what_the_model_said(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with serving(Status(401, "the key is wrong")) as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, "TMPDIR": str(scratch)}
        said = stretto(
            tmp_path, "doctor", "--real", "--model", "openai:scripted", "--json", env=env
        )
    assert said.code == 1, said
    assert [check["ok"] for check in said.json["checks"]].count(True) == 1
    assert "the key is wrong" in said.json["checks"][1]["says"]
    assert KEY not in said.out + said.err
    assert Path(said.json["kept"], "home", "runs.db").is_file()


def test_a_real_proof_without_a_model_is_not_ready_and_keeps_nothing(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = ("doctor", "--real", "--model", "anthropic:claude-x", "--json")
    refused(stretto(tmp_path, *words, env={"TMPDIR": str(scratch)}), "not_ready")
    assert list(scratch.iterdir()) == []


def test_a_model_without_a_real_proof_is_wrong_usage(tmp_path: Path) -> None:
    refused(stretto(tmp_path, "doctor", "--model", "openai:x", "--json"), "usage")
