"""What is printed arrives, whatever kind of pipe it goes into, and Ctrl-C while a person is waited for."""

import array
import fcntl
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest

from stretto.cli.streams import woken_by_signals
from support.cli import environment, stretto


def test_a_signal_that_did_not_interrupt_the_reading_does_so_soon() -> None:
    ours, theirs = os.pipe()

    def take() -> None:  # as a thread does that the kernel gives the signal to
        time.sleep(0.05)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        if not heard.wait(30):
            os.write(theirs, b"a key")

    heard = threading.Event()
    taker = threading.Thread(target=take)
    before = signal.getsignal(signal.SIGURG)
    taker.start()
    with pytest.raises(KeyboardInterrupt), woken_by_signals():
        os.read(ours, 1)
    heard.set()
    taker.join()
    assert signal.getsignal(signal.SIGURG) is before
    for each in (ours, theirs):
        os.close(each)


def test_a_full_pipe_that_does_not_block_gets_all_once_it_is_read(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    child = subprocess.Popen(
        [sys.executable, "-m", "stretto", "schema"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
    )
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        _wait_until_full(child, ours)
        got = pipe.read()
    assert child.wait(60) == 0
    assert got.decode() == stretto(tmp_path, "schema").out


def _wait_until_full(child: "subprocess.Popen[bytes]", pipe: int) -> None:
    """Until the child has ended, or waits because nobody reads."""
    held, before, give_up_at = array.array("i", [0]), -1, time.monotonic() + 60
    while child.poll() is None and time.monotonic() < give_up_at:
        fcntl.ioctl(pipe, termios.FIONREAD, held)
        if held[0] and held[0] == before:
            return
        before = held[0]
        time.sleep(0.3)
