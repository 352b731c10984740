"""What a project's triggers fire: by policy, once, and on record before anything starts."""

import asyncio
import fcntl
import json
import os
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from stretto.assembly.project import Project
from stretto.assembly.request import RunRequest
from stretto.assembly.surface import Surface
from stretto.assembly.trigger_loop import new_fire
from stretto.assembly.triggers import Triggers
from stretto.problems.errors import (
    InvalidInputs,
    InvalidUsage,
    NotFound,
    PermissionDenied,
    RefusedToOverwrite,
)
from stretto.triggers.arrivals import signature
from stretto.triggers.store import TriggerStore
from stretto.triggers.trigger import Trigger, TriggerFire
from stretto.vocabulary.names import RunId
from support.cli import environment, write

NOON = datetime(2026, 6, 1, 12, 0, 30, tzinfo=UTC).timestamp()
HOUR = 3600.0


@dataclass
class Bench:
    """A project whose wall clock is turned by hand."""

    stretto: Surface
    folder: Path
    now: float = NOON
    told: list[TriggerFire] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.triggers: Triggers = self.stretto.triggers
        self.triggers.wall = lambda: self.now
        self.loop = self.triggers._loop(self.told.append)

    async def at(self, seconds: float) -> list[str]:
        """What became of the fires of one look, so many seconds after the start."""
        self.now = NOON + seconds
        self.told.clear()
        await self.loop.look()
        return [fire.status for fire in self.told]

    async def finish(self) -> list[str]:
        for fire in self.told:
            if fire.status == "started":
                await self.stretto.open(fire.run_id).wait()
        return [each.status for each in await self.stretto.runs()]


@asynccontextmanager
async def bench(folder: Path, script: str = "default: ok", **env: str) -> AsyncIterator[Bench]:
    write(folder, "script.yaml", script)
    write(folder, "stretto.yaml", f"model: scripted:{folder}/script.yaml\n")
    write(
        folder,
        "workflows/w.yaml",
        "name: w\ninputs: [{name: topic, default: tea}, {name: n, type: number, default: 1}]\n"
        'steps: [{id: a, subagent: writer, prompt: "{{inputs.topic}}"}]\n',
    )
    environ = environment(folder, env)
    async with Surface(lambda found: Project(found or folder, environ)) as stretto:
        yield Bench(stretto, folder)


SLOW = "replies: {a: {reply: late, delay: 10m}}"


