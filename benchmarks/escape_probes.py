"""The probes: each tries to get out of the sandbox in one way. Out: PROBES.

A probe is a shell command and a question that is answered from outside: was the canary changed,
did the listener hear, did the secret come back? `control` is what is run without a sandbox to
show that the probe works at all; it is the same command, unless that would hurt the machine.
"""

import os
import shutil
import stat
import subprocess
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from escape_scene import WORD, Scene

from stretto.processes.watchdog import ResourceLimits
from stretto.workspaces.sandbox.confinement import Ran
from stretto.workspaces.sandbox.seccomp import ABIS, machine

Check: TypeAlias = Callable[[Scene, Ran], bool]
DEFAULT_WRITES = ("src/**", "docs/*.md")  # one is mounted, the other staged
STAGED_WRITES = (*DEFAULT_WRITES, "notes.txt")  # which stages the workspace itself
_MIB = 1024 * 1024
LIMITS = ResourceLimits(
    wall_seconds=10,
    cpu_seconds=10,
    memory_bytes=256 * _MIB,
    processes=64,
    file_bytes=16 * _MIB,
    scratch_bytes=16 * _MIB,
    output_bytes=64 * 1024,
)


@dataclass(frozen=True)
class Probe:
    name: str
    tried: str
    command: str
    escaped: Check
    writes: tuple[str, ...] = DEFAULT_WRITES
    control: str = ""  # the command itself, if empty
    root_only: bool = False  # even unconfined, nobody else could
    prepare: Callable[[Scene], None] = lambda scene: None
    limits: ResourceLimits = LIMITS
    protected: tuple[str, ...] = ()  # of the workspace: what we run, and what steers us
    hidden: tuple[str, ...] = ()


def _python(code: str) -> str:
    return f"$PYTHON - <<'END_OF_PROBE'\nimport os, sys\nE = os.environ\n{textwrap.dedent(code)}\nEND_OF_PROBE\n"


def _ctypes(code: str) -> str:
    head = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    return _python(head + textwrap.dedent(code))


_NUMBER = ABIS[machine() if machine() in ABIS else "x86_64"].calls

# --- how it is seen from outside


def _canary_changed(scene: Scene, _: Ran) -> bool:
    return scene.text("outside", "canary.txt") != "original\n"


def _protected_changed(scene: Scene, _: Ran) -> bool:
    return scene.text("workspace", "protected.txt") != "original\n"


def _file_is_there(*names: str) -> Check:
    return lambda scene, _: scene.mode(*names) != 0


def _has_word(*names: str) -> Check:
    return lambda scene, _: WORD in scene.text(*names)


def _token_came_back(scene: Scene, ran: Ran) -> bool:
    return scene.token in ran.output or scene.token in scene.text("workspace", "src", "loot")


def _said(word: str) -> Check:
    return lambda _, ran: word in ran.output


def _was_heard(name: str) -> Check:
    def check(scene: Scene, _: Ran) -> bool:
        time.sleep(0.05)
        return name in scene.heard

    return check


def _victim_hurt(scene: Scene, _: Ran) -> bool:
    time.sleep(0.05)
    return not scene.victim_is_alive()


def _written_late(scene: Scene, _: Ran) -> bool:
    time.sleep(1.2)
    return bool(scene.text("workspace", "src", "late"))


def _is_kind(kind: int, *names: str) -> Check:
    return lambda scene, _: stat.S_IFMT(scene.mode(*names)) == kind


def _has_set_id(*names: str) -> Check:
    return lambda scene, _: bool(scene.mode(*names) & (stat.S_ISUID | stat.S_ISGID))


def _host_file_appears(path: str) -> Check:
    def check(scene: Scene, _: Ran) -> bool:
        place = Path(path.replace("TOKEN", str(scene.victim.pid)))
        was_there = place.exists()
        place.unlink(missing_ok=True)
        return was_there

    return check


# --- writing where one may not

