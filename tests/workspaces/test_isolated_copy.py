"""An isolated copy is what the workspace holds now, and git is never let loose on it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.problems.errors import NotFound
from stretto.workspaces.file_list import WorkspaceLimits, WorkspaceTooLarge
from stretto.workspaces.git import GitFailed
from stretto.workspaces.isolated_copy import isolate, open_isolated, remove_tree
from support.trees import Tree, git, read_tree, repository, write_tree

FILES: Tree = {
    "a.txt": b"one\ntwo\n",
    "bin/run": (b"#!/bin/sh\n", 0o755),
    "crlf.txt": b"one\r\ntwo\r\n",
    "secret": (b"s", 0o600),
    "link": "a.txt",
    "empty": b"",
    "large.bin": bytes(range(256)) * 2000,
}


def files_of(root: Path) -> Tree:
    return {path: what for path, what in read_tree(root).items() if not path.endswith("/")}


def with_modes(tree: Tree) -> Tree:
    return {path: (what, 0o644) if isinstance(what, bytes) else what for path, what in tree.items()}


def test_a_folder_is_copied_byte_for_byte(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "ws", FILES)
    (workspace / "out").mkdir()
    isolated = isolate(workspace, tmp_path / "home")
    assert isolated.kind == "copy"
    assert not (isolated.home / "git").exists()
    assert read_tree(isolated.root) == read_tree(workspace)
    assert files_of(isolated.root) == with_modes(FILES)
    assert os.stat(isolated.root / "a.txt").st_ino != os.stat(workspace / "a.txt").st_ino


def test_a_repository_is_copied_as_it_is_now_and_not_as_it_was_committed(tmp_path: Path) -> None:
    workspace = repository(
        tmp_path / "ws", {**FILES, ".gitignore": b"*.log\ndist/\n", "gone.txt": b"", "hidden": b"h"}
    )
    git(workspace, "update-index", "--assume-unchanged", "hidden")
    write_tree(
        workspace,
        {
            "a.txt": b"changed\n",
            "hidden": b"changed\n",
            "staged.txt": b"x",
            "untracked/new.txt": b"u",
            "noise.log": b"",
            "dist/out.js": b"",
        },
    )
    git(workspace, "add", "staged.txt")
    (workspace / "staged.txt").write_bytes(b"and changed again")
    (workspace / "gone.txt").unlink()
    write_tree(workspace, {"tracked.log": b"tracked though ignored"})
    git(workspace, "add", "-f", "tracked.log")
    isolated = isolate(workspace, tmp_path / "home")
    assert isolated.kind == "worktree"
    assert files_of(isolated.root) == with_modes(
        {
            **FILES,
            ".gitignore": b"*.log\ndist/\n",
            "a.txt": b"changed\n",
            "hidden": b"changed\n",
            "staged.txt": b"and changed again",
            "untracked/new.txt": b"u",
            "tracked.log": b"tracked though ignored",
        }
    )
    assert not (isolated.root / ".git").exists()


def test_our_git_directory_shows_the_repository_and_is_not_the_repositorys(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", {"a.txt": b"one\n"})
    isolated = isolate(workspace, tmp_path / "home")
    (isolated.root / "a.txt").write_bytes(b"two\n")
    shown = git(
        isolated.root, f"--git-dir={isolated.home / 'git'}", "--work-tree=.", "diff", "--stat"
    )
    assert b"a.txt | 2 +-" in shown
    assert (
        git(isolated.root, f"--git-dir={isolated.home / 'git'}", "log", "--format=%s") == b"first\n"
    )


def test_a_part_of_a_repository_obeys_the_rules_above_it(tmp_path: Path) -> None:
    top = repository(
        tmp_path / "ws",
        {".gitignore": b"*.log\n/part/out\n", "part/a.txt": b"a", "other/b.txt": b"b"},
    )
    write_tree(top, {"part/x.log": b"", "part/out/x": b"", "part/new.txt": b"n"})
    (top / ".git/info").mkdir(exist_ok=True)
    (top / ".git/info/exclude").write_text("*.tmp\n")
    write_tree(top, {"part/x.tmp": b""})
    isolated = isolate(top / "part", tmp_path / "home")
    assert set(files_of(isolated.root)) == {"a.txt", "new.txt"}


def test_a_linked_worktree_and_a_new_repository_are_repositories_too(tmp_path: Path) -> None:
    main = repository(tmp_path / "main", {".gitignore": b"*.log\n", "a.txt": b"a"})
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"))
    write_tree(tmp_path / "linked", {"x.log": b"", "kept.log": b""})
    git(tmp_path / "linked", "add", "-f", "kept.log")
    isolated = isolate(tmp_path / "linked", tmp_path / "home1")
    assert set(isolated.files) == {".gitignore", "a.txt", "kept.log"}
    fresh = write_tree(tmp_path / "fresh", {"a.txt": b"a"})
    git(fresh, "init", "-q")
    assert set(isolate(fresh, tmp_path / "home2").files) == {"a.txt"}


def test_nothing_that_a_repository_names_is_ever_run(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", {"a.txt": b"plain\r\n"})
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho $0 >> {ran}\ncat\n")
    program.chmod(0o755)
    for key in (
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "credential.helper",
        "diff.external",
        "diff.evil.textconv",
        "core.alternateRefsCommand",
    ):
        git(workspace, "config", key, str(program))
    git(workspace, "config", "core.hooksPath", str(tmp_path))
    git(workspace, "config", "core.autocrlf", "true")
    git(workspace, "config", "include.path", str(tmp_path / "nowhere"))
    write_tree(workspace, {".gitattributes": b"* filter=evil diff=evil text eol=lf\n"})
    for hook in ("post-index-change", "post-checkout", "pre-commit"):
        (tmp_path / hook).write_bytes(program.read_bytes())
        (tmp_path / hook).chmod(0o755)
    before = {
        path: path.stat().st_mtime_ns for path in (workspace / ".git").rglob("*") if path.is_file()
    }
    ran.unlink(missing_ok=True)
    isolated = isolate(workspace, tmp_path / "home")
    assert not ran.exists()
    assert (isolated.root / "a.txt").read_bytes() == b"plain\r\n"
    after = {
        path: path.stat().st_mtime_ns for path in (workspace / ".git").rglob("*") if path.is_file()
    }
    assert after == before


def test_a_broken_index_is_said_and_not_guessed_around(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", {"a.txt": b"a"})
    (workspace / ".git/index").write_bytes(b"DIRC garbage")
    with pytest.raises(GitFailed, match="could not list the files"):
        isolate(workspace, tmp_path / "home")


def test_repositories_inside_are_left_out_and_named(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "ws", {"a.txt": b"a"})
    repository(workspace / "sub", {"b.txt": b"b"})
    isolated = isolate(workspace, tmp_path / "home")
    assert set(isolated.files) == {"a.txt"}
    assert [(left.path, left.why) for left in isolated.left] == [
        ("sub", "is a repository of its own")
    ]


def test_links_are_copied_as_links_and_pipes_are_left_out(tmp_path: Path) -> None:
    workspace = write_tree(
        tmp_path / "ws", {"a.txt": b"a", "out": "/etc/passwd", "up": "../..", "dangling": "nowhere"}
    )
    os.mkfifo(workspace / "pipe")
    isolated = isolate(workspace, tmp_path / "home")
    assert files_of(isolated.root) == with_modes(
        {"a.txt": b"a", "out": "/etc/passwd", "up": "../..", "dangling": "nowhere"}
    )
    assert [left.path for left in isolated.left] == ["pipe"]


def test_a_tracked_folder_that_is_now_a_link_is_not_read_through(tmp_path: Path) -> None:
    write_tree(tmp_path / "outside", {"secret.txt": b"secret"})
    workspace = repository(tmp_path / "ws", {"d/secret.txt": b"mine"})
    (workspace / "d/secret.txt").unlink()
    (workspace / "d").rmdir()
    (workspace / "d").symlink_to("../outside")
    isolated = isolate(workspace, tmp_path / "home")
    assert files_of(isolated.root) == {"d": "../outside"}


def test_what_a_glob_asks_for_by_name_is_copied_although_ignored(tmp_path: Path) -> None:
    workspace = write_tree(
        tmp_path / "ws",
        {
            ".gitignore": b"dist/\n*.env\n",
            "dist/a.js": b"",
            "a.env": b"",
            "dist/node_modules/x": b"",
        },
    )
    everything = isolate(workspace, tmp_path / "home1", asked=["**/*"])
    assert set(everything.files) == {".gitignore"}
    by_name = isolate(workspace, tmp_path / "home2", asked=["dist/*.js", "a.env"])
    assert set(by_name.files) == {".gitignore", "dist/a.js", "a.env"}
    assert open_isolated(tmp_path / "home2") == by_name


def test_a_second_name_of_a_file_with_keys_is_not_copied(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "ws", {".env": b"hush", ".gitignore": b".env\n", "a": b""})
    (workspace / "notes.txt").hardlink_to(workspace / ".env")
    (workspace / "b").hardlink_to(workspace / "a")
    isolated = isolate(workspace, tmp_path / "home1")
    assert set(isolated.files) == {".gitignore", "a", "b"}
    assert not (isolated.root / "notes.txt").exists()
    assert [left.path for left in isolated.left] == ["notes.txt"]
    named = isolate(workspace, tmp_path / "home2", asked=["**/*", ".env"])
    assert (named.root / "notes.txt").read_bytes() == b"hush"


def test_a_home_inside_the_workspace_is_not_copied_into_itself(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "ws", {"a.txt": b"a"})
    isolated = isolate(workspace, workspace / "state/run/step")
    assert set(isolated.files) == {"a.txt"}


def test_names_need_not_be_text(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "ws", {})
    name = os.fsdecode(b"caf\xe9 \n\t.txt")
    (workspace / name).write_bytes(b"x")
    isolated = isolate(workspace, tmp_path / "home")
    assert set(isolated.files) == {name}
    assert open_isolated(tmp_path / "home") == isolated


def test_a_copy_past_its_limits_is_refused(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "ws", {"a": b"x" * 100, "b": b"x" * 100})
    with pytest.raises(WorkspaceTooLarge):
        isolate(workspace, tmp_path / "home", WorkspaceLimits(bytes=150))
    with pytest.raises(NotFound):
        open_isolated(tmp_path / "home")


def test_an_unfinished_copy_is_made_anew_whatever_was_done_to_it(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "ws", {"a.txt": b"a"})
    write_tree(tmp_path / "home", {"root/locked/x": b"", "root/y": b""})
    (tmp_path / "home/root/locked").chmod(0)
    (tmp_path / "home/root/out").symlink_to(workspace)
    isolated = isolate(workspace, tmp_path / "home")
    assert files_of(isolated.root) == {"a.txt": (b"a", 0o644)}
    remove_tree(tmp_path / "home")
    assert (workspace / "a.txt").exists()


def test_without_git_a_repository_is_copied_by_its_ignore_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = repository(tmp_path / "ws", {".gitignore": b"*.log\n", "a.txt": b"a"})
    write_tree(workspace, {"x.log": b""})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert set(isolate(workspace, tmp_path / "home").files) == {".gitignore", "a.txt"}


@pytest.mark.parametrize("setting", ["index.version=4", "core.splitIndex=true"])
def test_every_form_of_an_index_is_read(tmp_path: Path, setting: str) -> None:
    workspace = write_tree(tmp_path / "ws", {".gitignore": b"*.log\n", "a.log": b""})
    git(workspace, "init", "-q")
    git(workspace, "-c", setting, "add", "-f", "a.log", ".gitignore")
    git(workspace, "-c", setting, "update-index", "--force-write-index")
    assert set(isolate(workspace, tmp_path / "home").files) == {".gitignore", "a.log"}


def test_a_sha256_repository_is_read(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "ws", {".gitignore": b"*.log\n", "a.log": b""})
    made = subprocess.run(
        ["git", "init", "-q", "--object-format=sha256"], cwd=workspace, capture_output=True
    )
    if made.returncode != 0:
        pytest.skip("this git has no sha256 repositories")
    git(workspace, "add", "-f", "a.log")
    git(workspace, "commit", "-q", "-m", "x")
    assert set(isolate(workspace, tmp_path / "home").files) == {".gitignore", "a.log"}


def test_a_file_that_cannot_be_read_is_left_out_and_named(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    workspace = write_tree(tmp_path / "ws", {"a.txt": b"a", "closed": (b"c", 0), "d/x": b"x"})
    (workspace / "d").chmod(0)
    isolated = isolate(workspace, tmp_path / "home")
    (workspace / "d").chmod(0o700)
    assert set(isolated.files) == {"a.txt"}
    assert sorted(left.path for left in isolated.left) == ["closed", "d"]


def test_a_copy_that_does_not_fit_is_no_copy(tmp_path: Path) -> None:
    write_tree(tmp_path / "ws", {f"f{number}": b"x" * 5000 for number in range(5)})
    limited = """
