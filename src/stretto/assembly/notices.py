"""Tell people that a step awaits them: by posting to an address, or by a program of the user's own.

In: the runs of the user, look by look. Out: notices on record, sent at least once. A run never waits for
one: all of it happens beside the runs, and what could not be sent is tried again, also by the next
process.
"""

import asyncio
import json
import logging
import os
import signal
import sqlite3
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from stretto.events.attempts import RunTimer, StepTimer
from stretto.events.model import ApprovalRequested, Event, TimerFired
from stretto.problems.errors import StrettoError
from stretto.processes.programs import find_command
from stretto.report.gate import gate_of
from stretto.schedule.status import deadline_of, is_overdue
from stretto.text.short import shorten
from stretto.triggers.arrivals import signature
from stretto.triggers.notices import Notice, NoticeStore, open_notices
from stretto.vocabulary.amounts import iso
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import StepId

if TYPE_CHECKING:
    from stretto.assembly.engine import Engine
    from stretto.config.settings import NotifySettings
    from stretto.execution.history import History
    from stretto.execution.runs import Runs
    from stretto.schedule.state import RunState, StepState

_LOOK_SECONDS = 1.0
_SEND_SECONDS = 30.0
_ASKED_SECONDS = 30 * 86_400.0  # for so long a question is remembered
_LONGEST_PROMPT = 4_000
_INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "USER", "DISPLAY", "DBUS_SESSION_BUS_ADDRESS")
_T = TypeVar("_T")
_log = logging.getLogger("stretto.notices")