_WRITING = [
    Probe("dotdot", "write to ../sibling.txt", 'echo ESCAPED > "$WS/../sibling.txt"',
          _has_word("sibling.txt")),
    Probe("absolute", "write to an absolute path", 'echo ESCAPED > "$OUT/canary.txt"',
          _canary_changed),
    Probe("protected", "write to a file outside the write-set", "echo ESCAPED > protected.txt",
          _protected_changed),
    Probe("new-file", "make a file beside the write-set", "echo ESCAPED > made.txt",
          _file_is_there("workspace", "made.txt")),
    Probe("delete", "delete a file outside the write-set", "rm -f protected.txt",
          _protected_changed),
    Probe("rename-out", "move a file into the write-set", "mv protected.txt src/",
          _protected_changed),
    Probe("rename-over", "move a file of ours over one outside the write-set",
          "echo ESCAPED > src/x; mv src/x protected.txt", _protected_changed),
    Probe("exchange", "renameat2 with RENAME_EXCHANGE", _ctypes("""
        open('src/x', 'w').write('ESCAPED')
        libc.renameat2(-100, b'src/x', -100, b'protected.txt', 2)
        """), _protected_changed),
    Probe("chmod", "make a file outside the write-set executable", "chmod 777 protected.txt",
          lambda scene, _: bool(scene.mode("workspace", "protected.txt") & 0o111)),
    Probe("truncate", "truncate(2) by path", _python("os.truncate('protected.txt', 0)"),
          _protected_changed),
    Probe("xattr-times", "set the times of a file outside the write-set",
          "touch -d 2001-01-01 protected.txt",
          lambda scene, _: (scene.workspace / "protected.txt").stat().st_mtime < 1e9),
    Probe("symlink", "write through a link made in the write-set",
          'ln -s "$OUT/canary.txt" src/l; echo ESCAPED > src/l', _canary_changed),
    Probe("planted-link", "write through a link that was there before",
          "echo ESCAPED > src/planted", _canary_changed),
    Probe("linked-set", "a write-set whose directory is a link to outside",
          "echo ESCAPED > linked/canary.txt", _canary_changed, writes=("linked/**",)),
    Probe("link-race", "swap a directory for a link while writing into it", """
        mkdir -p src/d; ln -s "$OUT" src/l
        for i in $(seq 200); do
          mv -T src/d src/e 2>/dev/null; mv -T src/l src/d 2>/dev/null
          (echo ESCAPED > src/d/canary.txt) 2>/dev/null
          mv -T src/d src/l 2>/dev/null; mv -T src/e src/d 2>/dev/null
        done; true""", _canary_changed),
    Probe("set-swap", "replace a directory of the write-set by a link, for the next command",
          'rm -rf docs; ln -s "$OUT" docs; mv docs src/docs; echo ESCAPED > docs/canary.txt',
          _canary_changed, control='echo ESCAPED > "$OUT/canary.txt"'),
    Probe("hardlink-in", "hard link to a file outside the write-set",
          "ln protected.txt src/h && echo ESCAPED > src/h", _protected_changed),
    Probe("hardlink-out", "hard link to a file outside the workspace",
          'ln "$OUT/canary.txt" src/h && echo ESCAPED > src/h', _canary_changed),
    Probe("linkat-fd", "linkat of an open descriptor", _ctypes("""
        fd = os.open('protected.txt', os.O_RDONLY)
        libc.linkat(-100, b'/proc/self/fd/%d' % fd, -100, b'src/h', 0x400)
        open('src/h', 'w').write('ESCAPED')
        """), _protected_changed),
    Probe("o-tmpfile", "O_TMPFILE, then linkat into a read-only directory", _ctypes("""
        fd = os.open('src', os.O_RDWR | os.O_TMPFILE, 0o644)
        os.write(fd, b'ESCAPED')
        libc.linkat(-100, b'/proc/self/fd/%d' % fd, -100, b'made.txt', 0x400)
        """), _file_is_there("workspace", "made.txt")),
    Probe("proc-self-fd", "open a read-only descriptor again for writing", _python("""
        fd = os.open('protected.txt', os.O_RDONLY)
        open(f'/proc/self/fd/{fd}', 'w').write('ESCAPED')
        """), _protected_changed),
    Probe("proc-self-root", "write through /proc/self/root",
          'echo ESCAPED > "/proc/self/root$OUT/canary.txt"', _canary_changed),
    Probe("proc-any-root", "write through the root of every process", """
        for r in /proc/[0-9]*/root; do (echo ESCAPED > "$r$OUT/canary.txt") 2>/dev/null; done; true
        """, _canary_changed),
    Probe("proc-any-cwd", "write through the directory of every process", """
        for r in /proc/[0-9]*/cwd; do (echo ESCAPED > "$r$OUT/canary.txt"
          echo ESCAPED > "$r/../../../../../..$OUT/canary.txt"); done 2>/dev/null; true
        """, _canary_changed),
    Probe("by-handle", "open_by_handle_at for writing", _ctypes("""
        class H(ctypes.Structure): _fields_ = [('n', ctypes.c_uint), ('t', ctypes.c_int), ('d', ctypes.c_char * 128)]
        h, mount = H(128), ctypes.c_int()
        libc.name_to_handle_at(-100, b'protected.txt', ctypes.byref(h), ctypes.byref(mount), 0)
        for at in ('src', '/tmp', '.'):
            fd = libc.open_by_handle_at(os.open(at, os.O_RDONLY), ctypes.byref(h), os.O_RDWR)
            if fd >= 0: os.write(fd, b'ESCAPED')
        """), _protected_changed, root_only=True),
    Probe("glob-other", "make a file that the glob docs/*.md does not cover",
          "echo ESCAPED > docs/evil.txt", _file_is_there("workspace", "docs", "evil.txt")),
    Probe("glob-change", "change a file that the glob docs/*.md does not cover",
          "echo ESCAPED > docs/a.txt", _has_word("workspace", "docs", "a.txt")),
    Probe("glob-deeper", "make a file deeper than the glob docs/*.md goes",
          "mkdir docs/sub && echo ESCAPED > docs/sub/x.md",
          _file_is_there("workspace", "docs", "sub", "x.md")),
    Probe("glob-link", "a link in a staged directory, written through",
          'ln -sf "$OUT/canary.txt" docs/a.md; echo ESCAPED > docs/a.md', _canary_changed),
    Probe("file-link", "replace the one writable file by a link to outside",
          'rm notes.txt; ln -s "$OUT/canary.txt" notes.txt; echo ESCAPED > notes.txt',
          _canary_changed, writes=STAGED_WRITES),
    Probe("fifo-back", "leave a pipe where a file was, for a host tool to hang on",
          "rm docs/a.md; mkfifo docs/a.md", _is_kind(stat.S_IFIFO, "workspace", "docs", "a.md")),
    Probe("read-only-step", "write at all in a step without a write-set",
          "echo ESCAPED > src/a.py", _has_word("workspace", "src", "a.py"), writes=()),
]  # fmt: skip

# --- git

