"""What holds for all tests: a busy machine makes them slow, and never makes them fail."""

import faulthandler
import gc
import os
import shutil
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more about what else runs here than about the code. Where a test
# does not say how many it needs, fifty find what a hundred find; HYPOTHESIS_PROFILE=thorough looks
# longer.
for name, count in (("quick", 50), ("thorough", 500)):
    settings.register_profile(
        name,
        max_examples=count,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# In memory, where there is room, a journal does not wait for the disk a dozen times a run: what only
# the disk keeps is what a machine forgets that loses its power, and no test can take that away.
_MEMORY, _ROOM_BYTES = Path("/dev/shm"), 4 << 30
if os.access(_MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(_MEMORY).free > _ROOM_BYTES:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

_MOST_SECONDS = 600.0  # of one test
_STDERR: list[int] = []

# Started in the background, or under nohup, a process ignores these, and so do all its children:
# the commands that the tests interrupt would not notice.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        is_interrupt = number is signal.SIGINT
        signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Eleven thousand tests stay to the end: the collector need not look at them, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    manager = config.pluginmanager.getplugin("capturemanager")
    with manager.global_and_fixture_disabled():
        _STDERR.append(os.dup(2))  # the real one: later it is captured


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """A test that hangs ends its process, with where it hung, and counts as failed; the others go on in
    a new one. The longest takes a minute."""
    faulthandler.dump_traceback_later(_MOST_SECONDS, exit=True, file=_STDERR[0])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Three more than there are cores: most of the time is spent waiting for another process."""
    return (os.cpu_count() or 1) + 3
