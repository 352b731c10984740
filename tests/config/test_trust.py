"""A folder's own settings and agents count once the user trusts them."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stretto.config.programs import MOST_PROGRAM_BYTES
from stretto.config.settings import Settings, load_settings
from stretto.config.trust import TrustStore, describe_files
from stretto.documents.regular_file import NotRegular, TooLarge, read_regular
from stretto.problems.errors import StrettoError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "agents").mkdir(parents=True)
    (folder / "stretto.yaml").write_text("model: openai:theirs\n")
    (folder / "agents" / "helper.md").write_text("Be helpful.\n")
    return folder


def load(project: Path, **environ: str) -> Settings:
    return load_settings(project, {"STRETTO_HOME": str(project.parent / "home"), **environ})


def trust(project: Path) -> None:
    settings = load(project)
    TrustStore(settings.home).trust(settings.project, settings.digest)


def test_nothing_of_an_untrusted_folder_is_used(project: Path) -> None:
    settings = load(project)
    assert not settings.is_trusted
    assert settings.model is None
    assert project / "agents" not in settings.agents_dirs
    assert describe_files(settings.steering, project) == "stretto.yaml and 1 agent file"


def test_a_trusted_folder_is_used(project: Path) -> None:
    trust(project)
    settings = load(project)
    assert settings.is_trusted
    assert settings.model == "openai:theirs"
    assert project / "agents" in settings.agents_dirs


@pytest.mark.parametrize("file", ["stretto.yaml", "agents/helper.md", "agents/new.md"])
def test_any_change_asks_again(project: Path, file: str) -> None:
    trust(project)
    (project / file).write_text("model: openai:other\n")
    settings = load(project)
    assert not settings.is_trusted
    assert settings.model is None
    assert TrustStore(settings.home).was_trusted(project)


def test_agents_in_a_configured_folder_and_of_other_tools_are_watched_too(project: Path) -> None:
    (project / "stretto.yaml").write_text("agents: {dirs: more}\n")
    for folder in (project / "more", project / ".claude" / "agents"):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text("One.\n")
        trust(project)
        assert load(project).is_trusted
        (folder / "a.md").write_text("Two.\n")
        assert not load(project).is_trusted


def test_a_broken_config_of_an_untrusted_folder_is_nobodys_problem(project: Path) -> None:
    (project / "stretto.yaml").write_text("modle: x\n")
    assert not load(project).is_trusted


def test_the_environment_may_trust(project: Path) -> None:
    assert load(project, STRETTO_TRUST="1").is_trusted
    assert not load(project, STRETTO_TRUST="0").is_trusted


def test_a_folder_that_brings_nothing_needs_no_trust(tmp_path: Path) -> None:
    assert load(tmp_path).is_trusted


def test_trust_of_one_folder_is_not_that_of_another(project: Path, tmp_path: Path) -> None:
    trust(project)
    other = tmp_path / "other"
    other.mkdir()
    (other / "stretto.yaml").write_text("model: openai:theirs\n")
    assert not load(other).is_trusted


def test_a_damaged_list_trusts_nobody(project: Path) -> None:
    trust(project)
    (project.parent / "home" / "trust.json").write_text("{")
    assert not load(project).is_trusted


def test_agents_outside_the_project_are_watched_if_the_project_names_them(project: Path) -> None:
    outside = project.parent / "shared-agents"
    outside.mkdir()
    (outside / "a.md").write_text("One.\n")
    (project / "stretto.yaml").write_text("agents: {dirs: ../shared-agents}\n")
    trust(project)
    assert load(project).is_trusted
    (outside / "a.md").write_text("Two.\n")
    assert not load(project).is_trusted


def test_the_users_own_agents_are_nobody_elses_trust(project: Path) -> None:
    own = project.parent / "home" / "agents"
    own.mkdir(parents=True)
    trust(project)
    (own / "mine.md").write_text("Mine.\n")
    assert load(project).is_trusted


def test_many_at_once_are_all_kept(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from stretto.config.trust import TrustStore\n"
        "TrustStore(Path(sys.argv[1])).trust(Path(sys.argv[2]), 'd')"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "home"), f"/project-{i}"])
        for i in range(12)
    ]
    assert [child.wait(60) for child in started] == [0] * 12
    store = TrustStore(tmp_path / "home")
    assert all(store.is_trusted(Path(f"/project-{i}"), "d") for i in range(12))


def test_a_huge_file_and_a_pipe_beside_the_agents_are_not_read(project: Path) -> None:
    before = load(project).digest
    with open(project / "agents" / "huge.bin", "wb") as huge:
        huge.truncate(2**40)  # sparse: reading it would take hours
    os.mkfifo(project / "agents" / "pipe.md")
    assert load(project).digest != before


def test_another_content_of_a_huge_program_asks_again(project: Path) -> None:
    (project / "stretto.yaml").write_text("mcp_servers: {mail: {command: bin/server}}\n")
    (project / "bin").mkdir()
    program = project / "bin" / "server"
    with open(program, "wb") as file:
        file.truncate(MOST_PROGRAM_BYTES + 1)
    trust(project)
    assert load(project).is_trusted
    time.sleep(0.05)  # longer than a tick of the file system's clock
    with open(program, "r+b") as file:
        file.write(b"something else")
    os.utime(program, (1000, 1000))  # which hides nothing
    assert not load(project).is_trusted


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotRegular):
        read_regular(tmp_path / "pipe", 10)
    with pytest.raises(NotRegular):
        read_regular(Path("/dev/zero"), 10)
    with pytest.raises(NotRegular):
        read_regular(tmp_path, 10)
    (tmp_path / "file").write_bytes(b"12345678901")
    with pytest.raises(TooLarge):
        read_regular(tmp_path / "file", 10)
    assert read_regular(tmp_path / "file", 11) == b"12345678901"


def test_a_folder_of_more_agents_than_anybody_reads_is_refused(project: Path) -> None:
    for number in range(2_001):
        (project / "agents" / f"a{number}.md").touch()
    with pytest.raises(StrettoError, match="more than 2,000 files"):
        load(project)


NARROW = """
permission: read_only
subagents: {max_concurrency: 2}
budget: {tokens: 100}
workspace: {max_files: 10, max_mib: 10, carry: [deps]}
model: openai:theirs
sandbox: "off"
cli_commands: [sh]
"""
WIDE = "permission: auto\nsubagents: {max_concurrency: 9}\nbudget: {tokens: 9000, usd: 7}\n"
USERS = "permission: ask\nsubagents: {max_concurrency: 3}\nbudget: {tokens: 500}\n"


def users_own(project: Path, text: str) -> None:
    home = project.parent / "home"
    home.mkdir(exist_ok=True)
    (home / "stretto.yaml").write_text(text)


@pytest.mark.parametrize("was_trusted", [False, True])
def test_what_only_narrows_counts_without_trust(project: Path, was_trusted: bool) -> None:
    users_own(project, USERS)
    if was_trusted:
        trust(project)
    (project / "stretto.yaml").write_text(NARROW)  # an edit takes the trust away
    settings = load(project)
    assert not settings.is_trusted
    assert (settings.permission, settings.max_concurrency) == ("read_only", 2)
    assert (settings.budget.tokens, settings.budget.usd) == (100, None)
    assert (settings.workspace.max_files, settings.workspace.max_mib) == (10, 10)
    assert (settings.workspace.carry, settings.model) == ((), None)
    assert (settings.sandbox, settings.cli_commands) == ("auto", ())


def test_nothing_is_widened_without_trust(project: Path) -> None:
    users_own(project, USERS)
    (project / "stretto.yaml").write_text(WIDE)
    settings = load(project)
    assert (settings.permission, settings.max_concurrency) == ("ask", 3)
    # A budget where the user has none is narrower than none.
    assert (settings.budget.tokens, settings.budget.usd) == (500, 7)


SKILL = "---\ndescription: How to help.\n---\nHelp.\n"


def test_the_playbooks_of_a_folder_count_once_it_is_trusted(project: Path) -> None:
    book = project / "playbooks" / "helping" / "SKILL.md"
    book.parent.mkdir(parents=True)
    book.write_text(SKILL)
    (book.parent / "more.md").write_text("More.")
    settings = load(project)
    assert settings.playbooks.project_dir is None
    said = describe_files(settings.steering, project)
    assert said == "stretto.yaml, 1 agent file and 1 playbook"
    trust(project)
    settings = load(project)
    assert settings.playbooks.project_dir == project / "playbooks"
    assert "playbooks" in settings.protected
    (book.parent / "more.md").write_text("Other.")
    assert load(project).playbooks.project_dir is None


def test_a_folder_of_other_playbooks_is_no_concern_of_ours(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "playbooks").mkdir(parents=True)
    (project / "playbooks" / "site.yml").write_text("- hosts: all\n")
    settings = load(project)
    assert (settings.steering, settings.protected) == ((), ())
    assert settings.playbooks.project_dir is None  # what appears there later is trusted by nobody


def test_a_project_may_turn_playbooks_off_without_trust(project: Path) -> None:
    (project / "stretto.yaml").write_text("playbooks: {enabled: false, dirs: [more], top: 9}\n")
    settings = load(project)
    assert not settings.is_trusted
    assert not settings.playbooks.is_enabled
    assert (settings.playbooks.dirs, settings.playbooks.top) == ((), 3)