_GIT = [
    Probe("git-hook", "add a hook", "printf '#!/bin/sh\\n' > .git/hooks/post-checkout",
          _file_is_there("workspace", ".git", "hooks", "post-checkout"), writes=("**",)),
    Probe("git-fsmonitor", "set core.fsmonitor", "echo 'fsmonitor = ESCAPED' >> .git/config",
          _has_word("workspace", ".git", "config"), writes=("**",)),
    Probe("git-hooks-path", "set core.hooksPath with git itself",
          "git config -f .git/config core.hooksPath ESCAPED",
          _has_word("workspace", ".git", "config"), writes=("**",)),
    Probe("git-narrow", "write to .git with a narrow write-set", "echo ESCAPED >> .git/config",
          _has_word("workspace", ".git", "config")),
    Probe("git-named", "a write-set that names .git", "echo ESCAPED >> .git/config",
          _has_word("workspace", ".git", "config"), writes=(".git/**", ".git/config", "*/config")),
    Probe("git-move", "move .git away and make another",
          "mv .git old; mkdir .git; echo ESCAPED > .git/config",
          _has_word("workspace", ".git", "config"), writes=("**",)),
    Probe("git-unlink", "delete .git", "rm -rf .git",
          lambda scene, _: not scene.text("workspace", ".git", "HEAD"), writes=("**",)),
    Probe("git-init", "make a repository of a workspace that is none", "git init -q . 2>&1",
          _file_is_there("workspace", ".git", "config"), writes=("**",),
          prepare=lambda scene: _remove_git(scene)),
    Probe("git-init-staged", "the same, in a staged workspace",
          "mkdir .git; echo ESCAPED > .git/config", _file_is_there("workspace", ".git", "config"),
          writes=("*",), prepare=lambda scene: _remove_git(scene)),
    Probe("git-nested", "set a filter in a nested repository",
          "echo ESCAPED >> vendor/lib/.git/config",
          _has_word("workspace", "vendor", "lib", ".git", "config"), writes=("**",)),
    Probe("git-umount", "unmount the guard of .git",
          "umount -l .git 2>/dev/null; echo ESCAPED >> .git/config",
          _has_word("workspace", ".git", "config"), writes=("**",)),
]  # fmt: skip


def _remove_git(scene: Scene) -> None:
    for path in sorted((scene.workspace / ".git").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (scene.workspace / ".git").rmdir()


# --- git, by a repository of one's own: what it does is seen by asking git, as a user would

_EVIL = """
evil() {
  mkdir -p "$1/objects" "$1/refs"; echo 'ref: refs/heads/main' > "$1/HEAD"
  printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = "touch $MARK; false"\\n' > "$1/config"
  printf '\\tworktree = %s\\n' "$PWD" >> "$1/config"
}
"""


def _git_ran_it(scene: Scene, _: Ran) -> bool:
    mark = scene.root / "ran-by-git"
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "MARK": str(mark)}
    folders = [path for path in scene.workspace.rglob("*") if path.is_dir() and path.name != ".git"]
    for folder in (scene.workspace, *folders):
        subprocess.run(["git", "status"], cwd=folder, env=environment, capture_output=True)
    return mark.exists()


def _make_submodule(scene: Scene) -> None:
    shutil.rmtree(scene.workspace / ".git")
    for name in ("lib", "workspace"):
        place = scene.root / name
        place.mkdir(exist_ok=True)
        (place / "f.txt").touch()
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
        steps = [["init", "-q"], ["add", "f.txt"], ["commit", "-q", "-m", "first"]]
        if name == "workspace":
            steps.append(["submodule", "add", "-q", str(scene.root / "lib"), "modules/deep/lib"])
        for words in steps:
            subprocess.run(["git", *identity, *words], cwd=place, check=True, capture_output=True)


_REPOSITORIES = [
    Probe(f"repository-{name}", f"leave a repository behind: {tried}", _EVIL + command, _git_ran_it,
          writes=writes)
    for name, tried, command, writes in (
        ("deep", "in a folder of its own", "evil src/x/.git", ("**",)),
        ("narrow", "with a narrow write-set", "evil src/x/.git", ("src/**",)),
        ("bare", "without .git in its name", "evil src/bare", ("src/**",)),
        ("folder", "out of a folder that is there", "evil src", ("src/**",)),
        ("file", "named by a file", "evil src/g; mkdir src/w; echo gitdir: ../g > src/w/.git", ("**",)),
        ("link", "named by a link", "evil src/g; mkdir src/w; ln -s ../g src/w/.git", ("**",)),
        ("staged", "taken back from a copy", "evil notes; touch notes/objects/x notes/refs/x",
         ("notes/*", "notes/*/*")),
    )
] + [
    Probe(f"submodule-{name}", f"swap a submodule: {tried}", _EVIL + command, _git_ran_it,
          writes=("**",), prepare=_make_submodule)
    for name, tried, command in (
        ("itself", "the folder", "mv modules/deep/lib modules/old; evil modules/deep/lib/.git"),
        ("above", "the folder above", "mv modules/deep modules/old; evil modules/deep/lib/.git"),
        ("top", "two above", "mv modules old; evil modules/deep/lib/.git"),
        ("link", "by a link", "mv modules/deep/lib modules/old; mkdir x; evil x/.git; ln -s ../../x modules/deep/lib"),
        ("file", "its .git", "rm -f modules/deep/lib/.git; evil modules/deep/lib/.git"),
    )
]  # fmt: skip

# --- what the engine itself runs and reads, when it lies in the workspace


def _put(*names: str, content: str = "original\n") -> Callable[[Scene], None]:
    def prepare(scene: Scene) -> None:
        for name in names:
            path = scene.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content or scene.token)

    return prepare


