"""What no command may change or read, though it lies in what the command may write."""

import asyncio
import multiprocessing
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from stretto.adapters.workspaces import LocalWorkspaces
from stretto.ports.workspace import SharedWorkspace, UndeclaredChanges
from stretto.workspaces.protected import Protected
from stretto.workspaces.sandbox.confinement import CommandRefused, Confinement, Ran
from stretto.workspaces.sandbox.repository_guard import TopGuard
from stretto.workspaces.sandbox.sandbox import Sandbox, Setting
from support.sandboxes import confined, find, globs, run


@pytest.fixture(params=["bubblewrap", "landlock"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    setting: Setting = request.param
    return find(setting)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text("original\n")
    return tmp_path


def git(*words: str, at: Path) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *words], cwd=at, check=True, capture_output=True)


def asked_git_runs(at: Path) -> bool:
    """Whether git, asked there, runs what a repository's config names."""
    environment = {**os.environ, "MARK": str(at.parent / "ran-by-git")}
    for folder in [at, *(path for path in at.rglob("*") if path.is_dir() and path.name != ".git")]:
        subprocess.run(
            ["git", "status"], cwd=folder, capture_output=True, env=environment, check=False
        )
    return (at.parent / "ran-by-git").exists()


EVIL = """
evil() {
  mkdir -p "$1/objects" "$1/refs"
  echo 'ref: refs/heads/main' > "$1/HEAD"
  printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = "touch $MARK; false"\\n' > "$1/config"
  printf '\\tworktree = %s\\n' "$PWD" >> "$1/config"
}
"""

WAYS = {
    "beside the sources": "evil src/x/.git",
    "bare": "evil src/bare.git",
    "bare, of a folder that is there": "evil src",
    "bare, of the workspace itself": "evil .",
    "a file that leads to one": "evil src/g; mkdir src/w; echo 'gitdir: ../g' > src/w/.git",
    "a link that leads to one": "evil src/g; mkdir src/w; ln -s ../g src/w/.git",
    "a worktree of one": "evil src/g; mkdir -p src/g/worktrees/w src/w; cd src/g/worktrees/w; "
    "echo 'ref: refs/heads/main' > HEAD; echo ../.. > commondir; cd ../../../w; "
    "echo 'gitdir: ../g/worktrees/w' > .git",
    "a module in one": "evil src/x/.git/modules/m; evil src/x/.git",
    "in other letters": "evil src/x/.GIT",
    "in a folder that was closed": "evil src/x/.git; chmod 000 src/x/.git/config; chmod 700 src/x",
}


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("writes", ["**", "src/**"])
def test_no_repository_is_left_behind(
    sandbox: Sandbox, workspace: Path, way: str, writes: str
) -> None:
    top = "evil ." if WAYS[way] == "evil ." else ""
    ran = run(sandbox, EVIL + (top or WAYS[way]), confined(workspace, writes))
    assert not asked_git_runs(workspace)
    if not (top and writes == "src/**"):
        assert ran.new_repositories


@pytest.mark.parametrize("writes", ["src/*", "src/*/*", "*"])
def test_no_repository_is_taken_back_from_a_copy(
    sandbox: Sandbox, workspace: Path, writes: str
) -> None:
    (workspace / "src/refs").mkdir()
    (workspace / "src/objects").mkdir()
    command = EVIL + "evil src; evil .; touch src/objects/x src/refs/x objects/x refs/x"
    run(sandbox, command, confined(workspace, writes))
    assert not asked_git_runs(workspace)


def test_what_was_taken_for_a_repository_is_kept_under_another_name(
    sandbox: Sandbox, workspace: Path
) -> None:
    ran = run(sandbox, "git init -q src/x 2>&1; mkdir -p src/x/.git", confined(workspace, "src"))
    assert ran.new_repositories == ("src/x/.git",)
    assert not (workspace / "src/x/.git").exists()
    assert (workspace / "src/x/.git.kept-out").is_dir()


