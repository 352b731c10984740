"""What git knows of a workspace, without trusting the repository.

A repository's own config can name programs (fsmonitor, filters, hooks, includes), so it is never
read: git works with a git directory of ours that holds our config, a copy of the index, and a
pointer to the repository's objects. Nothing is ever written to the repository.

Rules of `.gitignore` files are read here. The last rule that matches decides; a rule of a deeper
folder comes after those above it. Names are compared as they are written, also where the file
system ignores case. Matching takes at most the length of the pattern times the length of the name:
a regular expression would take years for `*a*a*a*a*b`, and a `.gitignore` may come from a stranger.
"""

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar

from stretto.documents.regular_file import read_regular, read_start
from stretto.problems.errors import StrettoError
from stretto.processes.programs import Writable, find_program, with_safe_path
from stretto.processes.python import own_places
from stretto.workspaces.paths import PathRefused, quote_path

_SECONDS = 60.0
_MOST_TEXT = 64 * 1024
_MOST_PACKED = 64 * 2**20
_MOST_INDEX = 256 * 2**20  # some millions of files
_OBJECT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BRANCH = re.compile(r"ref: (refs/[^\s\\]+)")
_IS_SHA256 = re.compile(r"^[ \t]*objectformat[ \t]*=[ \t]*\"?sha256", re.IGNORECASE | re.MULTILINE)


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
    _copy_index(repository, where)


def _copy_index(repository: Repository, where: Path) -> None:
    room = _MOST_INDEX
    # A split index keeps most of itself in a second file.
    for file in (repository.git_dir / "index", *repository.git_dir.glob("sharedindex.*")):
        try:
            content = read_regular(file, room)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise GitFailed(f"cannot read git's index {quote_path(str(file))}: {error}") from error
        room -= len(content)
        (where / file.name).write_bytes(content)


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


def describe_head(workspace: Path) -> str:
    """The branch and the commit that are checked out; empty where there is no repository."""
    repository = find_repository(workspace)
    if repository is None:
        return ""
    return f"{_first_line(repository.git_dir / 'HEAD')} {_head(repository)}"


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


# One character: does it match? None is `*`, any run of characters.
_Letter: TypeAlias = Callable[[str], bool]
_Item = TypeVar("_Item")

_BEFORE_SET = r"\\(?P<plain>.)|(?P<star>\*+)|(?P<any>\?)|"
_SET = r"\[(?P<not>[!^]?)(?P<set>\]?(?:\[:[a-z]+:\]|\\.|[^\]\\])*)\]"
_NO_SET = r"(?!)(?P<not>)(?P<set>)"
_OTHER = r"|(?P<other>.)"
_TOKEN = re.compile(_BEFORE_SET + _SET + _OTHER, re.DOTALL)
_TOKEN_BUT_NO_SET = re.compile(_BEFORE_SET + _NO_SET + _OTHER, re.DOTALL)
_MEMBER = re.compile(
    r"\[:(?P<named>[a-z]+):\]|(?:\\(?P<a>.)|(?P<b>.))(?:-(?:\\(?P<c>.)|(?P<d>[^\]])))?", re.DOTALL
)
_NAMED: dict[str, _Letter] = {
    "alpha": str.isalpha,
    "digit": str.isdigit,
    "alnum": str.isalnum,
    "upper": str.isupper,
    "lower": str.islower,
    "space": str.isspace,
    "punct": lambda c: c.isascii() and c.isprintable() and not c.isalnum() and c != " ",
    "xdigit": lambda c: c in "0123456789abcdefABCDEF",
    "blank": lambda c: c in " \t",
    "cntrl": lambda c: ord(c) < 32 or ord(c) == 127,
    "print": str.isprintable,
    "graph": lambda c: c.isprintable() and c != " ",
}


def plain_text(pattern: str) -> str | None:
    """The one name that a pattern without wildcards stands for."""
    if any(wild in pattern for wild in "*?["):
        return None
    return re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL)


def compile_name(pattern: str) -> Callable[[str], bool]:
    plain = plain_text(pattern)
    if plain is not None:
        return plain.__eq__
    letters = [_letter(token) for token in _split(pattern)]
    return lambda name: matches_run(letters, name, _accepts)


def _split(pattern: str) -> Iterator[re.Match[str]]:
    kind, at = _TOKEN, 0
    while token := kind.match(pattern, at):
        yield token
        at = token.end()
        # What closes no `[` here closes none further on either. To look for it once for each of them
        # would take the square of the length.
        if token["other"] == "[":
            kind = _TOKEN_BUT_NO_SET