_OWN = [
    Probe("own-python", "replace our interpreter", "rm -f v/bin/python; echo ESCAPED > v/bin/python",
          _has_word("workspace", "v", "bin", "python"), writes=("**",), protected=("v/bin",),
          prepare=_put("v/bin/python")),
    Probe("own-program", "plant a bwrap beside it", "echo ESCAPED > v/bin/bwrap",
          _file_is_there("workspace", "v", "bin", "bwrap"), writes=("**",), protected=("v/bin",),
          prepare=_put("v/bin/python")),
    Probe("own-above", "move the folder above it away", "mv v w; mkdir -p v/bin; echo ESCAPED > v/bin/python",
          _has_word("workspace", "v", "bin", "python"), writes=("**",), protected=("v/bin",),
          prepare=_put("v/bin/python")),
    Probe("own-home", "make settings in our folder", "echo ESCAPED > h/stretto.yaml",
          _file_is_there("workspace", "h", "stretto.yaml"), writes=("**",), hidden=("h",),
          prepare=_put("h/trust.json")),
    Probe("own-home-moved", "put another in its place", "mv h i; mkdir h; echo ESCAPED > h/stretto.yaml",
          _file_is_there("workspace", "h", "stretto.yaml"), writes=("**",), hidden=("h",),
          prepare=_put("h/trust.json")),
    Probe("own-journal", "read our folder", "cat h/trust.json", _token_came_back, hidden=("h",),
          prepare=_put("h/trust.json", content="")),
    *(
        Probe(f"key-{name.strip('.').replace('/', '-')}", f"read {name}", f"cat {name}", _token_came_back,
              prepare=_put(name, content=""))
        for name in (".env", "tls/server.key", "id_rsa", ".netrc", ".aws/credentials", ".ssh/config")
    ),
    Probe("key-moved", "move keys to where they are not known", "mv .ssh s; cat s/config; mv .env e; cat e",
          _token_came_back, writes=("**",), prepare=_put(".ssh/config", ".env", content="")),
]  # fmt: skip

# --- what Landlock does not know of

_MARKS = [
    Probe("chmod-out", "the mode of a file outside", 'chmod 777 "$OUT/canary.txt"',
          lambda scene, _: bool(scene.mode("outside", "canary.txt") & 0o111), writes=()),
    Probe("times-out", "the times of a file outside", 'touch -d 2001-01-01 "$OUT/canary.txt"',
          lambda scene, _: (scene.outside / "canary.txt").stat().st_mtime < 1e9, writes=()),
    Probe("xattr-out", "an attribute of a file outside",
          _python("os.setxattr(E['OUT'] + '/canary.txt', 'user.escaped', b'x')"),
          lambda scene, _: bool(os.listxattr(scene.outside / "canary.txt")), writes=()),
    Probe("owner-out", "the owner of a file outside", 'chown 1:1 "$OUT/canary.txt"',
          lambda scene, _: (scene.outside / "canary.txt").stat().st_uid == 1, root_only=True),
    Probe("folder-out", "the mode of a folder outside", 'chmod 777 "$OUT"',
          lambda scene, _: scene.mode("outside") & 0o777 == 0o777, writes=()),
]  # fmt: skip

# --- reading what one may not

_READING = [
    Probe("own-environ", "a secret of the launcher's environment", "env; cat /proc/self/environ",
          _token_came_back),
    Probe("init-environ", "/proc/1/environ and that of all others",
          "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; true", _token_came_back),
    Probe("victim-environ", "the environment of a process outside",
          "tr '\\0' '\\n' < /proc/$VICTIM/environ", _token_came_back),
    Probe("command-lines", "the command lines of processes outside",
          "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; true", _token_came_back),
    Probe("victim-memory", "process_vm_readv of a process outside", _ctypes("""
        class V(ctypes.Structure): _fields_ = [('b', ctypes.c_void_p), ('n', ctypes.c_size_t)]
        pid = int(E['VICTIM'])
        for line in open(f'/proc/{pid}/maps'):
            if 'stack' in line:
                low, high = (int(x, 16) for x in line.split()[0].split('-'))
                b = ctypes.create_string_buffer(high - low)
                v, r = V(ctypes.addressof(b), high - low), V(low, high - low)
                libc.process_vm_readv(pid, ctypes.byref(v), 1, ctypes.byref(r), 1, 0)
                sys.stdout.buffer.write(b.raw.replace(b'\\0', b' '))
        """), _token_came_back, limits=replace(LIMITS, output_bytes=_MIB)),
    Probe("home", "a file in the user's home", 'cat "$HOME_CANARY"', _token_came_back),
    Probe("home-search", "look through /root and /home",
          "cat /root/.stretto-escape-* /home/*/.stretto-escape-* 2>/dev/null; true", _token_came_back,
          control='cat "$HOME_CANARY"'),
    Probe("ssh", "~/.ssh", 'cat "$HOST_HOME/.ssh/id_ed25519" ~/.ssh/id_ed25519',
          _token_came_back),
    Probe("stretto", "~/.stretto", 'cat "$HOST_HOME/.stretto/token" ~/.stretto/token', _token_came_back),
    Probe("shadow", "/etc/shadow", "cat /etc/shadow", _said("root:"), root_only=True),
    Probe("host-tmp", "a file in the host's /tmp", 'cat "$TMP_CANARY"', _token_came_back),
    Probe("host-shm", "a file in the host's /dev/shm", 'cat "$SHM_CANARY"', _token_came_back),
    Probe("outside", "a file beside the workspace", 'cat "$OUT/secret.txt" ../outside/secret.txt',
          _token_came_back),
    Probe("planted-read", "read through a link in the workspace", "cat linked/secret.txt",
          _token_came_back),
    Probe("descriptors", "descriptors that the launcher left open", _python("""
        for fd in range(3, 256):
            try: os.write(1, os.pread(fd, 4096, 0))
            except OSError: pass
            try: os.write(1, open(os.open(E['OUT'].lstrip('/') + '/secret.txt', os.O_RDONLY, dir_fd=fd), 'rb').read())
            except OSError: pass
        """), _token_came_back),
    Probe("sysv-memory", "System V shared memory of the host", _ctypes("""
        libc.shmat.restype = ctypes.c_void_p
        place = libc.shmat(libc.shmget(int(E['SHM_KEY']), 4096, 0), None, 0o10000)
        print(ctypes.string_at(place, 32).decode() if place not in (None, 2**64 - 1) else 'none')
        """), _token_came_back),
    Probe("inotify", "watch a directory outside", _ctypes("""
        import select
        fd = libc.inotify_init()
        libc.inotify_add_watch(fd, E['OUT'].encode(), 0xfff)
        print('SEEN' if select.select([fd], [], [], 0.5)[0] else 'blind')
        """), _said("SEEN")),
    Probe("disk", "make a node of the disk itself", "mknod src/disk b 8 0",
          _is_kind(stat.S_IFBLK, "workspace", "src", "disk"), root_only=True),
    Probe("kernel-log", "read the kernel's log",
          '[ "$(dmesg 2>/dev/null | wc -l)" -gt 0 ] && echo READ-LOG; true', _said("READ-LOG"),
          root_only=True),
]  # fmt: skip