@pytest.fixture
def with_submodule(tmp_path: Path) -> Path:
    for name in ("lib", "top"):
        (tmp_path / name).mkdir()
        git("init", "-q", at=tmp_path / name)
        (tmp_path / name / "f.txt").write_text("f")
        git("add", "-A", at=tmp_path / name)
        git("commit", "-q", "-m", "first", at=tmp_path / name)
    add = ("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "lib"))
    git(*add, "vendor/deep/lib", at=tmp_path / "top")
    git("commit", "-q", "-m", "second", at=tmp_path / "top")
    return tmp_path / "top"


SWAPS = {
    "itself": "mv vendor/deep/lib vendor/old; evil vendor/deep/lib/.git",
    "the folder above": "mv vendor/deep vendor/old; evil vendor/deep/lib/.git",
    "two above": "mv vendor old; evil vendor/deep/lib/.git",
    "by a link": "mv vendor/deep/lib vendor/old; mkdir x; evil x/.git; ln -s ../../x vendor/deep/lib",
    "its file": "rm -f vendor/deep/lib/.git; evil vendor/deep/lib/.git",
    "by removing": "rm -rf vendor; evil vendor/deep/lib/.git",
    "by exchanging": "mkdir -p y/deep/lib; evil y/deep/lib/.git; mv --exchange y vendor",
    "its module": "evil .git/modules/vendor/deep/lib",
}


@pytest.mark.parametrize("swap", list(SWAPS))
@pytest.mark.parametrize("writes", ["**", "vendor/**"])
def test_a_submodule_cannot_be_swapped(
    sandbox: Sandbox, with_submodule: Path, swap: str, writes: str
) -> None:
    run(sandbox, EVIL + SWAPS[swap], confined(with_submodule, writes))
    assert not asked_git_runs(with_submodule)
    assert (with_submodule / "vendor/deep/lib/.git").is_file()


def test_a_link_to_a_repository_is_put_back(sandbox: Sandbox, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    git("init", "-q", str(tmp_path / "real"), at=tmp_path)
    (workspace / ".git").symlink_to(tmp_path / "real/.git")
    ran = run(sandbox, EVIL + "rm .git; evil .git", confined(workspace, "**"))
    assert not asked_git_runs(workspace)
    assert (workspace / ".git").readlink() == tmp_path / "real/.git"
    assert ran.new_repositories == (".git",)


def test_a_bare_repository_that_is_there_stays_as_it_is(sandbox: Sandbox, workspace: Path) -> None:
    git("init", "-q", "--bare", "fixtures/r.git", at=workspace)
    before = (workspace / "fixtures/r.git/config").read_text()
    for writes in ("**", "fixtures/**", "fixtures/r.git/**", "fixtures/r.git/config", "*/*/*"):
        command = "echo x >> fixtures/r.git/config; mv fixtures f2; rm -rf fixtures/r.git"
        run(sandbox, command, confined(workspace, writes))
        assert (workspace / "fixtures/r.git/config").read_text() == before


def test_branches_side_by_side_keep_one_guard(sandbox: Sandbox, workspace: Path) -> None:
    """The first to end must not take the guard away from who still works."""

    async def both() -> list[Ran | CommandRefused]:
        long = EVIL + "touch begun; while ! [ -e go ]; do sleep 0.02; done; evil .git; ls -A .git"
        working = asyncio.create_task(sandbox.run(long, confined(workspace, "**")))
        while not (workspace / "begun").exists():
            await asyncio.sleep(0.01)
        await asyncio.gather(*(sandbox.run("true", confined(workspace, "**")) for _ in range(3)))
        (workspace / "go").touch()
        return [await working]

    (ran,) = asyncio.run(both())
    assert isinstance(ran, Ran)
    assert "Read-only file system" in ran.output
    assert not asked_git_runs(workspace)
    assert not (workspace / ".git").exists()


def test_the_guard_goes_with_the_last_of_several_processes(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    guard = TopGuard(fd)
    gone, done = multiprocessing.Event(), multiprocessing.Event()
    child = multiprocessing.Process(target=_hold, args=(tmp_path, gone, done))
    child.start()
    assert gone.wait(30)
    guard.close()
    assert (tmp_path / ".git").is_dir()
    done.set()
    child.join()
    assert not (tmp_path / ".git").exists()
    os.close(fd)


def _hold(
    place: Path,
    ready: "multiprocessing.synchronize.Event",
    done: "multiprocessing.synchronize.Event",
) -> None:
    guard = TopGuard(os.open(place, os.O_RDONLY))
    ready.set()
    done.wait(30)
    guard.close()


def test_a_guard_that_a_killed_process_left_is_taken_over(
    sandbox: Sandbox, workspace: Path
) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".git").chmod(0o1755)  # by which it is known as ours
    run(sandbox, "true", confined(workspace, "**"))
    assert not (workspace / ".git").exists()


# --- what is ours, and what is secret


def kept(workspace: Path, *writes: str, **kinds: tuple[str, ...]) -> Confinement:
    protected = Protected(kinds.get("protected", ()))
    return replace(
        confined(workspace, *writes), protected=protected, hidden=kinds.get("hidden", ())
    )


def test_what_is_protected_cannot_be_changed_or_moved(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / "tools/venv/bin").mkdir(parents=True)
    (workspace / "tools/venv/bin/python").write_text("original")
    confinement = kept(workspace, "**", protected=("tools/venv/bin",))
    command = (
        "echo x > tools/venv/bin/python; echo x > tools/venv/bin/bwrap; mv tools/venv/bin b; "
        "mv tools/venv v; mv tools t; rm -rf tools; cat tools/venv/bin/python"
    )
    ran = run(sandbox, command, confinement)
    assert ran.output.endswith("original")
    assert os.listdir(workspace / "tools/venv/bin") == ["python"]
    assert (workspace / "tools/venv/bin/python").read_text() == "original"


def test_what_is_hidden_is_neither_read_nor_replaced(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / "a/home").mkdir(parents=True)
    (workspace / "a/home/trust.json").write_text("hush")
    confinement = kept(workspace, "**", hidden=("a/home",))
    command = (
        "cat a/home/trust.json; echo x > a/home/stretto.yaml; mv a b; mkdir -p a/home; ls a/home"
    )
    assert "hush" not in run(sandbox, command, confinement).output
    assert os.listdir(workspace / "a/home") == ["trust.json"]


SECRETS = (
    ".env", ".env.local", "conf/.env.production", "id_rsa", "deploy/id_ed25519", "tls/server.key",
    "tls/SERVER.PEM", ".netrc", ".aws/credentials", ".ssh/config", "credentials.json",
    ".docker/config.json", ".git-credentials", "keys/app.p12", "prod.env", ".envrc", ".env~",
    "id_rsa.bak", ".config/gcloud/application_default_credentials.json", ".cargo/credentials.toml",
    "AuthKey_1.p8", "kubeconfig", ".bash_history", "terraform.tfstate", ".m2/settings.xml",
)  # fmt: skip
PLAIN = (".env.example", "example.env", "src/history.py", "settings.xml", "id_rsa.pub", "id_map.py", "keys.md", ".docker/Dockerfile",
         "node_modules/x/test.pem", "lib/site-packages/certifi/cacert.pem")  # fmt: skip


@pytest.mark.parametrize("writes", [(), ("**",), ("*",), ("conf/*",)])
def test_keys_are_empty_for_a_command(
    sandbox: Sandbox, workspace: Path, writes: tuple[str, ...]
) -> None:
    for name in (*SECRETS, *PLAIN):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(f"hush:{name}\n")
    ran = run(sandbox, f"cat {' '.join((*SECRETS, *PLAIN))}", confined(workspace, *writes))
    told = [line.removeprefix("hush:") for line in ran.output.splitlines() if "hush:" in line]
    assert sorted(told) == sorted(PLAIN)
    assert all((workspace / name).read_text() == f"hush:{name}\n" for name in SECRETS)


@pytest.mark.parametrize("key", [".docker/config.json", "a/gh/hosts.yml", "b/.config/hub"])
def test_a_folder_whose_name_makes_a_key_of_a_file_is_not_renamed(
    sandbox: Sandbox, workspace: Path, key: str
) -> None:
    folder = key.rpartition("/")[0]
    (workspace / folder).mkdir(parents=True)
    (workspace / key).write_text("hush")
    run(sandbox, f"mv {folder} plain; mv {folder.split('/')[0]} other", confined(workspace, "**"))
    assert (workspace / key).read_text() == "hush"


def test_a_second_name_of_a_key_is_empty_for_a_command(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / ".env").write_text("hush")
    (workspace / "src/notes.txt").hardlink_to(workspace / ".env")
    (workspace / "plain.txt").write_text("plain")
    (workspace / "src/plain.txt").hardlink_to(workspace / "plain.txt")
    ran = run(sandbox, "cat .env src/notes.txt src/plain.txt", confined(workspace, "src"))
    assert ("hush" in ran.output, ran.output.endswith("plain")) == (False, True)


def test_keys_that_are_named_are_shown(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / ".env").write_text("hush")
    (workspace / "server.pem").write_text("also")
    confinement = replace(confined(workspace), named_secrets=globs("*.pem"))
    assert run(sandbox, "cat .env server.pem", confinement).output.endswith("also")


def test_more_keys_than_can_be_hidden_are_no_reason_to_show_them(
    sandbox: Sandbox, workspace: Path
) -> None:
    for number in range(300):
        (workspace / f"{number}.pem").touch()
    ran = asyncio.run(sandbox.run("ls", confined(workspace)))
    assert isinstance(ran, CommandRefused)
    assert "**/*.pem" in ran.fix
    shown = replace(confined(workspace), named_secrets=globs("**/*.pem"))
    assert run(sandbox, "ls | wc -l", shown).output == "301\n"


@pytest.mark.parametrize(
    "way", [it for it in WAYS if it not in ("a module in one", "in other letters")]
)
def test_each_way_works_where_nothing_holds_it(workspace: Path, way: str) -> None:
    subprocess.run(["/bin/bash", "-c", EVIL + WAYS[way]], cwd=workspace, check=True)
    assert asked_git_runs(workspace)


@pytest.mark.parametrize("swap", [it for it in SWAPS if it != "by exchanging"])
def test_each_swap_works_where_nothing_holds_it(with_submodule: Path, swap: str) -> None:
    subprocess.run(["/bin/bash", "-c", EVIL + SWAPS[swap]], cwd=with_submodule, check=False)
    assert asked_git_runs(with_submodule)


def test_git_of_our_own_is_left_alone(sandbox: Sandbox, workspace: Path) -> None:
    """A writer's copy beside it may get its git folder while the command runs."""

    async def both() -> None:
        confinement = replace(confined(workspace, "**"), hidden=("home",))
        command = "touch begun; while ! [ -e go ]; do sleep 0.02; done"
        working = asyncio.create_task(sandbox.run(command, confinement))
        while not (workspace / "begun").exists():
            await asyncio.sleep(0.01)
        git("init", "-q", "--bare", "home/copy/git", at=workspace)
        (workspace / "go").touch()
        await working

    (workspace / "home").mkdir()
    asyncio.run(both())
    assert (workspace / "home/copy/git/HEAD").exists()


def test_what_no_sandbox_held_is_renamed_when_the_step_has_ended(workspace: Path) -> None:
    """By an agent of another program, in a shared workspace."""
    home = workspace / "home"
    home.mkdir()
    shared = SharedWorkspace("run", "step", workspace, ("**",))

    async def step() -> UndeclaredChanges:
        workspaces = LocalWorkspaces(home)
        await workspaces.watch(shared)
        TopGuard(os.open(workspace, os.O_RDONLY))  # of a command beside it, which goes on
        subprocess.run(["/bin/bash", "-c", EVIL + "evil src/x/.git"], cwd=workspace, check=True)
        git("init", "-q", "--bare", "home/copy/git", at=workspace)
        return await workspaces.undeclared_changes(shared, ["**"])

    assert asyncio.run(step()).repositories == ("src/x/.git",)
    assert (workspace / ".git").is_dir()
    assert not asked_git_runs(workspace / "src")
    assert (home / "copy/git/HEAD").exists()