def matches_run(
    pattern: Sequence[_Item | None],
    subject: Sequence[str],
    accepts: Callable[[_Item, str], bool],
) -> bool:
    """Whether the items cover the subject one by one, None standing for any number of them.

    Only the last None is ever tried again: whatever more an earlier one could cover, the last one
    can cover as well.
    """
    at, i = 0, 0
    retry_at, retry_i = -1, 0
    while i < len(subject):
        item = pattern[at] if at < len(pattern) else None
        if at < len(pattern) and item is None:
            retry_at, retry_i = at, i
            at += 1
        elif item is not None and accepts(item, subject[i]):
            at, i = at + 1, i + 1
        elif retry_at >= 0:
            retry_i += 1
            at, i = retry_at + 1, retry_i
        else:
            return False
    return all(item is None for item in pattern[at:])


def _accepts(letter: _Letter, character: str) -> bool:
    return letter(character)


def _letter(token: re.Match[str]) -> _Letter | None:
    if token["star"] is not None:
        return None
    if token["any"] is not None:
        return lambda _: True
    if token["set"] is not None:
        return _set(token["set"], is_negated=bool(token["not"]))
    wanted: str = token["plain"] if token["plain"] is not None else token["other"]
    return wanted.__eq__


def _set(members: str, *, is_negated: bool) -> _Letter:
    tests = [_member(member) for member in _MEMBER.finditer(members)]
    return lambda character: any(test(character) for test in tests) is not is_negated


def _member(member: re.Match[str]) -> _Letter:
    if member["named"] is not None:
        return _NAMED.get(member["named"], lambda _: False)
    low: str = member["a"] if member["a"] is not None else member["b"]
    high: str = next((m for m in (member["c"], member["d"]) if m is not None), low)
    return lambda character: low <= character <= high


MOST_BYTES = 256 * 1024
MOST_RULES = 2_000

_NameTest = Callable[[str], bool]
_SUFFIX = re.compile(r"\*(\.[^.*?\[\\]+)")
_ANY_DEPTH = re.compile(r"\*{2,}")


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    number: int
    is_negated: bool
    is_for_folders: bool
    names: tuple[_NameTest | None, ...]  # None is `**`

    def covers(self, names: Sequence[str]) -> bool:
        return matches_run(self.names, names, lambda test, name: test(name))


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """Of one file, for paths relative to its folder. Most rules are found without trying each."""

    by_name: dict[str, list[IgnoreRule]] = field(default_factory=dict)
    by_suffix: dict[str, list[IgnoreRule]] = field(default_factory=dict)
    others: list[IgnoreRule] = field(default_factory=list)

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """True: ignored. False: taken back by a `!` rule. None: no rule says anything."""
        names = path.split("/")
        name = names[-1]
        found = [
            *self.by_name.get(name, ()),
            *self.by_suffix.get(name[name.rfind(".") :], ()),
            *(rule for rule in self.others if rule.covers(names)),
        ]
        said = [rule for rule in found if is_folder or not rule.is_for_folders]
        return not max(said, key=lambda rule: rule.number).is_negated if said else None


def read_rules(text: bytes, where: str) -> IgnoreRules:
    if len(text) > MOST_BYTES:
        raise PathRefused(where, "limit", f"{where} has more than {MOST_BYTES:,} bytes")
    rules = IgnoreRules()
    lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines):
        if number > MOST_RULES:
            raise PathRefused(where, "limit", f"{where} has more than {MOST_RULES:,} lines")
        _read_line(rules, number, line.removesuffix(b"\r").decode("utf-8", "surrogateescape"))
    return rules


def _read_line(rules: IgnoreRules, number: int, line: str) -> None:
    pattern = _without_trailing_blanks(line)
    if not pattern or pattern.startswith("#"):
        return
    is_negated = pattern.startswith("!")
    pattern = pattern.removeprefix("!")
    is_for_folders = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    if not pattern or (pattern.endswith("\\") and not pattern.endswith("\\\\")):
        return
    if "/" in pattern:
        names = _compile_path(pattern.removeprefix("/"))
        rules.others.append(IgnoreRule(number, is_negated, is_for_folders, names))
        return
    rule = IgnoreRule(number, is_negated, is_for_folders, (None, compile_name(pattern)))
    plain, suffix = plain_text(pattern), _SUFFIX.fullmatch(pattern)
    if plain is not None:
        rules.by_name.setdefault(plain, []).append(rule)
    elif suffix is not None:
        rules.by_suffix.setdefault(suffix[1], []).append(rule)
    else:
        rules.others.append(rule)


def _without_trailing_blanks(line: str) -> str:
    kept = line.rstrip(" ")
    # A blank behind a backslash counts.
    return f"{kept} " if kept.endswith("\\") and kept != line else kept


def _compile_path(pattern: str) -> tuple[_NameTest | None, ...]:
    parts = pattern.split("/")
    # More than two stars are two, to git.
    names = [None if _ANY_DEPTH.fullmatch(part) else compile_name(part) for part in parts]
    if names[-1] is None:
        names.append(lambda _: True)  # `a/**` is everything in `a`, not `a` itself
    return tuple(names)