# --- talking to the host


def _connect(family: str, address: str, kind: str = "SOCK_STREAM") -> str:
    return _python(f"""
        import socket
        s = socket.socket(socket.{family}, socket.{kind})
        s.settimeout(2)
        s.connect({address})
        s.send(b'ESCAPED')
        """)


_TALKING = [
    Probe("tcp", "TCP to a server on loopback",
          _connect("AF_INET", "('127.0.0.1', int(E['TCP']))"), _was_heard("tcp")),
    Probe("tcp-bash", "the same with bash alone", "echo ESCAPED > /dev/tcp/127.0.0.1/$TCP",
          _was_heard("tcp")),
    Probe("tcp6", "TCP to a server on ::1",
          _connect("AF_INET6", "('::1', int(E['TCP6']))"), _was_heard("tcp6")),
    Probe("udp", "UDP to a server on loopback",
          _connect("AF_INET", "('127.0.0.1', int(E['UDP']))", "SOCK_DGRAM"), _was_heard("udp")),
    Probe("dns", "a DNS question to a resolver on loopback", _python("""
        import socket
        q = b'\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\6secret\\7example\\0\\0\\1\\0\\1'
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(q, ('127.0.0.1', int(E['UDP'])))
        """), _was_heard("udp")),
    Probe("vsock", "a socket of the hypervisor's family, which no network namespace holds",
          _python("import socket; socket.socket(socket.AF_VSOCK, 1); print('GRANTED')"),
          _said("GRANTED")),
    Probe("abstract", "an abstract Unix socket",
          _connect("AF_UNIX", "'\\0' + E['ABSTRACT']"), _was_heard("abstract")),
    Probe("socket-tmp", "a Unix socket in /tmp",
          _connect("AF_UNIX", "E['TMP_SOCKET']"), _was_heard("tmp socket")),
    Probe("socket-workspace", "a Unix socket in the workspace",
          _connect("AF_UNIX", "'s'"), _was_heard("workspace socket")),
    Probe("socket-src", "a Unix socket in the write-set",
          _connect("AF_UNIX", "'src/s'"), _was_heard("src socket")),
    Probe("socket-datagram", "a datagram socket in the workspace",
          _connect("AF_UNIX", "'d'", "SOCK_DGRAM"), _was_heard("workspace datagram")),
    Probe("socket-pair", "one of a pair, pointed at another address", _python("""
        import socket
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        a.sendto(b'ESCAPED', 'd')
        """), _was_heard("workspace datagram")),
    Probe("socket-x32", "a Unix socket by the number of another ABI", _ctypes("""
        import socket
        fd = libc.syscall(0x40000000 + SOCKET, 1, 1, 0)
        fd = fd if fd >= 0 else libc.syscall(SOCKET, 1, 1, 0)
        socket.socket(fileno=fd).connect('s')
        """.replace("SOCKET", str(_NUMBER["socket"]))), _was_heard("workspace socket")),
    Probe("signal-launcher", "a signal to the launcher", "kill -USR1 $HARNESS",
          lambda scene, _: bool(scene.signals)),
    Probe("kill", "kill a process outside", "kill -9 $VICTIM", _victim_hurt),
    Probe("kill-all", "kill everything", "kill -9 -1", _victim_hurt, control="kill -9 $VICTIM"),
    Probe("stop", "stop a process outside", "kill -STOP $VICTIM", _victim_hurt),
    Probe("ptrace", "attach to a process outside", _ctypes("""
        pid = int(E['VICTIM'])
        if libc.ptrace(16, pid, None, None) == 0:
            os.waitpid(pid, 0x40000000)
            libc.ptrace(8, pid, None, None)
        """), _victim_hurt),
    Probe("pidfd", "a signal through a pidfd", _ctypes("""
        libc.syscall(424, libc.syscall(434, int(E['VICTIM']), 0), 9, None, 0)
        """), _victim_hurt),
    Probe("renice", "change the priority of a process outside", "renice -n 19 -p $VICTIM",
          # The victim began with our own priority, which `nice` may have lowered.
          lambda scene, _: os.getpriority(os.PRIO_PROCESS, scene.victim.pid) > os.nice(0)),
    Probe("terminal", "write to a terminal of the host", "echo ESCAPED > $PTY",
          lambda scene, _: WORD in scene.terminal_says()),
    Probe("terminal-push", "push keystrokes into a terminal (TIOCSTI)", _python("""
        import fcntl
        for path in (E['PTY'], '/dev/tty'):
            try: fd = os.open(path, os.O_RDWR | os.O_NOCTTY)
            except OSError: continue
            for c in b'ESCAPED\\n': fcntl.ioctl(fd, 0x5412, bytes([c]))
        """), lambda scene, _: WORD in scene.terminal_says(), root_only=True),
    Probe("kernel-message", "write into the kernel's log", "echo ESCAPED-$VICTIM > /dev/kmsg",
          lambda scene, _: _kernel_said(f"ESCAPED-{scene.victim.pid}"), root_only=True),
]  # fmt: skip


