"""Paths beneath a root, by the kernel's `openat2` and component by component: the same answers."""

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stretto.globs.glob import Glob, parse_glob
from stretto.workspaces.paths import PathRefused
from stretto.workspaces.rooted_dir import RootedDir, has_openat2
from support.trees import read_tree, removing, write_tree

WAYS = [
    pytest.param(
        True,
        id="openat2",
        marks=pytest.mark.skipif(
            not has_openat2(), reason="this kernel has no openat2, or forbids it"
        ),
    ),
    pytest.param(False, id="by hand"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_tree(tmp_path / "outside", {"secret.txt": b"secret", "folder/deep.txt": b"deep"})
    return write_tree(
        tmp_path / "root",
        {
            "a.txt": b"a",
            "src/b.py": (b"b", 0o755),
            "src/deep/c.py": b"c",
            "inner": "src/b.py",
            "folder-link": "src/deep",
            "up-and-down": "src/../a.txt",
            "src/climbing": "../a.txt",
            "out": "../outside/secret.txt",
            "out-absolute": str(tmp_path / "outside" / "secret.txt"),
            "out-folder": "../outside",
            "sly": "src/deep/../../../outside/secret.txt",
            "loop": "loop",
            "to-root": "src/..",
            "magic": "/proc/self/root/etc",
            ".git/config": b"[core]\n",
        },
    )


@pytest.fixture(params=WAYS)
def rooted(root: Path, request: pytest.FixtureRequest) -> Iterator[RootedDir]:
    with RootedDir(root, use_openat2=request.param) as opened:
        yield opened


def refusal(caught: pytest.ExceptionInfo[PathRefused]) -> str:
    return caught.value.why


def glob(text: str) -> Glob:
    parsed = parse_glob(text)
    assert isinstance(parsed, Glob)
    return parsed


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.txt", b"a"),
        ("./src//b.py", b"b"),
        ("inner", b"b"),
        ("folder-link/c.py", b"c"),
        ("up-and-down", b"a"),
        ("src/climbing", b"a"),
        ("to-root/a.txt", b"a"),
    ],
)
def test_files_and_links_that_stay_inside_are_read(
    rooted: RootedDir, path: str, content: bytes
) -> None:
    assert rooted.read_bytes(path, 10) == content
    assert rooted.stat(path).kind == "file"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../outside/secret.txt", "outside"),
        ("src/../../outside/secret.txt", "outside"),
        ("/etc/passwd", "outside"),
        ("a\0.txt", "outside"),
        ("a\ud800.txt", "outside"),
        ("out", "outside"),
        ("out-absolute", "outside"),
        ("out-folder/secret.txt", "outside"),
        ("sly", "outside"),
        ("magic/passwd", "outside"),
        ("loop", "link"),
        ("loop/x", "link"),
        ("missing", "missing"),
        ("missing/too", "missing"),
        ("a.txt/x", "kind"),
        ("src", "kind"),
        ("to-root", "kind"),
        ("", "kind"),
        ("x" * 300, "limit"),
    ],
)
def test_what_is_no_file_inside_is_refused(rooted: RootedDir, path: str, why: str) -> None:
    with pytest.raises(PathRefused) as caught:
        rooted.read_bytes(path, 10)
    assert refusal(caught) == why
    assert caught.value.message.isprintable()


def test_pipes_sockets_and_devices_are_refused_without_waiting(
    rooted: RootedDir, root: Path
) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
        for path in ("pipe", "socket"):
            with pytest.raises(PathRefused) as caught:
                rooted.read_bytes(path, 10)
            assert refusal(caught) == "kind"
            with pytest.raises(PathRefused) as caught:
                rooted.write_bytes(path, b"x")
            assert refusal(caught) == "kind"


def test_a_file_that_is_too_large_is_refused_with_its_size(rooted: RootedDir, root: Path) -> None:
    (root / "large").write_bytes(b"x" * 2000)
    assert len(rooted.read_bytes("large", 2000)) == 2000
    with pytest.raises(PathRefused, match="2,000 bytes; 1,999 is the most"):
        rooted.read_bytes("large", 1999)


