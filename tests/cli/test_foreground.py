"""Which signals stop what is driven in the foreground."""

import asyncio
import os
import signal

import pytest

from stretto.cli import foreground
from stretto.cli.chat import _Session
from stretto.cli.foreground import hear_stop_signals, stopped_by_signals

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def handlers():
    """Those of the tests themselves are put back."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("ignored", SIGNALS)
def test_a_signal_that_is_ignored_stays_ignored(handlers, ignored):
    def handled():
        return {number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN}

    async def story():
        signal.signal(ignored, signal.SIG_IGN)
        with stopped_by_signals(lambda: None):
            assert handled() == {*SIGNALS} - {ignored}
        with object.__new__(_Session)._on_signals():
            assert handled() == {*SIGNALS} - {ignored}
        hear_stop_signals()
        assert handled() == {*SIGNALS} - {ignored}

    asyncio.run(story())


@pytest.mark.parametrize("number", SIGNALS)
def test_nothing_is_begun_after_what_sigterm_or_sighup_has_stopped(handlers, monkeypatch, number):
    monkeypatch.setattr(foreground, "_heard", set())

    async def work():
        stopped = asyncio.Event()
        with stopped_by_signals(stopped.set) as signals:
            os.kill(os.getpid(), number)
            await stopped.wait()
        assert signals.has_come

    asyncio.run(work())
    assert foreground.is_terminated() is (number != signal.SIGINT)