class Notifier:
    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._changed: set[str] = set()  # runs driven here whose questions are to be looked at
        self._looked_at: set[str] = set()  # runs that nobody drove at the last look
        self._remind_at: dict[str, float] = {}
        self._cursor: int | None = None  # of the news that were looked at last

    @property
    def _settings(self) -> "NotifySettings":
        return self._engine.project.settings.notify

    async def serve(self) -> None:
        """Until it is cancelled; at once where nobody is to be told."""
        if not self._settings.channels:
            return
        self._engine.listeners.append(self._hear)
        try:
            while True:
                try:
                    await self.look()
                except (StrettoError, OSError, sqlite3.Error) as error:  # the next look may work
                    _log.warning("notices: %s", error)
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            self._engine.listeners.remove(self._hear)

    def _hear(self, event: Event, state: "RunState") -> None:
        is_late = isinstance(event, TimerFired) and isinstance(event.timer, RunTimer | StepTimer)
        if isinstance(event, ApprovalRequested) or is_late:
            self._changed.add(state.run_id)

    async def look(self) -> None:
        """Record what is owed now, and send it."""
        now = self._engine.now()
        self._changed.update(await self._candidates(now))
        for run_id in sorted(self._changed):
            self._changed.discard(run_id)
            try:
                await self._record_owed(run_id, now)
            except (StrettoError, OSError, sqlite3.Error) as error:
                _log.warning("notices: run %s: %s", run_id, error)
                self._changed.add(run_id)  # for the next look
        for notice in await self._with_store(lambda store: store.owed(time.time())):
            await self._send(notice)

    async def _record_owed(self, run_id: str, now: float) -> None:
        try:
            history = await self._engine.history(run_id)
        except StrettoError:  # one journal that cannot be read must not silence the others
            return
        self._remind_at[run_id] = self._next_reminder(history.state, now)
        if notices := await self._with_store(lambda store: self._find_owed(history, store)):
            await self._with_store(lambda store: store.record(notices, time.time()))

    async def _candidates(self, now: float) -> set[str]:
        runs = await self._engine.runs_of()
        rows = await runs.unended()
        continued = await self._find_continued(runs)
        left: set[str] = {row.run_id for row in rows if runs.is_interrupted(row)}
        new = left - self._looked_at
        self._looked_at = left
        open_runs = {row.run_id for row in rows}
        self._remind_at = {id: at for id, at in self._remind_at.items() if id in open_runs}
        due = {id for id, at in self._remind_at.items() if at <= now}
        return {*new, *due, *continued}

    async def _find_continued(self, runs: "Runs") -> set[str]:
        """Runs of which people were asked and that have new events since, also of another process: it may
        have seen a deadline pass, and tells nobody."""
        since = time.time() - _ASKED_SECONDS
        asked = await self._with_store(lambda store: store.find_runs_asked(since))
        news = await runs.news(self._cursor)
        is_first, self._cursor = self._cursor is None, news.cursor
        return asked if is_first or not news.is_whole else asked.intersection(news.run_ids)

    def _next_reminder(self, state: "RunState", now: float) -> float:
        dues = [deadline_of(state, step) for step in state.awaiting_approval]
        moments = [due - self._settings.remind_seconds for due in dues if due is not None]
        return min((at for at in moments if at > now), default=float("inf"))

    def _find_owed(self, history: "History", store: NoticeStore) -> list[Notice]:
        state, now, found = history.state, self._engine.now(), list[Notice]()
        for step in state.awaiting_approval.values():
            found += self._notices(state, step, "asked")
            due = deadline_of(state, step.id)
            if due is not None and due - self._settings.remind_seconds <= now < due:
                found += self._notices(state, step, "reminder")
            if is_overdue(state, step.id, now):
                found += self._notices(state, step, "lapsed")
        for id, key in _find_lapsed(history).items():
            for asked in store.find_asked(state.run_id, id, key):
                text = json.dumps({**asked.content, "about": "lapsed", "prompts": []})
                found.append(replace(asked, about="lapsed", text=text))
        return found

    def _notices(self, state: "RunState", step: "StepState", about: str) -> list[Notice]:
        text = json.dumps(self._content(state, step, about))
        channels = self._settings.channels
        key = step.asked_key
        return [Notice(state.run_id, step.id, key, about, each, text) for each in channels]

    def _content(self, state: "RunState", step: "StepState", about: str) -> dict[str, Json]:
        prompts: list[Json] = []
        if step.awaits_approval:
            prompts = [shorten(each.prompt, _LONGEST_PROMPT) for each in gate_of(state, step).parts]
        return {
            "type": "approval",
            "about": about,
            "run_id": state.run_id,
            "workflow": state.plan.name,
            "step": step.id,
            "key": step.asked_key,
            "deadline": iso(deadline_of(state, step.id)),
            "prompts": prompts,
            "approve": f"stretto approve {state.run_id} {step.id}",
            "reject": f"stretto reject {state.run_id} {step.id}",
        }

    async def _send(self, notice: Notice) -> None:
        try:
            async with asyncio.timeout(_SEND_SECONDS):
                if notice.channel == "webhook":
                    await self._post(notice)
                else:
                    await self._run_command(notice)
        except Exception as error:  # of the network, of a program, of a bad address
            fault = f"{type(error).__name__}: {error}"
            fault = self._engine.project.redactor.text(fault)
            _log.warning("notices: run %s, step %s: %s", notice.run_id, notice.step, fault)
            await self._with_store(lambda store: store.note_failed(notice, fault, time.time()))
        else:
            await self._with_store(lambda store: store.note_sent(notice, time.time()))

    async def _post(self, notice: Notice) -> None:
        import httpcore2

        url, body = self._settings.url, notice.text.encode()
        if urlsplit(url).scheme not in ("http", "https"):
            raise ValueError("notify.url must begin with http:// or https://")
        stamp = str(int(time.time()))
        headers = [("Content-Type", "application/json"), ("X-Stretto-Timestamp", stamp)]
        if name := self._settings.secret_variable:
            secret = self._engine.project.environ.get(name)
            if not secret:
                raise ValueError(f"the environment variable {name} is not set")
            headers.append(("X-Stretto-Signature", signature(secret, stamp, body)))
        async with httpcore2.AsyncConnectionPool(max_connections=1) as pool:
            answer = await pool.request("POST", url, headers=headers, content=body)
        if not 200 <= answer.status < 300:
            raise ValueError(f"it answered {answer.status}")

    async def _run_command(self, notice: Notice) -> None:
        settings, words = self._engine.project.settings, self._settings.command
        environ = self._engine.project.environ
        program = find_command(words[0], settings.home, environ.get("PATH"), settings.steps_write)
        if program is None:
            raise ValueError(f"there is no program '{words[0]}' outside the workspace")
        told = notice.content
        names = ("about", "run_id", "workflow", "step", "deadline")
        # What a recipe says is a value, and never a word of the command.
        values = {f"STRETTO_{name.upper()}": str(told[name] or "") for name in names}
        kept = {name: environ[name] for name in _INHERITED if name in environ}
        child = await asyncio.create_subprocess_exec(
            program, *words[1:], cwd=settings.home, env={**kept, **values},
            stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            await child.communicate(notice.text.encode())
        except BaseException:
            _kill(child.pid)
            raise
        if child.returncode:
            raise ValueError(f"the program ended with {child.returncode}")

    async def _with_store(self, work: Callable[[NoticeStore], _T]) -> _T:
        settings = self._engine.project.settings

        def do() -> _T:
            with open_notices(settings.home, settings.project) as store:
                return work(store)

        return await asyncio.to_thread(do)


def _find_lapsed(history: "History") -> dict[StepId, str]:
    """The questions that a deadline has ended before a person did, by step: their keys."""
    asked, lapsed = dict[StepId, str](), dict[StepId, str]()
    for event in history.events:
        if isinstance(event, ApprovalRequested):
            asked[event.step] = event.key
        elif isinstance(event, TimerFired) and isinstance(event.timer, RunTimer | StepTimer):
            timer = event.timer
            lapsed |= {
                id: key
                for id, key in asked.items()
                if isinstance(timer, RunTimer) or f"{id}/".startswith(f"{timer.step}/")
            }
    steps = history.state.steps
    return {
        id: key
        for id, key in lapsed.items()
        if steps[id].ended_at is not None and all(each.void for each in steps[id].decisions)
    }


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