def test_a_write_replaces_the_file_keeps_its_mode_and_leaves_nothing_else(
    rooted: RootedDir, root: Path
) -> None:
    before = read_tree(root)
    rooted.write_bytes("src/b.py", b"new")
    rooted.write_bytes("src/new.py", b"fresh", durable=True)
    rooted.write_bytes("src/run.sh", b"run", mode=0o750)
    mode = 0o666 & ~_umask()
    assert read_tree(root) == {
        **before,
        "src/b.py": (b"new", 0o755),
        "src/new.py": (b"fresh", mode),
        "src/run.sh": (b"run", 0o750),
    }


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def test_a_hard_link_from_outside_is_never_written_through(
    rooted: RootedDir, root: Path, tmp_path: Path
) -> None:
    os.link(tmp_path / "outside" / "secret.txt", root / "hard")
    rooted.write_bytes("hard", b"mine")
    assert (root / "hard").read_bytes() == b"mine"
    assert (tmp_path / "outside" / "secret.txt").read_bytes() == b"secret"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("out", "link"),
        ("inner", "link"),  # what a write-set names is the file that changes
        ("folder-link/c.py", "link"),
        ("out-folder/new.txt", "link"),
        ("../outside/new.txt", "outside"),
        (".git/config", "protected"),
        ("src/.GIT/hooks/x", "protected"),
        (".git\u200b/config", "protected"),
        ("git~1/config", "protected"),
        (".stretto-merge-1/new/0", "protected"),
        ("src", "kind"),
        ("", "kind"),
        ("missing/new.txt", "missing"),
    ],
)
def test_no_write_leaves_the_path_it_names(
    rooted: RootedDir, root: Path, tmp_path: Path, path: str, why: str
) -> None:
    before = read_tree(tmp_path)
    with pytest.raises(PathRefused) as caught:
        rooted.write_bytes(path, b"x")
    assert refusal(caught) == why
    assert read_tree(tmp_path) == before


def test_folders_are_made_with_those_above_them(rooted: RootedDir, root: Path) -> None:
    rooted.mkdir("x/y/z")
    rooted.mkdir("x/y")
    assert (root / "x/y/z").is_dir()
    for path in ("a.txt/x", "a.txt", "out-folder/x", ".git/x", "folder-link/x"):
        with pytest.raises(PathRefused):
            rooted.mkdir(path)
    assert not (root / "src/deep/x").exists()


def test_a_walk_lists_files_and_enters_no_link_and_no_git(rooted: RootedDir) -> None:
    assert [found.path for found in rooted.walk("src")] == [
        "src/b.py",
        "src/climbing",
        "src/deep/c.py",
    ]
    assert [found.path for found in rooted.walk(globs=[glob("**/*.py"), glob("a.txt")])] == [
        "a.txt",
        "src/b.py",
        "src/deep/c.py",
    ]
    assert not [found for found in rooted.walk() if ".git" in found.path]
    with pytest.raises(PathRefused) as caught:
        list(rooted.walk(most=3))
    assert refusal(caught) == "limit"
    with pytest.raises(PathRefused):
        list(rooted.walk("out-folder"))


def test_a_walk_with_a_glob_sees_nothing_of_other_folders(rooted: RootedDir, root: Path) -> None:
    write_tree(root, {f"node_modules/{number}": b"" for number in range(50)})
    assert [f.path for f in rooted.walk(globs=[glob("src/**/*.py")], most=30)] == [
        "src/b.py",
        "src/deep/c.py",
    ]


def test_a_folder_that_turns_into_a_link_at_any_moment_leads_nowhere(
    rooted: RootedDir, root: Path, tmp_path: Path
) -> None:
    """The race that checking first and opening then would lose."""
    write_tree(root, {"swap/secret.txt": b"mine"})
    (root / "trap").symlink_to("../outside")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(root / "swap", root / "aside")
            os.rename(root / "trap", root / "swap")
            os.rename(root / "swap", root / "trap")
            os.rename(root / "aside", root / "swap")

    swapping = threading.Thread(target=swap)
    swapping.start()
    read = set()
    try:
        for _ in range(1500):
            try:
                read.add(rooted.read_bytes("swap/secret.txt", 100))
                rooted.write_bytes("swap/secret.txt", b"mine")
            except PathRefused:
                continue
    finally:
        stop.set()
        swapping.join()
    assert read <= {b"mine"}
    assert (tmp_path / "outside" / "secret.txt").read_bytes() == b"secret"


def test_no_descriptor_is_left_open(root: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else None
    if before is None:
        pytest.skip("there is no /proc to count open files in")
    for use_openat2 in {has_openat2(), False}:
        with RootedDir(root, use_openat2=use_openat2) as rooted:
            for path in ("a.txt", "src", "out", "loop", "missing", "a.txt/x", "to-root", "inner"):
                for act in (rooted.stat, rooted.list_folder, rooted.mkdir):
                    try:
                        act(path)
                    except PathRefused:
                        continue
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("gone", ["b.py", "deep"])
def test_what_is_removed_during_a_walk_takes_nothing_else_along(root: Path, gone: str) -> None:
    with RootedDir(root) as rooted, removing(gone):
        walked = [found.path for found in rooted.walk("src")]
    there = ("src/b.py", "src/climbing", "src/deep/c.py")
    assert walked == [path for path in there if gone not in path]
