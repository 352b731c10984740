"""What an editor asks while a recipe is written: outlines, edits, references, templates, drafts."""

import json
from pathlib import Path

from support.served import Served, served

TEXT = """\
name: notes   # mine
inputs: [{name: topic, required: true}]
steps:
  - {id: find, subagent: researcher, prompt: "About {{inputs.topic}}"}
  - {id: write, subagent: writer, prompt: "{{steps.find.output}}"}
  - {id: check, subagent: reviewer, prompt: x}
"""


def edited(server: Served, text: str, **edit: object) -> str:
    answer = server.client().post("/api/recipes/edit", json={"recipe": text, "edit": edit})
    assert answer.status_code == 200, answer.text
    recipe: str = answer.json()["recipe"]
    return recipe


def test_an_outline_has_the_edges_and_the_exact_places_of_problems(server: Served) -> None:
    broken = TEXT.replace("steps.find.output", "steps.fnd.output")
    answer = server.client().post("/api/recipes/outline", json={"recipe": broken})
    found = answer.json()
    assert (answer.status_code, found["dialect"]) == (200, "flat")
    assert [(each["id"], each["line"]) for each in found["steps"]] == [
        ("find", 4),
        ("write", 5),
        ("check", 6),
    ]
    problem = found["problems"][0]
    line = broken.splitlines()[problem["line"] - 1]
    start = problem["column"] - 1
    assert line[start : start + problem["width"]] == "fnd"
    whole = server.client().post("/api/recipes/outline", json={"recipe": TEXT}).json()
    assert whole["problems"] == []
    assert whole["steps"][1]["depends_on"] == [{"step": "find", "why": "reference"}]
    assert "writer" in [each["id"] for each in whole["agents"]]


def test_steps_are_edited_in_the_text_and_a_mark_before_it_stays(server: Served) -> None:
    text = "\ufeff" + TEXT.replace("\n", "\r\n")
    connected = edited(server, text, do="connect", before="write", step="check")
    assert connected == text.replace(
        "subagent: reviewer, prompt", "subagent: reviewer, depends_on: [write], prompt"
    )
    assert edited(server, connected, do="disconnect", before="write", step="check") == text
    added = edited(server, text, do="add", id="last", agent="writer", instruction="End.")
    assert added.startswith(text)
    assert edited(server, added, do="remove", step="last") == text
    renamed = edited(server, text, do="rename", step="find", id="look")
    assert renamed == text.replace("find", "look")


def test_an_edit_that_cannot_be_is_refused_with_the_reason(server: Served) -> None:
    client = server.client()
    for status, kind, edit in (
        (422, "usage", {"do": "connect", "before": "write", "step": "find"}),
        (409, "in_use", {"do": "remove", "step": "find"}),
        (404, "not_found", {"do": "rename", "step": "nobody", "id": "x"}),
        (422, "usage", {"do": "rename", "step": "find", "id": "write"}),
        (422, "usage", {"do": "add", "id": "x"}),
    ):
        answer = client.post("/api/recipes/edit", json={"recipe": TEXT, "edit": edit})
        error = answer.json()["error"]
        assert (answer.status_code, error["kind"]) == (status, kind)
        if kind == "in_use":
            assert [each["line"] for each in error["details"]["problems"]] == [5]
    unread = client.post(
        "/api/recipes/edit", json={"recipe": "a: [", "edit": {"do": "remove", "step": "x"}}
    )
    assert unread.status_code == 422
    assert "line 1" in unread.json()["error"]["details"]["hint"]


def test_references_are_offered_for_a_place(server: Served) -> None:
    line = TEXT.splitlines()[4]
    body = {"recipe": "\ufeff" + TEXT, "line": 5, "column": line.index("{{steps") + 3}
    found = server.client().post("/api/recipes/references", json=body).json()
    assert found["where"] == "prompt of step write"
    names = [each["text"] for each in found["references"]]
    assert {"inputs.topic", "steps.find.output", "steps.check.output"} <= set(names)
    assert not any(name.startswith("steps.write") for name in names)