def _kernel_said(word: str) -> bool:
    fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    try:
        while True:
            if word in os.read(fd, 8192).decode(errors="replace"):
                return True
    except BlockingIOError:
        return False
    finally:
        os.close(fd)


# --- gaining rights

_SYSCTL = Path("/proc/sys/kernel/printk_ratelimit_burst")


def _sysctl_changed(_: Scene, __: Ran) -> bool:
    changed = _SYSCTL.read_text().strip() == "11"
    if changed:
        _SYSCTL.write_text("10")  # the kernel's own default
    return changed


def _call(name: str, *arguments: str) -> str:
    return _ctypes(f"""
        result = libc.syscall({", ".join([str(_NUMBER[name]), *arguments])})
        print('GRANTED' if result >= 0 else 'denied', ctypes.get_errno())
        """)


def _plant_set_id(scene: Scene) -> None:
    program, private = scene.workspace / "src/as_nobody", scene.workspace / "src/private"
    program.write_bytes(Path("/usr/bin/touch").read_bytes())
    private.mkdir(mode=0o700)
    for path in (program, private):
        os.chown(path, 65534, 65534)
    program.chmod(0o4755)


_RIGHTS = [
    Probe("remount", "mount the workspace writable again", """
        mount -o remount,rw,bind "$WS" 2>/dev/null; mount -o remount,rw / 2>/dev/null
        echo ESCAPED > protected.txt""", _protected_changed,
          control="echo ESCAPED > protected.txt"),
    Probe("bind", "mount the workspace a second time", """
        mkdir -p /tmp/b; mount --bind "$WS" /tmp/b 2>/dev/null; mount --bind / /tmp/b 2>/dev/null
        echo ESCAPED > "/tmp/b$WS/protected.txt"; echo ESCAPED > /tmp/b/protected.txt""",
          _protected_changed, control="echo ESCAPED > protected.txt"),
    Probe("new-mount-api", "open_tree and move_mount", _ctypes("""
        fd = libc.syscall(428, -100, E['WS'].encode(), 1 | 0x8000)
        if fd >= 0:
            libc.syscall(442, fd, b'', 0x1000 | 0x8000, (ctypes.c_uint64 * 4)(0, 1, 0, 0), 32)
            open(os.open('protected.txt', os.O_WRONLY | os.O_TRUNC, dir_fd=fd), 'w').write('ESCAPED')
        """), _protected_changed, control="echo ESCAPED > protected.txt"),
    Probe("umount", "unmount what hides the host",
          'umount -l "$WS" /tmp /proc 2>/dev/null; echo ESCAPED > "$WS/protected.txt"',
          _protected_changed, control="echo ESCAPED > protected.txt"),
    Probe("user-namespace", "root in a user namespace of one's own",
          "unshare -Urm sh -c 'mount -o remount,rw,bind \"$WS\"; echo ESCAPED > protected.txt'",
          _protected_changed),
    Probe("clone-namespace", "the same with a bare clone", _ctypes("""
        pid = libc.syscall(CLONE, 0x10000000 | 0x20000 | 17, 0, 0, 0, 0)
        if pid == 0:
            print('GRANTED'); sys.stdout.flush(); os._exit(0)
        """.replace("CLONE", str(_NUMBER["clone"]))), _said("GRANTED")),
    Probe("nested-bwrap", "a sandbox in the sandbox",
          "bwrap --bind / / sh -c 'echo ESCAPED > protected.txt'", _protected_changed),
    Probe("chroot", "break out of a chroot", _python("""
        os.mkdir('src/jail')
        try: os.chroot('src/jail')
        except OSError: pass
        for _ in range(64): os.chdir('..')
        try: os.chroot('.')
        except OSError: pass
        open(E['OUT'] + '/canary.txt', 'w').write('ESCAPED')
        """), _canary_changed),
    Probe("pivot-root", "pivot_root", _ctypes("""
        libc.syscall(PIVOT, b'/', b'/tmp')
        open(E['OUT'] + '/canary.txt', 'w').write('ESCAPED')
        """.replace("PIVOT", str(_NUMBER["pivot_root"]))), _canary_changed,
          control='echo ESCAPED > "$OUT/canary.txt"'),
    Probe("setns", "enter the namespaces of a process outside", """
        for p in 1 $VICTIM; do
          nsenter -t $p -m -p -n sh -c 'echo ESCAPED > "$OUT/canary.txt"' 2>/dev/null
        done; true""", _canary_changed, root_only=True),
    Probe("chown", "give a file away", "chown 65534 src/a.py",
          lambda scene, _: (scene.workspace / "src/a.py").stat().st_uid == 65534,
          root_only=True),
    Probe("set-id-left", "leave a set-user-id program behind",
          "cp /bin/sh src/sh; chmod 4755 src/sh", _has_set_id("workspace", "src", "sh")),
    Probe("set-id-made", "the same, in the call that makes the file", _python("""
        os.umask(0); os.close(os.open('src/sh', os.O_CREAT | os.O_WRONLY, 0o6755))
        """), _has_set_id("workspace", "src", "sh")),
    Probe("set-id-staged", "the same, in a staged directory",
          "cp /bin/sh docs/sh.md; chmod 6755 docs/sh.md", _has_set_id("workspace", "docs", "sh.md")),
    Probe("set-id-run", "run a set-user-id program of another user",
          "src/as_nobody src/private/x", _file_is_there("workspace", "src", "private", "x"),
          prepare=lambda scene: _plant_set_id(scene), root_only=True),
    Probe("device", "make a device node", "mknod src/mem c 1 1",
          _is_kind(stat.S_IFCHR, "workspace", "src", "mem"), root_only=True),
    Probe("dev-mem", "open the machine's memory and ports",
          "for d in mem port kmsg; do (: > /dev/$d) 2>/dev/null && echo GRANTED; done; true",
          _said("GRANTED"), control="(: > /dev/kmsg) && echo GRANTED", root_only=True),
    Probe("sysctl", "set a kernel parameter",
          "echo 11 > /proc/sys/kernel/printk_ratelimit_burst", _sysctl_changed, root_only=True),
    Probe("core-pattern", "open the pattern of core dumps for writing",
          "(: >> /proc/sys/kernel/core_pattern) && echo GRANTED", _said("GRANTED"),
          root_only=True),
    Probe("drop-caches", "open /proc/sys/vm/drop_caches for writing",
          "(: >> /proc/sys/vm/drop_caches) && echo GRANTED", _said("GRANTED"), root_only=True),
    Probe("cron", "leave a job for cron",
          "mkdir -p /etc/cron.d; echo '# nothing' > /etc/cron.d/stretto-escape-$VICTIM",
          _host_file_appears("/etc/cron.d/stretto-escape-TOKEN"), root_only=True),
    Probe("etc", "write into /etc", "echo > /etc/stretto-escape-$VICTIM",
          _host_file_appears("/etc/stretto-escape-TOKEN"), root_only=True),
    Probe("usr", "write into /usr", "echo > /usr/stretto-escape-$VICTIM",
          _host_file_appears("/usr/stretto-escape-TOKEN"), root_only=True),
    Probe("dev", "write into /dev", "echo > /dev/stretto-escape-$VICTIM",
          _host_file_appears("/dev/stretto-escape-TOKEN"), root_only=True),
    Probe("cgroup", "write into /sys", "mkdir -p /sys/fs/cgroup/stretto-escape-$VICTIM && echo GRANTED; rmdir /sys/fs/cgroup/stretto-escape-$VICTIM",
          _said("GRANTED"), root_only=True),
    Probe("keyring", "add a key to the user's keyring",
          _call("add_key", "b'user'", "b'stretto-escape'", "b'x'", "1", "-4"), _said("GRANTED")),
    Probe("userfaultfd", "userfaultfd", _call("userfaultfd", "1"), _said("GRANTED")),
    Probe("perf", "perf_event_open", _call("perf_event_open", "(ctypes.c_uint32 * 32)(1, 128)", "0", "-1", "-1", "0"), _said("GRANTED"),
          root_only=True),
    Probe("bpf", "load a map into the kernel", _call("bpf", "0", "(ctypes.c_uint32 * 32)(2, 4, 8, 1)", "128"),
          _said("GRANTED"), root_only=True),
    Probe("io-uring", "io_uring, which no filter sees into",
          _call("io_uring_setup", "4", "(ctypes.c_uint32 * 64)()"), _said("GRANTED")),
]  # fmt: skip

