"""The scene of one escape probe: a workspace, and all around it things that must not be reached.

In: nothing. Out: a Scene with canaries, listeners and a victim process, all gone when it closes.
"""

import ctypes
import os
import secrets
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

WORD = "ESCAPED"  # what a probe writes where it should not


class Scene:
    def __init__(self) -> None:
        self._closing = ExitStack()
        self.token = secrets.token_hex(16)  # what a probe must not read
        # Not in /tmp, which the sandbox replaces: that alone would stop half of the probes.
        self.root = Path(tempfile.mkdtemp(prefix="stretto-escape-", dir="/var/tmp"))
        self._closing.callback(shutil.rmtree, self.root, ignore_errors=True)
        self.workspace = self.root / "workspace"
        self.outside = self.root / "outside"
        self.heard: list[str] = []
        self.signals: list[int] = []
        self._ended = threading.Event()
        try:
            self._make_workspace()
            self._make_outside()
            self._listen()
            self._start_victim()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._closing.close()

    def environment(self) -> dict[str, str]:
        """What a probe is told. The token is not in it."""
        return {
            "WS": str(self.workspace),
            "OUT": str(self.outside),
            "SIBLING": str(self.root / "sibling.txt"),
            "TMP_CANARY": str(self.tmp_canary),
            "SHM_CANARY": str(self.shm_canary),
            "HOME_CANARY": str(self.home_canary),
            "HOST_HOME": str(self.root / "home"),
            "TCP": str(self._ports["tcp"]),
            "TCP6": str(self._ports.get("tcp6", 0)),
            "UDP": str(self._ports["udp"]),
            "ABSTRACT": self.abstract,
            "TMP_SOCKET": str(self.tmp_socket),
            "VICTIM": str(self.victim.pid),
            "HARNESS": str(os.getpid()),
            "PTY": self.pty_path,
            "SHM_KEY": str(self.shm_key),
        }

    def text(self, *names: str) -> str:
        """Of a file in the scene; empty if it is gone or a link."""
        path = self.root.joinpath(*names)
        with suppress(OSError):
            if not path.is_symlink():
                return path.read_text(errors="replace")
        return ""

    def mode(self, *names: str) -> int:
        with suppress(OSError):
            return self.root.joinpath(*names).lstat().st_mode
        return 0

    def victim_is_alive(self) -> bool:
        if self.victim.poll() is not None:
            return False
        state = Path(f"/proc/{self.victim.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state in "SR"

    def terminal_says(self) -> str:
        """What came out of the terminal, and what was pushed into it."""
        said = b""
        for fd in (self._pty_master, self._pty_slave):
            os.set_blocking(fd, False)
            with suppress(OSError):
                said += os.read(fd, 4096)
        return said.decode(errors="replace")

    def _make_workspace(self) -> None:
        for name in ("src", "docs", ".git/hooks", "vendor/lib/.git"):
            (self.workspace / name).mkdir(parents=True)
        for name in ("protected.txt", "notes.txt", "docs/a.md", "docs/a.txt", "src/a.py"):
            (self.workspace / name).write_text("original\n")
        (self.workspace / ".git/config").write_text("[core]\n\tbare = false\n")
        (self.workspace / ".git/HEAD").write_text("ref: refs/heads/main\n")
        (self.workspace / "vendor/lib/.git/config").write_text("[core]\n")
        (self.workspace / "src/planted").symlink_to(self.outside / "canary.txt")
        (self.workspace / "linked").symlink_to(self.outside)

    def _make_outside(self) -> None:
        self.outside.mkdir()
        (self.outside / "canary.txt").write_text("original\n")
        (self.outside / "secret.txt").write_text(self.token)
        (self.root / "sibling.txt").write_text("original\n")
        for name in (".ssh/id_ed25519", ".stretto/token"):
            path = self.root / "home" / name
            path.parent.mkdir(parents=True)
            path.write_text(self.token)
        self.tmp_canary = self._canary(Path("/tmp"))
        self.shm_canary = self._canary(Path("/dev/shm"))
        self.home_canary = self._canary(Path.home())
        self._leave_open(self.outside / "secret.txt")
        self._pty_master, self._pty_slave = os.openpty()
        self.pty_path = os.ttyname(self._pty_slave)
        self._closing.callback(os.close, self._pty_master)
        self._closing.callback(os.close, self._pty_slave)
        self._share_memory()
        self._keep_touching(self.outside / "watched")

    def _canary(self, directory: Path) -> Path:
        path = directory / f".stretto-escape-{secrets.token_hex(6)}"
        path.write_text(self.token)
        self._closing.callback(path.unlink, missing_ok=True)
        return path

    def _leave_open(self, path: Path) -> None:
        """A descriptor that a careless launcher would hand down."""
        fd = os.open(path, os.O_RDONLY)
        os.set_inheritable(fd, True)
        self._closing.callback(os.close, fd)
        directory = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
        os.set_inheritable(directory, True)
        self._closing.callback(os.close, directory)

    def _share_memory(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.shmat.restype = ctypes.c_void_p
        self.shm_key = secrets.randbelow(1 << 30) + 1
        segment = libc.shmget(self.shm_key, 4096, 0o1600)
        if segment < 0:
            return
        place = libc.shmat(segment, None, 0)
        ctypes.memmove(place, self.token.encode(), len(self.token))
        libc.shmdt(ctypes.c_void_p(place))
        self._closing.callback(libc.shmctl, segment, 0, None)

    def _keep_touching(self, path: Path) -> None:
        def touch() -> None:
            while not self._ended.wait(0.02):
                with suppress(OSError):
                    path.touch()

        self._in_background(touch)

    def _in_background(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self._closing.callback(thread.join)
        self._closing.callback(self._ended.set)

    def _listen(self) -> None:
        self._ports: dict[str, int] = {}
        self._servers = selectors.DefaultSelector()
        self._closing.callback(self._servers.close)
        self.abstract = f"stretto-escape-{secrets.token_hex(6)}"
        self.tmp_socket = Path(f"/tmp/stretto-escape-{secrets.token_hex(6)}.sock")
        self._closing.callback(self.tmp_socket.unlink, missing_ok=True)
        self._serve("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self._serve("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        with suppress(OSError):
            self._serve("tcp6", socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0))
        stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
        self._serve("abstract", socket.AF_UNIX, stream, f"\0{self.abstract}")
        self._serve("tmp socket", socket.AF_UNIX, stream, str(self.tmp_socket))
        self._serve("workspace socket", socket.AF_UNIX, stream, str(self.workspace / "s"))
        self._serve("src socket", socket.AF_UNIX, stream, str(self.workspace / "src/s"))
        self._serve("workspace datagram", socket.AF_UNIX, datagram, str(self.workspace / "d"))
        self._in_background(self._hear)

    def _serve(self, name: str, family: int, kind: int, address: object) -> None:
        server = socket.socket(family, kind)
        self._closing.callback(server.close)
        server.bind(address)  # type: ignore[arg-type]
        if kind == socket.SOCK_STREAM:
            server.listen()
        if family in (socket.AF_INET, socket.AF_INET6):
            self._ports[name] = server.getsockname()[1]
        server.setblocking(False)
        self._servers.register(server, selectors.EVENT_READ, name)

    def _hear(self) -> None:
        while not self._ended.is_set():
            for key, _ in self._servers.select(timeout=0.01):
                server = key.fileobj
                assert isinstance(server, socket.socket)
                with suppress(OSError):
                    if server.type == socket.SOCK_STREAM:
                        server.accept()[0].close()
                    else:
                        server.recv(4096)
                    self.heard.append(key.data)

    def _start_victim(self) -> None:
        before = signal.signal(signal.SIGUSR1, lambda number, _: self.signals.append(number))
        self._closing.callback(signal.signal, signal.SIGUSR1, before)
        self.victim = subprocess.Popen(
            ["/bin/bash", "-c", f"exec -a victim-{self.token} sleep 600"],
            env={"SECRET": self.token, "PATH": "/usr/bin:/bin"},
            start_new_session=True,
        )
        self._closing.callback(self._end_victim)
        until = time.monotonic() + 5
        while b"victim" not in Path(f"/proc/{self.victim.pid}/cmdline").read_bytes():
            if time.monotonic() > until:
                raise RuntimeError("the victim did not start")
            time.sleep(0.002)

    def _end_victim(self) -> None:
        self.victim.kill()
        self.victim.wait()
