"""The keys of the live view at a real terminal, which is given back as it was."""

import fcntl
import io
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from contextlib import nullcontext

import pytest
from rich.console import Console

from stretto.cli.progress.keyboard import Keyboard, read_keys
from stretto.cli.progress.view import LiveView
from stretto.testing.openai_script import Said
from stretto.testing.openai_server import serving
from support.cli import environment, write
from support.scheduling import plan_of

RECIPE = """
name: slow
agents: {worker: {prompt: Work.}}
steps: [{id: first, agent: worker, prompt: go}]
"""


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ("\x1b[A\x1b[Bjk", ["up", "down", "down", "up"]),
        ("\r\x1b", ["open", "back"]),
        ("\x1b[5~\x1b[6~\t\x1b[Z", ["page up", "page down", "next", "previous"]),
        ("\x1b[1;5C\x1bx\x1b[200~é?", []),
        ("\x1b[", []),
    ],
)
def test_keys_have_names(typed, keys):
    assert list(read_keys(typed)) == keys


class Terminal:
    """A pseudo-terminal with a program in its foreground."""

    def __init__(self, folder, *words, env):
        self.ours, self.theirs = pty.openpty()
        termios.tcsetwinsize(self.theirs, (24, 80))
        self.modes = termios.tcgetattr(self.theirs)
        self.screen = ""
        self.child = subprocess.Popen(
            [sys.executable, "-m", "stretto", *words],
            cwd=folder,
            env=environment(folder, {"TERM": "xterm", **env}),
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def until(self, text, seconds=20):
        give_up_at = time.monotonic() + seconds
        seen = len(self.screen)
        while text not in self.screen[seen:]:
            ready, _, _ = select.select([self.ours], [], [], 1)
            assert time.monotonic() < give_up_at, self.screen[-3000:]
            if ready:
                self.screen += os.read(self.ours, 65536).decode("utf-8", "replace")

    def press(self, keys):
        os.write(self.ours, keys.encode())

    def end(self):
        give_up_at = time.monotonic() + 20
        while self.child.poll() is None and time.monotonic() < give_up_at:
            if select.select([self.ours], [], [], 0.1)[0]:
                self.screen += os.read(self.ours, 65536).decode("utf-8", "replace")
        while select.select([self.ours], [], [], 0.1)[0]:
            self.screen += os.read(self.ours, 65536).decode("utf-8", "replace")
        return self.child.wait(5)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        os.close(self.ours)
        os.close(self.theirs)


def started(folder, server):
    write(folder, "slow.yaml", RECIPE)
    environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
    return Terminal(folder, "run", "slow.yaml", "--model", "openai:m", env=environ)


SLOW = Said("The quick brown fox jumps over it. " * 40, chunks=400, chunk_delay_seconds=0.2)


@pytest.mark.parametrize("end", ["Ctrl-C", "SIGTERM", "SIGHUP"])
def test_a_stream_is_opened_and_the_terminal_is_given_back(tmp_path, end):
    with serving(SLOW) as server, started(tmp_path, server) as terminal:
        terminal.until("quick brown")
        terminal.press("\r")
        terminal.until("Esc closes it")
        assert termios.tcgetattr(terminal.theirs)[3] & termios.ECHO == 0
        terminal.press("\x1b")
        terminal.until("Enter opens it")
        if end == "Ctrl-C":
            terminal.press("\x03")
        else:
            terminal.child.send_signal(getattr(signal, end))
        assert terminal.end() == 130
        assert termios.tcgetattr(terminal.theirs) == terminal.modes
        # The cursor was hidden, and is shown again.
        assert terminal.screen.rindex("\x1b[?25h") > terminal.screen.rindex("\x1b[?25l")


@pytest.mark.parametrize("is_opened", [True, False])
def test_a_view_leaves_no_file_open(monkeypatch, is_opened):
    def fail(keyboard):
        raise OSError("no terminal")

    monkeypatch.setattr(Keyboard, "is_there", lambda: True)
    if not is_opened:
        monkeypatch.setattr(Keyboard, "open", fail)
    view = LiveView(plan_of(RECIPE), Console(file=io.StringIO(), force_terminal=True))
    before = os.listdir("/proc/self/fd")
    with nullcontext() if is_opened else pytest.raises(OSError, match="no terminal"), view:
        pass
    view._keyboard.close()
    assert os.listdir("/proc/self/fd") == before


def test_a_process_in_the_background_touches_no_terminal():
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    keyboard = Keyboard(lambda: None, lambda: None, number=theirs)
    keyboard.open()  # it is not our controlling terminal
    assert termios.tcgetattr(theirs) == before
    assert keyboard.wait(0.01) == []
    keyboard.close()
    keyboard.close()
    os.close(ours)
    os.close(theirs)
