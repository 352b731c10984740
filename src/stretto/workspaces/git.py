"""What git knows of a workspace, without trusting the repository.

A repository's own config can name programs (fsmonitor, filters, hooks, includes), so it is never
read: git works with a git directory of ours that holds our config, a copy of the index, and a
pointer to the repository's objects. Nothing is ever written to the repository.
"""

import os
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stretto.documents.regular_file import read_start
from stretto.problems.errors import StrettoError
from stretto.processes.programs import Writable, find_program, with_safe_path
from stretto.processes.python import own_places

_SECONDS = 60.0
_MOST_TEXT = 64 * 1024
_MOST_PACKED = 64 * 2**20
_OBJECT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BRANCH = re.compile(r"ref: (refs/[^\s\\]+)")
_IS_SHA256 = re.compile(r"^\s*objectformat\s*=\s*\"?sha256", re.IGNORECASE | re.MULTILINE)


class GitFailed(StrettoError):
    kind = "git_failed"


@dataclass(frozen=True, slots=True)
class Repository:
    """Where the user's repository is. All of it is only read."""

    top: Path  # of its work tree
    git_dir: Path
    common_dir: Path  # the same, unless this is a linked worktree


def find_repository(workspace: Path) -> Repository | None:
    for top in (workspace, *workspace.parents):
        git_dir = _git_dir(top / ".git")
        if git_dir is not None:
            common = _first_line(git_dir / "commondir")
            return Repository(top, git_dir, git_dir / common if common else git_dir)
    return None


def make_git_dir(repository: Repository, where: Path) -> None:
    """Make a git directory that shows the repository's index and HEAD, with a config of ours."""
    (where / "objects" / "info").mkdir(parents=True)
    (where / "refs").mkdir()
    (where / "info").mkdir()
    config = _bounded_text(repository.common_dir / "config")
    is_sha256 = _IS_SHA256.search(config) is not None
    (where / "config").write_text(
        "[core]\n\tbare = false\n\tautocrlf = false\n\tfilemode = true\n\tfsmonitor = false\n"
        "\thooksPath = /dev/null\n\tattributesFile = /dev/null\n\texcludesFile = /dev/null\n"
        f"\trepositoryformatversion = {int(is_sha256)}\n"
        + ("[extensions]\n\tobjectFormat = sha256\n" if is_sha256 else "")
    )
    head = _head(repository)
    (where / "HEAD").write_text(f"{head or 'ref: refs/heads/none'}\n")
    objects = str(repository.common_dir / "objects")
    if objects.isprintable():
        (where / "objects" / "info" / "alternates").write_text(f"{objects}\n")
    # A split index keeps most of itself in a second file.
    for file in (repository.git_dir / "index", *repository.git_dir.glob("sharedindex.*")):
        with suppress(FileNotFoundError):
            shutil.copyfile(file, where / file.name)


def list_tracked(repository: Repository, git_dir: Path, workspace: Path) -> frozenset[str]:
    """Paths relative to the workspace. Empty where git is not installed."""
    writable = Writable((workspace, repository.top), own_places())
    git = find_program("git", writable=writable)
    if git is None or not (git_dir / "index").exists():
        return frozenset()
    command = [git, f"--git-dir={git_dir}", f"--work-tree={repository.top}", "--no-pager"]
    command += ["--literal-pathspecs", "ls-files", "-z", "--cached", "--", "."]
    try:
        done = subprocess.run(
            command,
            cwd=workspace,
            env=with_safe_path(_environment(), writable),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitFailed(f"git could not list the files of {workspace}: {error}") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise GitFailed(f"git could not list the files of {workspace}: {said}")
    return frozenset(os.fsdecode(path) for path in done.stdout.split(b"\0") if path)


def list_exclude_files(repository: Repository, workspace: Path) -> list[tuple[str, Path, str]]:
    """Ignore files that lie outside the workspace: where paths begin, the file, its name."""
    inner = workspace.relative_to(repository.top).parts
    found = [("/".join(inner), repository.common_dir / "info" / "exclude", "info/exclude")]
    for depth in range(len(inner)):
        folder = repository.top.joinpath(*inner[:depth])
        found.append(("/".join(inner[depth:]), folder / ".gitignore", ".gitignore above"))
    return found


def _environment() -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "HOME": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
    }


def _git_dir(dot_git: Path) -> Path | None:
    if dot_git.is_dir():
        return dot_git if (dot_git / "HEAD").exists() else None
    line = _first_line(dot_git)
    if line is None or not line.startswith("gitdir: "):
        return None
    git_dir = dot_git.parent / line.removeprefix("gitdir: ")
    return git_dir if (git_dir / "HEAD").exists() else None


def _head(repository: Repository) -> str | None:
    line = _first_line(repository.git_dir / "HEAD") or ""
    branch = _BRANCH.fullmatch(line)
    if branch is not None and ".." not in branch[1]:
        loose = _first_line(repository.common_dir / branch[1])
        line = loose or _find_packed(repository, branch[1])
    return line if _OBJECT.fullmatch(line) else None


def _find_packed(repository: Repository, name: str) -> str:
    with suppress(OSError, UnicodeDecodeError):
        packed = read_start(repository.common_dir / "packed-refs", _MOST_PACKED)
        for line in packed.decode().splitlines():
            if line.endswith(f" {name}"):
                return line.partition(" ")[0]
    return ""


def _first_line(file: Path) -> str | None:
    text = _bounded_text(file)
    return text.splitlines()[0].strip() if text.strip() else None


def _bounded_text(file: Path) -> str:
    # A repository may come from a stranger: a file in it may be huge, or a pipe.
    try:
        return read_start(file, _MOST_TEXT).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
