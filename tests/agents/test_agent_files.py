"""The agents a recipe may name: bundled < user < .claude/agents < project < agents.dirs."""

from pathlib import Path

from stretto.agents.agent_files import (
    AgentFile,
    list_agents,
    load_catalog,
    read_agent_file,
)
from stretto.registry.entry_points import own_points
from stretto.registry.folders import Folder
from support.recipes import flat, problem_of


def agent_files(folders: tuple[Path, ...], project: Path) -> dict[str, AgentFile]:
    """The files that count."""
    listed = list_agents((Folder(folder, "") for folder in folders), project)
    return {each.name: each.read for each in listed if each.shadowed_by is None}


def write(file: Path, role: str = "x", head: str = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\ndescription: {role}\n{head}---\nDo it.\n")
    return file


def test_the_package_ships_a_useful_set_without_problems(tmp_path):
    files = agent_files((), tmp_path)
    assert {"researcher", "writer", "reviewer", "explorer", "worker", "default"} <= set(files)
    assert set(files) == set(own_points("stretto.agents"))
    assert [(id, each.problems) for id, each in files.items() if each.problems] == []
    assert all(each.agent and each.agent.prompt and each.agent.role for each in files.values())


def test_the_agents_that_the_seeds_name_are_among_them(tmp_path):
    catalog = load_catalog((), tmp_path)
    assert {"researcher", "threat_scanner", "vuln_analyst", "intel_reporter"} <= set(catalog.agents)
    assert catalog.broken == {}


def test_a_bundled_agent_is_read_when_it_is_asked_for_and_once(tmp_path, monkeypatch):
    read: list[str] = []

    def count(path: Path, *more: object) -> AgentFile:
        read.append(path.stem)
        return read_agent_file(path, *more)

    monkeypatch.setattr("stretto.agents.agent_files.read_agent_file", count)
    agents = load_catalog((), tmp_path).agents
    assert set(agents) == set(own_points("stretto.agents"))
    assert len(agents) == len(set(agents))
    assert read == []
    assert agents["writer"] is agents["writer"]
    assert agents.get("nobody") is None
    assert read == ["writer"]


def test_the_agents_in_the_catalog_are_those_of_the_files(tmp_path):
    write(tmp_path / "writer.md", "mine")
    write(tmp_path / "judge.md", head="max_turns: many\n")
    files = agent_files((tmp_path,), tmp_path)
    usable = {id: each.agent for id, each in files.items() if each.agent}
    agents = load_catalog((tmp_path,), tmp_path).agents
    assert dict(agents) == usable
    assert sorted(agents) == list(usable)


def test_a_later_folder_wins(tmp_path):
    user, project = tmp_path / "user", tmp_path / "project"
    write(user / "writer.md", "the user's")
    assert load_catalog((user,), tmp_path).agents["writer"].role == "the user's"
    write(project / "writer.yaml.md", "unrelated")
    write(project / "my-writer.md", "the project's", "name: writer\n")
    assert load_catalog((user, project), tmp_path).agents["writer"].role == "the project's"
    assert load_catalog((project, user), tmp_path).agents["writer"].role == "the user's"


def test_files_are_read_anew_at_every_question(tmp_path):
    assert "newcomer" not in load_catalog((tmp_path,), tmp_path).agents
    file = write(tmp_path / "newcomer.md", "first")
    assert load_catalog((tmp_path,), tmp_path).agents["newcomer"].role == "first"
    write(file, "second")
    assert load_catalog((tmp_path,), tmp_path).agents["newcomer"].role == "second"
    file.unlink()
    assert "newcomer" not in load_catalog((tmp_path,), tmp_path).agents


def test_only_the_folder_of_another_tool_may_have_its_keys(tmp_path):
    claude, ours = tmp_path / ".claude" / "agents", tmp_path / "agents"
    write(claude / "theirs.md", head="color: red\n")
    write(ours / "ours.md", head="color: red\n")
    catalog = load_catalog((claude, ours), tmp_path)
    assert "theirs" in catalog.agents
    assert "ours" not in catalog.agents
    assert catalog.broken["ours"].code == "RCP101"


def test_a_broken_file_stays_listed_and_shadows(tmp_path):
    write(tmp_path / "writer.md", head="max_turns: many\n")
    files = agent_files((tmp_path,), tmp_path)
    assert files["writer"].agent is None
    assert files["writer"].file == "writer.md"
    catalog = load_catalog((tmp_path,), tmp_path)
    assert "writer" not in catalog.agents
    assert catalog.broken["writer"].code == "RCP103"


def test_a_recipe_that_names_a_broken_agent_is_told_where_it_is_broken(tmp_path):
    write(tmp_path / "agents" / "mine.md", head="max_turns: many\n")
    catalog = load_catalog((tmp_path / "agents",), tmp_path)
    problem = problem_of(flat("{id: a, subagent: mine, prompt: x}"), catalog=catalog)
    assert problem.code == "RCP108"
    assert problem.hint.startswith("its file cannot be used: agents/mine.md:3: 'max_turns' must be")


def test_a_file_of_an_agent_knows_no_inputs(tmp_path):
    read = read_agent_file(write(tmp_path / "mine.md", head='timeout: "{{inputs.limit}}"\n'))
    assert [(problem.code, problem.place.line) for problem in read.problems] == [("RCP110", 3)]


def test_folders_that_are_not_there_hold_nothing(tmp_path):
    assert set(agent_files((tmp_path / "no",), tmp_path)) == set(agent_files((), tmp_path))


def test_hidden_and_other_files_are_no_agents(tmp_path):
    for name in (".a.md", "_b.md", "c.txt", "d.json"):
        write(tmp_path / name)
    assert set(agent_files((tmp_path,), tmp_path)) == set(agent_files((), tmp_path))