# --- staying, and taking too much

_ALLOCATE = _python("""
    kept = [bytearray(b'x') * 1048576 for _ in range(int(E.get('MANY', '400')))]
    print('GRANTED')
    """)


def _still_running(scene: Scene, _: Ran) -> bool:
    time.sleep(0.3)
    mark = f"STRETTO_ESCAPE_MARK={scene.victim.pid}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes():
                return True
        except OSError:
            continue
    return False


def _outgrew(most_bytes: int, *names: str) -> Check:
    def check(scene: Scene, _: Ran) -> bool:
        path = scene.root.joinpath(*names)
        return path.exists() and path.stat().st_size > most_bytes

    return check


_MARKED = "export STRETTO_ESCAPE_MARK=$VICTIM\n"
_STAYING = [
    Probe("setsid", "outlive the command in a session of one's own",
          "setsid sh -c 'sleep 0.7; echo late > src/late' >/dev/null 2>&1 & sleep 0.2", _written_late),
    Probe("daemon", "outlive it as a twice forked daemon", _python("""
        import time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.closerange(0, 64)
                time.sleep(0.7)
                open('src/late', 'w').write('late')
            os._exit(0)
        """), _written_late),
    Probe("nohup", "outlive it with nohup, deaf to signals", """
        nohup setsid sh -c "trap '' TERM HUP INT; sleep 0.7; echo late > src/late" >/dev/null 2>&1 &
        disown; sleep 0.2""", _written_late),
    Probe("deaf", "outlive the time limit, deaf to signals", """
        trap '' TERM HUP INT QUIT; setsid sh -c "trap '' TERM; sleep 2; echo late > src/late" &
        sleep 9""", _written_late, limits=replace(LIMITS, wall_seconds=1),
          control="setsid sh -c 'sleep 0.7; echo late > src/late' & sleep 0.1"),
    Probe("fork-bomb", "a fork bomb", _MARKED + "b() { b | b & }; b; sleep 8", _still_running,
          control=_MARKED + "setsid sleep 2 >/dev/null 2>&1 & sleep 0.2"),
    Probe("many-processes", "more processes than allowed", """
        for i in $(seq 150); do sleep 3 & done 2>/dev/null
        [ $(ls -d /proc/[0-9]* | wc -l) -gt 140 ] && sleep 0.3 && echo GRANTED; true""",
          _said("GRANTED")),
    Probe("many-threads", "more threads than allowed", _python("""
        import threading, time
        threading.stack_size(65536)
        for _ in range(150): threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
        time.sleep(0.3)
        print('GRANTED'); sys.stdout.flush(); os._exit(0)
        """), _said("GRANTED")),
    Probe("memory", "more memory than allowed", _ALLOCATE, _said("GRANTED")),
    Probe("memory-shared", "the same by many processes", """
        export MANY=70
        """ + "for i in 1 2 3 4 5 6; do (" + _python("""
        import time
        kept = [bytearray(b'x') * 1048576 for _ in range(70)]
        time.sleep(2)
        print('GRANTED')
        """) + ") & done; wait", _said("GRANTED")),
    Probe("memory-tmp", "the same in /tmp",
          "head -c 40M /dev/zero > /tmp/a; [ $(stat -c %s /tmp/a) -gt 30000000 ] && echo GRANTED; rm -f /tmp/a",
          _said("GRANTED"), limits=replace(LIMITS, file_bytes=1 << 30)),
    Probe("memory-shm", "the same in /dev/shm",
          "head -c 40M /dev/zero > /dev/shm/a$VICTIM; [ $(stat -c %s /dev/shm/a$VICTIM) -gt 30000000 ] && echo GRANTED; rm -f /dev/shm/a$VICTIM",
          _said("GRANTED"), limits=replace(LIMITS, file_bytes=1 << 30)),
    Probe("memory-memfd", "the same in files of memory", _python("""
        kept = [os.memfd_create('x') for _ in range(40)]
        for fd in kept: os.write(fd, bytes(10 << 20))
        print('GRANTED')
        """), _said("GRANTED")),
    Probe("memory-root", "the same in the root directory", """
        for d in / /dev /etc /home /run /var; do
          head -c 40M /dev/zero > $d/stretto-escape-$VICTIM && echo GRANTED
          rm -f $d/stretto-escape-$VICTIM
        done 2>/dev/null; true""", _said("GRANTED"), limits=replace(LIMITS, file_bytes=1 << 30),
          root_only=True),
    Probe("big-file", "a file larger than allowed", "head -c 40M /dev/zero > src/big",
          _outgrew(17 * _MIB, "workspace", "src", "big")),
    Probe("sparse-file", "a sparse file of a terabyte", "truncate -s 1T src/sparse",
          _outgrew(17 * _MIB, "workspace", "src", "sparse")),
    Probe("output", "a flood of output", "head -c 20M /dev/zero | tr '\\0' x",
          lambda _, ran: len(ran.output) > _MIB),
    Probe("cpu", "burn more time of the processor than allowed, a little in each process", _python("""
        import time
        children = [os.fork() for _ in range(2)]  # which makes four of them
        while time.process_time() < 1: pass
        while True:
            try: os.wait()
            except ChildProcessError: break
        if 0 not in children: print('GRANTED')
        """), _said("GRANTED"), limits=replace(LIMITS, cpu_seconds=2, wall_seconds=30)),
    Probe("many-files", "fill the disk with many files",
          "for i in $(seq 200); do head -c 8M /dev/zero > src/$i; done; echo FILLED", _said("FILLED"),
          limits=replace(LIMITS, disk_bytes=32 * _MIB, wall_seconds=60)),
    Probe("limits", "raise the limits again",
          "ulimit -f unlimited 2>/dev/null; ulimit -d unlimited 2>/dev/null; prlimit --fsize=unlimited --pid $$ 2>/dev/null; head -c 40M /dev/zero > src/big",
          _outgrew(17 * _MIB, "workspace", "src", "big")),
    Probe("self-stop", "stop everything, so that nothing ends",
          _MARKED + "kill -STOP -1; kill -STOP $$; sleep 5", _still_running,
          limits=replace(LIMITS, wall_seconds=1),
          control=_MARKED + "setsid sleep 2 >/dev/null 2>&1 & sleep 0.2"),
]  # fmt: skip

