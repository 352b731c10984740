"""Precedence: environment > project > user > default. Only the user may raise limits."""

import json
from pathlib import Path

import pytest

from stretto.config.settings import (
    DEFAULT_SERVER,
    ServerSettings,
    Settings,
    find_project,
    load_settings,
)
from stretto.problems.errors import InvalidConfig
from stretto.vocabulary.amounts import DEFAULT_LIMITS


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def loaded(project: Path, home: Path, **environ: str) -> Settings:
    return load_settings(project, {"STRETTO_HOME": str(home), "STRETTO_TRUST": "1", **environ})


def problems(project: Path, home: Path, **environ: str) -> list[tuple[str, str, int]]:
    with pytest.raises(InvalidConfig) as raised:
        loaded(project, home, **environ)
    return [
        (each.code, Path(each.file).parent.name, each.place.line if each.place else 0)
        for each in raised.value.problems
    ]


def test_everything_has_a_default(project, home):
    settings = loaded(project, home)
    assert settings == Settings(
        project=project,
        home=home,
        workflows_dir=project / "workflows",
        agents_dirs=(home / "agents", project / ".claude" / "agents", project / "agents"),
        max_concurrency=4,
        model=None,
        permission="auto",
        limits=DEFAULT_LIMITS,
    )
    assert settings.user_workflows_dir == home / "workflows"


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "{}\n"])
def test_an_empty_file_says_nothing(project, home, text):
    (project / "stretto.yaml").write_text(text)
    assert loaded(project, home) == loaded(project, home)
    assert loaded(project, home).max_concurrency == 4


def test_the_project_comes_before_the_user_and_the_environment_before_both(project, home):
    (home / "stretto.yaml").write_text(
        "model: u:1\nsubagents: {max_concurrency: 2}\npermission: ask\n"
    )
    settings = loaded(project, home)
    assert (settings.model, settings.max_concurrency, settings.permission) == ("u:1", 2, "ask")
    (project / "stretto.yaml").write_text("model: p:1\nsubagents: {max_concurrency: 3}\n")
    settings = loaded(project, home)
    assert (settings.model, settings.max_concurrency, settings.permission) == ("p:1", 3, "ask")
    settings = loaded(project, home, STRETTO_MODEL="e:1", STRETTO_MAX_CONCURRENCY="9")
    assert (settings.model, settings.max_concurrency, settings.permission) == ("e:1", 9, "ask")


def test_folders_are_relative_to_the_file_that_names_them(project, home):
    (home / "stretto.yaml").write_text("agents: {dirs: mine}\n")
    (project / "stretto.yaml").write_text("workflows: {dir: flows}\nagents: {dirs: [a, /b]}\n")
    settings = loaded(project, home)
    assert settings.workflows_dir == project / "flows"
    assert settings.agents_dirs[1] == home / "mine"  # the user's own come before the project's
    assert settings.agents_dirs[4:] == (project / "a", Path("/b"))
    settings = loaded(project, home, STRETTO_WORKFLOWS_DIR="other")
    assert settings.workflows_dir == project / "other"


def test_an_empty_variable_says_nothing(project, home):
    settings = loaded(
        project, home, STRETTO_MODEL="", STRETTO_MAX_CONCURRENCY="", STRETTO_WORKFLOWS_DIR=""
    )
    assert settings == loaded(project, home)


def test_the_project_is_the_nearest_folder_with_a_file(project):
    inner = project / "a" / "b"
    inner.mkdir(parents=True)
    assert find_project(inner) == inner
    (project / "stretto.yaml").touch()
    assert find_project(inner) == project
    (project / "a" / "stretto.yaml").touch()
    assert find_project(inner) == project / "a"


def test_every_documented_key_is_accepted(project, home):
    (project / "stretto.yaml").write_text(
        "model: a:b\nworkflows: {dir: w, enabled: false}\nsubagents: {max_concurrency: 2}\n"
        "permission: read_only\nagents: {dirs: [x]}\nplaybooks: {dirs: y}\nmcp_servers: {s: {}}\n"
        "budget: {tokens: 1, usd: 2, agents: 3}\nengine: local\nserver: {port: 1}\n"
    )
    assert loaded(project, home).permission == "read_only"


# --- limits --------------------------------------------------------------------------------


def test_the_user_may_change_any_limit(project, home):
    (home / "stretto.yaml").write_text("limits: {steps: 9000, branches: 64, text_bytes: 5000000}\n")
    limits = loaded(project, home).limits
    assert (limits.steps, limits.branches, limits.text_bytes) == (9000, 64, 5_000_000)
    assert limits.depth == DEFAULT_LIMITS.depth


def test_a_project_may_not(project, home):
    (project / "stretto.yaml").write_text("model: a:b\nlimits: {steps: 9000}\n")
    assert problems(project, home) == [("CFG001", "project", 2)]


def test_the_user_s_own_folder_is_not_a_project_without_rights(home):
    (home / "stretto.yaml").write_text("limits: {steps: 9000}\n")
    assert loaded(home, home).limits.steps == 9000


@pytest.mark.parametrize(
    "limit", ["steps: 0", "depth: 201", "nodes: -1", "branches: many", "dept: 5"]
)
def test_a_limit_has_bounds_and_a_name(project, home, limit):
    (home / "stretto.yaml").write_text(f"limits:\n  {limit}\n")
    ((code, folder, line),) = problems(project, home)
    assert code in ("RCP101", "RCP103", "RCP111")
    assert (folder, line) == ("home", 2)


# --- the server and the store --------------------------------------------------------------