def test_a_schedule_fires_when_it_is_due_and_not_before(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            await it.triggers.add_schedule("hourly", "w", "0 * * * *", inputs={"topic": "looms"})
            assert await it.at(10) == []
            assert await it.at(HOUR) == ["started"]
            assert await it.at(HOUR + 1) == []
            assert await it.at(30) == []  # somebody has set the clock back
            assert await it.at(HOUR + 2) == []  # and nothing fires twice
            assert await it.at(2 * HOUR) == ["started"]
            await it.finish()
            report = await it.stretto.open(it.told[0].run_id).report()
            assert (report.trigger, report.inputs["topic"]) == ("schedule hourly", "looms")
            fires = await it.triggers.fires("hourly")
            assert [each.key for each in fires] == [
                "2026-06-01T14:00:00+00:00",
                "2026-06-01T13:00:00+00:00",
            ]

    asyncio.run(main())


def test_one_look_starts_a_hundred_runs_and_the_next_ones_the_rest(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            await it.triggers.add_schedule("s", "w", "0 0 1 1 *", overlap="allow")
            trigger = await it.triggers.show("s")
            fires = [new_fire(trigger, f"k{n}", NOON, NOON) for n in range(150)]
            await it.triggers._with_store(lambda store: store.record("s", fires))

            async def launch(prepared: object, listener: object) -> Any:
                return None

            it.loop._launch = launch
            assert await it.at(1) == ["started"] * 100
            assert await it.at(2) == ["started"] * 50
            assert await it.at(3) == []

    asyncio.run(main())


@pytest.mark.parametrize("fails_at", ["read", "lock"])
def test_a_look_that_fails_is_not_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: str
) -> None:
    faults = [OSError(37, "No locks available"), sqlite3.OperationalError("disk I/O error")]
    real_all, real_flock = TriggerStore.all, fcntl.flock

    def read(store: TriggerStore) -> list[Trigger]:
        if fails_at == "read" and faults:
            raise faults.pop()
        return real_all(store)

    def lock(file: int, how: int) -> None:
        if fails_at == "lock" and len(faults) == 2:
            raise faults.pop(0)
        real_flock(file, how)

    async def main() -> None:
        async with bench(tmp_path) as it:
            await it.triggers.add_schedule("hourly", "w", "0 * * * *")
            it.now = NOON + HOUR
            monkeypatch.setattr(TriggerStore, "all", read)
            monkeypatch.setattr("stretto.assembly.trigger_loop.fcntl.flock", lock)
            monkeypatch.setattr("stretto.assembly.trigger_loop._STANDBY_SECONDS", 0.01)
            monkeypatch.setattr("stretto.assembly.trigger_loop._TICK_SECONDS", 0.01)
            serving = asyncio.create_task(it.loop.run())
            async with asyncio.timeout(20):
                while not it.told:
                    assert not serving.done()
                    await asyncio.sleep(0.01)
            serving.cancel()
            await asyncio.wait([serving])
            assert len(faults) == (0 if fails_at == "read" else 1)
            await it.finish()

    asyncio.run(main())


def test_a_fire_whose_run_has_begun_is_not_given_up(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            await it.triggers.add_schedule("hourly", "w", "0 * * * *")
            unstarted = await it.triggers.fire("hourly", is_started_here=True)
            await it.triggers.give_up(unstarted, "no model")
            assert await it.at(HOUR) == ["started"]
            await it.triggers.give_up(it.told[0], "no model")
            fires = await it.triggers.fires("hourly")
            assert {(each.run_id, each.status, each.why) for each in fires} == {
                (it.told[0].run_id, "started", ""),
                (unstarted.run_id, "failed", "no model"),
            }
            await it.finish()

    asyncio.run(main())


def test_a_fire_whose_process_was_killed_before_its_run_began_has_failed(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            trigger = await it.triggers.add_schedule("hourly", "w", "0 * * * *")
            noted = await it.triggers.fire("hourly", is_started_here=True)
            await it.triggers.note_begun(noted)
            alive = await it.triggers.fire("hourly", is_started_here=True)
            # The name of a process that had this pid once.
            dead = re.sub(r" \S+\) ", " 1) ", alive.starter)
            made = [new_fire(trigger, f"now:{each}", NOON, NOON) for each in range(2)]
            killed, begun = (replace(each, status="started", starter=dead) for each in made)
            await it.triggers._with_store(lambda store: store.record("hourly", [killed, begun]))
            request = RunRequest("w", run_id=RunId(begun.run_id))
            run = await it.stretto.launch(await it.stretto.prepare(request))
            for _ in range(2):
                fires = await it.triggers.fires("hourly")
                assert {each.run_id: (each.status, each.why) for each in fires} == {
                    noted.run_id: ("started", ""),
                    alive.run_id: ("started", ""),
                    killed.run_id: ("failed", "the process that was starting its run was killed"),
                    begun.run_id: ("started", ""),
                }
            await run.wait()

    asyncio.run(main())


def test_a_pause_fires_nothing_and_nothing_is_made_up_for(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            await it.triggers.add_schedule("hourly", "w", "0 * * * *", missed="all")
            await it.triggers.pause("hourly")
            assert await it.at(3 * HOUR) == []
            assert await it.triggers.next("hourly") == ()
            await it.triggers.resume("hourly")
            assert await it.at(3 * HOUR + 1) == []
            assert await it.at(4 * HOUR) == ["started"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("missed", "became"),
    [("skip", ["skipped"] * 3), ("once", ["skipped"] * 2 + ["started"]), ("all", ["started"] * 3)],
)
def test_missed_fires_are_on_record_whatever_becomes_of_them(
    tmp_path: Path, missed: str, became: list[str]
) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            await it.triggers.add_schedule("h", "w", "0 * * * *", missed=missed, overlap="allow")
            await it.at(3 * HOUR + 1800)  # the laptop was asleep
            fires = await it.triggers.fires("h")
            assert [each.status for each in reversed(fires)] == became
            assert all(each.why for each in fires if each.status == "skipped")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("overlap", "second", "ended"),
    [
        ("skip", ["skipped"], ["running"]),
        ("queue", [], ["running"]),
        ("allow", ["started"], ["running", "running"]),
        ("cancel-previous", ["started"], ["running", "cancelled"]),
    ],
)
def test_a_fire_while_the_last_run_goes_on_follows_the_policy(
    tmp_path: Path, overlap: str, second: list[str], ended: list[str]
) -> None:
    async def main() -> None:
        async with bench(tmp_path, SLOW) as it:
            await it.triggers.add_schedule("h", "w", "0 * * * *", overlap=overlap)
            assert await it.at(HOUR) == ["started"]
            first = it.told[0].run_id
            assert await it.at(2 * HOUR) == second
            assert [each.status for each in await it.stretto.runs()] == ended
            if overlap == "queue":
                await it.stretto.open(first).cancel()
                assert await it.at(2 * HOUR + 1) == ["started"]

    asyncio.run(main())


def test_a_run_that_cannot_start_is_on_record_with_the_reason(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            await it.triggers.add_schedule("h", "w", "0 * * * *")
            (tmp_path / "workflows/w.yaml").unlink()
            assert await it.at(HOUR) == ["failed"]
            fire = (await it.triggers.fires("h"))[0]
            assert "there is no workflow" in fire.why
            assert await it.stretto.runs() == []

    asyncio.run(main())


def test_a_fire_whose_process_died_before_or_after_the_start_starts_one_run(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            await it.triggers.add_schedule("h", "w", "0 * * * *", overlap="allow")
            it.now = NOON + HOUR
            # Recorded, and nothing else: as after a kill at once.
            await it.triggers._with_store(it.loop._record_due)
            assert await it.stretto.runs() == []
            again = Bench(it.stretto, tmp_path, now=it.now)
            await again.loop.look()
            assert len(await it.stretto.runs()) == 1
            # Started, and not settled.
            fire = again.told[0]
            await it.triggers._with_store(lambda store: store.settle(fire, "queued"))
            await Bench(it.stretto, tmp_path, now=it.now).loop.look()
            assert len(await it.stretto.runs()) == 1
            assert [each.status for each in await it.triggers.fires("h")] == ["started"]

    asyncio.run(main())


def test_files_fire_once_they_have_settled_and_once_for_each_version(tmp_path: Path) -> None:
    async def main() -> None:
        write(tmp_path, "inbox/old.txt", "here before")
        write(
            tmp_path,
            "workflows/f.yaml",
            "name: f\ninputs: [{name: file, type: file_path, required: true}]\n"
            'steps: [{id: a, subagent: writer, prompt: "{{inputs.file}}"}]\n',
        )
        async with bench(tmp_path) as it:
            await it.triggers.add_folder(
                "in",
                "f",
                "inbox",
                input="file",
                pattern="*.txt",
                settle_seconds=0.05,
                overlap="allow",
            )
            assert await _look(it) == []
            write(tmp_path, "inbox/new.txt", "one")
            write(tmp_path, "inbox/other.md", "not wanted")
            write(tmp_path, "inbox/.hidden.txt", "nor this")
            (tmp_path / "inbox/link.txt").symlink_to("/etc/passwd")
            (tmp_path / "inbox/folder.txt").mkdir()
            assert await _look(it) == ["inbox/new.txt"]
            assert await _look(it) == []
            write(tmp_path, "inbox/new.txt", "another version")
            assert await _look(it) == ["inbox/new.txt"]
            write(tmp_path, "inbox/old.txt", "changed")
            write(tmp_path, "inbox/ {{inputs.x}};$(id).txt", "a hostile name")
            assert await _look(it) == ["inbox/ {{inputs.x}};$(id).txt", "inbox/old.txt"]
            with pytest.raises(InvalidUsage):
                await it.triggers.add_folder("out", "f", "/tmp", input="file")
            with pytest.raises(InvalidUsage):
                await it.triggers.add_folder("no", "f", "nowhere", input="file")

    asyncio.run(main())


def test_a_file_whose_name_is_no_text_is_told_and_stops_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "inbox").mkdir()
        async with bench(tmp_path) as it:
            await it.triggers.add_schedule("hourly", "w", "0 * * * *")
            given: dict[str, Any] = {"settle_seconds": 0.05, "overlap": "allow"}
            await it.triggers.add_folder("in", "w", "inbox", input="topic", **given)
            (tmp_path / os.fsdecode(b"inbox/bad\xff.txt")).write_text("x")
            write(tmp_path, "inbox/good.txt", "x")
            await it.at(1)
            await asyncio.sleep(0.1)
            assert await it.at(HOUR) == ["started", "started"]
            bad, good = sorted(await it.triggers.fires("in"), key=lambda each: each.key)
            assert (bad.status, bad.key[:11]) == ("failed", r"bad\xff.txt")
            assert "UTF-8" in bad.why
            assert (good.status, good.inputs) == ("started", {"topic": "inbox/good.txt"})
            assert await it.at(HOUR + 1) == []

    asyncio.run(main())


@pytest.mark.parametrize(("column", "value"), [("zone", "No/Where"), ("cron", "x"), ("cron", "")])
def test_a_trigger_that_cannot_be_read_stops_no_other(
    tmp_path: Path, column: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            for name in ("a-broken", "b-sound"):
                # The run before may still be at work where the machine is busy.
                await it.triggers.add_schedule(name, "w", "0 * * * *", overlap="allow")
            await it.at(1)
            with closing(sqlite3.connect(tmp_path / "home" / "triggers.db")) as db:
                db.execute(f"UPDATE triggers SET {column} = ? WHERE name = 'a-broken'", (value,))
                db.commit()
            assert await it.at(HOUR) == ["started"]
            assert await it.at(2 * HOUR) == ["started"]

    asyncio.run(main())
    assert caplog.text.count("schedule a-broken") == 1


FILED = (
    "name: f\ninputs: [{name: file, type: file_path, required: true}, {name: other, type: file_path}]\n"
    'steps: [{id: a, subagent: writer, prompt: "{{inputs.file}} {{inputs.other}}"}]\n'
)


def test_a_watched_folder_is_changed_and_files_that_are_there_count_if_asked(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        for path in ("inbox/a.txt", "second/b.txt", "second/c.md"):
            write(tmp_path, path, "here before")
        write(tmp_path, "workflows/f.yaml", FILED)
        async with bench(tmp_path) as it:
            given = {"settle_seconds": 0.05, "overlap": "allow"}
            await it.triggers.add_folder("in", "f", "inbox", input="file", pattern="*.txt", **given)
            made = await it.triggers.change("in", folder="second")
            assert made.folder == str(tmp_path.resolve() / "second")
            assert await _look(it) == []
            write(tmp_path, "inbox/new.txt", "in the folder that it watched before")
            write(tmp_path, "second/new.txt", "in the one that it watches now")
            assert await _look(it) == ["second/new.txt"]
            await it.triggers.change("in", pattern="*")
            assert await _look(it) == []
            write(tmp_path, "second/c.md", "changed since")
            assert await _look(it) == ["second/c.md"]
            await it.triggers.change("in", folder="inbox", pattern="n*", existing=True)
            assert await _look(it) == ["inbox/new.txt"]
            await it.triggers.change("in", input="other", inputs={"file": "inbox/a.txt"})
            write(tmp_path, "inbox/next.txt", "one")
            await it.at(0)
            await asyncio.sleep(0.08)
            await it.at(0)
            assert [fire.inputs for fire in it.told] == [{"other": "inbox/next.txt"}]
            for wrong in ({"folder": "/tmp"}, {"folder": "nowhere"}, {"input": "nobody"}):
                with pytest.raises(InvalidUsage):
                    await it.triggers.change("in", **wrong)
            assert (await it.triggers.show("in")).input == "other"

    asyncio.run(main())


def test_a_file_that_has_just_come_is_waited_for_through_a_change(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "inbox").mkdir()
        write(tmp_path, "workflows/f.yaml", FILED)
        async with bench(tmp_path) as it:
            given = {"settle_seconds": 0.05, "overlap": "allow"}
            await it.triggers.add_folder("in", "f", "inbox", input="file", pattern="*.txt", **given)
            write(tmp_path, "inbox/new.txt", "one")
            await it.at(0)
            await it.triggers.change("in", pattern="*")
            await asyncio.sleep(0.08)
            await it.at(0)
            assert [fire.inputs["file"] for fire in it.told] == ["inbox/new.txt"]

    asyncio.run(main())


async def _look(it: Bench) -> list[object]:
    await it.at(0)
    await asyncio.sleep(0.08)
    assert set(await it.at(0)) <= {"started"}
    return sorted(fire.inputs["file"] for fire in it.told)


def test_a_delivery_starts_one_run_with_what_its_body_says(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            mapping = {"topic": "{{body.issue.title}}", "n": "{{body.count}}"}
            made = await it.triggers.add_webhook("hook", "w", mapping=mapping)
            hook, stamp = made.trigger.hook, str(int(it.now))

            async def send(value: object, secret: str = made.secret) -> TriggerFire:
                body = json.dumps(value).encode()
                signed = signature(secret, stamp, body)
                return await it.triggers.deliver(hook, stamp, signed, body)

            body = {"issue": {"title": "Looms"}, "count": 3}
            fire = await send(body)
            with pytest.raises(RefusedToOverwrite):
                await send(body)
            with pytest.raises(PermissionDenied):
                await send(body, "guessed")
            with pytest.raises(InvalidInputs):
                await send({"issue": {"title": "x"}, "count": "many"})
            with pytest.raises(NotFound):
                await it.triggers.deliver("nowhere", stamp, "", b"")
            assert await it.at(1) == ["started"]
            await it.finish()
            report = await it.stretto.open(fire.run_id).report()
            assert (report.status, report.trigger) == ("complete", "webhook hook")
            assert dict(report.inputs) == {"topic": "Looms", "n": 3}
            # A new secret, and the old one counts no more.
            renewed = await it.triggers.rotate("hook")
            with pytest.raises(PermissionDenied):
                await send({"issue": {"title": "y"}})
            await send({"issue": {"title": "y"}}, renewed.secret)
            assert (tmp_path / "home/triggers.db").stat().st_mode & 0o077 == 0

    asyncio.run(main())


SECRET = "hunter2-hunter2-hunter2"
COMMAND = """\
name: shell
inputs: [{name: topic, default: tea}]
steps: [{id: a, run: 'echo "$TOPIC"', env: {TOPIC: "{{inputs.topic}}"}}]
"""


def test_a_secret_in_a_delivery_is_kept_nowhere(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path, DEPLOY_TOKEN=SECRET) as it:
            write(tmp_path, "workflows/shell.yaml", COMMAND)

            async def send(workflow: str, mapping: dict[str, str] | None = None) -> TriggerFire:
                name = f"{workflow}-{len(mapping or {})}"
                made = await it.triggers.add_webhook(name, workflow, mapping=mapping)
                body = json.dumps({"topic": f"with {SECRET}.", "other": SECRET}).encode()
                stamp = str(int(it.now))
                signed = signature(made.secret, stamp, body)
                return await it.triggers.deliver(made.trigger.hook, stamp, signed, body)

            for mapping in (None, {"topic": "{{body.topic}} and {{body.other}}"}):
                fire = await send("w", mapping)
                kept = json.dumps(dict(fire.inputs))
                assert ("with [redacted]" in kept, SECRET in kept) == (True, False)
                assert await it.at(1) == ["started"]
                await it.finish()
                report = await it.stretto.open(fire.run_id).report()
                assert report.status == "complete"
                assert "held a secret" in str(report.recipe_warnings)
            # A program would compute with what is not there: who sends it is told at once.
            with pytest.raises(InvalidInputs, match="DEPLOY_TOKEN"):
                await send("shell")
            assert await it.triggers.fires("shell-0") == ()
        for file in (tmp_path / "home").rglob("*"):
            assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file

    asyncio.run(main())


def test_a_clock_that_was_ahead_and_is_put_right_misses_no_hour(tmp_path: Path) -> None:
    """The schedule was made while the clock was wrong: its hours come again, and nothing had fired then."""

    async def main() -> None:
        async with bench(tmp_path) as it:
            await it.triggers.add_schedule("hourly", "w", "0 * * * *")
            assert await it.at(1) == []
            fired = {}
            for minutes in range(-170, 200, 10):  # from 09:10:30 on, when noon had not been
                for _ in await it.at(60 * minutes):
                    fired[it.now] = fired.get(it.now, 0) + 1
            hours = [datetime.fromtimestamp(at, UTC).strftime("%H:%M") for at in fired]
            assert hours == [f"{hour}:00" for hour in range(10, 16)]
            assert set(fired.values()) == {1}
            on_record = await it.triggers.fires("hourly")
            assert len({each.due_at for each in on_record}) == len(on_record) == len(hours)

    asyncio.run(main())
