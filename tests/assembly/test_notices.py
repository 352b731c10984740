"""People are told of steps that await them: once, signed, again before a deadline, and never in the way."""

import asyncio
import json
import os
import sqlite3
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from stretto.assembly.notices import Notifier
from stretto.assembly.project import Project
from stretto.assembly.surface import Surface
from stretto.problems.errors import InvalidConfig
from stretto.triggers.arrivals import signature
from stretto.triggers.notices import Notice, NoticeStore, open_notices
from support.cli import environment, stretto, write

GATED = """\
name: gated
steps:
  - {id: g, subagent: writer, gate: human, prompt: "$(touch /tmp/hacked); {{run.id}}"}
"""
HURRIED = GATED.replace("name: gated", "name: hurried").replace(
    "gate: human", "gate: human, timeout: 2s"
)


class Receiver:
    """A server that keeps what it is posted, and answers what it is told to."""

    def __init__(self) -> None:
        self.posts: list[tuple[dict[str, str], dict[str, Any], bytes]] = []
        self.status = 204
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers["content-length"]))
        self.posts.append((headers, json.loads(body), body))
        writer.write(f"HTTP/1.1 {self.status} x\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def bench(folder: Path, notify: str) -> AsyncIterator[tuple[Surface, Notifier, Receiver]]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.answer, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    write(folder, "home/stretto.yaml", f"notify: {notify.replace('URL', receiver.url)}\n")
    write(folder, "script.yaml", "default: ok")
    environ = environment(
        folder, {"NOTIFY_SECRET": "hush", "STRETTO_MODEL": f"scripted:{folder}/script.yaml"}
    )
    async with server, Surface(lambda place: Project(place or folder, environ)) as stretto:
        yield stretto, Notifier(stretto.engine), receiver


def test_a_question_is_posted_once_and_signed(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path, "{url: URL, secret_variable: NOTIFY_SECRET}") as (
            w,
            notifier,
            got,
        ):
            run = await w.start(GATED)
            await run.wait()
            await notifier.look()
            await notifier.look()
            # Another process, later: it is on record.
            await Notifier(w.engine).look()
            ((headers, told, body),) = got.posts
            assert (told["about"], told["run_id"], told["step"]) == ("asked", run.id, "g")
            stamp = headers["x-stretto-timestamp"]
            assert headers["x-stretto-signature"] == signature("hush", stamp, body)

    asyncio.run(main())


def test_what_a_failed_look_did_not_reach_is_told_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = [sqlite3.OperationalError("disk I/O error"), OSError(5, "Input/output error")]
    record = NoticeStore.record

    def fail(store: NoticeStore, *given: Any) -> None:
        if faults:
            raise faults.pop()
        record(store, *given)

    async def main() -> None:
        async with bench(tmp_path, "{url: URL}") as (w, notifier, got):
            monkeypatch.setattr(NoticeStore, "record", fail)
            monkeypatch.setattr("stretto.assembly.notices._LOOK_SECONDS", 0.01)
            serving = asyncio.create_task(notifier.serve())
            await (await w.start(GATED)).wait()
            async with asyncio.timeout(20):
                while not got.posts:
                    assert not serving.done()
                    await asyncio.sleep(0.01)
            assert faults == []
            serving.cancel()
            await asyncio.wait([serving])
            assert w.engine.listeners == []  # and nobody listens any more

    asyncio.run(main())


def test_what_could_not_be_sent_is_tried_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path, "{url: URL}") as (w, notifier, got):
            got.status = 503
            run = await w.start(GATED)
            await run.wait()
            await notifier.look()
            assert len(got.posts) == 1
            settings = w.project.settings
            with open_notices(settings.home, settings.project) as store:
                assert store.owed(0.0) == []
                (owed,) = store.owed(9e9)
                assert (owed.tries, owed.about) == (1, "asked")
                store._db.execute("UPDATE notices SET next_at = 0")
            got.status = 200
            await notifier.look()
            await notifier.look()
            assert len(got.posts) == 2

    asyncio.run(main())


