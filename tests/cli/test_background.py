"""A command that is left to another process has begun, or never will."""

import asyncio
import subprocess

import pytest

from stretto.cli import background
from stretto.cli.background import BackgroundCommand
from stretto.problems.errors import StrettoError
from support.background_runs import CHAIN
from support.cli import refused, stretto


@pytest.fixture
def command(monkeypatch, tmp_path):
    monkeypatch.setattr(background, "_PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(background, "_GRACE_SECONDS", 0.3)

    def begin(script):
        process = subprocess.Popen(["sh", "-c", script], start_new_session=True)
        started.append(process)
        return BackgroundCommand(process, tmp_path / "log")

    started = []
    yield begin
    for each in started:
        each.kill()
        each.wait()


async def never():
    return False


@pytest.mark.parametrize("script", ["exec sleep 60", "trap '' TERM; while :; do sleep 60; done"])
def test_what_has_not_begun_in_time_is_ended_so_that_it_never_begins(command, script):
    late = command(script)
    with pytest.raises(StrettoError, match="the run did not start; see "):
        asyncio.run(late.wait_until(never, "the run"))
    assert late.process.poll() is not None


def test_what_begins_at_the_last_moment_has_begun(command):
    late = command("exec sleep 60")

    async def has_begun():
        return late.process.poll() is not None

    asyncio.run(late.wait_until(has_begun, "the run"))


def test_ctrl_c_while_it_is_waited_for_ends_it_too(command):
    late = command("exec sleep 60")

    async def story():
        waiting = asyncio.create_task(late.wait_until(never, "the run"))
        await asyncio.sleep(0.1)
        waiting.cancel()  # as asyncio does at Ctrl-C
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(story())
    assert late.process.poll() is not None


def test_a_recipe_from_stdin_is_left_to_no_other_process(tmp_path):
    said = stretto(tmp_path, "run", "-", "--detach", "--json", stdin=CHAIN)
    assert "cannot come from stdin" in refused(said, "usage")["message"]