import resource, signal, sys
from pathlib import Path
from stretto.problems.errors import StrettoError
from stretto.workspaces.isolated_copy import isolate
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    isolate(Path(sys.argv[1]), Path(sys.argv[2]))
except (StrettoError, OSError) as error:
    print("refused")
"""
    command = [sys.executable, "-c", limited, str(tmp_path / "ws"), str(tmp_path / "home")]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "refused\n"
    with pytest.raises(NotFound):
        open_isolated(tmp_path / "home")


@pytest.mark.parametrize(
    "file", [".git/packed-refs", ".git/info/exclude", ".git/HEAD", ".gitignore"]
)
def test_a_pipe_in_a_repository_is_not_waited_for(tmp_path: Path, file: str) -> None:
    project = repository(tmp_path / "project", {"a.txt": b"a"})
    git(project, "pack-refs", "--all")
    (project / file).unlink(missing_ok=True)
    os.mkfifo(project / file)
    code = (
        "import sys; from pathlib import Path; from stretto.workspaces.isolated_copy import isolate\n"
        "isolate(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    words = [sys.executable, "-c", code, str(project), str(tmp_path / "copy")]
    done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "shared"])
def test_an_index_that_is_no_file_is_not_read(tmp_path: Path, kind: str) -> None:
    project = repository(tmp_path / "project", {"a.txt": b"a"})
    index = project / ".git" / ("sharedindex.0" if kind == "shared" else "index")
    index.unlink(missing_ok=True)
    if kind == "folder":
        index.mkdir()
    elif kind == "pipe":
        os.mkfifo(index)
    else:
        index.symlink_to("/dev/zero")
    with pytest.raises(GitFailed, match=r"index.*: is not a regular file"):
        isolate(project, tmp_path / "copy")


def test_an_index_larger_than_any_is_not_copied(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", {"a.txt": b"a"})
    os.truncate(project / ".git/index", 1 << 30)
    with pytest.raises(GitFailed, match="at most 268,435,456 are read"):
        isolate(project, tmp_path / "copy")