# What a read-only mount held above, the stage must hold by dropping it.
_STAGED = [
    replace(
        probe, name=f"staged-{probe.name}", tried=f"{probe.tried}, staged", writes=STAGED_WRITES
    )
    for probe in _WRITING
    if probe.escaped is _protected_changed or probe.name in ("new-file", "o-tmpfile", "chmod")
]

PROBES: tuple[Probe, ...] = (
    *_WRITING, *_STAGED, *_GIT, *_REPOSITORIES, *_OWN, *_MARKS, *_READING, *_TALKING, *_RIGHTS,
    *_STAYING,
)  # fmt: skip

# One of each kind, and none that must wait: for the test suite.
QUICK: frozenset[str] = frozenset(
    """
    dotdot absolute protected new-file delete rename-out rename-over exchange truncate symlink
    planted-link linked-set set-swap hardlink-in hardlink-out linkat-fd o-tmpfile proc-self-fd
    proc-self-root proc-any-root by-handle glob-other glob-change glob-link file-link fifo-back
    read-only-step staged-protected staged-rename-over git-hook git-fsmonitor git-named git-move
    git-init git-nested git-umount own-environ init-environ victim-environ command-lines home ssh
    stretto shadow host-tmp outside descriptors disk tcp-bash udp vsock abstract socket-workspace
    socket-pair signal-launcher kill kill-all ptrace terminal remount user-namespace nested-bwrap
    setns chown set-id-left set-id-made device core-pattern etc keyring fork-bomb many-processes
    repository-deep repository-bare repository-file submodule-itself submodule-above own-python
    own-above own-home own-journal key-env key-moved chmod-out times-out xattr-out many-files
    memory memory-shm big-file sparse-file output limits
    """.split()  # noqa: SIM905  one name a line would be a page
)