def test_the_server_s_settings_are_those_of_both_files_key_by_key(project, home):
    assert loaded(project, home).server == DEFAULT_SERVER
    own = "server: {port: 8000, workers: 3, host: '::1', public: true, allow_hosts: box.example}\n"
    (home / "stretto.yaml").write_text(own)
    (project / "stretto.yaml").write_text("server: {port: 8001}\n")
    found = loaded(project, home).server
    assert found == ServerSettings("::1", 8001, True, ("box.example",), 3)


@pytest.mark.parametrize("key", ["host: 0.0.0.0", "public: true", "allow_hosts: [evil.example]"])
def test_a_project_does_not_say_who_reaches_the_server(project, home, key):
    (project / "stretto.yaml").write_text(f"server:\n  port: 1\n  {key}\n")
    assert problems(project, home) == [("CFG001", "project", 3)]


def test_a_folder_that_is_not_trusted_says_nothing_of_the_server(project, home):
    (project / "stretto.yaml").write_text("server: {port: 1}\n")
    settings = load_settings(project, {"STRETTO_HOME": str(home)})
    assert (settings.is_trusted, settings.server) == (False, DEFAULT_SERVER)


def test_the_store_is_the_user_s_choice(project, home):
    (home / "stretto.yaml").write_text("store: memory\n")
    assert loaded(project, home).store == "memory"
    (project / "stretto.yaml").write_text("store: memory\n")
    assert problems(project, home) == [("CFG001", "project", 1)]


# --- mistakes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("modle: a:b\n", "RCP101", 1),
        ("search: {kind: tavily}\n", "RCP102", 1),
        ("model: [a]\n", "RCP103", 1),
        ("model: ' '\n", "RCP103", 1),
        ("permission: never\n", "RCP109", 1),
        ("engine: cluster\n", "RCP109", 1),
        ("engine: temporal\n", "RCP109", 1),
        ("server: 7317\n", "RCP103", 1),
        ("server: {prot: 7317}\n", "RCP101", 1),
        ("server:\n  port: 65536\n", "RCP111", 2),
        ("server:\n  workers: 0\n", "RCP111", 2),
        ("subagents:\n  max_concurrency: 0\n", "RCP111", 2),
        ("subagents:\n  max_concurency: 2\n", "RCP101", 2),
        ("workflows: yes\n", "RCP103", 1),
        ("workflows:\n  enabled: 1\n", "RCP103", 2),
        ("budget: {usd: 0}\n", "RCP111", 1),
        ("a: [\n  b\n", "RCP005", 1),
        ("- a\n", "RCP103", 1),
        ("model: a\nmodel: b\n", "RCP012", 2),
        ("model: &x a\n", "RCP010", 1),
    ],
)
def test_a_mistake_is_told_with_its_place(project, home, text, code, line):
    (project / "stretto.yaml").write_text(text)
    assert problems(project, home) == [(code, "project", line)]


def test_mistakes_of_all_files_and_variables_are_told_at_once(project, home):
    (home / "stretto.yaml").write_text("modle: a\npermission: no\n")
    (project / "stretto.yaml").write_text("engine: x\n")
    told = problems(project, home, STRETTO_MAX_CONCURRENCY="lots")
    assert [code for code, _, _ in told] == ["CFG002", "RCP101", "RCP109", "RCP109"]


@pytest.mark.parametrize("width", ["0", "1001", "-1", "four", "4.5", " "])
def test_a_width_in_the_environment_is_a_number_from_1_to_1000(project, home, width):
    assert problems(project, home, STRETTO_MAX_CONCURRENCY=width) == [("CFG002", "", 0)]


@pytest.mark.parametrize(
    "text", ["workflows: {dir: %s}\n", "agents: {dirs: [%s, x]}\n", "playbooks: {dirs: %s}\n"]
)
@pytest.mark.parametrize(("folder", "code"), [("~nosuch/x", "RCP103"), ('"a\\0b"', "RCP004")])
def test_a_folder_that_no_path_can_be_is_one_problem_and_only_if_it_counts(
    project, home, text, folder, code
):
    (project / "stretto.yaml").write_text(text % folder)
    assert problems(project, home) == [(code, "project", 1)]
    assert not load_settings(project, {"STRETTO_HOME": str(home)}).is_trusted


def test_a_folder_of_the_environment_that_no_path_can_be_is_a_problem(project, home):
    assert problems(project, home, STRETTO_WORKFLOWS_DIR="~nosuch/x") == [("CFG002", "", 0)]


@pytest.mark.parametrize("word", ["~nosuch/x", "--to=~nosuch/x", "x" * 5_000])
def test_a_word_of_a_server_that_no_path_can_be_names_no_file(project, home, word):
    server = {"command": word, "args": [word], "env": {"A": word}}
    (project / "stretto.yaml").write_text(json.dumps({"mcp_servers": {"x": server}}))
    assert load_settings(project, {"STRETTO_HOME": str(home)}).steering


@pytest.mark.parametrize("key", ["agents", "playbooks"])
def test_a_folder_whose_name_is_too_long_holds_nothing(project, home, key):
    (project / "stretto.yaml").write_text(f"{key}: {{dirs: [{'x' * 5_000}]}}\n")
    assert loaded(project, home).is_trusted


def test_a_user_without_a_home_may_name_one(project, home, monkeypatch):
    def nobody(uid):
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    settings = loaded(project, home)
    assert not settings.is_in_home
    assert loaded(home, home).is_in_home


def test_an_invalid_config_has_exit_code_2(project, home):
    (project / "stretto.yaml").write_bytes(b"model: \xff")
    with pytest.raises(InvalidConfig) as raised:
        loaded(project, home)
    assert raised.value.exit_code == 2
    assert [problem.code for problem in raised.value.problems] == ["RCP003"]