def test_there_are_a_schema_and_templates_to_start_from(server: Served) -> None:
    client = server.client()
    assert "definitions" in client.get("/api/recipes/schema").json()["schema"]
    found = client.get("/api/recipes/templates").json()["templates"]
    assert all(each["description"] for each in found)
    for each in found:
        path = f"/api/recipes/templates/{each['template']}"
        text = client.post(path, json={"name": "my-own"}).json()["recipe"]
        outline = client.post("/api/recipes/outline", json={"recipe": text}).json()
        assert (outline["workflow"], outline["problems"]) == ("my-own", [])
    assert client.post("/api/recipes/templates/none", json={"name": "x"}).status_code == 422


def test_the_names_are_listed_that_a_recipe_may_use(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "agents").mkdir()
    agent = "---\nname: clerk\ntools: mcp__files__read, Read\nmodel: openai:clerk-1\n---\nDo it.\n"
    (tmp_path / "agents" / "clerk.md").write_text(agent)
    config = "mcp_servers:\n  files: {command: /bin/true}\n"
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "stretto.yaml").write_text(config)
    with served(tmp_path, {"notes": TEXT}, {"STRETTO_MODEL": "embedded"}) as server:
        found = server.client().get("/api/recipes/names").json()
    names = {kind: [each["name"] for each in found[kind]] for kind in found if kind != "ok"}
    assert {"Read", "Bash", "mcp__files__*", "mcp__files__read"} <= set(names["tools"])
    assert {"embedded", "openai:clerk-1"} <= set(names["models"])
    assert "notes" in names["workflows"]
    assert "docs/**" in names["folders"]
    assert not any(".hidden" in each or "loop" in each for each in names["folders"])
    writing = next(each for each in found["tools"] if each["name"] == "Write")
    assert writing["about"] == "may change files"


def test_saving_keeps_marks_line_ends_and_json(server: Served) -> None:
    client, folder = server.client(), server.folder / "workflows"
    texts = {
        "marked": "\ufeff" + TEXT.replace("notes", "marked").replace("\n", "\r\n"),
        "endless": TEXT.replace("notes", "endless").rstrip("\n"),
        "braces": "{name: braces, steps: [{id: a, subagent: writer, prompt: x}]} # so\n",
    }
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_bytes(text.encode())
    value = {"name": "plain", "steps": [{"id": "a", "subagent": "writer", "prompt": "é"}]}
    (folder / "plain.json").write_text(json.dumps(value, indent=3))
    for file in ("marked.yaml", "endless.yaml", "braces.yaml", "plain.json"):
        name, before = Path(file).stem, (folder / file).read_bytes()
        shown = client.get(f"/api/workflows/{name}").json()
        same = client.put(f"/api/workflows/{name}", json={"recipe": shown["text"]})
        assert (same.status_code, same.json()["version"]) == (200, 0), same.text
        assert (folder / file).read_bytes() == before
        other = shown["text"].replace("x", "xx").replace("\\u00e9", "e")
        saved = client.put(f"/api/workflows/{name}", json={"recipe": other})
        assert saved.status_code == 200, saved.text
        assert (folder / file).read_bytes().decode() == other


def test_words_become_a_draft_that_nobody_has_run_or_saved(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(
        "default: Hello!\ndraft:\n  - |\n"
        + "".join(f"    {line}\n" for line in TEXT.replace("   # mine", "").splitlines())
    )
    env = {"STRETTO_MODEL": f"scripted:{tmp_path / 'script.yaml'}"}
    with served(tmp_path, env=env) as server:
        answer = server.client().post("/api/drafts", json={"words": "find, then write"})
        draft = answer.json()["draft"]
        assert (answer.status_code, draft["problems"]) == (200, [])
        assert "id: find" in draft["recipe"]
        assert "find" in draft["diagram"]
        names = [e["name"] for e in server.client().get("/api/workflows").json()["workflows"]]
        assert "notes" not in names