def test_a_deadline_is_reminded_of_and_does_not_lapse_silently(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path, "{url: URL, remind: 1h}") as (w, notifier, got):
            run = await w.start(HURRIED)
            await run.wait()
            await notifier.look()
            assert [told["about"] for _, told, _ in got.posts] == ["asked", "reminder"]
            assert all(told["deadline"] for _, told, _ in got.posts)
            for _ in range(200):
                if await run.status() != "waiting":
                    break
                await asyncio.sleep(0.05)
            later = Notifier(w.engine)
            await later.look()
            assert [told["about"] for _, told, _ in got.posts][2:] == ["lapsed"]

    asyncio.run(main())


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_deadline_that_ended_its_step_before_anybody_looked_is_told(
    tmp_path: Path, is_cancelled: bool
) -> None:
    """As where a server goes on with the run at the deadline. Who cancels a run has decided."""

    async def main() -> None:
        async with bench(tmp_path, "{url: URL, remind: 1h}") as (w, notifier, got):
            serving = asyncio.create_task(notifier.serve())
            # Long enough for both notices on a busy machine; who cancels does so before it is over.
            patience = "timeout: 60s" if is_cancelled else "timeout: 5s"
            run = await w.start(HURRIED.replace("timeout: 2s", patience))
            await run.wait()
            async with asyncio.timeout(30):
                while len(got.posts) < 2:
                    await asyncio.sleep(0.02)
                if is_cancelled:
                    await run.cancel()
                while await run.status() == "waiting":
                    await asyncio.sleep(0.02)
            await run.resume()
            await run.wait()
            serving.cancel()
            await notifier.look()
            told = [told for _, told, _ in got.posts]
            lapsed = [] if is_cancelled else ["lapsed"]
            # One that was being sent as `serving` was cancelled is sent again: it is not lost.
            assert [*dict.fromkeys(each["about"] for each in told)] == [
                "asked",
                "reminder",
                *lapsed,
            ]
            assert len({(each["key"], each["deadline"]) for each in told}) == 1

    asyncio.run(main())


@pytest.mark.parametrize("is_told_by_the_next_one", [False, True])
def test_a_deadline_that_passes_in_another_process_is_told(
    tmp_path: Path, is_told_by_the_next_one: bool
) -> None:
    async def main() -> None:
        async with bench(tmp_path, "{url: URL}") as (w, notifier, got):
            run = await w.start(HURRIED)
            await run.wait()
            await notifier.look()
            await notifier.look()
            model = {"STRETTO_MODEL": f"scripted:{tmp_path}/script.yaml"}
            while await run.status() == "waiting":
                await asyncio.sleep(0.05)
            said = await asyncio.to_thread(stretto, tmp_path, "resume", run.id, env=model)
            assert said.code == 1, said.err
            for teller in (Notifier(w.engine) if is_told_by_the_next_one else notifier, notifier):
                await teller.look()
            assert [told["about"] for _, told, _ in got.posts] == ["asked", "reminder", "lapsed"]

    asyncio.run(main())


def test_a_command_gets_values_and_no_shell(tmp_path: Path) -> None:
    program = write(
        tmp_path,
        "tools/tell",
        '#!/bin/sh\necho "$STRETTO_STEP $STRETTO_ABOUT $1" > "$HOME/told"\ncat > "$HOME/body"\n',
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    home = tmp_path / "user"
    home.mkdir()

    async def main() -> None:
        async with bench(tmp_path, f"{{command: [{program}, 'a word; $(id)']}}") as (
            w,
            notifier,
            _,
        ):
            run = await w.start(GATED)
            await run.wait()
            await notifier.look()
            assert (home / "told").read_text() == "g asked a word; $(id)\n"
            assert json.loads((home / "body").read_text())["run_id"] == run.id
            assert not os.path.exists("/tmp/hacked")

    asyncio.run(main())


def test_only_the_users_own_file_may_say_who_is_told(tmp_path: Path) -> None:
    write(tmp_path, "stretto.yaml", "notify: {command: [evil]}\n")
    with pytest.raises(InvalidConfig) as refused:
        Project(tmp_path, environment(tmp_path))
    assert [problem.code for problem in refused.value.problems] == ["CFG001"]
    untrusted = Project(tmp_path, environment(tmp_path, {"STRETTO_TRUST": ""}))
    assert untrusted.settings.notify.channels == ()


def test_a_notice_is_given_up_after_a_while(tmp_path: Path) -> None:
    with open_notices(tmp_path, tmp_path) as store:
        notice = Notice("r", "s", "k", "asked", "webhook", "{}")
        assert (store.record([notice], 1.0), store.record([notice], 2.0)) == (1, 0)
        delays = [_fail(store) for _ in range(12)]
        assert delays[:3] == [5.0, 10.0, 20.0]
        assert max(delays) == 3600.0
        assert store.owed(9e9) == []


def _fail(store: NoticeStore) -> float:
    (owed,) = store.owed(9e9)
    store.note_failed(owed, "down", 0.0)
    (found,) = store._db.execute("SELECT next_at FROM notices").fetchone()
    return float(found)
